"""The history of goose: a database as its schema is described, and a file of older versions."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from hermes_import.importer import SourceReport
    from hermes_state import SessionDB

    Importing = Callable[[str, Path], SourceReport]

SESSIONS = """
    CREATE TABLE sessions (
        id TEXT PRIMARY KEY, name TEXT, description TEXT, session_type TEXT, working_dir TEXT,
        created_at TIMESTAMP, updated_at TIMESTAMP, accumulated_input_tokens INTEGER,
        accumulated_output_tokens INTEGER, accumulated_cost REAL, model_config_json TEXT
    )
"""
MESSAGES = """
    CREATE TABLE messages (
        id INTEGER PRIMARY KEY AUTOINCREMENT, message_id TEXT, session_id TEXT, role TEXT,
        content_json TEXT, created_timestamp INTEGER, timestamp TIMESTAMP, tokens INTEGER,
        metadata_json TEXT
    )
"""
LEDGER = """
    CREATE TABLE usage_ledger (
        id INTEGER PRIMARY KEY, session_id TEXT, model TEXT, input INTEGER, output INTEGER,
        cache_read INTEGER, cache_write INTEGER, cost REAL, cost_source TEXT, is_compaction INTEGER
    )
"""
RUN = {"name": "shell", "arguments": {"command": "ls"}}
SESSION = "20260301_1"
STARTED_AT = 1772359200  # 2026-03-01 10:00:00 UTC


def message(name: str, role: str, *content: dict[str, Any], **metadata: bool) -> tuple[str, ...]:
    return name, role, json.dumps(content), json.dumps(metadata)


def text(value: str) -> dict[str, Any]:
    return {"type": "text", "text": value}


CONVERSATION = [
    message("m1", "user", text("List the files.")),
    message(
        "m2",
        "assistant",
        {"type": "thinking", "thinking": "I run ls.", "signature": ""},
        text("Sure."),
        {"type": "toolRequest", "id": "c1", "toolCall": {"status": "success", "value": RUN}},
        {"type": "toolRequest", "id": "c2", "toolCall": {"status": "success", "value": RUN}},
    ),
    message(
        "m3",
        "user",
        {
            "type": "toolResponse",
            "id": "c1",
            "toolResult": {"status": "success", "value": [text("a.txt")]},
        },
        {"type": "toolResponse", "id": "c2", "toolResult": {"status": "error", "error": "denied"}},
    ),
    message("m4", "assistant", text("There is a.txt."), {"type": "hologram"}),
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "home" / ".local" / "share" / "goose" / "sessions"
    folder.mkdir(parents=True)
    return folder


@pytest.fixture
def database(folder: Path) -> Path:
    path = folder / "sessions.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(SESSIONS)
        connection.execute(MESSAGES)
        start = "2026-03-01 10:00:00"
        model = json.dumps({"model_name": "gpt-test"})
        for name, kind in ((SESSION, "user"), ("sub", "sub_agent"), ("own", "hidden")):
            row = (name, f"Files of {name}", "", kind, "/home/ada", start, start, 100, 20, 0.5)
            connection.execute(f"INSERT INTO sessions VALUES ({'?, ' * 10} ?)", (*row, model))
        add(connection, SESSION, CONVERSATION)
        add(connection, "sub", [message("s1", "user", text("Look."))])
        add(connection, "own", [message("h1", "user", text("Name this."))])
    return path


def add(connection: sqlite3.Connection, session: str, messages: list[tuple[str, ...]]) -> None:
    for name, role, content, metadata in messages:
        row = (name, session, role, content, STARTED_AT, metadata)
        connection.execute(
            "INSERT INTO messages (message_id, session_id, role, content_json, created_timestamp,"
            " metadata_json) VALUES (?, ?, ?, ?, ?, ?)",
            row,
        )


def rows(db: SessionDB, columns: str) -> list[tuple[Any, ...]]:
    sql = f"SELECT {columns} FROM messages WHERE session_id = 'goose-{SESSION}' ORDER BY id"
    return [tuple(row) for row in db.engine.read(lambda reader: reader.rows(sql))]


def session(db: SessionDB, columns: str, name: str = SESSION) -> tuple[Any, ...]:
    sql = f"SELECT {columns} FROM sessions WHERE id = 'goose-{name}'"
    row = db.engine.read(lambda reader: reader.row(sql))
    assert row is not None
    return tuple(row)


def test_a_session_has_its_prompts_answers_and_tool_results(
    db: SessionDB, import_from: Importing, database: Path
) -> None:
    report = import_from("goose", database.parents[4])
    assert (report.new, report.failures) == (2, {})
    assert dict(report.unknown) == {"content hologram": 1}
    assert rows(db, "role, content, reasoning, tool_name, finish_reason") == [
        ("user", "List the files.", None, None, None),
        ("assistant", "Sure.", "I run ls.", None, "tool_calls"),
        ("tool", "a.txt", None, "shell", None),
        ("tool", '{"error":"denied"}', None, "shell", "error"),
        ("assistant", "There is a.txt.", None, None, "stop"),
    ]
    facts = session(db, "title, cwd, model, started_at, source")
    assert facts == (f"Files of {SESSION}", "/home/ada", "gpt-test", STARTED_AT, "goose")
    assert session(db, "source", "sub") == ("subagent",)


def test_accumulated_tokens_are_counted_once_while_a_session_grows(
    db: SessionDB, import_from: Importing, database: Path
) -> None:
    columns = "input_tokens, output_tokens, api_call_count, actual_cost_usd"
    import_from("goose", database)
    assert session(db, columns) == (100, 20, 0, 0.5)
    with closing(sqlite3.connect(database, isolation_level=None)) as connection:
        add(connection, SESSION, [message("m5", "user", text("Thanks."))])
        connection.execute(
            "UPDATE sessions SET accumulated_input_tokens = 160, accumulated_output_tokens = 25,"
            " accumulated_cost = 0.75, updated_at = '2026-03-01 11:00:00' WHERE id = ?",
            (SESSION,),
        )
    report = import_from("goose", database)
    assert (report.extended, report.messages) == (1, 1)
    assert session(db, columns) == (160, 25, 0, 0.75)
    db.engine.write(lambda tx: tx.run("DELETE FROM hermes_import_unit"))
    assert import_from("goose", database).messages == 0
    assert session(db, columns) == (160, 25, 0, 0.75)


def test_the_usage_ledger_is_preferred_to_the_totals_of_a_session(
    db: SessionDB, import_from: Importing, database: Path
) -> None:
    with closing(sqlite3.connect(database, isolation_level=None)) as connection:
        connection.execute(LEDGER)
        for number, cost in ((1, 0.25), (2, None)):
            row = (number, SESSION, "gpt-test", 50, 10, 30, 5, cost)
            connection.execute(f"INSERT INTO usage_ledger VALUES ({'?, ' * 8} '', 0)", row)
    for _ in range(2):
        import_from("goose", database)
        columns = "input_tokens, output_tokens, cache_read_tokens, cache_write_tokens"
        assert session(db, columns) == (30, 20, 60, 10)
        assert session(db, "api_call_count, actual_cost_usd") == (2, 0.25)


def test_messages_that_are_inserted_again_with_a_summary_are_not_stored_twice(
    db: SessionDB, import_from: Importing, database: Path
) -> None:
    import_from("goose", database)
    with closing(sqlite3.connect(database, isolation_level=None)) as connection:
        connection.execute("DELETE FROM messages WHERE session_id = ?", (SESSION,))
        summary = message("m6", "user", text("Summary."), userVisible=False, agentVisible=True)
        add(connection, SESSION, [*CONVERSATION, summary])
    report = import_from("goose", database)
    assert (report.messages, report.copies) == (0, 1)
    active = rows(db, "content, active")
    assert [content for content, is_active in active if is_active] == ["Summary."]
    assert len(active) == 6


def test_a_file_of_an_older_version_is_read_where_there_is_no_database(
    db: SessionDB, import_from: Importing, folder: Path
) -> None:
    about = {"description": "Files", "working_dir": "/home/ada", "accumulated_input_tokens": 7}
    lines = [about]
    for _, role, content, _ in CONVERSATION:
        lines.append({"role": role, "created": STARTED_AT, "content": json.loads(content)})
    path = folder / f"{SESSION}.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    report = import_from("goose", folder.parents[3])
    assert (report.new, report.messages) == (1, 5)
    assert session(db, "title, cwd, input_tokens") == ("Files", "/home/ada", 7)
    with path.open("a") as file:
        file.write(json.dumps({"role": "user", "created": 1, "content": [text("Thanks.")]}) + "\n")
    assert import_from("goose", folder).messages == 1
    assert session(db, "input_tokens") == (7,)
