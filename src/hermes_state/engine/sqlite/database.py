"""A history in an SQLite file: opening, connections, change detection."""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import time
from typing import TYPE_CHECKING, Final, TypeVar

from hermes_core import paths
from hermes_core.errors import StoreUnavailableError
from hermes_state.engine.database import DriverError
from hermes_state.engine.sqlite import driver, errors, filesystem, foreign_search, migrator
from hermes_state.engine.sqlite.driver import sqlite3
from hermes_state.engine.sqlite.file_guard import GUARD
from hermes_state.engine.sqlite.migrator import read_columns
from hermes_state.engine.sqlite.transaction import ReaderPool, SqliteTx, read_only_uri
from hermes_state.engine.sqlite.writer import SqliteWriter
from hermes_state.engine.transaction import HistorySnapshot
from hermes_state.schema.base import OLDEST_WRITABLE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from hermes_core.clock import Clock
    from hermes_core.errors import StoreError
    from hermes_state.engine.database import DatabaseReader
    from hermes_state.engine.transaction import Columns, Reader
    from hermes_state.store_settings import StoreSettings

T = TypeVar("T")
log = logging.getLogger(__name__)

CACHE_KIB: Final = 16 * 1024
REPLACED_VERSION: Final = -1
CREATION_SECONDS: Final = 1.0  # until a file that is being created has content
SIDE_FILES: Final = ("search.db", "statistics.db")  # derived from the history


class SqliteDatabase:
    """An SQLite file with its connections."""

    is_file = True
    clock = None

    def __init__(
        self,
        path: Path,
        *,
        read_only: bool,
        clock: Clock,
        settings: StoreSettings,
        may_be_unfinished: bool = False,
    ) -> None:
        self._may_be_unfinished = may_be_unfinished
        self.path = path
        self.place = str(path)
        self._read_only = read_only
        self._clock = clock
        self._settings = settings
        self.busy_seconds = settings.busy_seconds
        driver.check_version()
        self.columns = self._open()
        self._opened = _file_id(path)
        self._readers = ReaderPool(path, self.columns, self.busy_seconds)
        self._transactions: list[SqliteTx] = []
        self._version_connection: sqlite3.Connection | None = None
        self._version_lock = threading.Lock()
        GUARD.protect(path)

    def read(self, work: Callable[[Reader], T]) -> T:
        """Run *work* on a read-only connection."""
        return self._readers.run(work)

    @contextlib.contextmanager
    def snapshot(self) -> Iterator[DatabaseReader]:
        """The history as it is now: a read transaction."""
        with self._readers.reader() as reader:
            reader.execute("BEGIN")
            try:
                yield HistorySnapshot(self.place, self.columns, reader)
            finally:
                reader.execute("COMMIT")

    def listen(self, on_wake: Callable[[str], object]) -> Callable[[], None]:
        """No other node uses a file: there is nothing to listen to."""
        del on_wake
        return lambda: None

    def size_bytes(self) -> tuple[int, int]:
        """Size of the file, and of its write-ahead log."""
        return _size(self.path) or 0, _size(self.path.with_name(f"{self.path.name}-wal")) or 0

    def open_writer(self, clock: Clock) -> SqliteWriter:
        """A writer with a connection of its own."""
        transaction = SqliteTx(self._connect, self.columns, clock)
        self._transactions.append(transaction)
        return SqliteWriter(transaction)

    def version(self) -> int:
        """A number that changes when the file is written to.

        It is negative if the file was replaced: this object still reads the old one.
        """
        current = _file_id(self.path)
        if current is None:
            raise StoreUnavailableError(f"the history at {self.path} no longer exists")
        if current != self._opened:
            return REPLACED_VERSION
        try:
            with self._version_lock:
                if self._version_connection is None:
                    uri = read_only_uri(self.path)
                    self._version_connection = driver.connect(uri, self.busy_seconds, uri=True)
                return int(self._version_connection.execute("PRAGMA data_version").fetchone()[0])
        except DriverError as error:
            raise self.to_store_error(error) from error

    def to_store_error(self, error: DriverError) -> StoreError:
        """The error to show, with the next step."""
        return errors.to_store_error(error, self.path)

    def is_write_refused(self, error: DriverError) -> bool:
        """Whether nothing can be stored now, whatever the data."""
        return errors.is_write_refused(error)

    def is_busy(self, error: DriverError) -> bool:
        """Whether another process holds the write lock; the busy timeout has passed."""
        return errors.is_locked(error)

    def close(self) -> None:
        """Close the file.

        The writing connection is closed last: only it can checkpoint and delete the write-ahead
        log.
        """
        self._readers.close()
        if self._version_connection is not None:
            self._version_connection.close()
        for transaction in self._transactions:
            transaction.connection.close()
        GUARD.release(self.path)

    def _connect(self) -> sqlite3.Connection:
        connection = driver.connect(str(self.path), self.busy_seconds)
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
        connection.execute(f"PRAGMA journal_size_limit = {self._settings.wal_limit_mb << 20}")
        mode = self._journal_mode(connection)
        # Without WAL, only EXTRA makes a commit survive a power failure.
        connection.execute(f"PRAGMA synchronous = {'FULL' if mode == 'wal' else 'EXTRA'}")
        driver.set_busy_handler(connection, self.busy_seconds)
        return connection

    def _journal_mode(self, connection: sqlite3.Connection) -> str:
        """Use a write-ahead log; a file of another program keeps its mode unless asked."""
        mode = str(connection.execute("PRAGMA journal_mode").fetchone()[0]).lower()
        if mode == "wal":
            return mode
        if migrator.keeps_journal_mode(connection) and not self._settings.converts_to_wal:
            return mode
        return _use_write_ahead_log(connection, mode)

    def _open(self) -> Columns:
        open_file = self._open_for_reading if self._read_only else self._open_for_writing
        try:
            try:
                return open_file()
            except DriverError as error:
                if not foreign_search.is_damaged(error):
                    raise
            foreign_search.set_aside(self.path, self.busy_seconds)
            return open_file()
        except DriverError as error:
            raise self.to_store_error(error) from error

    def _open_for_reading(self) -> Columns:
        if not self.path.exists():
            raise StoreUnavailableError(f"no history at {self.path} yet")
        filesystem.check_file_system(self.path.parent)
        uri = read_only_uri(self.path)
        with contextlib.closing(driver.connect(uri, self.busy_seconds, uri=True)) as connection:
            columns = read_columns(connection)
            deadline = time.monotonic() + CREATION_SECONDS
            while not columns.tables and time.monotonic() < deadline:
                time.sleep(0.02)  # another process is creating the history
                columns = read_columns(connection)
            self._check(connection, columns)
        return columns

    def _open_for_writing(self) -> Columns:
        filesystem.prepare_folder(self.path)
        _check_was_not_emptied(self.path)
        _create_private(self.path)
        with contextlib.closing(self._connect()) as connection:
            columns = read_columns(connection)
            if columns.tables:
                self._check(connection, columns)
                _check_is_writable(columns, self.path)
            if not migrator.is_current(connection, columns.tables):
                migrator.migrate(connection, self._clock.now())
                columns = read_columns(connection)
        return columns

    def _check(self, connection: sqlite3.Connection, columns: Columns) -> None:
        _check_is_session_store(columns, self.path)
        if columns.has_own_tables:
            migrator.check_layout(connection, self.path)
            if not self._may_be_unfinished:
                migrator.check_is_finished(connection, self.path)


def _file_id(path: Path) -> tuple[int, int] | None:
    """Device and inode of a file; None if it does not exist."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino


def _use_write_ahead_log(connection: sqlite3.Connection, mode: str) -> str:
    timeout = connection.execute("PRAGMA busy_timeout").fetchone()[0]
    connection.execute("PRAGMA busy_timeout = 200")
    try:
        return str(connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]).lower()
    except sqlite3.OperationalError as error:
        log.warning("write-ahead log unavailable: %s; keeping journal mode %s", error, mode)
        return mode
    finally:
        connection.execute(f"PRAGMA busy_timeout = {timeout}")


def _create_private(path: Path) -> None:
    """Create an empty file that only its owner can read; SQLite's other files inherit the mode."""
    with contextlib.suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, paths.FILE_MODE))
    paths.private_file(path)


def _check_is_session_store(columns: Columns, path: Path) -> None:
    if not {"sessions", "messages"} <= columns.tables:
        raise StoreUnavailableError(
            f"{path} is an SQLite database, but not a session store. "
            "Move it away, or point HERMES_HOME elsewhere."
        )


def _check_is_writable(columns: Columns, path: Path) -> None:
    if missing := columns.missing_names():
        raise StoreUnavailableError(
            f"{path} was written by a release of hermes-agent before schema {OLDEST_WRITABLE} and "
            f"can only be read (missing columns: {', '.join(missing)}). Start a current "
            "hermes-agent once to update the file, or move into another folder: "
            f"`HERMES_HOME=~/.hermes-new hermes import hermes-agent {path.parent}` (or with "
            "`hermes sessions export` and `hermes sessions import`)."
        )


def _check_was_not_emptied(path: Path) -> None:
    """Refuse an empty file beside the remains of a history; SQLite would start a new one."""
    remains = [path.with_name(f"{path.name}-wal"), *map(path.with_name, SIDE_FILES)]
    deadline = time.monotonic() + CREATION_SECONDS
    while _size(path) == 0 and (found := [each.name for each in remains if _size(each)]):
        if time.monotonic() >= deadline:
            raise StoreUnavailableError(
                f"{path} is empty, but {', '.join(found)} show that it held a history. Restore a "
                "backup (`hermes restore`), or run `hermes sessions salvage` to keep the files "
                "aside and start a new history."
            )
        time.sleep(0.02)  # another process may be creating the history


def _size(path: Path) -> int | None:
    """The size of a file; None without it."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return None
