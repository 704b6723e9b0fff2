"""The history of llm: forks, fragments, and the schema of older versions."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from hermes_import.importer import SourceReport
    from hermes_state import SessionDB

    Importing = Callable[[str, Path], SourceReport]
    Copying = Callable[[str], Path]

LLM = ".config/io.datasette.llm/logs.db"
THREAD = "01m7h0875ajsrzj5h6xqgyccm5"  # with two prompts
OTHER = "01m7h09zrvpad2y592cbkpq243"
OLD_SCHEMA = """
    CREATE TABLE conversations (id TEXT PRIMARY KEY, name TEXT, model TEXT);
    CREATE TABLE responses (
        id TEXT PRIMARY KEY, model TEXT, prompt TEXT, system TEXT, response TEXT,
        conversation_id TEXT, duration_ms INTEGER, datetime_utc TEXT, input_tokens INTEGER,
        output_tokens INTEGER, token_details TEXT
    );
    CREATE TABLE tool_calls (
        id INTEGER PRIMARY KEY, response_id TEXT, name TEXT, arguments TEXT, tool_call_id TEXT
    );
    CREATE TABLE tool_results (
        id INTEGER PRIMARY KEY, response_id TEXT, name TEXT, output TEXT, tool_call_id TEXT
    );
    INSERT INTO conversations VALUES ('c1', 'Weather', 'gpt-test');
    INSERT INTO responses VALUES
        ('r1', 'gpt-test', 'Is it warm?', NULL, '', 'c1', 500, '2025-03-01T10:00:00', 10, 5, NULL),
        ('r2', 'gpt-test', '', NULL, 'It is.', 'c1', 500, '2025-03-01T10:00:01', 20, 6, NULL);
    INSERT INTO tool_calls VALUES (1, 'r1', 'look', '{}', 't1');
    INSERT INTO tool_results VALUES (1, 'r2', 'look', '25', 't1');
"""


@pytest.fixture
def database(sample_copy: Copying) -> Iterator[sqlite3.Connection]:
    path = sample_copy("llm") / LLM
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        yield connection


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "sample" / "llm"


def add_turn(
    connection: sqlite3.Connection, thread: str, parent: str, prompt: str, answer: str
) -> str:
    """Add a turn to a thread; returns the tip."""
    for role, text in (("user", prompt), ("assistant", answer)):
        name = f"{parent}/{text}"
        connection.execute("INSERT INTO messages VALUES (?, ?, ?, NULL)", (name, parent, role))
        connection.execute(
            "INSERT INTO parts (message_hash, position, type, text) VALUES (?, 0, 'text', ?)",
            (name, text),
        )
        parent = name
    connection.execute(
        "INSERT INTO turns (id, thread_id, tip_message_hash, model, input_tokens, output_tokens,"
        " datetime_utc) VALUES (?, ?, ?, 'm', 7, 3, '2026-11-17T00:00:00')",
        (f"turn {parent}", thread, parent),
    )
    connection.execute("UPDATE threads SET tip_message_hash = ? WHERE id = ?", (parent, thread))
    return parent


def tip(connection: sqlite3.Connection, thread: str) -> str:
    sql = "SELECT tip_message_hash FROM threads WHERE id = ?"
    return str(connection.execute(sql, (thread,)).fetchone()[0])


def rows(db: SessionDB, name: str) -> list[tuple[Any, ...]]:
    sql = """
        SELECT m.role, m.content, c.message_id IS NOT NULL FROM messages m
        LEFT JOIN hermes_copy c ON c.message_id = m.id WHERE session_id = ? ORDER BY m.id
    """
    found = db.engine.read(lambda reader: reader.rows(sql, (f"llm-{name}",)))
    return [(role, content, bool(is_copy)) for role, content, is_copy in found]


def test_a_thread_that_grows_is_extended(
    db: SessionDB, import_from: Importing, database: sqlite3.Connection, home: Path
) -> None:
    import_from("llm", home)
    add_turn(database, OTHER, tip(database, OTHER), "Why?", "Because.")
    report = import_from("llm", home)
    assert (report.new, report.extended, report.messages, report.units) == (0, 1, 2, 1)
    assert [content for _, content, _ in rows(db, OTHER)][-2:] == ["Why?", "Because."]


def test_a_fork_has_the_messages_of_its_origin_as_copies(
    db: SessionDB, import_from: Importing, database: sqlite3.Connection, home: Path
) -> None:
    database.execute(
        "INSERT INTO threads VALUES ('fork', 'Fork', NULL, ?, '2026-11-17T00:00:00')", (THREAD,)
    )
    first = "SELECT tip_message_hash FROM turns WHERE thread_id = ? ORDER BY id"
    start = database.execute(first, (THREAD,)).fetchone()[0]
    add_turn(database, "fork", start, "Otherwise?", "No.")
    report = import_from("llm", home)
    assert (report.new, report.failures, dict(report.unknown)) == (7, {}, {})
    origin = rows(db, THREAD)
    assert [is_copy for *_, is_copy in origin] == [False] * 4
    assert rows(db, "fork") == [
        ("user", origin[0][1], True),
        ("assistant", origin[1][1], True),
        ("user", "Otherwise?", False),
        ("assistant", "No.", False),
    ]
    sql = "SELECT parent_session_id, input_tokens FROM sessions WHERE id = 'llm-fork'"
    row = db.engine.read(lambda reader: reader.row(sql))
    assert row is not None
    assert tuple(row) == (f"llm-{THREAD}", 7)


def test_equal_prompts_of_two_threads_are_two_conversations(
    db: SessionDB, import_from: Importing, database: sqlite3.Connection, home: Path
) -> None:
    database.execute(
        "INSERT INTO threads SELECT 'again', name, tip_message_hash, NULL, datetime_utc"
        " FROM threads WHERE id = ?",
        (OTHER,),
    )
    database.execute(
        "INSERT INTO turns (id, thread_id, tip_message_hash, model, datetime_utc)"
        " SELECT 'turn again', 'again', tip_message_hash, model, datetime_utc FROM turns"
        " WHERE thread_id = ?",
        (OTHER,),
    )
    import_from("llm", home)
    assert rows(db, "again") == rows(db, OTHER)
    assert not any(is_copy for *_, is_copy in rows(db, "again"))


def test_fragments_are_part_of_the_prompt(
    db: SessionDB, import_from: Importing, database: sqlite3.Connection, home: Path
) -> None:
    database.execute("INSERT INTO fragments (id, hash, content) VALUES (1, 'h', 'A long text.')")
    database.execute("INSERT INTO part_fragments VALUES (7, 1, 0)")
    import_from("llm", home)
    assert rows(db, OTHER)[0][1] == "A long text.\n\nA10. Another conversation 分支"


def test_a_database_of_an_older_version_is_read(
    db: SessionDB, import_from: Importing, tmp_path: Path
) -> None:
    path = tmp_path / "logs.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(OLD_SCHEMA)
    report = import_from("llm", path)
    assert (report.new, report.failures, dict(report.unknown)) == (1, {}, {})
    found = [(role, content) for role, content, _ in rows(db, "c1")]
    assert found == [
        ("user", "Is it warm?"),
        ("assistant", ""),
        ("tool", "25"),
        ("assistant", "It is."),
    ]
    sql = "SELECT title, model, input_tokens, output_tokens, api_call_count FROM sessions"
    row = db.engine.read(lambda reader: reader.row(sql))
    assert row is not None
    assert tuple(row) == ("Weather", "gpt-test", 30, 11, 2)
    calls = "SELECT tool_calls FROM messages WHERE tool_calls IS NOT NULL"
    row = db.engine.read(lambda reader: reader.row(calls))
    assert row is not None
    assert json.loads(row[0])[0]["function"] == {"name": "look", "arguments": "{}"}
    assert import_from("llm", path).unchanged == 1
