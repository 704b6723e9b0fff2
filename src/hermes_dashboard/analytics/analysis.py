"""What a history amounts to, held in memory and kept up to date behind the answers.

Sums of tokens and costs come from the store. When something was said, and which tools
were used, comes from the statistics ledger that achievements stand on too: it is brought
up to date by the same scan, whether or not anybody wants achievements. Whoever asks gets
what is known at once; reading goes on in the background, the first time in processes of
its own.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import logging
import threading
import time
from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_achievements.activity import read_in_process, read_in_subprocess
from hermes_achievements.calendar import Calendar
from hermes_achievements.recap import periods
from hermes_achievements.scan.status import ScanProcess
from hermes_achievements.scan.survey import SurveyRequest, survey, survey_in_subprocess
from hermes_conversation import achievements
from hermes_core.backoff import Backoff
from hermes_core.errors import HermesError, ScanBusyError, ScanError
from hermes_core.isolate import Step, attempt
from hermes_core.time_zones import find_zone
from hermes_state.ledger.file import LedgerFile

if TYPE_CHECKING:
    from hermes_achievements.activity import Activity
    from hermes_achievements.scan.survey import SurveyReport
    from hermes_achievements.service import HistorySource
    from hermes_dashboard.models.session_query import SessionQuery
    from hermes_state import SessionDB
    from hermes_state.sessions.totals import ModelNumbers, SessionNumbers

log = logging.getLogger(__name__)

LOOK_SECONDS: Final = 2.0  # how often it is worth a look whether anything was written
MAX_LOOK_SECONDS: Final = 10.0  # and where looking takes long
RETRY: Final = Backoff(2.0, 60.0)
SHARE: Final = 10  # of the time, one part at most is spent on looking
PATIENCE_SECONDS: Final = 0.5  # how long an answer waits for what has just been written
BUSY_SECONDS: Final = 0.5  # between two looks while another process scans
PARTIAL_EVERY: Final = 10  # looks after which what it has found so far is read
FEW_SESSIONS: Final = 300  # that are read here sooner than another process starts


class AnalyticsData(NamedTuple):
    """Everything that is known now; it does not change while somebody works with it."""

    numbers: dict[str, SessionNumbers]
    models: dict[str, list[ModelNumbers]]  # of sessions that had several
    activities: dict[str, Activity]
    zone: str
    is_complete: bool
    progress: tuple[int, int] | None
    edition: int  # another one as soon as anything is different
    error: str | None = None  # why the statistics cannot be used

    @property
    def calendar(self) -> Calendar:
        """Days and hours in the user's zone."""
        return Calendar(find_zone(self.zone))

    @property
    def today(self) -> str:
        """The day it is for the user."""
        return self.calendar.day(time.time())


class Analysis:
    """The numbers of one history."""

    def __init__(self, db: SessionDB) -> None:
        self._db = db
        self._process = ScanProcess()
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._idle = threading.Event()
        self._idle.set()
        self._numbers: dict[str, SessionNumbers] = {}
        self._models: dict[str, list[ModelNumbers]] = {}
        self._activities: dict[str, Activity] = {}
        self._marks: dict[str, tuple[float, ...]] = {}
        self._zone = ""
        self._is_complete = False
        self._progress: tuple[int, int] | None = None
        self._version: int | None = None
        self._looked_at = -MAX_LOOK_SECONDS
        self._took_seconds = 0.0
        self._edition = 0
        self._failures = 0
        self.error: str | None = None  # why the statistics cannot be used, if they cannot

    def known(self) -> AnalyticsData:
        """What is known now, after a moment for what has just been written."""
        self.look()
        if self._took_seconds <= PATIENCE_SECONDS:
            self._idle.wait(PATIENCE_SECONDS)
        with self._lock:
            return AnalyticsData(
                self._numbers,
                self._models,
                self._activities,
                self._zone,
                self._is_complete,
                None if self._is_complete else self._progress,
                self._edition,
                self.error,
            )

    def look(self) -> None:
        """Begin to read what was written since the last time, if anything was."""
        with self._lock:
            now = time.monotonic()
            if self._over.is_set() or not self._idle.is_set():
                return
            if now - self._looked_at < self._pause():
                return
            self._looked_at = now
            version = self._db.engine.version()
            if version == self._version and self._is_complete:
                return
            self._idle.clear()
            threading.Thread(
                target=self._work, args=(version,), name="hermes-analysis", daemon=True
            ).start()

    def _pause(self) -> float:
        """How long it is left alone after a look."""
        if self._failures:
            return RETRY.delay(self._failures)
        return min(max(LOOK_SECONDS, SHARE * self._took_seconds), MAX_LOOK_SECONDS)

    def _work(self, version: int) -> None:
        failure = attempt(Step("read the history for analytics", lambda: self._try(version)))
        if failure is not None:
            self._fail(failure.error)
        self._took_seconds = time.monotonic() - self._looked_at
        self._idle.set()

    def _try(self, version: int) -> None:
        """What can be expected to go wrong is told where the answer is, and logged once."""
        try:
            self._refresh(version)
        except (HermesError, OSError) as error:
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        if self._over.is_set():
            return
        text = f"The statistics cannot be used: {error}"
        if text != self.error:
            log.warning("%s; analytics show what was known before", text)
        with self._lock:
            self._failures += 1
            self._is_complete, self.error = False, text
            self._edition += 1

    def _refresh(self, version: int) -> None:
        self._take_numbers()
        source = achievements.source(self._db.db_path)
        if source.zone != self._zone:
            self._replace({}, source.zone)
        with contextlib.closing(LedgerFile(self._db.db_path)) as ledger:
            for turn in itertools.count(1):
                if _is_free(ledger) and self._scan(source):
                    break
                self._follow(ledger, turn)
                if self._over.wait(BUSY_SECONDS):
                    return
            self._take_activities(ledger)
        with self._lock:
            self._is_complete, self._version = True, version
            self._failures, self.error = 0, None
            self._edition += 1

    def _take_numbers(self) -> None:
        found = {one.id: one for one in self._db.session_numbers()}
        models = self._db.several_models()
        with self._lock:
            self._numbers, self._models = found, models
            self._edition += 1

    def _replace(self, activities: dict[str, Activity], zone: str) -> None:
        with self._lock:
            self._activities, self._zone, self._marks = activities, zone, {}
            self._edition += 1

    def _follow(self, ledger: LedgerFile, turn: int) -> None:
        """Another process scans, or the achievements of this one: show how far that is."""
        done, total = ledger.count(), len(self._numbers)
        with self._lock:
            self._progress = (min(done, total), total)
        if turn % PARTIAL_EVERY == 0:
            self._take_activities(ledger)

    def _scan(self, source: HistorySource) -> bool:
        """Bring the ledger up to date; False while another process is doing it."""
        order = SurveyRequest(source.open_history, source.open_ledger, source.zone, (), {})
        is_first = not self._is_complete and len(self._numbers) > FEW_SESSIONS
        try:
            if is_first and source.is_shareable:
                survey_in_subprocess(order, self._report, self._process.started)
            else:
                survey(order._replace(processes=None if source.is_shareable else 0), self._report)
        except ScanBusyError:
            return False
        return True

    def _report(self, report: SurveyReport) -> None:
        with self._lock:
            self._progress = (report.sessions, report.total)
        if self._over.is_set():
            raise ScanError("the dashboard is about to end")

    def _take_activities(self, ledger: LedgerFile) -> None:
        """Read the books that have changed."""
        marks = ledger.facts_versions()
        changed = [one for one, mark in marks.items() if self._marks.get(one) != mark]
        if not changed:
            return
        found = dict(self._activities)

        def take(session_id: str, activity: Activity) -> None:
            if self._over.is_set():
                raise ScanError("the dashboard is about to end")
            found[session_id] = activity
            self._marks[session_id] = marks[session_id]

        if len(changed) <= FEW_SESSIONS:
            read_in_process(ledger, self._zone, changed, take)
        else:
            open_ledger = functools.partial(LedgerFile, self._db.db_path)
            read_in_subprocess(open_ledger, self._zone, changed, take, self._process.started)
        with self._lock:
            self._activities = found
            self._edition += 1

    def sessions_with(self, asked: SessionQuery) -> frozenset[str]:
        """The sessions that were active as a list is asked for."""
        known = self.known()
        return frozenset(one for one, found in known.activities.items() if _fits(found, asked))

    def close(self) -> None:
        """Read no more."""
        self._over.set()
        self._process.close()
        self._idle.wait(10)


def _is_free(ledger: LedgerFile) -> bool:
    """Whether nobody is working on the ledger; asked before a process is started for it."""
    with ledger.try_lock() as is_locked:
        return is_locked


def _fits(activity: Activity, asked: SessionQuery) -> bool:
    day = None if asked.day is None else asked.day.isoformat()
    days = [one for one in activity.days if day is None or one.day == day]
    if not days:
        return False
    tools = [use for one in days for use in one.tools]
    return (
        (asked.tool is None or any(use.tool == asked.tool and use.calls for use in tools))
        and (
            asked.failed_tool is None
            or any(use.tool == asked.failed_tool and use.failures for use in tools)
        )
        and any(_is_then(one.day, one.hours, asked) for one in days)
    )


def _is_then(day: str, hours: tuple[tuple[int, int], ...], asked: SessionQuery) -> bool:
    if asked.weekday is not None and periods.weekday(day) != asked.weekday:
        return False
    return asked.hour is None or any(hour == asked.hour for hour, _ in hours)
