"""Errors of SQLite are told apart by their result codes, not by words in their texts."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import pytest

from hermes_core.errors import NotADatabaseError, StatementError, StoreError, StoreUnavailableError
from hermes_state import SessionDB
from hermes_state.engine.sqlite.driver import sqlite3
from hermes_state.engine.sqlite.errors import is_transient, is_write_refused, to_store_error

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

WORDS = (
    "the mailbox is full", "the account is locked", "the note is readonly", "unable to open mail",
    "malformed mail", "this is not a database of mail", "no disk I/O error here",
)  # fmt: skip


def error_of(run: Callable[[], object]) -> sqlite3.Error:
    with pytest.raises(sqlite3.Error) as raised:
        run()
    return raised.value


@pytest.mark.parametrize("text", WORDS)
def test_the_text_of_another_programs_trigger_is_not_an_error_of_the_disk(
    hermes_home: Path, text: str
) -> None:
    with SessionDB() as db:
        db.create_session("s", "cli")
        with contextlib.closing(sqlite3.connect(hermes_home / "state.db")) as other:
            other.execute(
                "CREATE TRIGGER refusal BEFORE INSERT ON messages"
                f" BEGIN SELECT RAISE(ABORT, '{text}'); END"
            )
            other.commit()
        with pytest.raises(StoreError) as raised:
            db.append_message("s", "user", "hello")
    assert type(raised.value) is StatementError
    assert str(raised.value).endswith(text)


def test_a_full_database_a_lock_and_a_read_only_file_are_transient(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with contextlib.closing(sqlite3.connect(path, timeout=0)) as db:
        db.execute("CREATE TABLE t (x)")
        db.execute("PRAGMA max_page_count = 3")
        full = error_of(lambda: db.execute("INSERT INTO t VALUES (zeroblob(100000))"))
        db.rollback()
        with contextlib.closing(sqlite3.connect(path, timeout=0)) as other:
            other.execute("BEGIN IMMEDIATE")
            locked = error_of(lambda: db.execute("BEGIN IMMEDIATE"))
        db.execute("PRAGMA query_only = 1")
        read_only = error_of(lambda: db.execute("INSERT INTO t VALUES (1)"))
    missing = error_of(lambda: sqlite3.connect(tmp_path / "none" / "a.db"))
    for error in (full, locked, read_only, missing):
        assert is_transient(error)
        assert is_write_refused(error)
    assert "a.db is full" in str(to_store_error(full, path))
    assert "is busy" in str(to_store_error(locked, path))
    assert isinstance(to_store_error(read_only, path), StoreUnavailableError)
    assert isinstance(to_store_error(missing, path), StoreUnavailableError)


def test_damage_is_not_transient_and_refuses_writes(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    path.write_text("dear diary\n" * 1000)
    with contextlib.closing(sqlite3.connect(path)) as db:
        foreign = error_of(lambda: db.execute("SELECT * FROM sqlite_master"))
    assert isinstance(to_store_error(foreign, path), NotADatabaseError)
    path.unlink()
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE t (x)")
        db.executemany("INSERT INTO t VALUES (?)", [("x" * 900,) for _ in range(50)])
        db.commit()
    data = bytearray(path.read_bytes())
    data[4096:] = b"\xff" * (len(data) - 4096)
    path.write_bytes(data)
    with contextlib.closing(sqlite3.connect(path)) as db:
        damaged = error_of(lambda: db.execute("SELECT sum(length(x)) FROM t").fetchall())
    assert not is_transient(damaged)
    assert is_write_refused(damaged)
    assert "is damaged" in str(to_store_error(damaged, path))


def test_malformed_json_is_an_error_of_the_statement(tmp_path: Path) -> None:
    with contextlib.closing(sqlite3.connect(tmp_path / "a.db")) as db:
        error = error_of(lambda: db.execute("SELECT json('{')").fetchall())
    assert type(to_store_error(error, tmp_path / "a.db")) is StatementError
    assert not is_write_refused(error)
