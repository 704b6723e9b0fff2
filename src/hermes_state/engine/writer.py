"""One writer per process: a queue, one connection, group commit.

A job is a function that gets an open transaction. `submit` returns when the transaction
that holds the job's work is on disk, never before. Jobs that wait at the same moment
share one commit; each runs in a savepoint of its own, so one that fails takes only
itself back.

Who runs the jobs: whichever thread finds the writer free leads and works for all that
wait. The main thread never leads, because only there can a signal handler strike
between two steps; it hands its job to a thread kept for that purpose. So a handler that
writes, or Ctrl-C in the middle of a write, can neither deadlock nor tear a transaction.
"""

from __future__ import annotations

import _thread
import logging
import os
import threading
from collections import deque
from typing import TYPE_CHECKING, Generic, TypeVar, cast

from hermes_core.errors import StoreError
from hermes_state.engine.driver import sqlite3
from hermes_state.engine.errors import is_passing
from hermes_state.engine.threads import Attendant, is_main_thread, run_apart
from hermes_state.schema.base import drop_if_guilty

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes_state.engine.transaction import Tx

T = TypeVar("T")
log = logging.getLogger(__name__)

MAX_GROUP = 128
MAX_STOP_SECONDS = 30.0


class WriteJob(Generic[T]):
    """One piece of work, and the place where its outcome appears."""

    __slots__ = ("_done", "error", "result", "work")

    def __init__(self, work: Callable[[Tx], T]) -> None:
        self.work = work
        self.result: T | None = None
        self.error: BaseException | None = None
        self._done = _thread.allocate_lock()
        self._done.acquire()

    def finish(self) -> None:
        """Wake whoever waits."""
        self._done.release()

    def outcome(self) -> T:
        """Wait until the work is on disk; its result, or its error."""
        self._done.acquire()
        self._done.release()
        if self.error is not None:
            raise self.error
        return cast("T", self.result)


class Writer:
    """Runs jobs one group at a time on the process's only writing connection."""

    def __init__(self, transaction: Tx) -> None:
        self._tx = transaction
        self._queue: deque[WriteJob[object]] = deque()
        self._turn = threading.Lock()
        self._leader = 0
        self._pid = os.getpid()
        self._attendant = Attendant(lambda: self._lead_while_free(patient=True))
        self._is_closed = False

    def submit(self, work: Callable[[Tx], T]) -> T:
        """Run *work* in a transaction; return its result once it is on disk."""
        job = self._enqueue(work)
        if is_main_thread():
            self._attendant.call()
        else:
            self._lead_while_free()
        return job.outcome()

    def later(self, seconds: float, act: Callable[[], object]) -> None:
        """Call *act* on the writer's own thread after a while, or when the writer stops."""
        self._attendant.later(seconds, act)

    def close(self) -> None:
        """Finish what is queued, then stop."""
        self._attendant.stop(MAX_STOP_SECONDS)
        self._is_closed = True
        run_apart(self._lead_while_free)

    def _enqueue(self, work: Callable[[Tx], T]) -> WriteJob[T]:
        if self._is_closed:
            raise StoreError("the session store is closed")
        if os.getpid() != self._pid:
            raise StoreError("a forked process must open the session store again (SessionDB())")
        if self._leader == threading.get_ident():
            raise StoreError("a write was started from inside a write; return from it first")
        job = WriteJob(work)
        self._queue.append(cast("WriteJob[object]", job))
        return job

    def _lead_while_free(self, *, patient: bool = False) -> None:
        """Work for everybody who waits, unless another thread is already doing so."""
        while self._queue:
            if not self._turn.acquire(blocking=patient):
                return
            try:
                self._leader = threading.get_ident()
                self._run_group()
            finally:
                self._leader = 0
                self._turn.release()

    def _run_group(self) -> None:
        group: list[WriteJob[object]] = []
        while self._queue and len(group) < MAX_GROUP:
            group.append(self._queue.popleft())
        if not group:
            return
        if len(group) == 1:
            self._run_alone(group[0])
        else:
            self._run_together(group)

    def _run_alone(self, job: WriteJob[object]) -> None:
        self._try(job)
        if isinstance(job.error, sqlite3.Error) and self._mended(job.error):
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
            self._take_back()

    def _mended(self, error: sqlite3.Error) -> bool:
        try:
            return drop_if_guilty(self._tx, error)
        except sqlite3.Error as another:
            log.warning("foreign search triggers could not be dropped: %s", another)
            self._take_back()
            return False

    def _run_together(self, group: list[WriteJob[object]]) -> None:
        tx = self._tx
        try:
            tx.begin()
            for job in group:
                self._run_in_savepoint(job)
            tx.commit()
        except sqlite3.Error as error:
            self._take_back()
            self._run_one_by_one(group, error)
            return
        for job in group:
            job.finish()

    def _run_one_by_one(self, group: list[WriteJob[object]], error: sqlite3.Error) -> None:
        """Nothing of the group is on disk: each tries on its own, unless none can succeed."""
        for job in group:
            if is_passing(error):
                job.error = error
                job.finish()
            else:
                job.error = None
                self._run_alone(job)

    def _take_back(self) -> None:
        try:
            self._tx.rollback()
        except sqlite3.Error as error:
            log.warning("the transaction could not be rolled back: %s", error)
            self._tx.give_up_connection()

    def _run_in_savepoint(self, job: WriteJob[object]) -> None:
        tx = self._tx
        tx.execute("SAVEPOINT job")
        try:
            job.result = job.work(tx)
        except BaseException as error:
            job.error = error
            if isinstance(error, sqlite3.Error):
                raise  # the whole group starts over, each on its own
            tx.execute("ROLLBACK TO job")
            tx.forget_covered()
        tx.execute("RELEASE job")
