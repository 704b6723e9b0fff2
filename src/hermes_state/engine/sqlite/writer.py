"""The writer of a process: a queue, one connection, group commit.

A job is a function that receives an open transaction. `submit` returns after the
transaction with the job's work is on disk. Jobs that wait at the same time share one
commit. If one of them fails, all are repeated, each in its own savepoint, so that a failing job
rolls back only itself.
`submit_soon` returns at once: its job shares the next commit, at the latest after a
quarter of a second.

The thread that finds the writer free becomes the leader and runs all waiting jobs. When its own
job is on disk, a dedicated thread leads on, so that a thread does not work for others as long
as they write. The main thread never leads, because signal handlers run there between any two
bytecodes; it passes its job to the dedicated thread. So a signal handler that writes, or Ctrl-C
during a write, can neither deadlock nor break a transaction.
"""

from __future__ import annotations

import _thread
import logging
import os
import threading
import time
from collections import deque
from typing import TYPE_CHECKING, Generic, TypeVar, cast

from hermes_core.errors import StoreError
from hermes_state.engine.database import DriverError
from hermes_state.engine.sqlite.errors import is_transient
from hermes_state.engine.sqlite.foreign_search import drop_faulty_triggers
from hermes_state.engine.threads import TimerThread, is_main_thread, run_off_main_thread

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes_state.engine.sqlite.transaction import SqliteTx
    from hermes_state.engine.transaction import Tx

T = TypeVar("T")
log = logging.getLogger(__name__)

MAX_GROUP_JOBS = 128
MAX_STOP_SECONDS = 30.0
SOON_SECONDS = 0.25


class WriteJob(Generic[T]):
    """A queued function and its outcome."""

    __slots__ = ("_done", "error", "is_alone", "result", "work")

    def __init__(self, work: Callable[[Tx], T], *, is_alone: bool = False) -> None:
        self.work = work
        self.is_alone = is_alone  # in a transaction of its own, which it may end
        self.result: T | None = None
        self.error: BaseException | None = None
        self._done = _thread.allocate_lock()
        self._done.acquire()

    @property
    def is_finished(self) -> bool:
        """Whether the outcome is known."""
        return not self._done.locked()

    def finish(self) -> None:
        """Wake the thread that waits for the outcome."""
        self._done.release()

    def outcome(self) -> T:
        """Wait until the work is on disk; return its result or raise its error."""
        self._done.acquire()
        self._done.release()
        if self.error is not None:
            raise self.error
        return cast("T", self.result)


class DeferredJob(WriteJob[object]):
    """A job that no thread waits for; a failure is reported to *on_error*."""

    __slots__ = ("_on_error", "due_at")

    def __init__(
        self, work: Callable[[Tx], object], on_error: Callable[[BaseException], object]
    ) -> None:
        super().__init__(work)
        self._on_error = on_error
        self.due_at = time.monotonic() + SOON_SECONDS

    def finish(self) -> None:
        """Report a failure."""
        if self.error is not None:
            self._on_error(self.error)


class SqliteWriter:
    """Runs groups of jobs on the process's only writing connection."""

    def __init__(self, transaction: SqliteTx) -> None:
        self._tx = transaction
        self._queue: deque[WriteJob[object]] = deque()
        self._deferred: deque[DeferredJob] = deque()
        self._lead_lock = threading.Lock()
        self._leader = 0
        self._pid = os.getpid()
        self._timer_thread = TimerThread(lambda: self._lead_while_free(blocking=True))
        self._is_closed = False

    @property
    def commits(self) -> int:
        """Number of committed transactions."""
        return self._tx.commits

    def submit(
        self, work: Callable[[Tx], T], *, is_conditional: bool = False, is_alone: bool = False
    ) -> T:
        """Run *work* in a transaction; return its result once it is on disk."""
        del is_conditional  # every transaction is isolated: the file has one writer at a time
        job = self._enqueue(work, is_alone=is_alone)
        if is_main_thread():
            self._timer_thread.call()
        else:
            self._lead_until_done(job)
        return job.outcome()

    def submit_soon(
        self, work: Callable[[Tx], object], on_error: Callable[[BaseException], object]
    ) -> None:
        """Run *work* with the next commit; jobs that are submitted later see its changes."""
        self._check_is_usable()
        self._deferred.append(DeferredJob(work, on_error))
        if len(self._deferred) == 1:
            self.later(SOON_SECONDS, self._run_deferred)

    def flush(self) -> None:
        """Run the deferred jobs now; those that a leader is committing are waited for."""
        if self._deferred or self._lead_lock.locked():
            self.submit(lambda _tx: None)

    def _run_deferred(self) -> None:
        """Run the deferred jobs if the oldest one is due, or the writer stops."""
        first = next(iter(self._deferred), None)
        if first is None:
            return
        seconds = first.due_at - time.monotonic()
        if seconds > 0 and not self._timer_thread.is_stopping:
            self.later(seconds, self._run_deferred)
            return
        self._queue.append(WriteJob(lambda _tx: None))  # carries them
        self._lead_while_free(blocking=True)

    def later(self, seconds: float, task: Callable[[], object]) -> None:
        """Run *task* on the timer thread after *seconds*, or when the writer stops."""
        self._timer_thread.later(seconds, task)

    def close(self) -> None:
        """Finish the queued jobs, then stop."""
        self._timer_thread.stop(MAX_STOP_SECONDS)
        self._is_closed = True
        run_off_main_thread(self._lead_while_free)
        run_off_main_thread(self._run_deferred)

    def _enqueue(self, work: Callable[[Tx], T], *, is_alone: bool) -> WriteJob[T]:
        self._check_is_usable()
        job = WriteJob(work, is_alone=is_alone)
        self._queue.append(cast("WriteJob[object]", job))
        return job

    def _check_is_usable(self) -> None:
        if self._is_closed:
            raise StoreError("the session store is closed")
        if os.getpid() != self._pid:
            raise StoreError("a forked process must open the session store again (SessionDB())")
        if self._leader == threading.get_ident():
            raise StoreError("a write was started from inside a write; return from it first")

    def _lead_until_done(self, job: WriteJob[T]) -> None:
        """Run waiting jobs until *job* is done, unless another thread is already the leader."""
        while not job.is_finished:
            if not self._lead_once(blocking=False):
                return  # the leader looks at the queue again after its group
        if self._queue:
            self._timer_thread.call()

    def _lead_while_free(self, *, blocking: bool = False) -> None:
        """Run all waiting jobs, unless another thread is already the leader."""
        while self._queue and self._lead_once(blocking=blocking):
            pass

    def _lead_once(self, *, blocking: bool) -> bool:
        """Run a group of waiting jobs; False if another thread is the leader."""
        if not self._lead_lock.acquire(blocking=blocking):
            return False
        try:
            self._leader = threading.get_ident()
            self._run_group()
        finally:
            self._leader = 0
            self._lead_lock.release()
        return True

    def _run_group(self) -> None:
        waiting: list[WriteJob[object]] = []
        while self._queue and len(waiting) < MAX_GROUP_JOBS:
            if waiting and (waiting[-1].is_alone or self._queue[0].is_alone):
                break
            waiting.append(self._queue.popleft())
        if not waiting:
            return
        # Taken last and run first: a deferred job precedes the jobs submitted after it.
        deferred = self._take_deferred()
        if waiting[0].is_alone and deferred:
            self._run_jobs(list(deferred))
            deferred = []
        self._run_jobs([*deferred, *waiting])

    def _run_jobs(self, group: list[WriteJob[object]]) -> None:
        if len(group) == 1:
            self._run_alone(group[0])
        else:
            self._run_together(group)

    def _take_deferred(self) -> list[DeferredJob]:
        return [self._deferred.popleft() for _ in range(len(self._deferred))]

    def _run_alone(self, job: WriteJob[object]) -> None:
        self._try(job)
        if isinstance(job.error, DriverError) and self._drop_faulty_triggers(job.error):
            job.error = None
            self._try(job)
        job.finish()

    def _try(self, job: WriteJob[object]) -> None:
        tx = self._tx
        try:
            tx.begin()
            job.result = job.work(tx)
            tx.commit()
        except BaseException as error:  # noqa: BLE001 - the caller gets it
            job.error = error
            self._roll_back()

    def _drop_faulty_triggers(self, error: DriverError) -> bool:
        try:
            return drop_faulty_triggers(self._tx, error)
        except DriverError as drop_error:
            log.warning("foreign search triggers not dropped: %s", drop_error)
            self._roll_back()
            return False

    def _run_together(self, group: list[WriteJob[object]]) -> None:
        """Run jobs in one commit; if one of them fails, all again with savepoints."""
        error = self._commit(group, self._run)
        if error is not None and not isinstance(error, DriverError):
            # The failing job gets it when it is repeated.
            error = self._commit(group, self._run_in_savepoint)
        if error is not None:
            self._run_one_by_one(group, error)
            return
        for job in group:
            job.finish()

    def _commit(
        self, group: list[WriteJob[object]], run: Callable[[WriteJob[object]], None]
    ) -> BaseException | None:
        """Run jobs in one transaction; the error that has rolled it back."""
        try:
            self._tx.begin()
            for job in group:
                run(job)
            self._tx.commit()
        except BaseException as error:  # noqa: BLE001 - the jobs get it
            self._roll_back()
            return error
        return None

    def _run(self, job: WriteJob[object]) -> None:
        job.result = job.work(self._tx)

    def _run_one_by_one(self, group: list[WriteJob[object]], error: BaseException) -> None:
        """Retry each job of a failed group alone, unless the error concerns all of them."""
        for job in group:
            if isinstance(error, DriverError) and is_transient(error):
                job.error = error
                job.finish()
            else:
                job.error = None
                self._run_alone(job)

    def _roll_back(self) -> None:
        try:
            self._tx.rollback()
        except DriverError as error:
            log.warning("transaction not rolled back: %s", error)
            self._tx.discard_connection()

    def _run_in_savepoint(self, job: WriteJob[object]) -> None:
        tx = self._tx
        tx.execute("SAVEPOINT job")
        try:
            job.result = job.work(tx)
        except BaseException as error:
            job.error = error
            if isinstance(error, DriverError):
                raise  # each job of the group is retried alone
            tx.execute("ROLLBACK TO job")
            tx.restore_covered()
        tx.execute("RELEASE job")
