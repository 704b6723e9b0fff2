"""SQLite errors translated into store errors that name the next step.

They are distinguished by SQLite's result code: the text may be that of another program's trigger.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Final

from hermes_core.errors import (
    NotADatabaseError,
    StatementError,
    StoreError,
    StoreUnavailableError,
)
from hermes_state.engine.sqlite import driver
from hermes_state.engine.sqlite.driver import sqlite3
from hermes_state.engine.sqlite.filesystem import disk_full_text, is_full

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

BUSY_SECONDS: Final = 10.0
PRIMARY_CODE_MASK: Final = 0xFF  # an extended code holds the primary one in its lowest byte
LOCK_CODES: Final = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL})
DISK_CODES: Final = frozenset(
    {
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_READONLY,
    }
)


@contextlib.contextmanager
def open_file(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection to a file that no engine has open; SQLite's errors become store errors."""
    try:
        with contextlib.closing(driver.connect(str(path), BUSY_SECONDS)) as connection:
            yield connection
    except sqlite3.Error as error:
        raise to_store_error(error, path) from error


def to_store_error(error: Exception, path: Path) -> StoreError:
    """The StoreError for SQLite's *error* on the file at *path*."""
    text, code = str(error), primary_code(error)
    if code == sqlite3.SQLITE_NOTADB:
        return NotADatabaseError(
            f"{path} is not a session store: it is not an SQLite database. Move it away, or "
            "point HERMES_HOME elsewhere. If it was one, `hermes sessions salvage` recovers "
            "what is readable."
        )
    if code == sqlite3.SQLITE_CORRUPT:
        return StoreError(
            f"{path} is damaged ({text}). Restore a backup, or run `hermes sessions salvage`: it "
            "keeps the damaged file and recovers what is readable into a new one."
        )
    if code in LOCK_CODES:
        return StoreError(
            f"{path} is busy: another program has held it for too long. Try again, or see "
            "`hermes doctor`."
        )
    is_disk_error = code in {sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN}
    if is_disk_full(error) or (is_disk_error and is_full(path.parent)):
        return StoreUnavailableError(disk_full_text(path))
    if code in {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN}:
        return StoreUnavailableError(f"{path} cannot be opened for this ({text}).")
    kind = StoreError if is_transient(error) else StatementError
    return kind(f"{path}: {text}")


def primary_code(error: Exception) -> int:
    """SQLite's result code; that of a success for an error that SQLite has not reported."""
    code: int = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_OK)
    return code & PRIMARY_CODE_MASK


def is_transient(error: Exception) -> bool:
    """Whether the cause is the disk or a lock, not the statement."""
    return is_locked(error) or primary_code(error) in DISK_CODES


def is_locked(error: Exception) -> bool:
    """Whether another connection holds a lock."""
    return primary_code(error) in LOCK_CODES


def is_disk_full(error: Exception) -> bool:
    """Whether the disk of the file is full."""
    return primary_code(error) == sqlite3.SQLITE_FULL


def is_write_refused(error: Exception) -> bool:
    """Whether the database cannot store anything now, whatever the data."""
    return is_transient(error) or primary_code(error) == sqlite3.SQLITE_CORRUPT
