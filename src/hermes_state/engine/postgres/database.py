"""A history in PostgreSQL: connections, change detection."""

from __future__ import annotations

import contextlib
import logging
import random
import threading
import time
from typing import TYPE_CHECKING, Final, TypeVar
from zlib import crc32

import psycopg
from psycopg.conninfo import conninfo_to_dict

from hermes_core import paths
from hermes_core.backoff import Backoff
from hermes_core.clock import SystemClock
from hermes_core.errors import ConfigError, StoreError, StoreUnavailableError
from hermes_state.engine.database import DriverError
from hermes_state.engine.postgres import errors, schema
from hermes_state.engine.postgres.connection import (
    ConnectionPool,
    Listener,
    PostgresConnection,
    open_connection,
)
from hermes_state.engine.postgres.errors import PostgresError
from hermes_state.engine.postgres.writer import PostgresReader, PostgresWriter
from hermes_state.engine.transaction import HistorySnapshot

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

    from hermes_core.clock import Clock
    from hermes_state.engine.database import DatabaseReader
    from hermes_state.engine.transaction import Columns, Reader
    from hermes_state.store_settings import StoreSettings


# A connection that holds a lock, for work that one process of all machines does at a time.
#
# The lock is released by the server when the connection ends, so a process that was killed holds
# nothing. What the lock protects is written through the same connection: a process that has lost
# it cannot write. A holder shows that it works; if it does not for a while, because its
# process is frozen or its machine is gone, the next process that asks ends its connection.

BEATS_PER_TIMEOUT: Final = 4
TAKE_OVER_SECONDS: Final = 2.0  # until the server has ended a connection
RETRY_SECONDS: Final = 0.02
TRY_LOCK: Final = "SELECT pg_try_advisory_lock(hashtext(?), hashtext(current_schema()))"
# The server notices the end of a connection a moment later.
UNLOCK: Final = "SELECT pg_advisory_unlock(hashtext(?), hashtext(current_schema()))"
# Numbers of locks are unsigned in pg_locks.
END_STALLED: Final = """
    SELECT pg_terminate_backend(lock.pid)
    FROM pg_locks lock JOIN pg_stat_activity activity ON activity.pid = lock.pid
    WHERE lock.locktype = 'advisory' AND lock.granted AND lock.objsubid = 2
        AND lock.database = (SELECT oid FROM pg_database WHERE datname = current_database())
        AND lock.classid::bigint = hashtext(?)::bigint & 4294967295
        AND lock.objid::bigint = hashtext(current_schema())::bigint & 4294967295
        AND activity.state <> 'active'
        AND activity.state_change < clock_timestamp() - make_interval(secs => ?)
"""


@contextlib.contextmanager
def exclusive_connection(
    url: str, name: str, timeout_seconds: float
) -> Iterator[PostgresConnection | None]:
    """A connection that holds the lock *name*; None while another process holds it."""
    connection = PostgresConnection(open_connection(url, f"hermes ({name})"))
    try:
        if not _lock(connection, name, timeout_seconds):
            yield None
            return
        stopping = threading.Event()
        beat_seconds = timeout_seconds / BEATS_PER_TIMEOUT
        thread = threading.Thread(
            target=_beat, args=(connection, beat_seconds, stopping), name="hermes-lock", daemon=True
        )
        thread.start()
        try:
            yield connection
        finally:
            stopping.set()
            thread.join()
            with contextlib.suppress(PostgresError):  # the server may have ended the connection
                connection.execute(UNLOCK, (name,))
    finally:
        connection.close()


def _lock(connection: PostgresConnection, name: str, timeout_seconds: float) -> bool:
    if _try_lock(connection, name):
        return True
    if not connection.execute(END_STALLED, (name, timeout_seconds)).fetchall():
        return False
    deadline = time.monotonic() + TAKE_OVER_SECONDS
    while time.monotonic() < deadline:
        if _try_lock(connection, name):
            return True
        time.sleep(RETRY_SECONDS)
    return False


def _try_lock(connection: PostgresConnection, name: str) -> bool:
    return bool(connection.execute(TRY_LOCK, (name,)).fetchone()[0])


def _beat(connection: PostgresConnection, seconds: float, stopping: threading.Event) -> None:
    """Use the connection regularly; the work reports that it is lost."""
    while not stopping.wait(seconds):
        with contextlib.suppress(DriverError):
            connection.execute("SELECT 1")


T = TypeVar("T")
log = logging.getLogger(__name__)
OPEN_SECONDS: Final = 2.0  # a command that starts says soon that the server is not there
CONNECT_BACKOFF: Final = Backoff(0.05, 1.0)
SIZE: Final = """
    SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = current_schema() AND c.relkind = 'r'
"""
SNAPSHOT: Final = "SELECT pg_current_snapshot()::text"
SERVER_TIME: Final = "SELECT extract(epoch FROM clock_timestamp())::double precision"


class DatabaseClock:
    """Unix time of the server, measured when a connection is opened.

    In between the monotonic clock counts, so setting the clock of this machine changes nothing.
    """

    def __init__(self) -> None:
        self._offset = time.time() - time.monotonic()

    def measure(self, connection: PostgresConnection) -> None:
        """Compare with the server's clock; the answer is assumed to be made half-way."""
        before = time.monotonic()
        server_time = float(connection.execute(SERVER_TIME).fetchone()[0])
        self._offset = server_time - (before + time.monotonic()) / 2

    def now(self) -> float:
        """Unix time in seconds."""
        return self._offset + time.monotonic()

    def monotonic(self) -> float:
        """The monotonic clock of this machine."""
        return time.monotonic()


class PostgresDatabase:
    """A schema of a PostgreSQL database."""

    is_file = False

    def __init__(
        self,
        url: str,
        path: Path,
        *,
        read_only: bool,
        clock: Clock,
        settings: StoreSettings,
        may_be_empty: bool = False,
        may_be_unfinished: bool = False,
    ) -> None:
        self._may_be_empty = may_be_empty
        self._may_be_unfinished = may_be_unfinished
        self._url = url
        self.place = describe(url)
        self.path = path  # no file: derived files and journals are beside it
        self._settings = settings
        # A clock that a test controls is used as it is.
        self._clock = DatabaseClock() if isinstance(clock, SystemClock) else None
        self._pool = ConnectionPool(self._connect)
        self._jitter = random.Random()
        self._is_open, self._is_reachable = False, True
        try:
            self.columns: Columns = self._with_connection(
                lambda connection: self._open(connection, clock, read_only=read_only),
                min(OPEN_SECONDS, settings.busy_seconds),
            )
        except PostgresError as error:
            self._pool.close()
            raise self.to_store_error(error) from error
        except StoreError:
            self._pool.close()
            raise
        self._is_open = True
        paths.private_folder(self.path.parent)

    def _open(self, connection: PostgresConnection, clock: Clock, *, read_only: bool) -> Columns:
        encoding = str(connection.execute("SHOW server_encoding").fetchone()[0])
        if encoding != "UTF8":
            raise StoreUnavailableError(
                f"{self.place} stores text as {encoding}; create the database with ENCODING UTF8"
            )
        if not read_only:
            schema.prepare(connection, (self._clock or clock).now(), self.place)
        elif "hermes_layout" not in schema.table_names(connection):
            if self._may_be_empty:
                return schema.read_columns(connection, self._settings.node_timeout_seconds)
            raise StoreUnavailableError(f"no history at {self.place} yet")
        else:
            schema.check_layout(connection, self.place)
        if not self._may_be_unfinished:
            schema.check_is_finished(connection, self.place)
        return schema.read_columns(connection, self._settings.node_timeout_seconds)

    @property
    def clock(self) -> Clock | None:
        """The clock of the server; None if a test controls the time."""
        return self._clock

    def read(self, work: Callable[[Reader], T]) -> T:
        """Run *work* on a connection; repeat it if the connection is lost."""
        return self._with_connection(lambda c: work(PostgresReader(c, self.columns)))

    @contextlib.contextmanager
    def snapshot(self) -> Iterator[DatabaseReader]:
        """The history as it is now: a transaction that sees no later commit."""
        with self._pool.connection() as connection:
            connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            try:
                reader = PostgresReader(connection, self.columns)
                yield HistorySnapshot(self.place, self.columns, reader)
            finally:
                connection.execute("ROLLBACK")

    def listen(self, on_wake: Callable[[str], object]) -> Callable[[], None]:
        """Pass the topics of other processes' changes to *on_wake*; returns how to stop."""
        return Listener(self._url, on_wake).stop

    def exclusive(self, name: str) -> AbstractContextManager[PostgresConnection | None]:
        """A connection that holds the lock *name*; None while another process holds it."""
        return exclusive_connection(self._url, name, self._settings.node_timeout_seconds)

    def size_bytes(self) -> tuple[int, int]:
        """Size of the tables with their indexes; the server's log has other data, too."""
        return int(self._with_connection(lambda c: c.execute(SIZE).fetchone()[0])), 0

    def open_writer(self, clock: Clock) -> PostgresWriter:
        """Start writing."""
        return PostgresWriter(
            self._pool, self.columns, self._clock or clock, self._settings.busy_seconds
        )

    def version(self) -> int:
        """A number that changes with every commit of any process."""
        try:
            row = self._with_connection(lambda c: c.execute(SNAPSHOT).fetchone())
        except PostgresError as error:
            raise self.to_store_error(error) from error
        return crc32(str(row[0]).encode())

    def to_store_error(self, error: DriverError) -> StoreError:
        """The error to show, with the next step."""
        return errors.to_store_error(error, self.place)

    def is_write_refused(self, error: DriverError) -> bool:
        """Whether nothing can be stored now, whatever the data."""
        return errors.is_write_refused(error)

    def is_busy(self, error: DriverError) -> bool:
        """Whether the time to wait for other transactions or the server has already passed."""
        return isinstance(error, PostgresError) and (error.is_conflict or error.is_connection_lost)

    def close(self) -> None:
        """Close all connections; the writer was closed before."""
        self._pool.close()

    def _connect(self) -> PostgresConnection:
        try:
            connection = PostgresConnection(open_connection(self._url, "hermes"))
        except PostgresError as error:
            self._note_unreachable(error)
            raise
        if not self._is_reachable:
            self._is_reachable = True
            log.info("history is reachable again: %s", self.place)
        if self._clock is not None:
            self._clock.measure(connection)
        return connection

    def _note_unreachable(self, error: PostgresError) -> None:
        """Log that the server is lost, once; an error at the start is shown by the caller."""
        if self._is_open and self._is_reachable and error.is_connection_lost:
            self._is_reachable = False
            log.warning("history is unreachable: %s", self.to_store_error(error))

    def _with_connection(
        self, work: Callable[[PostgresConnection], T], seconds: float | None = None
    ) -> T:
        """Run *work*; a server that restarts is waited for."""
        limit = self._settings.busy_seconds if seconds is None else seconds
        deadline = time.monotonic() + limit
        attempts = 0
        while True:
            attempts += 1
            try:
                with self._pool.connection() as connection:
                    return work(connection)
            except PostgresError as error:
                if not error.is_connection_lost or time.monotonic() >= deadline:
                    raise
            self._pool.discard_idle()
            time.sleep(CONNECT_BACKOFF.jittered(attempts, self._jitter))


def describe(url: str) -> str:
    """Host, port and database of a URL, without the password."""
    try:
        parts = conninfo_to_dict(url)
    except psycopg.Error as error:
        raise ConfigError(f"store.url cannot be used: {error}") from error
    host = parts.get("host") or parts.get("service") or "localhost"
    number = parts.get("port")
    port = f":{number}" if number else ""
    return f"postgresql://{host}{port}/{parts.get('dbname') or ''}"
