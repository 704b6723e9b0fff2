"""Damage in the schema of another program's search index never hides the history."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from hermes_state.engine.sqlite.driver import sqlite3
from state.foreign_files import (
    foreign_message,
    foreign_session,
    make_schema_16,
    make_schema_26,
    write_as_hermes_agent,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from support.command_line import Hermes

DUPLICATE_ENTRY = """
    INSERT INTO sqlite_master (type, name, tbl_name, rootpage, sql)
    SELECT type, name, tbl_name, rootpage, sql FROM sqlite_master WHERE name = 'messages_fts'
"""
UNREADABLE_ENTRY = (
    "UPDATE sqlite_master SET sql = 'CREATE VIRTUAL TABLE (' WHERE name = 'messages_fts'"
)


@pytest.fixture(params=[make_schema_16, make_schema_26], ids=["schema 16", "schema 26"])
def foreign(request: pytest.FixtureRequest, hermes_home: Path) -> Path:
    make: Callable[[Path], None] = request.param
    path = hermes_home / "state.db"
    make(path)
    write_as_hermes_agent(
        path, [foreign_session("s1", 1.0), foreign_message("s1", "user", "hello there", 1.0)]
    )
    return path


def damage(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute(statement)
    with (
        closing(sqlite3.connect(path)) as connection,
        pytest.raises(sqlite3.DatabaseError, match="malformed database schema"),
    ):
        connection.execute("SELECT 1 FROM sessions")


@pytest.mark.parametrize("statement", [DUPLICATE_ENTRY, UNREADABLE_ENTRY], ids=["twice", "text"])
@pytest.mark.parametrize(
    "arguments",
    [["sessions", "list"], ["sessions", "show", "s1"], ["sessions", "rename", "s1", "New name"]],
    ids=" ".join,
)
def test_the_history_is_opened_and_the_entries_are_kept(
    hermes: Hermes, foreign: Path, statement: str, arguments: list[str]
) -> None:
    damage(foreign, statement)
    result = hermes(*arguments)
    assert result.code == 0, result.err
    kept = foreign.with_name("state.db.search-set-aside.sql")
    assert "CREATE VIRTUAL TABLE" in kept.read_text()
    assert "hello" in hermes("sessions", "show", "s1").out
    report = hermes("doctor").out
    assert str(kept) in report.replace("\n", "")


def test_an_index_with_a_duplicate_entry_still_works_for_its_program(
    hermes: Hermes, foreign: Path
) -> None:
    damage(foreign, DUPLICATE_ENTRY)
    assert hermes("sessions", "list").code == 0
    write_as_hermes_agent(foreign, [foreign_message("s1", "user", "another word", 2.0)])
    with closing(sqlite3.connect(foreign)) as connection:
        sql = "SELECT count(*) FROM messages_fts WHERE messages_fts MATCH 'another'"
        assert connection.execute(sql).fetchone() == (1,)
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
