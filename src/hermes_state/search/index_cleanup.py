"""Removes purged messages from the search file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hermes_state.search import index_builder, tool_index
from hermes_state.search.index_builder import IndexedRow

if TYPE_CHECKING:
    from hermes_state.engine.sqlite.driver import sqlite3
    from hermes_state.engine.transaction import Reader

ROWS_OF_SESSION: Final = """
    SELECT m.id, m.session_id, m.role, m.content, m.tool_name, m.tool_calls, m.timestamp, s.source
    FROM messages m JOIN sessions s ON s.id = m.session_id
    WHERE m.session_id = ? AND m.id > ? ORDER BY m.id LIMIT ?
"""


def read_session(
    reader: Reader, session_id: str, after: int, limit: int = index_builder.SLICE_ROWS
) -> list[IndexedRow]:
    """The next messages of one session."""
    return [IndexedRow(*row) for row in reader.rows(ROWS_OF_SESSION, (session_id, after, limit))]


def delete_rows(connection: sqlite3.Connection, rows: list[IndexedRow]) -> bool:
    """Delete messages from the indexes, and terms that occur nowhere else."""
    with index_builder.write_transaction(connection):
        index_builder.delete_rows(connection, rows)
        tool_index.delete_rows(connection, rows)
    return True


def optimize(connection: sqlite3.Connection) -> None:
    """Merge the indexes into their smallest form."""
    parts = [tool_index.part_name(number) for number in tool_index.part_numbers(connection)]
    for table in ("body", "gram", *parts, "tool_gram"):
        connection.execute(f"INSERT INTO {table} ({table}) VALUES ('optimize')")  # noqa: S608 - own names
    connection.execute("PRAGMA incremental_vacuum").fetchall()
