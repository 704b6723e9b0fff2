"""Removes purged messages from the search file."""

from __future__ import annotations

import time
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


def merge(connection: sqlite3.Connection, *, is_first: bool, seconds: float = 0.05) -> bool:
    """Merge the indexes for at most *seconds* to drop deleted entries; whether it is complete."""
    deadline = time.monotonic() + seconds
    for table in ("body", "gram"):
        if not index_builder.merge(connection, table, is_first=is_first, deadline=deadline):
            return False
    if not tool_index.merge(connection, is_first=is_first, deadline=deadline):
        return False
    connection.execute("PRAGMA incremental_vacuum").fetchall()
    return True
