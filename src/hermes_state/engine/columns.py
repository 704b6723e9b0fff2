"""What the opened file has: tables and columns differ between the releases that made it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from hermes_state.engine.driver import sqlite3


class Columns(NamedTuple):
    """The shape of the base tables, read once at opening."""

    sessions: tuple[str, ...]
    messages: tuple[str, ...]
    tables: frozenset[str]
    stamps_activity: bool

    def session_has(self, column: str) -> bool:
        """Whether `sessions` has that column."""
        return column in self.sessions

    @property
    def hashes_prompts(self) -> bool:
        """Whether system prompts are kept once each, in a table of their own."""
        return "system_prompt_hash" in self.sessions and "system_prompts" in self.tables

    @property
    def has_own_tables(self) -> bool:
        """Whether this file has been opened for writing by us before."""
        return "hermes_layout" in self.tables


def read_columns(connection: sqlite3.Connection) -> Columns:
    """Look at the file."""
    tables = frozenset(
        row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
    )
    sessions = _column_names(connection, "sessions")
    return Columns(
        sessions=sessions,
        messages=_column_names(connection, "messages"),
        tables=tables,
        stamps_activity="last_activity_at" in sessions,
    )


def _column_names(connection: sqlite3.Connection, table: str) -> tuple[str, ...]:
    rows = connection.execute("SELECT name FROM pragma_table_info(?)", (table,))
    return tuple(row[0] for row in rows)
