"""The tables of each file format, and the statements that fill them."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

# The schema of hermes-agent's files is defined in the tests.
sys.path.append(str(Path(__file__).resolve().parents[2] / "tests"))

from hermes_state.schema.base import BASE_INDEXES, BASE_TABLES
from history.rows import Message
from state import foreign_files

if TYPE_CHECKING:
    from hermes_state.engine.sqlite.driver import sqlite3

Kind = Literal["native", "schema16", "schema26"]

INSERT_MESSAGE: Final = (
    f"INSERT INTO messages ({', '.join(Message._fields)}, observed)"  # noqa: S608 - our names
    f" VALUES ({', '.join('?' * len(Message._fields))}, 0)"
)
INSERT_USAGE: Final = """
    INSERT INTO session_model_usage (session_id, model, billing_provider, api_call_count,
        input_tokens, output_tokens, estimated_cost_usd, cost_status)
    SELECT id, model, billing_provider, api_call_count, input_tokens, output_tokens,
        estimated_cost_usd, cost_status FROM sessions
"""
FILL_INLINE: Final = """
    INSERT INTO {table}(rowid, content)
    SELECT id, coalesce(content, '') || ' ' || coalesce(tool_name, '') || ' '
        || coalesce(tool_calls, '') FROM messages
"""
FTS_HASH_BYTES: Final = 64 * 1024 * 1024
FTS_DEFAULT_HASH_BYTES: Final = 1024 * 1024


def statements(kind: str) -> tuple[list[str], list[str]]:
    """Statements that create the tables, and their indexes after the rows are inserted."""
    if kind == "schema16":
        schema = [
            foreign_files.SESSIONS_16,
            foreign_files.MESSAGES_16,
            *foreign_files.OTHERS_16,
        ]
    else:
        schema = [*BASE_TABLES, *BASE_INDEXES]
    tables = [sql for sql in schema if " TABLE " in sql]
    return tables, [sql for sql in schema if " TABLE " not in sql]


def insert_prompts(connection: sqlite3.Connection, kind: str, prompts: list[str]) -> None:
    """Store system prompts by hash, in formats that deduplicate them."""
    if kind != "schema16":
        rows = [(_hash(prompt), prompt) for prompt in prompts]
        # Two prompts may be the same excerpt of the same text.
        connection.executemany("INSERT OR IGNORE INTO system_prompts VALUES (?, ?)", rows)


def _hash(prompt: str) -> str:
    return hashlib.sha256(prompt.encode()).hexdigest()


def session_row(kind: str, row: dict[str, Any], prompt: str, last: float) -> dict[str, Any]:
    """A session row in this file format."""
    if kind == "schema16":
        return row | {"system_prompt": f"{prompt}\nSession {row['id']} in {row['cwd']}"}
    return row | {
        "system_prompt_hash": _hash(prompt),
        "last_activity_at": last,
        "title_source": "llm" if row["title"] else None,
    }


def session_insert_sql(row: dict[str, Any]) -> str:
    """The INSERT statement for a session row."""
    placeholders = ", ".join(f":{name}" for name in row)
    return f"INSERT INTO sessions ({', '.join(row)}) VALUES ({placeholders})"  # noqa: S608 - our names


def add_search(connection: sqlite3.Connection, kind: str) -> None:
    """Create the search tables of hermes-agent, filled as by its triggers."""
    is_old = kind == "schema16"
    search_objects = (
        foreign_files.search_objects_16() if is_old else foreign_files.search_objects_26()
    )
    for sql in search_objects:
        connection.execute(sql)
    for table in ("messages_fts", "messages_fts_trigram") if is_old else ("messages_fts",):
        _set_hash(connection, table, FTS_HASH_BYTES)
        connection.execute("BEGIN")
        if is_old:
            connection.execute(FILL_INLINE.format(table=table))
        else:
            connection.execute(f"INSERT INTO {table}({table}) VALUES ('rebuild')")  # noqa: S608
        connection.execute("COMMIT")
        _set_hash(connection, table, FTS_DEFAULT_HASH_BYTES)
        # Otherwise the next small inserts would merge the large segments of the bulk load.
        connection.execute(f"INSERT INTO {table}({table}) VALUES ('optimize')")  # noqa: S608


def _set_hash(connection: sqlite3.Connection, table: str, size_bytes: int) -> None:
    sql = f"INSERT INTO {table}({table}, rank) VALUES ('hashsize', ?)"  # noqa: S608 - our names
    connection.execute(sql, (size_bytes,))
