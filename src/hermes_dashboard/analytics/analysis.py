"""Aggregates of a history, held in memory and updated in the background.

Token and cost sums come from the store. Message times and tool calls come from the
statistics ledger, which achievements use too; the same scan updates it, whether or not
achievements are enabled. A request gets the current data at once; reading continues in
a background thread, the first time in separate processes.
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
from hermes_achievements.scan.survey import ScanProcess, SurveyRequest, survey, survey_in_subprocess
from hermes_conversation import achievements
from hermes_core.backoff import Backoff
from hermes_core.errors import HermesError, ScanBusyError, ScanError
from hermes_core.isolate import Failure, attempt
from hermes_core.time_zones import find_zone
from hermes_state.ledger.file import open_ledger

if TYPE_CHECKING:
    from hermes_achievements.activity import Activity
    from hermes_achievements.scan.survey import SurveyReport
    from hermes_achievements.service import HistorySource
    from hermes_dashboard.models.session_query import SessionQuery
    from hermes_state.ledger.file import LedgerFile
    from hermes_state.ledger.shared import SharedLedger
    from hermes_state.sessions.totals import ModelNumbers, SessionNumbers
    from hermes_state.store import SessionDB

    AnyLedger = LedgerFile | SharedLedger

log = logging.getLogger(__name__)

CHECK_SECONDS: Final = 2.0  # minimum interval between checks for new data
MAX_CHECK_SECONDS: Final = 10.0  # maximum interval where a check is slow
RETRY: Final = Backoff(2.0, 60.0)
PAUSE_FACTOR: Final = 10  # pause per second of work, which limits the load
MAX_WAIT_SECONDS: Final = 0.5  # how long a request waits for a running refresh
BUSY_RETRY_SECONDS: Final = 0.5  # between checks while another process scans
PARTIAL_READ_INTERVAL: Final = 10  # checks between reads of its partial results
MAX_INLINE_SESSIONS: Final = 300  # fewer are read faster in this process


class AnalyticsData(NamedTuple):
    """An immutable snapshot of the data."""

    numbers: dict[str, SessionNumbers]
    models: dict[str, list[ModelNumbers]]  # of sessions with several models
    activities: dict[str, Activity]
    zone: str
    is_complete: bool
    progress: tuple[int, int] | None
    edition: int  # increases with every change
    error: str | None = None  # why the statistics are unavailable

    @property
    def calendar(self) -> Calendar:
        """Days and hours in the user's zone."""
        return Calendar(find_zone(self.zone))

    @property
    def today(self) -> str:
        """Today's date in the user's zone."""
        return self.calendar.day(time.time())


class AnalysisState(NamedTuple):
    """What open pages have to know about the data: it changed, or is being read."""

    edition: int
    progress: tuple[int, int] | None


class Analysis:
    """The aggregates of one history."""

    def __init__(self, db: SessionDB) -> None:
        self._db = db
        self._process = ScanProcess()
        self._lock = threading.Lock()
        self._is_closed = threading.Event()
        self._idle = threading.Event()
        self._idle.set()
        self._numbers: dict[str, SessionNumbers] = {}
        self._models: dict[str, list[ModelNumbers]] = {}
        self._activities: dict[str, Activity] = {}
        self._entry_marks: dict[str, tuple[float, ...]] = {}
        self._zone = ""
        self._is_complete = False
        self._progress: tuple[int, int] | None = None
        self._version: int | None = None
        self._checked_at = -MAX_CHECK_SECONDS
        self._refresh_seconds = 0.0
        self._edition = 0
        self._published = 0  # the edition when no refresh was running
        self._failures = 0
        self.error: str | None = None  # why the statistics are unavailable

    def data(self) -> AnalyticsData:
        """The current data, after a short wait for a running refresh."""
        self.check()
        if self._refresh_seconds <= MAX_WAIT_SECONDS:
            self._idle.wait(MAX_WAIT_SECONDS)
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

    def state(self) -> AnalysisState:
        """The state of the data, without a check for changes; partial changes are not in it."""
        with self._lock:
            is_counting = not self._is_complete and self.error is None
            if self._idle.is_set() and not is_counting:
                self._published = self._edition
            return AnalysisState(self._published, self._progress if is_counting else None)

    def check(self) -> None:
        """Start a background refresh if the history has changed."""
        with self._lock:
            now = time.monotonic()
            if self._is_closed.is_set() or not self._idle.is_set():
                return
            if now - self._checked_at < self._pause():
                return
            self._checked_at = now
            version = self._db.engine.version()
            if version == self._version and self._is_complete:
                return
            self._idle.clear()
            threading.Thread(
                target=self._run_refresh, args=(version,), name="hermes-analysis", daemon=True
            ).start()

    def _pause(self) -> float:
        """Seconds until the next check."""
        if self._failures:
            return RETRY.delay(self._failures)
        return min(max(CHECK_SECONDS, PAUSE_FACTOR * self._refresh_seconds), MAX_CHECK_SECONDS)

    def _run_refresh(self, version: int) -> None:
        result = attempt("read the history for analytics", lambda: self._try_refresh(version))
        if isinstance(result, Failure):
            self._fail(result.error)
        self._refresh_seconds = time.monotonic() - self._checked_at
        self._idle.set()

    def _try_refresh(self, version: int) -> None:
        """Refresh; expected errors are reported in the data and logged once."""
        try:
            self._refresh(version)
        except (HermesError, OSError) as error:
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        if self._is_closed.is_set():
            return
        text = f"Statistics are unavailable: {error}"
        if text != self.error:
            log.warning("%s; analytics show older data", text)
        with self._lock:
            self._failures += 1
            self._is_complete, self.error = False, text
            self._edition += 1

    def _refresh(self, version: int) -> None:
        self._load_numbers()
        source = achievements.source(self._db.db_path)
        if source.zone != self._zone:
            self._replace({}, source.zone)
        with contextlib.closing(open_ledger(self._db.db_path)) as ledger:
            for attempt_number in itertools.count(1):
                if _is_free(ledger) and self._scan(source):
                    break
                self._show_progress(ledger, attempt_number)
                if self._is_closed.wait(BUSY_RETRY_SECONDS):
                    return
            self._load_activities(ledger)
        with self._lock:
            self._is_complete, self._version = True, version
            self._failures, self.error = 0, None
            self._edition += 1

    def _load_numbers(self) -> None:
        numbers = {session.id: session for session in self._db.totals.per_session()}
        models = self._db.totals.per_model()
        with self._lock:
            self._numbers, self._models = numbers, models
            self._edition += 1

    def _replace(self, activities: dict[str, Activity], zone: str) -> None:
        with self._lock:
            self._activities, self._zone, self._entry_marks = activities, zone, {}
            self._edition += 1

    def _show_progress(self, ledger: AnyLedger, attempt_number: int) -> None:
        """Show the progress of a scan by another process or by the achievements."""
        done, total = ledger.count(), len(self._numbers)
        with self._lock:
            self._progress = (min(done, total), total)
        if attempt_number % PARTIAL_READ_INTERVAL == 0:
            self._load_activities(ledger)

    def _scan(self, source: HistorySource) -> bool:
        """Bring the ledger up to date; False while another process is doing it."""
        order = SurveyRequest(source.open_history, source.open_ledger, source.zone, (), {})
        is_first = not self._is_complete and len(self._numbers) > MAX_INLINE_SESSIONS
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
        if self._is_closed.is_set():
            raise ScanError("the dashboard is shutting down")

    def _load_activities(self, ledger: AnyLedger) -> None:
        """Read the ledger entries that have changed."""
        marks = ledger.facts_versions()
        changed = [
            session_id
            for session_id, mark in marks.items()
            if self._entry_marks.get(session_id) != mark
        ]
        if not changed:
            return
        activities = dict(self._activities)

        def add(session_id: str, activity: Activity) -> None:
            if self._is_closed.is_set():
                raise ScanError("the dashboard is shutting down")
            activities[session_id] = activity
            self._entry_marks[session_id] = marks[session_id]

        if len(changed) <= MAX_INLINE_SESSIONS:
            read_in_process(ledger, self._zone, changed, add)
        else:
            opening = functools.partial(open_ledger, self._db.db_path)
            read_in_subprocess(opening, self._zone, changed, add, self._process.started)
        with self._lock:
            self._activities = activities
            self._edition += 1

    def sessions_with(self, query: SessionQuery) -> frozenset[str]:
        """The sessions whose activity matches a list query."""
        data = self.data()
        return frozenset(
            session_id
            for session_id, activity in data.activities.items()
            if _matches(activity, query)
        )

    def close(self) -> None:
        """Stop reading."""
        self._is_closed.set()
        self._process.close()
        self._idle.wait(10)


def _is_free(ledger: AnyLedger) -> bool:
    """Whether no other scan holds the ledger; checked before starting a process."""
    with ledger.try_lock() as is_locked:
        return is_locked


def _matches(activity: Activity, query: SessionQuery) -> bool:
    date = None if query.day is None else query.day.isoformat()
    days = [day for day in activity.days if date is None or day.day == date]
    if not days:
        return False
    tools = [use for date in days for use in date.tools]
    return (
        (query.tool is None or any(use.tool == query.tool and use.calls for use in tools))
        and (
            query.failed_tool is None
            or any(use.tool == query.failed_tool and use.failures for use in tools)
        )
        and any(_is_at_time(date.day, date.hours, query) for date in days)
    )


def _is_at_time(day: str, hours: tuple[tuple[int, int], ...], query: SessionQuery) -> bool:
    if query.weekday is not None and periods.weekday(day) != query.weekday:
        return False
    return query.hour is None or any(hour == query.hour for hour, _ in hours)


class ToolErrorCounts:
    """Stores the numbers of failed tool calls of sessions whose statistics changed."""

    def __init__(self, db: SessionDB, analysis: Analysis) -> None:
        self._db = db
        self._analysis = analysis
        self._lock = threading.Lock()
        self._edition: int | None = None
        self._stored: dict[str, Activity] = {}

    def update(self) -> None:
        """Store the numbers that changed; a history that is opened for reading keeps its own."""
        data = self._analysis.data()
        if self._db.engine.read_only:
            return
        with self._lock:
            if data.edition == self._edition:
                return
            changed = {
                session_id: failures_of(activity)
                for session_id, activity in data.activities.items()
                if self._stored.get(session_id) is not activity
            }
            if changed:
                self._db.sort_values.set_tool_errors(changed)
            self._edition, self._stored = data.edition, data.activities


def failures_of(activity: Activity) -> int:
    """The number of failed tool calls of a session."""
    return sum(use.failures for day in activity.days for use in day.tools)
