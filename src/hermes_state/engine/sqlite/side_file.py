"""A separate file that holds only derived data.

A file that is damaged or has another layout is deleted and rebuilt. A file that cannot be
used does not stop other work.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from typing import TYPE_CHECKING, Any, TypeVar

from hermes_core import paths
from hermes_state.engine.database import DriverError
from hermes_state.engine.sqlite import driver
from hermes_state.engine.sqlite.driver import sqlite3
from hermes_state.engine.sqlite.errors import is_transient, to_store_error

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

T = TypeVar("T")
log = logging.getLogger(__name__)

BUSY_SECONDS = 0.5
SQLITE_SUFFIXES = ("", "-wal", "-shm")


class SideFile:
    """A connection to a file of derived data, used by one thread at a time."""

    def __init__(self, path: Path, label: str, layout: str, tables: Sequence[str]) -> None:
        self.path = path
        self._label = label
        self._layout = layout
        self._tables = tables
        self._lock = threading.RLock()
        self._connection: sqlite3.Connection | None = None
        self._opened: tuple[int, int] | None = None
        self._has_warned = False

    def use(self, work: Callable[[sqlite3.Connection], T]) -> T | None:
        """Run *work* on the file; None if the file cannot be used now.

        A damaged file is replaced by an empty one.
        """
        try:
            return self._use(work)
        except DriverError as error:
            self._warn_once(error)
            return None

    def run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Like `use`, but raise StoreError if the file cannot be used."""
        try:
            return self._use(work)
        except DriverError as error:
            raise to_store_error(error, self.path) from error

    def _use(self, work: Callable[[sqlite3.Connection], T]) -> T:
        with self._lock:
            try:
                return self._try(work)
            except DriverError as error:
                if _is_undamaged(error) or not self._replace(error):
                    raise
            return self._try(work)

    def _try(self, work: Callable[[sqlite3.Connection], T]) -> T:
        try:
            result = work(self._open())
        except DriverError:
            self.close()
            raise
        self._has_warned = False
        return result

    def close(self) -> None:
        """Close the connection."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def remove(self) -> None:
        """Delete the file; the next use creates it."""
        with self._lock:
            self.close()
            for suffix in SQLITE_SUFFIXES:
                self.path.with_name(self.path.name + suffix).unlink(missing_ok=True)

    def size(self) -> int:
        """Bytes on disk."""
        with contextlib.suppress(FileNotFoundError):
            return self.path.stat().st_size
        return 0

    def _open(self) -> sqlite3.Connection:
        if self._connection is not None and self._inode() != self._opened:
            self.close()  # the file was deleted or replaced: the open handle is stale
        if self._connection is None:
            connection = driver.connect(str(self.path), BUSY_SECONDS)
            try:
                self._prepare(connection)
            except DriverError:
                connection.close()
                raise
            paths.private_file(self.path)
            self._connection = connection
            self._opened = self._inode()
        return self._connection

    def _inode(self) -> tuple[int, int] | None:
        try:
            status = self.path.stat()
        except FileNotFoundError:
            return None
        return status.st_dev, status.st_ino

    def _replace(self, error: DriverError) -> bool:
        log.warning("%s unusable (%s): rebuilding it", self._label, error)
        try:
            self.remove()
        except OSError as failure:
            log.warning("%s cannot be removed: %s", self._label, failure)
            return False
        return True

    def _warn_once(self, error: BaseException) -> None:
        if not self._has_warned:
            self._has_warned = True
            log.warning("%s unavailable (%s): continuing without it", self._label, error)

    def _prepare(self, connection: sqlite3.Connection) -> None:
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")  # the data can be rebuilt
        connection.execute("PRAGMA secure_delete = ON")
        known = {row[0] for row in connection.execute("SELECT name FROM sqlite_master")}
        if "meta" in known and read_meta(connection, "layout") == self._layout:
            return
        if known:
            raise sqlite3.DatabaseError("another layout")
        connection.execute("BEGIN IMMEDIATE")
        for statement in self._tables:
            connection.execute(statement)
        write_meta(connection, "layout", self._layout)
        connection.execute("COMMIT")


def read_meta(connection: sqlite3.Connection, name: str) -> str | None:
    """Value of a metadata key of the file."""
    row = connection.execute("SELECT value FROM meta WHERE name = ?", (name,)).fetchone()
    return None if row is None else str(row[0])


def write_meta(connection: sqlite3.Connection, name: str, value: Any) -> None:
    """Set a metadata key of the file."""
    connection.execute(
        "INSERT INTO meta (name, value) VALUES (?, ?)"
        " ON CONFLICT (name) DO UPDATE SET value = excluded.value",
        (name, str(value)),
    )


def _is_undamaged(error: DriverError) -> bool:
    """Whether an error does not indicate damage: a lock, the disk, or the query itself."""
    text = str(error)
    return is_transient(error) or any(
        part in text for part in ("syntax error", "too large", "no such column", "interrupted")
    )
