"""Pages of lists: from the index, in whatever file, and not slower for a longer history."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from hermes_state import SessionDB
from hermes_state.sessions.pages import PagePosition, SessionPage, SessionPageFilter

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

BEGIN = 1_780_000_000.0


@pytest.fixture
def db() -> Iterator[SessionDB]:
    with SessionDB() as db:
        yield db


def fill(db: SessionDB, number: int) -> None:
    for one in range(number):
        db.create_session(f"s{one:04}", "cli", started_at=BEGIN + one, is_owned=False)


def every_page(db: SessionDB, choice: SessionPageFilter, limit: int) -> list[str]:
    seen: list[str] = []
    page = db.session_page(choice, limit)
    while True:
        seen += [row["id"] for row in page.rows]
        if page.next is None:
            return seen
        page = db.session_page(choice, limit, page.next)


def test_pages_are_what_one_long_list_is(db: SessionDB) -> None:
    fill(db, 57)
    db.delete_session("s0003")
    db.set_session_archived("s0004")
    whole = [row["id"] for row in db.list_sessions_rich(limit=-1, order_by_last_active=True)]
    assert every_page(db, SessionPageFilter(), 10) == whole
    assert db.count_sessions(SessionPageFilter()) == len(whole) == 55
    assert len(every_page(db, SessionPageFilter(state="all"), 10)) == 57
    assert db.count_sessions(SessionPageFilter(state="all")) == 57


def test_a_page_reads_no_more_than_it_shows(db: SessionDB) -> None:
    """The plan seeks the place in the index and sorts nothing."""
    fill(db, 300)
    asked: list[tuple[str, tuple[Any, ...]]] = []

    def look(reader: Any) -> list[str]:
        from hermes_state.sessions import pages  # noqa: PLC0415 - only this test looks inside

        class Spy:
            columns = reader.columns
            prepared = reader.prepared

            def dicts(self, sql: str, values: tuple[Any, ...]) -> list[Any]:
                asked.append((sql, tuple(values)))
                return []

        pages.read_page(Spy(), SessionPageFilter(), 50, PagePosition(BEGIN + 200, "s0200"))  # type: ignore[arg-type]
        sql, values = asked[0]
        return [row[-1] for row in reader.rows(f"EXPLAIN QUERY PLAN {sql}", values)]

    plan = db.engine.read(look)
    assert "hermes_session_index_recent (shown=? AND (last_activity,session_id)<(?,?))" in plan[0]
    assert not any("TEMP B-TREE" in step or step.startswith("SCAN") for step in plan)


def test_a_history_of_an_older_program_can_be_paged(shared_data: Path, tmp_path: Path) -> None:
    for name in ("state-schema16.db", "state-schema26.db"):
        copy = tmp_path / name
        copy.write_bytes((shared_data / name).read_bytes())
        with SessionDB(copy) as db:
            assert db.wait_for_index(30)
            whole = [r["id"] for r in db.list_sessions_rich(limit=-1, order_by_last_active=True)]
            assert every_page(db, SessionPageFilter(), 3) == whole
            for session_id in whole:
                page = db.transcript_page(session_id)
                assert page.rows or not db.message_count(session_id)
            db.set_session_pinned(whole[0])
            assert every_page(db, SessionPageFilter(is_pinned=True), 5) == whole[:1]
            assert set(every_page(db, SessionPageFilter(is_pinned=False), 5)) == set(whole[1:])


def test_a_file_that_may_only_be_read_is_listed_without_an_index(tmp_path: Path) -> None:
    path = tmp_path / "foreign.db"
    with SessionDB(path) as db:
        fill(db, 5)
        tables = db.engine.read(
            lambda r: [row[0] for row in r.rows("SELECT name FROM sqlite_master WHERE type='table'"
                                                " AND name LIKE 'hermes\\_%' ESCAPE '\\'")]
        )  # fmt: skip
        db.engine.write(lambda tx: [tx.run(f"DROP TABLE {one}") for one in tables])
    with SessionDB(path, read_only=True) as db:
        assert every_page(db, SessionPageFilter(), 2) == [f"s{n:04}" for n in range(5)][::-1]
        assert len(db.session_numbers()) == 5
        assert db.running_turns() == set()


def test_an_empty_history_has_one_empty_page(db: SessionDB) -> None:
    assert db.session_page() == SessionPage([], None)
    assert db.session_items(["nobody"]) == []
