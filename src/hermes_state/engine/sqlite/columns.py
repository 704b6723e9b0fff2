"""Reads the tables and columns of an SQLite file, and completes those of old files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_state.engine.columns import Columns

if TYPE_CHECKING:
    from hermes_state.engine.sqlite.driver import sqlite3


def add_missing_columns(connection: sqlite3.Connection, columns: Columns) -> None:
    """Give a reading connection the columns that an old file lacks, with default values."""
    for table, defaults in columns.missing().items():
        added = ", ".join(f"{value} AS {name}" for name, value in defaults.items())
        connection.execute(
            f"CREATE TEMP VIEW {table} AS SELECT t.*, {added} FROM main.{table} t"  # noqa: S608
        )


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
