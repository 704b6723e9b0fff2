"""Tables and columns of the opened file, which differ between releases."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from hermes_state.engine.driver import sqlite3


class Columns(NamedTuple):
    """Tables and columns of a file, read once when it is opened."""

    sessions: tuple[str, ...]
    messages: tuple[str, ...]
    tables: frozenset[str]
    stamps_activity: bool

    def session_has(self, column: str) -> bool:
        """Whether `sessions` has *column*."""
        return column in self.sessions

    @property
    def hashes_prompts(self) -> bool:
        """Whether system prompts are deduplicated in a separate table."""
        return "system_prompt_hash" in self.sessions and "system_prompts" in self.tables

    @property
    def has_own_tables(self) -> bool:
        """Whether Hermes has opened this file for writing before."""
        return "hermes_layout" in self.tables


def read_columns(connection: sqlite3.Connection) -> Columns:
    """Read the tables and columns of the file."""
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
