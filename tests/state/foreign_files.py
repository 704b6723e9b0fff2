"""Session files as hermes-agent creates them, built from the documented schema."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

from hermes_state.engine.sqlite.driver import sqlite3
from hermes_state.schema.base import BASE_INDEXES, BASE_TABLES

if TYPE_CHECKING:
    from pathlib import Path

SESSIONS_16 = """
    CREATE TABLE sessions (
        id TEXT PRIMARY KEY, source TEXT NOT NULL, user_id TEXT, model TEXT, model_config TEXT,
        system_prompt TEXT, parent_session_id TEXT, started_at REAL NOT NULL, ended_at REAL,
        end_reason TEXT, message_count INTEGER DEFAULT 0, tool_call_count INTEGER DEFAULT 0,
        input_tokens INTEGER DEFAULT 0, output_tokens INTEGER DEFAULT 0,
        cache_read_tokens INTEGER DEFAULT 0, cache_write_tokens INTEGER DEFAULT 0,
        reasoning_tokens INTEGER DEFAULT 0, cwd TEXT, billing_provider TEXT,
        billing_base_url TEXT, billing_mode TEXT, estimated_cost_usd REAL, actual_cost_usd REAL,
        cost_status TEXT, cost_source TEXT, pricing_version TEXT, title TEXT,
        api_call_count INTEGER DEFAULT 0, handoff_state TEXT, handoff_platform TEXT,
        handoff_error TEXT, rewind_count INTEGER NOT NULL DEFAULT 0,
        archived INTEGER NOT NULL DEFAULT 0,
        FOREIGN KEY (parent_session_id) REFERENCES sessions(id))
"""
MESSAGES_16 = """
    CREATE TABLE messages (
        id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL REFERENCES sessions(id),
        role TEXT NOT NULL, content TEXT, tool_call_id TEXT, tool_calls TEXT, tool_name TEXT,
        timestamp REAL NOT NULL, token_count INTEGER, finish_reason TEXT, reasoning TEXT,
        reasoning_content TEXT, reasoning_details TEXT, codex_reasoning_items TEXT,
        codex_message_items TEXT, platform_message_id TEXT, observed INTEGER DEFAULT 0,
        active INTEGER NOT NULL DEFAULT 1, compacted INTEGER NOT NULL DEFAULT 0)
"""
OTHERS_16 = (
    "CREATE TABLE schema_version (version INTEGER NOT NULL)",
    "CREATE TABLE state_meta (key TEXT PRIMARY KEY, value TEXT)",
    "CREATE TABLE compression_locks (session_id TEXT PRIMARY KEY, holder TEXT NOT NULL,"
    " acquired_at REAL NOT NULL, expires_at REAL NOT NULL)",
    "CREATE INDEX idx_sessions_source ON sessions(source)",
    "CREATE INDEX idx_sessions_parent ON sessions(parent_session_id)",
    "CREATE INDEX idx_sessions_started ON sessions(started_at DESC)",
    "CREATE UNIQUE INDEX idx_sessions_title_unique ON sessions(title) WHERE title IS NOT NULL",
    "CREATE INDEX idx_messages_session ON messages(session_id, timestamp)",
    "CREATE INDEX idx_messages_session_active ON messages(session_id, active, timestamp)",
)
INDEXED_TEXT = (
    "coalesce(new.content, '') || ' ' || coalesce(new.tool_name, '') || ' '"
    " || coalesce(new.tool_calls, '')"
)


def search_objects_16() -> list[str]:
    """Two inline indexes, each with its own copy of the text, and six triggers."""
    statements = [
        "CREATE VIRTUAL TABLE messages_fts USING fts5(content)",
        "CREATE VIRTUAL TABLE messages_fts_trigram USING fts5(content, tokenize='trigram')",
    ]
    for name in ("messages_fts", "messages_fts_trigram"):
        insert = f"INSERT INTO {name}(rowid, content) VALUES (new.id, {INDEXED_TEXT});"
        delete = f"DELETE FROM {name} WHERE rowid = old.id;"
        statements += [
            f"CREATE TRIGGER {name}_insert AFTER INSERT ON messages BEGIN {insert} END",
            f"CREATE TRIGGER {name}_delete AFTER DELETE ON messages BEGIN {delete} END",
            f"CREATE TRIGGER {name}_update AFTER UPDATE ON messages BEGIN {delete} {insert} END",
        ]
    return statements


def search_objects_26() -> list[str]:
    """An index over the messages themselves, with triggers."""
    names = "content, tool_name, tool_calls"
    old = "old.content, old.tool_name, old.tool_calls"
    new = "new.content, new.tool_name, new.tool_calls"
    delete = (
        f"INSERT INTO messages_fts(messages_fts, rowid, {names}) VALUES ('delete', old.id, {old});"
    )
    insert = f"INSERT INTO messages_fts(rowid, {names}) VALUES (new.id, {new});"
    return [
        f"CREATE VIRTUAL TABLE messages_fts USING fts5({names}, content='messages',"
        " content_rowid='id')",
        f"CREATE TRIGGER messages_fts_insert AFTER INSERT ON messages BEGIN {insert} END",
        f"CREATE TRIGGER messages_fts_delete AFTER DELETE ON messages BEGIN {delete} END",
        "CREATE TRIGGER messages_fts_update AFTER UPDATE OF content, tool_name, tool_calls"
        f" ON messages BEGIN {delete} {insert} END",
    ]


def make_schema_16(path: Path) -> None:
    _make(path, [SESSIONS_16, MESSAGES_16, *OTHERS_16, *search_objects_16()], 16)


def make_schema_26(path: Path) -> None:
    _make(path, [*BASE_TABLES, *BASE_INDEXES, *search_objects_26()], 26)


def _make(path: Path, statements: list[str], version: int) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        for statement in statements:
            connection.execute(statement)
        connection.execute("INSERT INTO schema_version VALUES (?)", (version,))


def write_as_hermes_agent(path: Path, statements: list[tuple[str, tuple[object, ...]]]) -> None:
    """Write without SessionDB, like another program that ignores the tables of Hermes."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for sql, values in statements:
            connection.execute(sql, values)


def foreign_session(session_id: str, started_at: float, **columns: object) -> tuple[str, tuple]:
    names = ["id", "source", "started_at", *columns]
    placeholders = ", ".join("?" * len(names))
    sql = f"INSERT INTO sessions ({', '.join(names)}) VALUES ({placeholders})"
    return sql, (session_id, columns.pop("source", "cli"), started_at, *columns.values())


def foreign_message(
    session_id: str, role: str, content: str, timestamp: float
) -> tuple[str, tuple[object, ...]]:
    sql = "INSERT INTO messages (session_id, role, content, timestamp) VALUES (?, ?, ?, ?)"
    return sql, (session_id, role, content, timestamp)


def schema_of(path: Path) -> list[tuple[object, ...]]:
    """The schema without the tables of Hermes."""
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(
            "SELECT type, name, tbl_name, sql FROM sqlite_master"
            " WHERE tbl_name NOT LIKE 'hermes\\_%' ESCAPE '\\' ORDER BY type, name"
        ).fetchall()
