"""Creates the tables of a new file, and applies missing migrations to an existing one."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from hermes_core.errors import SchemaTooNewError
from hermes_state.engine.dialect import sqlite_table
from hermes_state.engine.sqlite.driver import sqlite3
from hermes_state.schema import migrations as own
from hermes_state.schema.base import BASE_INDEXES, BASE_TABLES, BASE_VERSION
from hermes_state.schema.layout import (
    ADD_LAYOUT,
    RAISE_LAYOUT,
    READ_LAYOUT,
    RECORD_MIGRATION,
    UNFINISHED_COPY,
    refuse_unfinished_copy,
)
from hermes_state.schema.migrations import MIGRATIONS, Migration
from hermes_state.schema.own import LAYOUT_TABLE

if TYPE_CHECKING:
    from pathlib import Path

    from hermes_state.engine.database import DatabaseConnection
    from hermes_state.engine.transaction import Reader, Tx

    Migrations = tuple[Migration, ...]

UNFINISHED: Final = """
    SELECT number, position FROM hermes_migration WHERE position IS NOT NULL
    ORDER BY number LIMIT 1
"""
SET_POSITION: Final = "UPDATE hermes_migration SET position = ? WHERE number = ?"
KEPT_JOURNAL: Final = "kept_journal_mode"


def check_layout(connection: sqlite3.Connection, path: Path) -> None:
    """Refuse a file that this release cannot read."""
    needed = _layout_value(connection, "readable_by")
    known = own.layout_of(MIGRATIONS)
    if needed > known:
        raise SchemaTooNewError(
            f"{path} was last written by a newer release of Hermes (layout {needed}, this "
            f"release knows {known}). Update Hermes; nothing was changed."
        )


def check_is_finished(connection: sqlite3.Connection, path: Path) -> None:
    """Refuse a file into which a history was copied only in part."""
    refuse_unfinished_copy(_layout_value(connection, UNFINISHED_COPY), str(path))


def migrate(
    connection: sqlite3.Connection, now: float, migrations: Migrations = MIGRATIONS
) -> None:
    """Create the base tables of a new file and apply missing migrations, in one transaction."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        tables = _table_names(connection)
        if "sessions" not in tables:
            _create_base_tables(connection)
        elif "hermes_layout" not in tables:
            _note_journal_mode(connection)
        applied = _applied(connection) if tables >= own.table_names(migrations) else set()
        for migration in migrations:
            if migration.number not in applied:
                _apply(connection, migration, now)
        _describe(connection, migrations)
        connection.execute("COMMIT")
    except sqlite3.Error:
        connection.execute("ROLLBACK")
        raise


def is_current(
    connection: sqlite3.Connection, tables: frozenset[str], migrations: Migrations = MIGRATIONS
) -> bool:
    """Whether every migration was applied and no table is missing."""
    if not tables >= own.table_names(migrations):
        return False
    return _layout_value(connection, "layout") >= own.layout_of(migrations)


def add_missing_tables(connection: sqlite3.Connection, tables: frozenset[str]) -> None:
    """Give a reading connection the own tables that the file lacks: temporary and empty."""
    if tables >= own.table_names(MIGRATIONS):
        return
    connection.execute("PRAGMA temp_store = MEMORY")
    for name, template in own.table_statements(MIGRATIONS):
        if name not in tables:
            statement = sqlite_table(template)
            connection.execute(statement.replace("CREATE TABLE", "CREATE TEMP TABLE", 1))


def keeps_journal_mode(connection: DatabaseConnection) -> bool:
    """Whether the journal mode is the choice of the program that created the file."""
    tables = _table_names(connection)
    if "hermes_layout" not in tables:
        return "sessions" in tables
    return connection.execute(READ_LAYOUT, (KEPT_JOURNAL,)).fetchone() is not None


def unfinished(reader: Reader, migrations: Migrations = MIGRATIONS) -> Migration | None:
    """The first migration whose rows are not all filled."""
    row = reader.row(UNFINISHED)
    return next((each for each in migrations if row and each.number == row[0]), None)


def fill_slice(tx: Tx, migration: Migration) -> None:
    """Fill the next slice of rows, unless another process has finished."""
    row = tx.row("SELECT position FROM hermes_migration WHERE number = ?", (migration.number,))
    if row is not None and row[0] is not None and migration.fill is not None:
        tx.execute(SET_POSITION, (migration.fill(tx, row[0]), migration.number))


def _table_names(connection: DatabaseConnection) -> frozenset[str]:
    rows = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
    return frozenset(name for (name,) in rows)


def _layout_value(connection: sqlite3.Connection, name: str) -> int:
    row = connection.execute(READ_LAYOUT, (name,)).fetchone()
    return 0 if row is None else int(row[0])


def _create_base_tables(connection: sqlite3.Connection) -> None:
    for statement in (*BASE_TABLES, *BASE_INDEXES):
        connection.execute(statement)
    connection.execute("INSERT INTO schema_version VALUES (?)", (BASE_VERSION,))


def _note_journal_mode(connection: sqlite3.Connection) -> None:
    """Record that another program created the file without a write-ahead log."""
    mode = str(connection.execute("PRAGMA journal_mode").fetchone()[0]).lower()
    if mode != "wal":
        connection.execute(LAYOUT_TABLE)
        connection.execute(ADD_LAYOUT, (KEPT_JOURNAL, mode))


def _applied(connection: sqlite3.Connection) -> set[int]:
    return {number for (number,) in connection.execute("SELECT number FROM hermes_migration")}


def _apply(connection: sqlite3.Connection, migration: Migration, now: float) -> None:
    for template in migration.statements:
        connection.execute(sqlite_table(template))
    connection.execute("DELETE FROM hermes_migration WHERE number = ?", (migration.number,))
    position = None if migration.fill is None else ""
    connection.execute(RECORD_MIGRATION, (migration.number, migration.name, now, position))


def _describe(connection: sqlite3.Connection, migrations: Migrations) -> None:
    connection.execute(RAISE_LAYOUT, ("layout", str(own.layout_of(migrations))))
    connection.execute(RAISE_LAYOUT, ("readable_by", str(own.readable_by(migrations))))
    # No index row exists that could be stale.
    newest = connection.execute("SELECT coalesce(max(id), 0) FROM messages").fetchone()[0]
    connection.execute(ADD_LAYOUT, ("indexed_through", str(newest)))
    # Identifies the history in derived files.
    connection.execute(ADD_LAYOUT, ("history", os.urandom(8).hex()))
