"""An open session file: opening, reading, writing, closing.

All `SessionDB` objects of a process that use the same file share one engine, so there is
only one writing connection.
"""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from hermes_core import paths
from hermes_core.errors import StoreError, StoreUnavailableError
from hermes_state.engine import (
    driver,
    filesystem,
    foreign_search,
    migrator,
    process_identity,
)
from hermes_state.engine.columns import Columns, read_columns
from hermes_state.engine.driver import sqlite3
from hermes_state.engine.errors import is_write_refused, to_store_error
from hermes_state.engine.file_guard import GUARD
from hermes_state.engine.process_identity import ProcessIdentity
from hermes_state.engine.reader_pool import ReaderPool, read_only_uri
from hermes_state.engine.threads import Throttle
from hermes_state.engine.transaction import Reader, Tx
from hermes_state.engine.writer import Writer
from hermes_state.messages.journal import Journal
from hermes_state.schema.base import OLDEST_WRITABLE
from hermes_state.search.index_file import SearchFile
from hermes_state.sessions.index import before_commit, catch_up

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes_core.clock import Clock
    from hermes_state.store_settings import StoreSettings

T = TypeVar("T")
log = logging.getLogger(__name__)

CACHE_KIB: Final = 16 * 1024
HEARTBEAT_SECONDS: Final = 30.0
REPLACED_VERSION: Final = -1
REFUSED_SECONDS: Final = 1.0  # until a deferred write is repeated
CREATION_SECONDS: Final = 1.0  # until a file that is being created has content
SIDE_FILES: Final = ("search.db", "statistics.db")  # derived from the history


class Engine:
    """A session file with its writer and its readers."""

    def __init__(
        self,
        path: Path,
        *,
        read_only: bool,
        clock: Clock,
        settings: StoreSettings,
        process_id: str,
    ) -> None:
        self.path = path
        self.read_only = read_only
        self.clock = clock
        self.settings = settings
        self.busy_seconds = settings.busy_seconds
        driver.check_version()
        self.columns = self._open()
        self._opened = _file_id(path)
        self._readers = ReaderPool(path, self.columns, self.busy_seconds)
        self._writer: Writer | None = None
        self._writer_lock = threading.RLock()
        self._throttle = Throttle()
        self.journal = Journal(path, process_id)
        self.search = SearchFile(path, with_tools=settings.search_tools)
        self._has_heartbeat = False
        self._version_connection: sqlite3.Connection | None = None
        self._version_lock = threading.Lock()
        GUARD.protect(path)

    def read(self, work: Callable[[Reader], T]) -> T:
        """Run *work* on a read-only connection."""
        try:
            with self._readers.reader() as reader:
                return work(reader)
        except sqlite3.Error as error:
            raise to_store_error(error, self.path) from error

    def version(self) -> int:
        """A number that changes when the file is written to.

        It is negative if the file was replaced: this engine still reads the old one.
        """
        current = _file_id(self.path)
        if current is None:
            raise StoreUnavailableError(f"the history at {self.path} is gone")
        if current != self._opened:
            return REPLACED_VERSION
        try:
            with self._version_lock:
                if self._version_connection is None:
                    uri = read_only_uri(self.path)
                    self._version_connection = driver.connect(uri, self.busy_seconds, uri=True)
                return int(self._version_connection.execute("PRAGMA data_version").fetchone()[0])
        except sqlite3.Error as error:
            raise to_store_error(error, self.path) from error

    def write(self, work: Callable[[Tx], T]) -> T:
        """Run *work* in a transaction; return once it is on disk."""
        try:
            return self.write_untranslated(work)
        except sqlite3.Error as error:
            raise to_store_error(error, self.path) from error

    def write_soon(self, work: Callable[[Tx], object], step: str) -> None:
        """Run *work* with the next commit of this process; does not wait for it.

        For changes that may be lost in a crash: nobody relies on them before they are on disk.
        While the database refuses writes, the work is repeated.
        """

        def report(error: BaseException) -> None:
            if isinstance(error, sqlite3.Error) and is_write_refused(error):
                log.warning("%s: the database refuses the write (%s); trying again", step, error)
                self.writer().later(REFUSED_SECONDS, lambda: self.write_soon(work, step))
            else:
                log.error("%s failed: %s", step, error)

        self.writer().submit_soon(work, report)

    def flush(self) -> None:
        """Commit the changes of `write_soon` now."""
        if self._writer is not None:
            self._writer.flush()

    def write_upkeep(self, work: Callable[[Tx], T]) -> T:
        """Like `write`, for work in many steps: pauses so that other processes can write."""
        started = time.monotonic()
        try:
            return self.write(work)
        finally:
            self._throttle.record(time.monotonic() - started)

    def write_untranslated(self, work: Callable[[Tx], T]) -> T:
        """Like `write`, but raises SQLite's own errors."""
        writer = self._writer
        if writer is None:
            writer = self.writer()
        return writer.submit(work)

    def writer(self) -> Writer:
        """The process's only writer of this file, created at first use."""
        if self.read_only:
            raise StoreError(f"{self.path} was opened for reading only")
        if self._writer is not None:
            return self._writer
        with self._writer_lock:
            if self._writer is None:
                tx = Tx(self._connect, self.columns, self.clock, catch_up, before_commit)
                # A signal handler that writes may have created the writer in the meantime.
                if self._writer is None:
                    self._transaction = tx
                    self._writer = Writer(tx)
                else:
                    tx.connection.close()
            return self._writer

    def start_heartbeat(self, identity: ProcessIdentity) -> None:
        """Refresh this process's registration periodically until it ends."""
        if not self._has_heartbeat:
            self._has_heartbeat = True
            self.writer().later(HEARTBEAT_SECONDS, lambda: self._beat(identity))

    def _beat(self, identity: ProcessIdentity) -> None:
        self.writer().later(HEARTBEAT_SECONDS, lambda: self._beat(identity))
        self.write(lambda tx: process_identity.register(tx, identity))

    @property
    def commits(self) -> int:
        """Number of transactions that this process has committed."""
        return 0 if self._writer is None else self._transaction.commits

    @property
    def has_written(self) -> bool:
        """Whether anything was written since opening."""
        return self._writer is not None

    def close(self) -> None:
        """Finish queued work and close the file.

        The writer is closed last: only a writing connection can checkpoint and delete the
        write-ahead log.
        """
        if self._writer is not None:
            self._writer.close()
        self._readers.close()
        if self._version_connection is not None:
            self._version_connection.close()
        self.search.close()
        if self._writer is not None:
            self._transaction.connection.close()
        self.journal.close()
        GUARD.release(self.path)

    def _connect(self) -> sqlite3.Connection:
        connection = driver.connect(str(self.path), self.busy_seconds)
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
        connection.execute(f"PRAGMA journal_size_limit = {self.settings.wal_limit_mb << 20}")
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
        if migrator.keeps_journal_mode(connection) and not self.settings.converts_to_wal:
            return mode
        return _use_write_ahead_log(connection, mode)

    def _open(self) -> Columns:
        open_file = self._open_for_reading if self.read_only else self._open_for_writing
        try:
            try:
                return open_file()
            except sqlite3.DatabaseError as error:
                if not foreign_search.is_damaged(error):
                    raise
            foreign_search.set_aside(self.path, self.busy_seconds)
            return open_file()
        except sqlite3.Error as error:
            raise to_store_error(error, self.path) from error

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
                migrator.migrate(connection, self.clock.now())
                columns = read_columns(connection)
        return columns

    def _check(self, connection: sqlite3.Connection, columns: Columns) -> None:
        _check_is_session_store(columns, self.path)
        if columns.has_own_tables:
            migrator.check_layout(connection, self.path)


class Engines:
    """The engines of this process, shared by all stores of the same file."""

    def __init__(self) -> None:
        self._open: dict[tuple[str, bool], tuple[Engine, int]] = {}
        self._lock = threading.RLock()
        self._pid = os.getpid()
        self._identity: ProcessIdentity | None = None

    @property
    def identity(self) -> ProcessIdentity:
        """Identity of this process in every store it opens."""
        with self._lock:
            self._forget_after_fork()
            if self._identity is None:
                self._identity = ProcessIdentity.of_this_process()
            return self._identity

    def acquire(
        self, path: Path, *, read_only: bool, clock: Clock, settings: StoreSettings
    ) -> Engine:
        """The engine for *path*, opened if it is not open yet."""
        with self._lock:
            self._forget_after_fork()
            key = (os.path.realpath(path), read_only)
            engine, users = self._open.get(key, (None, 0))
            if engine is None:
                real = Path(key[0])
                engine = Engine(
                    real,
                    read_only=read_only,
                    clock=clock,
                    settings=settings,
                    process_id=self.identity.process_id,
                )
            self._open[key] = (engine, users + 1)
            return engine

    def release(self, engine: Engine) -> None:
        """Release an engine; the last user closes the file."""
        with self._lock:
            key = (str(engine.path), engine.read_only)
            current, users = self._open.get(key, (None, 0))
            if current is not engine:
                return
            if users > 1:
                self._open[key] = (engine, users - 1)
                return
            del self._open[key]
        engine.close()

    def _forget_after_fork(self) -> None:
        if os.getpid() != self._pid:
            # A child process must neither use nor close its parent's connections.
            self._pid = os.getpid()
            self._open = {}
            self._identity = None


# One per process: all stores of a file must share its writing connection.
ENGINES: Final = Engines()


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
        log.warning("write-ahead log not available now (%s); staying with %s", error, mode)
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
            "hermes-agent once to update the file, or move its conversations with "
            "`hermes sessions export` and `hermes sessions import`."
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
