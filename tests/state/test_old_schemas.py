"""Histories older than schema 16: read as far as their columns go, never written to."""

from __future__ import annotations

import json
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from hermes_core.errors import StoreUnavailableError
from hermes_state import SessionDB
from hermes_state.engine.sqlite.driver import sqlite3
from state.foreign_files import foreign_message, foreign_session, make_schema_16

if TYPE_CHECKING:
    from pathlib import Path

    from support.command_line import Hermes

OLD_TABLES = (
    "CREATE TABLE schema_version (version INTEGER NOT NULL)",
    "INSERT INTO schema_version VALUES (10)",
    """
    CREATE TABLE sessions (
        id TEXT PRIMARY KEY, source TEXT NOT NULL, user_id TEXT, model TEXT,
        model_config TEXT, system_prompt TEXT, parent_session_id TEXT,
        started_at REAL NOT NULL, ended_at REAL, end_reason TEXT,
        message_count INTEGER DEFAULT 0, tool_call_count INTEGER DEFAULT 0,
        input_tokens INTEGER DEFAULT 0, output_tokens INTEGER DEFAULT 0, title TEXT
    )
    """,
    """
    CREATE TABLE messages (
        id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL, role TEXT NOT NULL,
        content TEXT, tool_call_id TEXT, tool_calls TEXT, tool_name TEXT,
        timestamp REAL NOT NULL, token_count INTEGER, finish_reason TEXT
    )
    """,
)


@pytest.fixture
def old_history(hermes_home: Path) -> Path:
    """Two conversations of a release before schema 16."""
    path = hermes_home / "state.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in OLD_TABLES:
            connection.execute(statement)
        for number in (1, 2):
            sql, values = foreign_session(f"s{number}", float(number), title=f"Talk {number}")
            connection.execute(sql, values)
            for role in ("user", "assistant"):
                sql, values = foreign_message(f"s{number}", role, f"{role} words", float(number))
                connection.execute(sql, values)
    path.chmod(0o600)
    return path


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["sessions", "list"], "Talk 2"),
        (["sessions", "list", "--source", "cli", "--all"], "Talk 1"),
        (["sessions", "show", "s1"], "user words"),
        (["sessions", "search", "words"], "Talk 1"),
        (["sessions", "stats"], "conversations"),
        (["sessions", "export", "-", "--all"], "assistant words"),
        (["achievements", "--json"], "unlocked_count"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_an_old_history_is_read(
    hermes: Hermes, old_history: Path, arguments: list[str], expected: str
) -> None:
    before = old_history.read_bytes()
    result = hermes(*arguments)
    assert (result.code, result.err) == (0, "")
    assert expected in result.out
    assert old_history.read_bytes() == before


def test_the_doctor_names_what_is_missing(hermes: Hermes, old_history: Path) -> None:
    assert old_history.exists()
    found = json.loads(hermes("doctor", "--json").out)
    text = json.dumps(found)
    assert "schema 10" in text
    assert "messages.active" in text
    assert "sessions export" in text


def test_an_old_history_is_not_written_to_and_the_way_out_is_named(old_history: Path) -> None:
    before = old_history.read_bytes()
    with pytest.raises(StoreUnavailableError, match=r"can only be read .*messages\.active") as e:
        SessionDB(old_history)
    assert "hermes sessions export" in str(e.value)
    assert old_history.read_bytes() == before


def test_an_old_history_moves_by_export_and_import(
    hermes: Hermes, old_history: Path, tmp_path: Path
) -> None:
    assert old_history.exists()
    assert hermes("sessions", "export", str(tmp_path / "all.jsonl"), "--all").code == 0
    new = {"HERMES_HOME": str(tmp_path / "new")}
    assert hermes("sessions", "import", str(tmp_path / "all.jsonl"), **new).code == 0
    assert "Talk 1" in hermes("sessions", "list", **new).out
    assert "assistant words" in hermes("sessions", "show", "s2", **new).out


def test_a_key_is_found_in_a_schema_without_the_column(hermes_home: Path) -> None:
    make_schema_16(hermes_home / "state.db")
    with SessionDB() as db:
        db.create_session("a", "telegram", session_key="one")
        db.create_session("b", "telegram", session_key="two")
        assert [row["id"] for row in db.list_sessions_rich(session_key="one")] == ["a"]
        assert db.list_sessions_rich(session_key="none") == []
