"""Transactions of PostgreSQL: serializable, repeated after a conflict or a lost connection.

A transaction that reads before it writes is correct whatever other processes do at the same
time: the database aborts one of two transactions that could not have run one after the other,
and the writer repeats it. Each transaction marks its connection's row in `hermes_commit`, so
that the outcome of a commit whose connection was lost can be looked up, and nothing is stored
twice. (PostgreSQL's own transaction numbers do not tell: a server that crashed may assign the
number of a lost transaction again.)
"""

from __future__ import annotations

import contextlib
import logging
import os
import random
import threading
import time
from collections import deque
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from hermes_core.backoff import Backoff
from hermes_core.errors import StoreError
from hermes_state.engine.database import DriverError
from hermes_state.engine.postgres.connection import NOTIFY
from hermes_state.engine.postgres.errors import PostgresError, translated
from hermes_state.engine.threads import TimerThread, run_off_main_thread
from hermes_state.engine.transaction import Reader, Tx

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes_core.clock import Clock
    from hermes_state.engine.database import DatabaseConnection
    from hermes_state.engine.postgres.connection import ConnectionPool, PostgresConnection
    from hermes_state.engine.transaction import Columns, ValueKind


COLUMN_TYPES: Final = """
    SELECT column_name, data_type FROM information_schema.columns
    WHERE table_schema = current_schema() AND table_name = ?
"""
KINDS: Final[dict[str, ValueKind]] = {
    "text": "text",
    "bigint": "int",
    "double precision": "float",
    "bytea": "bytes",
}


class PostgresReader(Reader):
    """A connection for reading; each statement sees what is committed when it starts."""

    def column_kinds(self, table: str) -> dict[str, ValueKind]:
        """The kind of value that each column takes."""
        return {
            name: KINDS[kind] for name, kind in self.rows(COLUMN_TYPES, (table,)) if kind in KINDS
        }


class PostgresTx(PostgresReader, Tx):
    """A transaction. Only Hermes writes here, so the session index is never behind.

    `uid_limit` is empty, so that every identity is looked up: another process may have
    stored it.
    """

    def __init__(self, connection: DatabaseConnection, columns: Columns, clock: Clock) -> None:
        super().__init__(connection, columns, clock)
        self.newest_uid = b""

    def update_planner(self) -> None:
        """Collect the statistics of all tables, which otherwise happens about a minute later."""
        self.run("ANALYZE")

    def compact(self) -> None:
        """Make the space of deleted rows free for new ones; the files do not become smaller."""
        self.run("COMMIT")
        self.run("VACUUM (ANALYZE)")
        self.run("BEGIN")

    def wake(self, topic: str) -> None:
        """Notify the processes that listen, on all nodes, once this is committed."""
        self.run(NOTIFY, (topic,))

    def continue_numbers(self, table: str, key: str) -> None:
        """Set the sequence of the column to its highest value."""
        sql = (
            f"SELECT setval(pg_get_serial_sequence('{table}', '{key}'),"  # noqa: S608 - own names
            f" coalesce(max({key}), 1), max({key}) IS NOT NULL) FROM {table}"
        )
        self.run(sql)


T = TypeVar("T")
log = logging.getLogger(__name__)

SOON_SECONDS: Final = 0.25
MAX_STOP_SECONDS: Final = 30.0
CONFLICT_BACKOFF: Final = Backoff(0.002, 0.2)
MIN_CONFLICTS: Final = 8  # that are repeated, also if the process was frozen meanwhile
RECONNECT_BACKOFF: Final = Backoff(0.05, 1.0)

BEGIN: Final = "BEGIN ISOLATION LEVEL SERIALIZABLE"
BEGIN_CONDITIONAL: Final = "BEGIN ISOLATION LEVEL READ COMMITTED"
# Of a small table the server prefers to read all, which conflicts with every change of it.
USE_INDEXES: Final = "SET LOCAL enable_seqscan = off"
# One row per connection, with the number of its last transaction.
MARK_TRANSACTION: Final = """
    INSERT INTO hermes_commit (connection_id, transaction_number) VALUES ('{}', {})
    ON CONFLICT (connection_id) DO UPDATE
        SET transaction_number = excluded.transaction_number, changed_at = now()
"""
# An INSERT waits for a lost transaction that the server still runs; a SELECT does not.
READ_MARK: Final = """
    INSERT INTO hermes_commit (connection_id, transaction_number) VALUES (?, 0)
    ON CONFLICT (connection_id)
        DO UPDATE SET transaction_number = hermes_commit.transaction_number
    RETURNING transaction_number
"""


class DeferredWork(NamedTuple):
    """Work that no thread waits for; a failure is reported to *on_error*."""

    work: Callable[[Tx], object]
    on_error: Callable[[BaseException], object]


class DeferredBatch(NamedTuple):
    """Deferred work that a thread is committing; *done* is set when it has ended."""

    work: list[DeferredWork]
    thread: int
    done: threading.Event


class FailureCount:
    """How often a transaction failed for one kind of reason, and since when."""

    def __init__(self) -> None:
        self.count = 0
        self._first = 0.0

    def add(self) -> None:
        """Count a failure."""
        self._first = self._first if self.count else time.monotonic()
        self.count += 1

    @property
    def seconds(self) -> float:
        """Seconds since the first one."""
        return time.monotonic() - self._first


class PostgresWriter:
    """Runs functions in transactions, on the calling thread; on another for the main thread."""

    def __init__(
        self, pool: ConnectionPool, columns: Columns, clock: Clock, busy_seconds: float
    ) -> None:
        self._pool = pool
        self._columns = columns
        self._clock = clock
        self._busy_seconds = busy_seconds
        self._pid = os.getpid()
        self._deferred: deque[DeferredWork] = deque()
        self._in_flight: list[DeferredBatch] = []
        self._take_lock = threading.Lock()  # never held on the main thread
        self._timer_thread = TimerThread(lambda: None)
        self._jitter = random.Random()
        self._is_closed = False
        self.commits = 0

    def submit(
        self, work: Callable[[Tx], T], *, is_conditional: bool = False, is_alone: bool = False
    ) -> T:
        """Run *work* in a transaction; return its result once it is on disk."""
        if self._is_closed:
            raise StoreError("the session store is closed")
        if os.getpid() != self._pid:
            raise StoreError("a forked process must open the session store again (SessionDB())")
        if is_alone:
            self.flush()
        begin = BEGIN_CONDITIONAL if is_conditional else BEGIN
        return run_off_main_thread(lambda: self._run(work, begin))

    def submit_soon(
        self, work: Callable[[Tx], object], on_error: Callable[[BaseException], object]
    ) -> None:
        """Run *work* with the next commit; jobs that are submitted later see its changes."""
        self._deferred.append(DeferredWork(work, on_error))
        if len(self._deferred) == 1:
            self.later(SOON_SECONDS, self.flush)

    def flush(self) -> None:
        """Run the deferred work now; what another thread is committing is waited for."""
        if self._deferred or self._in_flight:
            self.submit(lambda _tx: None)

    def later(self, seconds: float, task: Callable[[], object]) -> None:
        """Run *task* on a thread of the writer after *seconds*, or when the writer stops."""
        self._timer_thread.later(seconds, task)

    def close(self) -> None:
        """Finish the deferred work, then stop."""
        self._timer_thread.stop(MAX_STOP_SECONDS)
        try:
            self.flush()
        except (DriverError, StoreError) as error:
            log.error("%d deferred writes lost: %s", len(self._deferred), error)
        self._is_closed = True

    def _run(self, work: Callable[[Tx], T], begin: str) -> T:
        batch = self._take_deferred()
        try:
            return self._repeat(batch.work, work, begin)
        except BaseException:
            if batch.work:  # rolled back with the work: the next commit has them
                self._deferred.extendleft(reversed(batch.work))
                self.later(SOON_SECONDS, self.flush)
            raise
        finally:
            if batch.work:
                self._in_flight.remove(batch)
                batch.done.set()

    def _take_deferred(self) -> DeferredBatch:
        """The deferred work; what other threads are committing precedes it."""
        own = threading.get_ident()
        for earlier in tuple(self._in_flight):
            if earlier.thread != own:
                earlier.done.wait()
        batch = DeferredBatch([], own, threading.Event())
        with self._take_lock:
            if self._deferred:
                self._in_flight.append(batch)  # first: `flush` sees the work in one of both
                batch.work.extend(self._deferred.popleft() for _ in range(len(self._deferred)))
        return batch

    def _repeat(self, deferred: list[DeferredWork], work: Callable[[Tx], T], begin: str) -> T:
        """Run a transaction; conflicts and lost connections have a time limit each.

        That of conflicts starts after the last reconnection.
        """
        losses, conflicts = FailureCount(), FailureCount()
        while True:
            try:
                with self._pool.connection() as connection:
                    return self._transact(connection, begin, deferred, work)
            except PostgresError as error:
                if error.is_connection_lost:
                    failures, minimum, backoff = losses, 1, RECONNECT_BACKOFF
                    conflicts = FailureCount()
                    self._pool.discard_idle()
                elif error.is_conflict:
                    failures, minimum, backoff = conflicts, MIN_CONFLICTS, CONFLICT_BACKOFF
                else:
                    raise
                failures.add()
                if failures.count > minimum and failures.seconds >= self._busy_seconds:
                    raise
                time.sleep(backoff.jittered(failures.count, self._jitter))

    def _transact(
        self,
        connection: PostgresConnection,
        begin: str,
        deferred: list[DeferredWork],
        work: Callable[[Tx], T],
    ) -> T:
        tx = PostgresTx(connection, self._columns, self._clock)
        _begin(connection, begin)
        try:
            errors = [_run_in_savepoint(tx, each.work) for each in deferred]
            result = work(tx)
        except BaseException:
            with contextlib.suppress(DriverError):  # a lost connection: the server rolls back
                connection.execute("ROLLBACK")
            raise
        finally:
            connection.is_writing = False
        self._commit(connection)
        self.commits += 1
        for each, error in zip(deferred, errors, strict=True):
            if error is not None:
                each.on_error(error)
        return result

    def _commit(self, connection: PostgresConnection) -> None:
        try:
            connection.execute("COMMIT")
        except PostgresError as error:
            if not error.is_connection_lost or not self._is_committed(connection):
                raise

    def _is_committed(self, lost: PostgresConnection) -> bool:
        """Whether the last transaction of a lost connection is committed; waits for its end."""
        deadline = time.monotonic() + self._busy_seconds
        attempts = 0
        while True:
            attempts += 1
            try:
                with self._pool.connection() as connection:
                    row = connection.execute(READ_MARK, (lost.name,)).fetchone()
                return bool(row[0] == lost.transactions)
            except PostgresError as error:
                if not error.is_connection_lost or time.monotonic() >= deadline:
                    raise
                self._pool.discard_idle()
            if time.monotonic() >= deadline:
                raise StoreError(
                    "the connection to the history was lost during a commit, and its outcome "
                    "is not known yet; check the history before you repeat the change"
                )
            time.sleep(RECONNECT_BACKOFF.jittered(attempts, self._jitter))


def _begin(connection: PostgresConnection, begin: str) -> None:
    """Start a transaction and mark it."""
    connection.transactions += 1
    mark = MARK_TRANSACTION.format(connection.name, connection.transactions)
    with translated():
        connection.raw.execute(f"{begin}; {USE_INDEXES}; {mark}".encode())
    connection.is_writing = True


def _run_in_savepoint(tx: Tx, work: Callable[[Tx], object]) -> BaseException | None:
    tx.execute("SAVEPOINT job")
    try:
        work(tx)
    except Exception as error:
        if isinstance(error, PostgresError) and (error.is_conflict or error.is_connection_lost):
            raise  # the whole transaction is repeated
        tx.execute("ROLLBACK TO job")
        return error
    tx.execute("RELEASE job")
    return None
