"""A history is copied completely between a file and PostgreSQL, in both directions."""

from __future__ import annotations

import tracemalloc
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from hermes_core.clock import ManualClock, SystemClock
from hermes_core.errors import StoreError, StoreUnavailableError, UsageError
from hermes_state import SessionDB
from hermes_state.engine.engine import open_database
from hermes_state.portable import store_copy
from hermes_state.portable.store_copy import LEFT_OUT, TABLES, StoreCopy
from hermes_state.schema.base import BASE_TABLES
from hermes_state.schema.migrations import MIGRATIONS, table_names
from state.portable_histories import apply_changes, export

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from hermes_state.engine.database import Database
    from support.postgres import PostgresServer


@pytest.fixture
def url(postgres: PostgresServer) -> Iterator[str]:
    with postgres.history() as address:
        yield address


@contextmanager
def _copying(source: Database, place: str) -> Iterator[StoreCopy]:
    with closing(open_database(place, read_only=False, may_be_unfinished=True)) as target:
        writer = target.open_writer(SystemClock())
        try:
            yield StoreCopy(source, target, writer)
        finally:
            writer.close()


def _copy(source: Database, place: str) -> store_copy.CopyReport:
    with _copying(source, place) as copy:
        return copy.run(lambda *_progress: None)


LONG_TEXT = "long text " * 100_000
HISTORY: list[tuple[Any, ...]] = [
    ("append", 0, "user", "a zero \0 character"),
    ("append", 0, "assistant", [{"type": "text", "text": "é"}]),
    ("append", 0, "user", "half a pair \ud800"),
    ("rich", 1, "call", "thought"),
    ("append", 1, "tool", "result"),
    ("branch", 0, 1),
    ("continue", 1, 2),
    ("undo", 0),
    ("compact", 2, "summary"),
    ("pin", 2),
    ("title", 2, "A title"),
    ("usage", 2, 3, "title"),
    ("meta", 2, "note"),
    ("delete", 3),
    ("append", 4, "user", "to be purged"),
    ("purge", 4),
]


@pytest.fixture
def source(hermes_home: Path) -> Iterator[SessionDB]:
    with SessionDB(hermes_home / "state.db", clock=ManualClock()) as db:
        apply_changes(db, HISTORY)
        yield db


def test_every_table_is_copied_or_left_out_on_purpose() -> None:
    base = {statement.split("CREATE TABLE ")[1].split()[0] for statement in BASE_TABLES}
    known = {table.name for table in TABLES} | LEFT_OUT
    assert base | table_names(MIGRATIONS) <= known


def test_a_history_is_the_same_in_postgresql_and_back_in_a_file(
    source: SessionDB, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    exported = export(source)
    messages = source.get_messages("s0", include_inactive=True)
    copied = _copy(source.engine.database, url)
    assert copied.tables["messages"] == source.message_count()
    with closing(open_database(url, read_only=False)) as database:
        back = tmp_path / "back.db"
        _copy(database, str(back))
    with SessionDB(back) as db:
        assert export(db) == exported
        assert db.get_messages("s0", include_inactive=True) == messages
        assert db.append_message("s0", "user", "new") > messages[-1]["id"]
    source.close()
    monkeypatch.setenv("HERMES_STORE_URL", url)
    with SessionDB() as db:
        assert export(db) == exported
        assert db.append_message("s0", "user", "new") > messages[-1]["id"]
        assert len(db.search_messages("zero")) == 1  # once, although the branch has it, too


def test_an_interrupted_copy_is_continued(
    source: SessionDB, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(500):
        source.append_message("s0", "user", f"message {number}")
    steps: list[int] = []

    def interrupt(_step: str, done: int, _total: int) -> None:
        steps.append(done)
        if len(steps) == 4:
            raise KeyboardInterrupt

    monkeypatch.setattr(store_copy, "SLICE_ROWS", 50)
    with pytest.raises(KeyboardInterrupt), _copying(source.engine.database, url) as copy:
        copy.run(interrupt)
    with pytest.raises(StoreUnavailableError, match="unfinished copy"):
        open_database(url, read_only=True)
    with closing(open_database(url, read_only=True, may_be_unfinished=True)) as database:
        before = _ids(database)
    assert 0 < len(before) < source.message_count() or not before
    _copy(source.engine.database, url)
    with closing(open_database(url, read_only=True)) as database:
        assert _ids(database) == _ids(source.engine.database)


def _ids(database: Database) -> list[Any]:
    return database.read(lambda reader: reader.rows("SELECT id FROM messages ORDER BY id"))


def test_values_that_another_program_stored_as_another_type_are_converted(
    source: SessionDB, url: str
) -> None:
    apply_changes(source, [("foreign", 2, b"bytes", "text"), ("foreign", 2, 7, 1.5)])
    _copy(source.engine.database, url)
    with closing(open_database(url, read_only=True)) as database:
        rows = database.read(
            lambda r: r.rows("SELECT content, token_count FROM messages ORDER BY id DESC LIMIT 2")
        )
    assert rows == [("7", 1), ("bytes", None)]


def test_a_copy_into_another_history_is_refused(
    source: SessionDB, url: str, tmp_path: Path
) -> None:
    _copy(source.engine.database, url)
    with SessionDB(tmp_path / "other.db") as other:
        other.create_session("other", "cli")
        with pytest.raises(UsageError, match="another history"):
            _copy(other.engine.database, url)


def test_long_messages_are_not_held_in_memory(
    source: SessionDB, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_copy, "SLICE_ROWS", 64)
    for number in range(64):
        source.append_message("s0", "user", f"{number} {LONG_TEXT}")

    def copy_and_measure(database: Database, place: str) -> int:
        tracemalloc.start()
        try:
            _copy(database, place)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    total = 64 * len(LONG_TEXT)
    assert copy_and_measure(source.engine.database, url) < total // 2
    with closing(open_database(url, read_only=False)) as database:
        assert copy_and_measure(database, str(tmp_path / "back.db")) < total
        assert _ids(database) == _ids(source.engine.database)


def test_a_copy_that_was_used_since_is_not_overwritten(
    source: SessionDB, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    _copy(source.engine.database, url)
    with monkeypatch.context() as used:
        used.setenv("HERMES_STORE_URL", url)
        source.close()
        with SessionDB() as db:
            db.append_message("s0", "user", "new")
            db.set_session_title("s0", "new title")
    with SessionDB() as original, pytest.raises(UsageError, match="used since"):
        _copy(original.engine.database, url)
    with closing(open_database(url, read_only=True)) as copied:
        title = "SELECT title FROM sessions WHERE id = 's0'"
        assert copied.read(lambda reader: reader.value(title)) == "new title"


def _change(url: str, sql: str) -> None:
    with closing(open_database(url, read_only=False)) as database:
        writer = database.open_writer(SystemClock())
        writer.submit(lambda tx: tx.run(sql))
        writer.close()


def test_a_row_that_differs_is_copied_again(source: SessionDB, url: str) -> None:
    _copy(source.engine.database, url)
    _change(url, "UPDATE messages SET content = 'x' WHERE id = 1")
    _copy(source.engine.database, url)
    with closing(open_database(url, read_only=True)) as database:
        sql = "SELECT content FROM messages WHERE id = 1"
        assert database.read(lambda reader: reader.value(sql)) != "x"


def test_a_row_too_many_is_noticed(source: SessionDB, url: str) -> None:
    _copy(source.engine.database, url)
    _change(url, "INSERT INTO state_meta (key, value) VALUES ('extra', '1')")
    with pytest.raises(StoreError, match="the copy of state_meta differs"):
        _copy(source.engine.database, url)
