"""An open history: reading, writing, closing.

All `SessionDB` objects of a process that use the same history share one engine, so there is
only one writer.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from hermes_core import paths
from hermes_core.clock import SystemClock
from hermes_core.errors import StoreError, StoreUnreachableError, UsageError
from hermes_state.engine import process_identity
from hermes_state.engine.database import DriverError
from hermes_state.engine.process_identity import ProcessIdentity
from hermes_state.engine.sqlite.database import SqliteDatabase
from hermes_state.engine.threads import Throttle
from hermes_state.messages.journal import Journal
from hermes_state.search.index_file import SearchFile
from hermes_state.store_settings import StoreSettings, store_password, store_url

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes_core.clock import Clock
    from hermes_state.engine.database import Database, Writer
    from hermes_state.engine.transaction import Reader, Tx


def is_url(place: str) -> bool:
    """Whether a place is a PostgreSQL database: a URL, or `service=NAME` and the like."""
    return place.startswith(("postgresql://", "postgres://")) or "=" in place.partition("/")[0]


def open_database(
    place: str, *, read_only: bool, may_be_empty: bool = False, may_be_unfinished: bool = False
) -> Database:
    """Open a database; with *may_be_empty*, one without a history can be read.

    With *may_be_unfinished*, a copy into it can be continued.
    """
    clock, settings = SystemClock(), StoreSettings.of_home()
    if not is_url(place):
        path = Path(place).expanduser().absolute()
        if not place or path.is_dir():
            raise UsageError(
                f"{place or 'An empty text'} is not a file. Name a new file, or a URL."
            )
        if "://" in place:
            raise UsageError(f"{place} is not a PostgreSQL URL: postgresql://USER@HOST/DATABASE")
        return SqliteDatabase(
            path,
            read_only=read_only,
            clock=clock,
            settings=settings,
            may_be_unfinished=may_be_unfinished,
        )
    return open_postgres(
        place,
        paths.state_db_path(),
        read_only=read_only,
        clock=clock,
        settings=settings,
        may_be_empty=may_be_empty,
        may_be_unfinished=may_be_unfinished,
    )


def open_postgres(
    url: str,
    path: Path,
    *,
    read_only: bool,
    clock: Clock,
    settings: StoreSettings,
    may_be_empty: bool = False,
    may_be_unfinished: bool = False,
) -> Database:
    """Open a PostgreSQL database; its journals and derived files are beside *path*."""
    from hermes_state.engine.postgres.driver import require_driver  # noqa: PLC0415 - an extra

    require_driver()
    from hermes_state.engine.postgres.connection import with_password  # noqa: PLC0415 - an extra
    from hermes_state.engine.postgres.database import PostgresDatabase  # noqa: PLC0415 - an extra

    return PostgresDatabase(
        with_password(url, store_password()),
        path,
        read_only=read_only,
        clock=clock,
        settings=settings,
        may_be_empty=may_be_empty,
        may_be_unfinished=may_be_unfinished,
    )


T = TypeVar("T")
log = logging.getLogger(__name__)

HEARTBEATS_PER_TIMEOUT: Final = 4
REFUSED_SECONDS: Final = 1.0  # until a deferred write is repeated


class Engine:
    """A database with its writer, the journal and the search index."""

    def __init__(
        self,
        database: Database,
        *,
        read_only: bool,
        clock: Clock,
        settings: StoreSettings,
        process_id: str,
    ) -> None:
        self.database = database
        self.path = database.path
        self.place = database.place
        self.columns = database.columns
        self.read_only = read_only
        self.clock = database.clock or clock
        self.settings = settings
        self._writer: Writer | None = None
        self._writer_lock = threading.RLock()
        self._throttle = Throttle()
        self.journal = Journal(self.path, process_id)
        self.search = SearchFile(self.path, with_tools=settings.search_tools)
        self.on_write: Callable[[float], object] = lambda _seconds: None  # gets each duration
        self._has_heartbeat = False
        self._heartbeat_seconds = self.columns.process_timeout_seconds / HEARTBEATS_PER_TIMEOUT

    def read(self, work: Callable[[Reader], T]) -> T:
        """Run *work* on a read-only connection."""
        try:
            return self.database.read(work)
        except DriverError as error:
            raise self.database.to_store_error(error) from error

    def version(self) -> int:
        """A number that changes when the history is written to; negative if it was replaced."""
        return self.database.version()

    def write(self, work: Callable[[Tx], T], *, is_conditional: bool = False) -> T:
        """Run *work* in a transaction; return once it is on disk.

        *is_conditional* states that each statement of *work* checks what it changes, so that it
        needs no isolation from other transactions: a claim.
        """
        try:
            return self.write_untranslated(work, is_conditional=is_conditional)
        except DriverError as error:
            raise self.database.to_store_error(error) from error

    def write_alone(self, work: Callable[[Tx], T]) -> T:
        """Like `write`, in a transaction that *work* may end."""
        try:
            return self.writer().submit(work, is_alone=True)
        except DriverError as error:
            raise self.database.to_store_error(error) from error

    def write_soon(self, work: Callable[[Tx], object], step: str) -> None:
        """Run *work* with the next commit of this process; does not wait for it.

        For changes that may be lost in a crash: nothing relies on them before they are on disk.
        While the database refuses writes, the work is repeated.
        """

        def report(error: BaseException) -> None:
            if isinstance(error, DriverError) and self.database.is_write_refused(error):
                reason = self.database.to_store_error(error)
                is_reported = isinstance(reason, StoreUnreachableError)
                write = log.debug if is_reported else log.warning
                write("%s failed: %s; retrying", step, error)
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

    def write_untranslated(self, work: Callable[[Tx], T], *, is_conditional: bool = False) -> T:
        """Like `write`, but raises the database's own errors."""
        writer = self._writer
        if writer is None:
            writer = self.writer()
        started = time.monotonic()
        try:
            return writer.submit(work, is_conditional=is_conditional)
        finally:
            self.on_write(time.monotonic() - started)

    def writer(self) -> Writer:
        """The process's only writer of this history, created at first use."""
        if self.read_only:
            raise StoreError(f"{self.path} was opened for reading only")
        if self._writer is not None:
            return self._writer
        with self._writer_lock:
            if self._writer is None:
                writer = self.database.open_writer(self.clock)
                # A signal handler that writes may have created the writer in the meantime.
                if self._writer is None:
                    self._writer = writer
                else:
                    writer.close()
            return self._writer

    def start_heartbeat(self, identity: ProcessIdentity) -> None:
        """Refresh this process's registration periodically until it ends."""
        if not self._has_heartbeat:
            self._has_heartbeat = True
            self.writer().later(self._heartbeat_seconds, lambda: self._beat(identity))

    def _beat(self, identity: ProcessIdentity) -> None:
        self.writer().later(self._heartbeat_seconds, lambda: self._beat(identity))
        self.write(lambda tx: process_identity.refresh(tx, identity), is_conditional=True)

    @property
    def commits(self) -> int:
        """Number of transactions that this process has committed."""
        return 0 if self._writer is None else self._writer.commits

    @property
    def has_written(self) -> bool:
        """Whether anything was written since opening."""
        return self._writer is not None

    def close(self) -> None:
        """Finish queued work and close the history."""
        if self._writer is not None:
            self._writer.close()
        self.search.close()
        self.database.close()
        self.journal.close()


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
                engine = Engine(
                    _open_database(
                        Path(key[0]), read_only=read_only, clock=clock, settings=settings
                    ),
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


def _open_database(
    path: Path, *, read_only: bool, clock: Clock, settings: StoreSettings
) -> Database:
    """The file, or the database that `store.url` names instead of the home's own file."""
    url = store_url(path)
    if not url:
        return SqliteDatabase(path, read_only=read_only, clock=clock, settings=settings)

    return open_postgres(url, path, read_only=read_only, clock=clock, settings=settings)


# One per process: all stores of a file must share its writing connection.
ENGINES: Final = Engines()
