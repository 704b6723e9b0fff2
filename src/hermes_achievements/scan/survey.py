"""A survey of a history: scan changes, compute values, date new unlocks.

`survey_in_subprocess` does the same in another process, so that a server stays responsive
during the first scan of a large history.
"""

from __future__ import annotations

import atexit
import contextlib
import logging
import multiprocessing
import os
import threading
import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import orjson

from hermes_achievements.calendar import Calendar
from hermes_achievements.evaluation.dates import Threshold, UnlockDater, UnlockMoment
from hermes_achievements.evaluation.standings import compute_values, reached_tiers
from hermes_achievements.metrics.tally import Contribution, Tally
from hermes_achievements.scan.scanner import Scanner
from hermes_achievements.scan.workers import silence_logging
from hermes_core.backoff import Backoff
from hermes_core.errors import HermesError, ScanBusyError, ScanError
from hermes_core.isolate import Failure, attempt
from hermes_core.time_zones import find_zone

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from multiprocessing.connection import Connection
    from multiprocessing.process import BaseProcess

    from hermes_achievements.catalogue import Achievement
    from hermes_achievements.scan.history import History, Ledger
    from hermes_achievements.scan.scanner import ScanProgress
    from hermes_achievements.service import HistorySource
    from hermes_core.clock import Clock

FAILURE_BACKOFF: Final = Backoff(30.0, 600.0)
BUSY_PAUSE_SECONDS: Final = 2.0


class ReportedProgress(NamedTuple):
    """How many sessions of a scan were read."""

    sessions: int
    total: int
    percent: int
    seconds_left: float | None


class ScanFacts(NamedTuple):
    """The state of the scans: idle, running or failed."""

    state: str = "idle"
    started_at: float | None = None
    finished_at: float | None = None
    last_success_at: float | None = None
    last_duration_ms: float | None = None
    last_error: str | None = None
    run_count: int = 0
    progress: ReportedProgress | None = None
    waiting_for: str | None = None
    next_try_at: float | None = None

    def as_dict(self) -> dict[str, object]:
        """The facts for JSON."""
        progress = None if self.progress is None else self.progress._asdict()
        return {**self._asdict(), "progress": progress}


class ScanStatus:
    """The status of the scans of one service."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._failures = 0
        self._next_scan_at = float("-inf")
        self._facts = ScanFacts()

    def facts(self) -> ScanFacts:
        """The status."""
        return self._facts

    @property
    def is_running(self) -> bool:
        """Whether a scan is running in this process."""
        return self._facts.state == "running"

    @property
    def is_backing_off(self) -> bool:
        """Whether automatic scans are still delayed after a failure."""
        return self._clock.monotonic() < self._next_scan_at

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Record the start and the end of a scan."""
        started_at = time.monotonic()
        self._set(
            state="running",
            started_at=self._clock.now(),
            progress=None,
            waiting_for=None,
            run_count=self._facts.run_count + 1,
        )
        try:
            yield
        except BaseException as error:
            self.failed(f"{type(error).__name__}: {error}")
            raise
        finally:
            milliseconds = (time.monotonic() - started_at) * 1000
            self._set(
                finished_at=self._clock.now(),
                last_duration_ms=round(milliseconds, 3),
                progress=None,
            )

    def progress(self, report: SurveyReport) -> None:
        """Record the progress of the scan."""
        self._set(
            progress=ReportedProgress(
                report.sessions,
                report.total,
                100 * report.sessions // report.total if report.total else 0,
                report.seconds_left,
            )
        )

    def succeeded(self) -> None:
        """Record a successful scan."""
        self._failures = 0
        self._delay_next(0.0)
        self._set(state="idle", last_success_at=self._clock.now(), last_error=None)

    def busy(self, reason: str) -> None:
        """Record that another process is scanning."""
        self._failures = 0
        self._delay_next(BUSY_PAUSE_SECONDS)
        self._set(state="idle", last_error=None, waiting_for=reason)

    def failed(self, reason: str) -> None:
        """Record a failed scan and delay the next one."""
        self._failures += 1
        self._delay_next(FAILURE_BACKOFF.delay(self._failures))
        self._set(state="failed", last_error=reason)

    def _delay_next(self, seconds: float) -> None:
        self._next_scan_at = self._clock.monotonic() + seconds
        self._set(next_try_at=self._clock.now() + seconds if seconds else None)

    def _set(self, **facts: Any) -> None:
        with self._lock:
            self._facts = self._facts._replace(**facts)


class ScanProcess:
    """The running scan process, if any; terminated at exit."""

    def __init__(self) -> None:
        self.is_exiting = False
        self._process: BaseProcess | None = None
        self._owner = 0
        self._lock = threading.Lock()

    def started(self, process: BaseProcess) -> None:
        """Track a started process."""
        with self._lock:
            if self._owner != os.getpid():
                self._owner = os.getpid()
                # Exit hooks run in reverse order: this one must run before the hook of
                # multiprocessing, which waits for all processes.
                atexit.register(self._exit)
            self._process = process
            if self.is_exiting:
                process.terminate()

    def terminate(self) -> None:
        """Terminate the process; saved results stay, and the next scan resumes it."""
        with self._lock:
            process = self._process
            self._process = None
            if process is not None and self._owner == os.getpid() and process.is_alive():
                process.terminate()

    def close(self) -> None:
        """Terminate the process and unregister the exit hook."""
        self.terminate()
        atexit.unregister(self._exit)
        self._owner = 0

    def _exit(self) -> None:
        self.is_exiting = True
        self.terminate()


NICENESS: Final = 5


class SurveyReport(NamedTuple):
    """Progress of a survey."""

    sessions: int
    total: int
    values: dict[str, int]
    seconds_left: float | None


class HistorySurvey(NamedTuple):
    """The result of a survey."""

    mode: str
    values: dict[str, int]
    moments: dict[Threshold, UnlockMoment]
    titles: dict[str, str]
    sessions: int
    rescanned: int
    reused: int
    skipped: tuple[str, ...] = ()


class SurveyRequest(NamedTuple):
    """The parameters of a survey; picklable for another process."""

    open_history: Callable[[], History]
    open_ledger: Callable[[], Ledger]
    zone: str
    achievements: tuple[Achievement, ...]
    recorded: dict[str, list[str]]  # achievement ID: recorded tiers
    full: bool = False
    processes: int | None = None


def survey(
    request: SurveyRequest, on_report: Callable[[SurveyReport], None] | None = None
) -> HistorySurvey:
    """Look at the history of *order*, in this process."""

    def report(progress: ScanProgress) -> None:
        if on_report is not None:
            values = compute_values(progress.tally)
            on_report(
                SurveyReport(progress.sessions, progress.total, values, progress.seconds_left)
            )

    with contextlib.closing(request.open_ledger()) as ledger:
        scanner = Scanner(request.open_history, ledger, request.zone, processes=request.processes)
        scan = scanner.refresh(full=request.full, on_progress=report)
        values = compute_values(scan.tally)
        thresholds = new_thresholds(request.achievements, values, request.recorded)
        moments: dict[Threshold, UnlockMoment] = {}
        titles: dict[str, str] = {}
        if thresholds:
            calendar = Calendar(find_zone(request.zone))
            moments = UnlockDater(ledger, scan.tally, calendar).moments(thresholds)
            with contextlib.closing(request.open_history()) as history:
                titles = history.titles({moment.session_id for moment in moments.values()})
    sessions = scan.rescanned + scan.reused
    return HistorySurvey(
        str(scan.mode), values, moments, titles, sessions, scan.rescanned, scan.reused, scan.skipped
    )


def new_thresholds(
    achievements: Iterable[Achievement],
    values: Mapping[str, int],
    recorded: Mapping[str, list[str]],
) -> list[Threshold]:
    """The thresholds that are reached and not recorded yet."""
    return [
        Threshold(achievement.value, threshold)
        for achievement in achievements
        for tier, threshold in reached_tiers(achievement, values.get(achievement.value, 0))
        if tier not in recorded.get(achievement.id, ())
    ]


def survey_in_subprocess(
    request: SurveyRequest,
    on_report: Callable[[SurveyReport], None] | None = None,
    started: Callable[[BaseProcess], None] | None = None,
) -> HistorySurvey:
    """Like `survey`, in a subprocess that is passed to *started*."""
    context = multiprocessing.get_context("spawn")
    parent_end, child_end = context.Pipe(duplex=False)
    process = context.Process(target=_run_survey, args=(child_end, request), name="hermes-survey")
    process.start()
    child_end.close()
    if started is not None:
        started(process)
    try:
        while True:
            try:
                kind, payload = parent_end.recv()
            except EOFError as error:
                process.join(timeout=5)
                code = process.exitcode
                raise ScanError(f"the process that scans has died (exit code {code})") from error
            if kind == "report" and on_report is not None:
                on_report(payload)
            if kind == "done":
                result: HistorySurvey = payload
                return result
            if kind == "busy":
                raise ScanBusyError(payload)
            if kind == "failed":
                raise ScanError(payload)
    finally:
        parent_end.close()
        process.join(timeout=10)
        if process.is_alive():
            process.kill()
            process.join()


def _run_survey(pipe: Connection, request: SurveyRequest) -> None:
    silence_logging()
    with contextlib.suppress(OSError):
        os.nice(NICENESS)
    result = attempt(
        "survey the history", lambda: survey(request, lambda report: pipe.send(("report", report)))
    )
    with contextlib.suppress(OSError):
        if isinstance(result, Failure):
            is_busy = isinstance(result.error, ScanBusyError)
            pipe.send(("busy" if is_busy else "failed", str(result.error)))
        else:
            pipe.send(("done", result))


log = logging.getLogger(__name__)

FOLLOW_BATCH_SESSIONS: Final = 2000  # sessions added per poll


class ScanFollower:
    """Follows the scan of another process; each poll adds its new results."""

    def __init__(self) -> None:
        self._tally = Tally()
        self._added: set[str] = set()
        self._best: dict[str, int] = {}
        self._generation = -1

    def poll(self, source: HistorySource) -> SurveyReport | None:
        """The progress of the other scan; None if it is unavailable."""
        try:
            with contextlib.closing(source.open_ledger()) as ledger:
                done = self._read(ledger)
            with contextlib.closing(source.open_history()) as history:
                total = sum(1 for _ in history.session_sizes())
        except HermesError as error:
            log.info("progress of another scan unavailable: %s", error)
            return None
        for name, value in compute_values(self._tally).items():
            self._best[name] = max(
                value, self._best.get(name, 0)
            )  # values never decrease during a scan
        return SurveyReport(min(done, total), total, dict(self._best), None)

    def _read(self, ledger: Ledger) -> int:
        generation = orjson.loads(ledger.notes().get("generation", b"0"))
        if generation != self._generation:  # a full scan has started
            self._tally, self._added, self._best = Tally(), set(), {}
            self._generation = generation
        done_ids = ledger.session_ids(generation)
        new = [item for item in done_ids if item not in self._added][:FOLLOW_BATCH_SESSIONS]
        for session_id, _, stored in ledger.contributions(new):
            self._tally.add(session_id, Contribution.unpack(stored))
        self._added.update(new)
        return len(done_ids)
