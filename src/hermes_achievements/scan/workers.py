"""Worker processes that read sessions: as many as there are free cores, at low priority.

Each worker is told which sessions to read and answers with their entries and the tally
of all of them. A worker ends when its end of the pipe closes, so none survives the
process that started it, however that one ended.
"""

from __future__ import annotations

import contextlib
import gc
import logging
import multiprocessing
import os
import signal
from multiprocessing.connection import wait
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from hermes_achievements.calendar import Calendar
from hermes_achievements.metrics.tally import Tally
from hermes_achievements.scan.history import LedgerEntry
from hermes_achievements.scan.ledger_entries import book_of, entry_of, readable
from hermes_core.errors import ScanError, StoreError
from hermes_core.isolate import Step, attempt
from hermes_core.time_zones import find_zone

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from multiprocessing.connection import Connection

    from hermes_achievements.scan.history import History

MAX_WORKERS: Final = 8
NICENESS: Final = 10


class ScanJob(NamedTuple):
    """Sessions to read, each with its earlier book if there is one.

    `rereads` is false when the facts are still good and only the metrics have changed.
    """

    sessions: list[tuple[str, bytes | None]]
    rereads: bool
    size: int


class Done(NamedTuple):
    """What became of a job."""

    entries: list[LedgerEntry]
    tally: Tally
    job: ScanJob
    skipped: list[str]


def free_cores() -> int:
    """How many processes may work without taking anything from others."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    busy = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    return max(1, min(MAX_WORKERS, round((cores or 1) - busy / 2)))


def do_job(job: ScanJob, history: History, calendar: Calendar) -> Done:
    """Read the sessions of one job; one that cannot be read is left as it was."""
    entries: list[LedgerEntry] = []
    tally = Tally()
    books = dict(job.sessions)

    def read(session_id: str) -> None:
        before = books[session_id]
        book = None if job.rereads else readable(before)
        book = book or book_of(history, session_id, before)
        if book is not None:
            entry, contribution = entry_of(book, calendar)
            entries.append(entry)
            tally.add(session_id, contribution)

    skipped = [item for item in books if not read_apart(item, read)]
    return Done(entries, tally, job, skipped)


def read_apart(session_id: str, read: Callable[[str], None]) -> bool:
    """Read one session; whether it could be. Odd data of one does not stop the others."""
    failure = attempt(Step(f"read session {session_id} for statistics", lambda: read(session_id)))
    if failure is not None and isinstance(failure.error, StoreError):
        raise failure.error  # the store is in trouble, not the session
    return failure is None


def do_all_here(
    jobs: Iterator[ScanJob], open_history: Callable[[], History], zone: str
) -> Iterator[Done]:
    """Do all jobs in this process: right for a small history."""
    calendar = Calendar(find_zone(zone))
    with contextlib.closing(open_history()) as history:
        for job in jobs:
            yield do_job(job, history, calendar)


def do_all(
    jobs: Iterator[ScanJob], open_history: Callable[[], History], zone: str, number: int
) -> Iterator[Done]:
    """Do all jobs in *number* processes; results come as they are ready."""
    workers = [_Worker(open_history, zone) for _ in range(number)]
    try:
        idle = list(workers)
        while True:
            while idle and (job := next(jobs, None)) is not None:
                idle.pop(0).give(job)
            busy = {worker.pipe: worker for worker in workers if worker.job is not None}
            if not busy:
                return
            for pipe in wait(list(busy)):
                worker = busy[pipe]  # type: ignore[index]
                yield worker.take()
                idle.append(worker)
    finally:
        for worker in workers:
            worker.stop()


class _Worker:
    """One worker process, seen from outside."""

    def __init__(self, open_history: Callable[[], History], zone: str) -> None:
        # Not forked: a fork would inherit locks and connections of this process's threads.
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.job: ScanJob | None = None
        self._process = context.Process(
            target=_work, args=(theirs, open_history, zone), name="hermes-scan", daemon=True
        )
        self._process.start()
        theirs.close()

    def give(self, job: ScanJob) -> None:
        """Hand over a job."""
        self.job = job
        try:
            self.pipe.send(job)
        except OSError as error:
            raise ScanError(self._death()) from error

    def take(self) -> Done:
        """Its result."""
        job = self.job
        try:
            answer: Any = self.pipe.recv()
        except (EOFError, OSError) as error:
            raise ScanError(self._death()) from error
        self.job = None
        if isinstance(answer, str) or job is None:
            raise ScanError(f"reading the history failed: {answer}")
        entries, tally, skipped = answer
        return Done([LedgerEntry(*entry) for entry in entries], Tally.unpack(tally), job, skipped)

    def _death(self) -> str:
        self._process.join(timeout=5)
        return f"a process that reads the history has died (exit code {self._process.exitcode})"

    def stop(self) -> None:
        """End it; what it has not delivered is read again another time."""
        self.pipe.close()
        if self.job is not None:
            self._process.terminate()
        self._process.join(timeout=5)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()


def quiet_process() -> None:
    """Whoever started this process hears of failures through the pipe, not on stderr."""
    logging.getLogger().addHandler(logging.NullHandler())


def _work(pipe: Connection, open_history: Callable[[], History], zone: str) -> None:
    """The life of a worker."""
    quiet_process()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal's Ctrl-C is the parent's
    with contextlib.suppress(OSError):
        os.nice(NICENESS)
    gc.disable()  # lists of lists, by the million, and no cycles among them
    calendar = Calendar(find_zone(zone))
    with contextlib.closing(open_history()) as history:
        while True:
            try:
                job = pipe.recv()
            except (EOFError, OSError):
                return
            with contextlib.suppress(OSError):
                pipe.send(_answer(job, history, calendar))


def _answer(job: ScanJob, history: History, calendar: Calendar) -> object:
    """What is sent back: entries and tally, or the reason why there are none."""
    results: list[Done] = []
    failure = attempt(Step("read sessions", lambda: results.append(do_job(job, history, calendar))))
    if failure is not None:
        return f"{type(failure.error).__name__}: {failure.error}"
    done = results[0]
    return [tuple(entry) for entry in done.entries], done.tally.pack(), done.skipped
