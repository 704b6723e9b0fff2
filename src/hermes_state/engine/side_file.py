"""A file beside the history that holds nothing but derived data.

Whatever is wrong with such a file, the answer is the same: put it away and fill a new
one. Using it never stops anything else.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from typing import TYPE_CHECKING, Any, TypeVar

from hermes_core import paths
from hermes_state.engine import driver
from hermes_state.engine.driver import sqlite3
from hermes_state.engine.errors import explain, is_passing

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

T = TypeVar("T")
log = logging.getLogger(__name__)

BUSY_SECONDS = 0.5
COMPANIONS = ("", "-wal", "-shm")


class SideFile:
    """One connection to a file of derived data, used by one thread at a time."""

    def __init__(self, path: Path, what: str, layout: str, tables: Sequence[str]) -> None:
        self.path = path
        self._what = what
        self._layout = layout
        self._tables = tables
        self._lock = threading.RLock()
        self._connection: sqlite3.Connection | None = None
        self._opened: tuple[int, int] | None = None
        self._is_complaining = False

    def use(self, work: Callable[[sqlite3.Connection], T]) -> T | None:
        """Run *work* on the file; None if the file cannot be used now.

        A damaged file is replaced by an empty one, to be filled again.
        """
        try:
            return self._use(work)
        except sqlite3.Error as error:
            self._complain(error)
            return None

    def must(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """As `use`, but a file that cannot be used is an error of ours."""
        try:
            return self._use(work)
        except sqlite3.Error as error:
            raise explain(error, self.path) from error

    def _use(self, work: Callable[[sqlite3.Connection], T]) -> T:
        with self._lock:
            try:
                return self._try(work)
            except sqlite3.Error as error:
                if _says_nothing(error) or not self._replace(error):
                    raise
            return self._try(work)

    def _try(self, work: Callable[[sqlite3.Connection], T]) -> T:
        try:
            result = work(self._open())
        except sqlite3.Error:
            self.close()
            raise
        self._is_complaining = False
        return result

    def close(self) -> None:
        """Let go of the file."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def remove(self) -> None:
        """Delete the file; it is filled again when it is next used."""
        with self._lock:
            self.close()
            for tail in COMPANIONS:
                self.path.with_name(self.path.name + tail).unlink(missing_ok=True)

    def size(self) -> int:
        """Bytes on disk."""
        with contextlib.suppress(FileNotFoundError):
            return self.path.stat().st_size
        return 0

    def _open(self) -> sqlite3.Connection:
        if self._connection is not None and self._inode() != self._opened:
            self.close()  # somebody deleted or replaced it: the open one leads nowhere
        if self._connection is None:
            connection = driver.connect(str(self.path), BUSY_SECONDS)
            try:
                self._prepare(connection)
            except sqlite3.Error:
                connection.close()
                raise
            paths.private_file(self.path)
            self._connection = connection
            self._opened = self._inode()
        return self._connection

    def _inode(self) -> tuple[int, int] | None:
        try:
            found = self.path.stat()
        except FileNotFoundError:
            return None
        return found.st_dev, found.st_ino

    def _replace(self, error: sqlite3.Error) -> bool:
        log.warning("%s unusable (%s): rebuilding it", self._what, error)
        try:
            self.remove()
        except OSError as failure:
            log.warning("%s cannot be removed: %s", self._what, failure)
            return False
        return True

    def _complain(self, error: BaseException) -> None:
        if not self._is_complaining:
            self._is_complaining = True
            log.warning("%s unavailable (%s): continuing without it", self._what, error)

    def _prepare(self, connection: sqlite3.Connection) -> None:
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")  # it can be made again
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
    """A note about the file."""
    row = connection.execute("SELECT value FROM meta WHERE name = ?", (name,)).fetchone()
    return None if row is None else str(row[0])


def write_meta(connection: sqlite3.Connection, name: str, value: Any) -> None:
    """Note something about the file."""
    connection.execute(
        "INSERT INTO meta (name, value) VALUES (?, ?)"
        " ON CONFLICT (name) DO UPDATE SET value = excluded.value",
        (name, str(value)),
    )


def _says_nothing(error: sqlite3.Error) -> bool:
    """Whether an error is no sign of damage: a lock, the disk, or a question of ours."""
    text = str(error)
    return is_passing(error) or any(
        word in text for word in ("syntax error", "too large", "no such column", "interrupted")
    )
