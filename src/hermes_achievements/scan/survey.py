"""One look at a history: scan what changed, value it, date what is new.

The same work can be done in another process (`survey_elsewhere`), so that a server goes
on answering while a large history is read for the first time.
"""

from __future__ import annotations

import contextlib
import logging
import multiprocessing
import os
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import orjson

from hermes_achievements.calendar import Calendar
from hermes_achievements.evaluation.dates import Dater, Moment, Threshold
from hermes_achievements.evaluation.standings import reached
from hermes_achievements.evaluation.values import values_of
from hermes_achievements.metrics.tally import Contribution, Tally
from hermes_achievements.scan.scanner import Scanner
from hermes_achievements.scan.workers import quiet_process
from hermes_core.errors import HermesError, ScanBusyError, ScanError
from hermes_core.isolate import Step, attempt
from hermes_core.time_zones import find_zone

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from multiprocessing.connection import Connection
    from multiprocessing.process import BaseProcess

    from hermes_achievements.catalogue import Achievement
    from hermes_achievements.scan.history import History, Ledger
    from hermes_achievements.scan.scanner import ScanProgress
    from hermes_achievements.service import Source

NICENESS: Final = 5


class Report(NamedTuple):
    """How far a survey is."""

    sessions: int
    total: int
    values: dict[str, int]
    seconds_left: float | None


class HistorySurvey(NamedTuple):
    """What a history amounts to."""

    mode: str
    values: dict[str, int]
    moments: dict[Threshold, Moment]
    titles: dict[str, str]
    sessions: int
    rescanned: int
    reused: int
    skipped: tuple[str, ...] = ()


class Order(NamedTuple):
    """What to survey: everything that another process has to know."""

    open_history: Callable[[], History]
    open_ledger: Callable[[], Ledger]
    zone: str
    achievements: tuple[Achievement, ...]
    recorded: dict[str, list[str]]  # achievement id: tiers already on record
    full: bool = False
    processes: int | None = None


def survey(order: Order, on_report: Callable[[Report], None] | None = None) -> HistorySurvey:
    """Look at the history of *order*, in this process."""

    def report(progress: ScanProgress) -> None:
        if on_report is not None:
            values = values_of(progress.tally)
            on_report(Report(progress.sessions, progress.total, values, progress.seconds_left))

    with contextlib.closing(order.open_ledger()) as ledger:
        scanner = Scanner(order.open_history, ledger, order.zone, processes=order.processes)
        scan = scanner.refresh(full=order.full, on_progress=report)
        values = values_of(scan.tally)
        lines = new_lines(order.achievements, values, order.recorded)
        moments: dict[Threshold, Moment] = {}
        titles: dict[str, str] = {}
        if lines:
            calendar = Calendar(find_zone(order.zone))
            moments = Dater(ledger, scan.tally, calendar).moments(lines)
            with contextlib.closing(order.open_history()) as history:
                titles = history.titles({moment.session_id for moment in moments.values()})
    sessions = scan.rescanned + scan.reused
    return HistorySurvey(
        str(scan.mode),
        values,
        moments,
        titles,
        sessions,
        scan.rescanned,
        scan.reused,
        scan.skipped,
    )


def new_lines(
    achievements: Iterable[Achievement],
    values: Mapping[str, int],
    recorded: Mapping[str, list[str]],
) -> list[Threshold]:
    """The lines that were crossed and are not on record yet."""
    return [
        Threshold(achievement.value, threshold)
        for achievement in achievements
        for tier, threshold in reached(achievement, values.get(achievement.value, 0))
        if tier not in recorded.get(achievement.id, ())
    ]


def survey_elsewhere(
    order: Order,
    on_report: Callable[[Report], None] | None = None,
    started: Callable[[BaseProcess], None] | None = None,
) -> HistorySurvey:
    """As `survey`, in a process of its own; *started* is told which."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_serve, args=(theirs, order), name="hermes-survey")
    process.start()
    theirs.close()
    if started is not None:
        started(process)
    try:
        while True:
            try:
                what, answer = ours.recv()
            except EOFError as error:
                process.join(timeout=5)
                code = process.exitcode
                raise ScanError(f"the process that scans has died (exit code {code})") from error
            if what == "report" and on_report is not None:
                on_report(answer)
            if what == "done":
                result: HistorySurvey = answer
                return result
            if what == "busy":
                raise ScanBusyError(answer)
            if what == "failed":
                raise ScanError(answer)
    finally:
        ours.close()
        process.join(timeout=10)
        if process.is_alive():
            process.kill()
            process.join()


def _serve(pipe: Connection, order: Order) -> None:
    quiet_process()
    with contextlib.suppress(OSError):
        os.nice(NICENESS)
    answers: list[Any] = []
    failure = attempt(
        Step(
            "survey the history",
            lambda: answers.append(survey(order, lambda report: pipe.send(("report", report)))),
        )
    )
    with contextlib.suppress(OSError):
        if failure is None:
            pipe.send(("done", answers[0]))
        else:
            is_busy = isinstance(failure.error, ScanBusyError)
            pipe.send(("busy" if is_busy else "failed", str(failure.error)))


log = logging.getLogger(__name__)

AT_ONCE: Final = 2000  # sessions that are added up at one look


class Follower:
    """What has been found so far; each look adds what is new since the last one."""

    def __init__(self) -> None:
        self._tally = Tally()
        self._added: set[str] = set()
        self._best: dict[str, int] = {}
        self._generation = -1

    def look(self, source: Source) -> Report | None:
        """How far the other scan is; None when that cannot be told."""
        try:
            with contextlib.closing(source.open_ledger()) as ledger:
                done = self._read(ledger)
            with contextlib.closing(source.open_history()) as history:
                total = sum(1 for _ in history.everything())
        except HermesError as error:
            log.info("another scan cannot be followed: %s", error)
            return None
        for name, value in values_of(self._tally).items():
            self._best[name] = max(value, self._best.get(name, 0))  # nothing goes while it is read
        return Report(min(done, total), total, dict(self._best), None)

    def _read(self, ledger: Ledger) -> int:
        generation = orjson.loads(ledger.notes().get("generation", b"0"))
        if generation != self._generation:  # a scan that reads everything has begun
            self._tally, self._added, self._best = Tally(), set(), {}
            self._generation = generation
        known = ledger.known(generation)
        new = [item for item in known if item not in self._added][:AT_ONCE]
        for session_id, _, stored in ledger.contributions(new):
            self._tally.add(session_id, Contribution.unpack(stored))
        self._added.update(new)
        return len(known)
