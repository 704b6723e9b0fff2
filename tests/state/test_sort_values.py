"""Lists sorted by start, length, tokens, cost and tool errors, a page at a time."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import pytest

from hermes_state import SessionDB
from hermes_state.sessions.pages import SessionPageFilter
from hermes_state.sessions.sort_values import SORT_COLUMNS, PageOrder

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from hermes_state.sessions.records import PagedSession

FIRST_START = 1_780_000_000.0
VALUES = {
    "last_active": lambda row: row.last_active,
    "started": lambda row: row.session.started_at,
    "messages": lambda row: row.session.message_count,
    "tokens": lambda row: row.session.input_tokens + row.session.output_tokens,
    "cost": lambda row: row.session.estimated_cost_usd or 0.0,
    "tool_errors": lambda row: -1 if row.tool_errors is None else row.tool_errors,
}
ORDERS = [PageOrder(*pair) for pair in itertools.product(VALUES, (False, True))]


@pytest.fixture
def db() -> Iterator[SessionDB]:
    with SessionDB() as db:
        yield db


def add(db: SessionDB, number: int, **fields: Any) -> str:
    """A session whose numbers are all in an order of their own, with equal values among them."""
    name = f"s{number:02}"
    start = FIRST_START + number * 5 % 7
    db.create_session(name, "cli", started_at=start, is_owned=False, **fields)
    for _ in range(number * 3 % 5):
        db.append_message(name, "user", f"hello {number}", timestamp=FIRST_START + number)
    cost = number * 7 % 11 / 10
    db.update_token_counts(name, number % 4 * 1000, 5, estimated_cost_usd=cost)
    return name


def rows(
    db: SessionDB, order: PageOrder, choice: SessionPageFilter | None = None
) -> list[PagedSession]:
    found: list[PagedSession] = []
    page = db.pages.page(choice, 3, None, order)
    while page.next is not None:
        found += page.rows
        page = db.pages.page(choice, 3, page.next, order)
    return [*found, *page.rows]


def ids(db: SessionDB, key: str, *, is_ascending: bool = False) -> list[str]:
    return [row.id for row in rows(db, PageOrder(key, is_ascending))]


def assert_sorted(found: list[PagedSession], order: PageOrder) -> None:
    keys = [(VALUES[order.key](row), row.id) for row in found]
    assert keys == sorted(keys, reverse=not order.is_ascending), order


@pytest.mark.engines
def test_every_order_is_complete_and_sorted_over_its_pages(db: SessionDB) -> None:
    names = {add(db, number) for number in range(20)}
    db.sort_values.set_tool_errors({f"s{number:02}": number % 3 for number in range(15)})
    for order in ORDERS:
        found = rows(db, order)
        assert {row.id for row in found} == names
        assert_sorted(found, order)


@pytest.mark.engines
def test_changes_are_in_the_next_list(db: SessionDB) -> None:
    for number in range(6):
        add(db, number)
    assert ids(db, "messages")[0] == "s03"
    for _ in range(9):
        db.append_message("s05", "user", "more")
    assert ids(db, "messages")[0] == "s05"
    db.update_token_counts("s01", 90_000, 0, estimated_cost_usd=50.0)
    assert ids(db, "tokens")[0] == ids(db, "cost")[0] == "s01"
    db.create_session("empty", "cli", started_at=FIRST_START - 5, is_owned=False)
    assert ids(db, "started")[-1] == "empty"
    db.delete_session("s05")
    db.trash.purge("s05")
    assert "s05" not in ids(db, "messages")
    assert [row.tool_errors for row in rows(db, PageOrder("tool_errors"))] == [None] * 6


def test_changes_of_another_program_are_in_the_next_list(db: SessionDB) -> None:
    for number in range(4):
        add(db, number)
    assert ids(db, "cost")[0] == "s03"
    sql = "UPDATE sessions SET estimated_cost_usd = 99.0, input_tokens = 7 WHERE id = 's01'"
    db.engine.write(lambda tx: tx.execute(sql))
    assert ids(db, "cost")[0] == "s01"
    sql = "INSERT INTO sessions (id, source, started_at, message_count) VALUES (?, 'cli', ?, 40)"
    db.engine.write(lambda tx: tx.many(sql, [(f"theirs{n:03}", FIRST_START) for n in range(100)]))
    assert ids(db, "messages")[:100] == [f"theirs{n:03}" for n in range(100)][::-1]


def test_the_start_of_a_continued_conversation_is_that_of_its_first_row(db: SessionDB) -> None:
    add(db, 1)
    db.end_session("s01", "compression")
    db.create_session(
        "tip", "cli", started_at=FIRST_START + 900, parent_session_id="s01", is_owned=False
    )
    db.create_session("other", "cli", started_at=FIRST_START + 300, is_owned=False)
    assert ids(db, "started") == ["other", "tip"]


@pytest.mark.parametrize("state", ["trash", "all", "kept", "archived"])
def test_every_state_is_sorted(db: SessionDB, state: str) -> None:
    for number in range(12):
        add(db, number)
    for name in ("s01", "s02", "s03", "s04"):
        db.delete_session(name)
    for name in ("s05", "s06", "s07", "s08"):
        db.set_session_archived(name)
    for order in ORDERS:
        found = rows(db, order, SessionPageFilter(state=state))
        assert len(found) == {"trash": 4, "all": 12, "kept": 8, "archived": 4}[state]
        assert_sorted(found, order)


def test_a_history_that_is_only_read_is_sorted_without_stored_values(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    with SessionDB(path) as db:
        for number in range(9):
            add(db, number)
    with SessionDB(path, read_only=True) as db:
        for order in ORDERS:
            found = rows(db, order)
            assert len(found) == 9
            assert_sorted(found, order)


@pytest.mark.parametrize("key", SORT_COLUMNS)
def test_a_page_is_read_in_the_order_of_an_index(db: SessionDB, key: str) -> None:
    for number in range(30):
        add(db, number)
    order = PageOrder(key)
    after = db.pages.page(None, 3, None, order).next

    def explain(reader: Any) -> list[str]:
        from hermes_state.sessions import pages  # noqa: PLC0415 - only this test looks inside

        steps: list[str] = []

        class ExplainingReader:
            columns, prepared = reader.columns, reader.prepared

            def rows(self, sql: str, values: tuple[Any, ...]) -> list[Any]:
                steps.extend(row[-1] for row in reader.rows(f"EXPLAIN QUERY PLAN {sql}", values))
                return []

        choice = SessionPageFilter()
        pages.read_page(ExplainingReader(), choice, 3, after, order, is_current=True)  # type: ignore[arg-type]
        return steps

    plan = db.engine.read(explain)
    assert f"hermes_session_sort_{SORT_COLUMNS[key]}" in plan[0]
    assert not any("TEMP B-TREE" in step or step.startswith("SCAN") for step in plan), plan


def test_conversations_are_filtered_by_branch(db: SessionDB) -> None:
    add(db, 1, git_branch="main", cwd="/work/one")
    add(db, 2, git_branch="topic", cwd="/work/one/src", git_repo_root="/work/one")
    assert [row.id for row in db.pages.page(SessionPageFilter(branch="topic")).rows] == ["s02"]
    facets = db.facets.facets()
    assert facets.branches == {"main": 1, "topic": 1}
    assert facets.folders == {"/work/one": 2}
