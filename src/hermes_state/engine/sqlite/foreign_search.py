"""Another program's search index, which can block a whole file or refuse messages.

SQLite reads the whole schema before any statement. A duplicate or unreadable entry of a search
table therefore makes every table unreachable. Hermes does not use these tables: damaged entries
are removed, and their text is kept in a file beside the history.
"""

from __future__ import annotations

import contextlib
import logging
import re
import time
from typing import TYPE_CHECKING, Any, Final

from hermes_core import paths
from hermes_state.engine.sqlite import driver
from hermes_state.engine.sqlite.driver import sqlite3
from hermes_state.engine.sqlite.errors import is_transient

if TYPE_CHECKING:
    from pathlib import Path

    from hermes_state.engine.database import DriverError
    from hermes_state.engine.transaction import Tx

log = logging.getLogger(__name__)

DAMAGED_ENTRY: Final = r"malformed database schema \((\w*fts\w*)\)"
DUPLICATES: Final = """
    SELECT rowid, sql FROM sqlite_master
    WHERE name LIKE '%fts%' AND rowid NOT IN (
        SELECT min(rowid) FROM sqlite_master GROUP BY type, name)
"""
# Without their virtual table, its own tables are ordinary ones and stay.
SEARCH_ENTRIES: Final = """
    SELECT rowid, sql FROM sqlite_master
    WHERE name LIKE '%fts%' AND (type IN ('trigger', 'view') OR sql LIKE 'CREATE VIRTUAL%')
"""

SEARCH_TRIGGERS: Final = """
    SELECT name FROM sqlite_master
    WHERE type = 'trigger' AND tbl_name = 'messages' AND name LIKE '%fts%'
"""
# Constraints of the base tables; a search index violates none of them.
BASE_CONSTRAINTS: Final = ("FOREIGN KEY", "UNIQUE", "NOT NULL", "CHECK constraint")


def is_damaged(error: DriverError) -> bool:
    """Whether *error* is about a schema entry of a search index."""
    return re.search(DAMAGED_ENTRY, str(error)) is not None


def kept_entries_path(path: Path) -> Path:
    """The file with the removed entries of the history at *path*."""
    return path.with_name(f"{path.name}.search-set-aside.sql")


def set_aside(path: Path, busy_seconds: float) -> None:
    """Remove duplicate entries; if that is not enough, all entries of search indexes."""
    for entries in (DUPLICATES, SEARCH_ENTRIES):
        count = _move(path, entries, busy_seconds)
        if count:
            log.warning(
                "another program's search index is damaged: %d of its schema entries were moved "
                "to %s so that the history can be opened",
                count,
                kept_entries_path(path),
            )
        if _opens(path, busy_seconds):
            return


def _move(path: Path, entries: str, busy_seconds: float) -> int:
    """Write the entries to a file, then delete them; their number."""
    with contextlib.closing(driver.connect(str(path), busy_seconds)) as connection:
        connection.execute("PRAGMA writable_schema = ON")  # schema errors do not end statements
        # The first statement may report the damage; the next ones use what could be read.
        with contextlib.suppress(sqlite3.DatabaseError):
            connection.execute("SELECT 1 FROM sqlite_master").fetchone()
        connection.execute("BEGIN IMMEDIATE")
        rows: list[tuple[int, Any]] = connection.execute(entries).fetchall()
        if rows:
            _keep(path, [str(sql) for _, sql in rows])
        connection.executemany(
            "DELETE FROM sqlite_master WHERE rowid = ?", [(rowid,) for rowid, _ in rows]
        )
        version = connection.execute("PRAGMA schema_version").fetchone()[0]
        connection.execute(f"PRAGMA schema_version = {version + 1}")  # others read it again
        connection.execute("COMMIT")
    return len(rows)


def _opens(path: Path, busy_seconds: float) -> bool:
    with contextlib.closing(driver.connect(str(path), busy_seconds)) as connection:
        try:
            connection.execute("SELECT 1 FROM sqlite_master").fetchone()
        except sqlite3.DatabaseError as error:
            log.warning("history still cannot be opened: %s", error)
            return False
    return True


def _keep(path: Path, statements: list[str]) -> None:
    kept = kept_entries_path(path)
    stamp = time.strftime("%Y-%m-%d %H:%M:%S")
    with kept.open("a", encoding="utf-8") as file:
        file.write(f"-- removed from the schema of {path.name}, {stamp}\n")
        file.writelines(f"{statement};\n" for statement in statements)
    paths.private_file(kept)


def drop_faulty_triggers(tx: Tx, error: DriverError) -> bool:
    """Drop another program's search triggers if they may have caused *error*; whether to retry."""
    if is_transient(error) or any(rule in str(error) for rule in BASE_CONSTRAINTS):
        return False
    names = [row[0] for row in tx.rows(SEARCH_TRIGGERS)]
    if not names:
        return False
    tx.execute("BEGIN IMMEDIATE")
    for name in names:
        quoted = name.replace('"', '""')
        tx.execute(f'DROP TRIGGER "{quoted}"')
    tx.execute("COMMIT")
    log.warning(
        "another program's search index is damaged and refused a message (%s); "
        "its triggers were dropped so that the message could be stored: %s",
        error,
        ", ".join(names),
    )
    return True
