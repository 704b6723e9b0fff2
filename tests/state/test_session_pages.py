"""Pages of session lists, for every file format, at a cost independent of the history."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from hermes_state import SessionDB
from hermes_state.sessions.pages import PagePosition, SessionPage, SessionPageFilter

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FIRST_START = 1_780_000_000.0


@pytest.fixture
def db() -> Iterator[SessionDB]:
    with SessionDB() as db:
        yield db


def fill(db: SessionDB, number: int) -> None:
    for n in range(number):
        db.create_session(f"s{n:04}", "cli", started_at=FIRST_START + n, is_owned=False)


def all_pages(db: SessionDB, choice: SessionPageFilter, limit: int) -> list[str]:
    ids: list[str] = []
    page = db.pages.page(choice, limit)
    while True:
        ids += [row.id for row in page.rows]
        if page.next is None:
            return ids
        page = db.pages.page(choice, limit, page.next)


def test_pages_equal_the_unpaged_list(db: SessionDB) -> None:
    fill(db, 57)
    db.delete_session("s0003")
    db.set_session_archived("s0004")
    listed = [row["id"] for row in db.list_sessions_rich(limit=-1, order_by_last_active=True)]
    assert all_pages(db, SessionPageFilter(), 10) == listed
    assert db.pages.count(SessionPageFilter()) == len(listed) == 55
    assert len(all_pages(db, SessionPageFilter(state="all"), 10)) == 57
    assert db.pages.count(SessionPageFilter(state="all")) == 57


def test_a_page_reads_only_its_rows(db: SessionDB) -> None:
    """The query plan seeks the position in the index and does not sort."""
    fill(db, 300)
    queries: list[tuple[str, tuple[Any, ...]]] = []

    def explain(reader: Any) -> list[str]:
        from hermes_state.sessions import pages  # noqa: PLC0415 - only this test looks inside

        class RecordingReader:
            columns = reader.columns
            prepared = reader.prepared

            def rows(self, sql: str, values: tuple[Any, ...]) -> list[Any]:
                queries.append((sql, tuple(values)))
                return []

        pages.read_page(
            RecordingReader(), SessionPageFilter(), 50, PagePosition(FIRST_START + 200, "s0200")
        )  # type: ignore[arg-type]
        sql, values = queries[0]
        return [row[-1] for row in reader.rows(f"EXPLAIN QUERY PLAN {sql}", values)]

    plan = db.engine.read(explain)
    assert "hermes_session_index_recent (shown=? AND (last_activity,session_id)<(?,?))" in plan[0]
    assert not any("TEMP B-TREE" in step or step.startswith("SCAN") for step in plan)


def test_a_history_of_an_older_program_can_be_paged(shared_data: Path, tmp_path: Path) -> None:
    for name in ("state-schema16.db", "state-schema26.db"):
        copy = tmp_path / name
        copy.write_bytes((shared_data / name).read_bytes())
        with SessionDB(copy) as db:
            assert db.wait_for_index(30)
            listed = [r["id"] for r in db.list_sessions_rich(limit=-1, order_by_last_active=True)]
            assert all_pages(db, SessionPageFilter(), 3) == listed
            for session_id in listed:
                page = db.transcripts.page(session_id)
                assert page.rows or not db.message_count(session_id)
            db.set_session_pinned(listed[0])
            assert all_pages(db, SessionPageFilter(is_pinned=True), 5) == listed[:1]
            assert set(all_pages(db, SessionPageFilter(is_pinned=False), 5)) == set(listed[1:])


def test_a_read_only_file_is_listed_without_an_index(tmp_path: Path) -> None:
    path = tmp_path / "foreign.db"
    with SessionDB(path) as db:
        fill(db, 5)
        tables = db.engine.read(
            lambda r: [row[0] for row in r.rows("SELECT name FROM sqlite_master WHERE type='table'"
                                                " AND name LIKE 'hermes\\_%' ESCAPE '\\'")]
        )  # fmt: skip
        db.engine.write(lambda tx: [tx.run(f"DROP TABLE {name}") for name in tables])
    with SessionDB(path, read_only=True) as db:
        assert all_pages(db, SessionPageFilter(), 2) == [f"s{n:04}" for n in range(5)][::-1]
        assert len(db.totals.per_session()) == 5
        assert db.leases.running() == set()


def test_an_empty_history_has_one_empty_page(db: SessionDB) -> None:
    assert db.pages.page() == SessionPage([], None)
    assert db.pages.items(["nobody"]) == []
