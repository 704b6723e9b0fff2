"""Worker processes that read sessions, at low priority.

A worker receives jobs, lists of sessions, and returns their entries and their tally. It ends
when its pipe is closed, so it never outlives the process that started it.
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
from hermes_achievements.scan.ledger_entries import collect_facts, decode_facts, make_entry
from hermes_core.errors import ScanError, StoreError
from hermes_core.isolate import Failure, attempt
from hermes_core.time_zones import find_zone

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from multiprocessing.connection import Connection

    from hermes_achievements.scan.history import History

NICENESS: Final = 10


class ScanJob(NamedTuple):
    """Sessions to read, each with its earlier facts, if any.

    `rereads` is false if the facts are current and only the metrics have changed.
    """

    sessions: list[tuple[str, bytes | None]]
    rereads: bool
    size: int


class JobResult(NamedTuple):
    """The result of a job."""

    entries: list[LedgerEntry]
    tally: Tally
    job: ScanJob
    skipped: list[str]


def run_job(job: ScanJob, history: History, calendar: Calendar) -> JobResult:
    """Read the sessions of a job; unreadable sessions keep their earlier entry."""
    entries: list[LedgerEntry] = []
    tally = Tally()
    earlier_facts = dict(job.sessions)

    def read(session_id: str) -> None:
        earlier = earlier_facts[session_id]
        recorded = None if job.rereads else decode_facts(earlier)
        recorded = recorded or collect_facts(history, session_id, earlier)
        if recorded is not None:
            entry, contribution = make_entry(recorded, calendar)
            entries.append(entry)
            tally.add(session_id, contribution)

    skipped = [item for item in earlier_facts if not read_isolated(item, read)]
    return JobResult(entries, tally, job, skipped)


def read_isolated(session_id: str, read: Callable[[str], None]) -> bool:
    """Read one session and report whether it succeeded; bad data does not stop the scan."""
    result = attempt(f"read session {session_id} for statistics", lambda: read(session_id))
    if isinstance(result, Failure) and isinstance(result.error, StoreError):
        raise result.error  # a failure of the store, not of the session
    return not isinstance(result, Failure)


def run_jobs_inline(
    jobs: Iterator[ScanJob], open_history: Callable[[], History], zone: str
) -> Iterator[JobResult]:
    """Run all jobs in this process, for a small history."""
    calendar = Calendar(find_zone(zone))
    with contextlib.closing(open_history()) as history:
        for job in jobs:
            yield run_job(job, history, calendar)


def run_jobs(
    jobs: Iterator[ScanJob], open_history: Callable[[], History], zone: str, number: int
) -> Iterator[JobResult]:
    """Run all jobs in *number* processes; yields results as they complete."""
    workers = [_Worker(open_history, zone) for _ in range(number)]
    try:
        idle = list(workers)
        while True:
            while idle and (job := next(jobs, None)) is not None:
                idle.pop(0).send(job)
            busy = {worker.pipe: worker for worker in workers if worker.job is not None}
            if not busy:
                return
            for pipe in wait(list(busy)):
                worker = busy[pipe]  # type: ignore[index]
                yield worker.receive()
                idle.append(worker)
    finally:
        for worker in workers:
            worker.stop()


class _Worker:
    """Controls one worker process."""

    def __init__(self, open_history: Callable[[], History], zone: str) -> None:
        # Spawned: a fork would inherit locks and connections of the threads of this process.
        context = multiprocessing.get_context("spawn")
        self.pipe, worker_end = context.Pipe()
        self.job: ScanJob | None = None
        self._process = context.Process(
            target=_run_worker,
            args=(worker_end, open_history, zone),
            name="hermes-scan",
            daemon=True,
        )
        self._process.start()
        worker_end.close()

    def send(self, job: ScanJob) -> None:
        """Send a job."""
        self.job = job
        try:
            self.pipe.send(job)
        except OSError as error:
            raise ScanError(self._exit_message()) from error

    def receive(self) -> JobResult:
        """Receive the result of the job."""
        job = self.job
        try:
            answer: Any = self.pipe.recv()
        except (EOFError, OSError) as error:
            raise ScanError(self._exit_message()) from error
        self.job = None
        if isinstance(answer, str) or job is None:
            raise ScanError(f"reading the history failed: {answer}")
        entries, tally, skipped = answer
        return JobResult(
            [LedgerEntry(*entry) for entry in entries], Tally.unpack(tally), job, skipped
        )

    def _exit_message(self) -> str:
        self._process.join(timeout=5)
        return f"a process that reads the history has died (exit code {self._process.exitcode})"

    def stop(self) -> None:
        """Stop the process; an unfinished job is repeated by the next scan."""
        self.pipe.close()
        if self.job is not None:
            self._process.terminate()
        self._process.join(timeout=5)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()


def silence_logging() -> None:
    """Do not log to stderr: failures are sent through the pipe."""
    logging.getLogger().addHandler(logging.NullHandler())


def _run_worker(pipe: Connection, open_history: Callable[[], History], zone: str) -> None:
    """Main function of a worker process."""
    silence_logging()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl+C
    with contextlib.suppress(OSError):
        os.nice(NICENESS)
    gc.disable()  # millions of lists without reference cycles
    calendar = Calendar(find_zone(zone))
    with contextlib.closing(open_history()) as history:
        while True:
            try:
                job = pipe.recv()
            except (EOFError, OSError):
                return
            with contextlib.suppress(OSError):
                pipe.send(_encode_result(job, history, calendar))


def _encode_result(job: ScanJob, history: History, calendar: Calendar) -> object:
    """The message to the parent: entries, tally and skipped sessions, or an error text."""

    def read() -> JobResult:
        history.map_into_memory()  # for each job, which releases the pages of the last one
        return run_job(job, history, calendar)

    done = attempt("read sessions", read)
    if isinstance(done, Failure):
        return f"{type(done.error).__name__}: {done.error}"
    return [tuple(entry) for entry in done.entries], done.tally.pack(), done.skipped
