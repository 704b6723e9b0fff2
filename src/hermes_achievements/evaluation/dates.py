"""Finds when a threshold was reached, and by which message.

Only days, sessions and messages that can contain the answer are read: a sum is added day by
day, and only the day on which the threshold was reached is read message by message.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_achievements.evaluation import standings
from hermes_achievements.metrics import COUNTS, PEAKS
from hermes_achievements.metrics.facts import ID_FIELD, TIME_FIELD, RecordedFacts
from hermes_achievements.metrics.session_view import SessionView
from hermes_achievements.metrics.tally import Contribution

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from hermes_achievements.calendar import Calendar
    from hermes_achievements.metrics.tally import Tally
    from hermes_achievements.scan.history import Ledger

MAX_CACHED_SESSIONS: Final = 600  # sessions in memory
LOAD_BATCH_SESSIONS: Final = 50
MONTHLY_VALUES: Final = frozenset(
    {"improved_months", "longest_improvement", "tidy_months", "clean_months", "tested_months"}
)


class UnlockMoment(NamedTuple):
    """The message that reached a threshold."""

    at: float
    session_id: str
    message_id: int


class Threshold(NamedTuple):
    """A value and the number that it has to reach."""

    value: str
    threshold: int


class UnlockDater:
    """Finds the messages that reached thresholds."""

    def __init__(self, ledger: Ledger, tally: Tally, calendar: Calendar) -> None:
        self._ledger = ledger
        self._tally = tally
        self._calendar = calendar
        self._days = sorted(tally.days)
        self._sessions: OrderedDict[str, SessionView] = OrderedDict()
        self._candidates: dict[str, list[tuple[float, str, int]]] = {}

    def moments(self, targets: Iterable[Threshold]) -> dict[Threshold, UnlockMoment]:
        """The moment of each threshold; undated ones are omitted."""
        ordered = sorted(set(targets), key=lambda target: (target.value, target.threshold))
        self._find_candidates([target for target in ordered if _is_session_value(target.value)])
        result = {target: self._moment(target) for target in ordered}
        return {target: moment for target, moment in result.items() if moment is not None}

    def _moment(self, target: Threshold) -> UnlockMoment | None:
        name, threshold = target
        if name.startswith("total_"):
            return self._in_total(name.removeprefix("total_"), threshold)
        if name.endswith("_in_day"):
            return self._in_day(name.removeprefix("max_").removesuffix("_in_day"), threshold)
        if name.startswith("distinct_"):
            return self._in_variety(name.removeprefix("distinct_"), threshold)
        if _is_session_value(name):
            return self._in_session(name, threshold)
        if name == standings.AGENTS_IN_PROJECT:
            first = next(iter(standings.project_moments(self._tally, threshold)), None)
            return None if first is None else UnlockMoment(*first)
        return self._in_series(name, threshold)

    def _in_total(self, metric: str, threshold: int) -> UnlockMoment | None:
        total = 0
        for day in self._days:
            amount = self._tally.days[day].get(metric, 0)
            if total + amount >= threshold:
                return self._on_day(metric, day, threshold - total)
            total += amount
        return None

    def _in_day(self, metric: str, threshold: int) -> UnlockMoment | None:
        for day in self._days:
            if self._tally.days[day].get(metric, 0) >= threshold:
                return self._on_day(metric, day, threshold)
        return None

    def _on_day(self, metric: str, day: str, threshold: int) -> UnlockMoment | None:
        total = 0
        for at, session_id, message_id, amount in sorted(self._events_on(metric, day)):
            total += amount
            if total >= threshold:
                return UnlockMoment(at, session_id, message_id)
        return None

    def _events_on(self, metric: str, day: str) -> Iterable[tuple[float, str, int, int]]:
        for session in self._load(self._ledger.sessions_on_day(day)):
            for fact, amount in COUNTS[metric](session):
                if self._calendar.day(fact[TIME_FIELD]) == day:
                    yield fact[TIME_FIELD], session.row.id, fact[ID_FIELD], amount

    def _in_variety(self, kind: str, threshold: int) -> UnlockMoment | None:
        firsts = sorted(self._tally.seen.get(kind, {}).values())
        return UnlockMoment(*firsts[threshold - 1]) if len(firsts) >= threshold else None

    def _in_series(self, name: str, threshold: int) -> UnlockMoment | None:
        series = standings.DERIVED_SERIES[name](self._tally.days)
        day = next((day for day, value in series if value >= threshold), None)
        if day is None:
            return None
        if name in MONTHLY_VALUES or name == "spotless_days":
            return self._last_on(day)
        return self._on_day(standings.MESSAGES_SENT, day, 1)

    def _last_on(self, day: str) -> UnlockMoment | None:
        last: UnlockMoment | None = None
        for session in self._load(self._ledger.sessions_on_day(day)):
            for fact in session.facts:
                if self._calendar.day(fact[TIME_FIELD]) == day:
                    moment = UnlockMoment(fact[TIME_FIELD], session.row.id, fact[ID_FIELD])
                    last = moment if last is None or moment > last else last
        return last

    # Maxima of a session

    def _find_candidates(self, targets: list[Threshold]) -> None:
        lowest: dict[str, int] = {}
        for value, threshold in targets:
            lowest[value] = min(threshold, lowest.get(value, threshold))
        self._candidates = {value: [] for value in lowest}
        if not lowest:
            return
        for session_id, first_at, stored in self._ledger.contributions():
            contribution = Contribution.unpack(stored)
            totals = contribution.totals()
            for value, threshold in lowest.items():
                amount = _session_amount(value, totals, contribution.peaks)
                if amount >= threshold:
                    self._candidates[value].append((first_at, session_id, amount))
        for candidates in self._candidates.values():
            candidates.sort()

    def _in_session(self, value: str, threshold: int) -> UnlockMoment | None:
        best: UnlockMoment | None = None
        for first_at, session_id, amount in self._candidates.get(value, ()):
            if best is not None and first_at > best.at:
                break
            if amount < threshold:
                continue
            for session in self._load([session_id]):
                moment = _crossing(session, value, threshold)
                if moment is not None and (best is None or moment < best):
                    best = moment
        return best

    def _load(self, session_ids: Sequence[str]) -> Iterable[SessionView]:
        missing = [session_id for session_id in session_ids if session_id not in self._sessions]
        for start in range(0, len(missing), LOAD_BATCH_SESSIONS):
            for session_id, stored in self._ledger.recorded_facts(
                missing[start : start + LOAD_BATCH_SESSIONS]
            ).items():
                self._sessions[session_id] = SessionView(
                    RecordedFacts.unpack(stored), self._calendar
                )
        for session_id in session_ids:
            session = self._sessions.get(session_id)
            if session is not None:
                self._sessions.move_to_end(session_id)
                yield session
        while len(self._sessions) > MAX_CACHED_SESSIONS:
            self._sessions.popitem(last=False)


def _is_session_value(value: str) -> bool:
    return value.endswith("_in_session") or value.startswith("peak_")


def _session_amount(value: str, totals: dict[str, int], peaks: dict[str, int]) -> int:
    if value.startswith("peak_"):
        return peaks.get(value.removeprefix("peak_"), 0)
    return totals.get(value.removeprefix("max_").removesuffix("_in_session"), 0)


def _crossing(session: SessionView, value: str, threshold: int) -> UnlockMoment | None:
    is_peak = value.startswith("peak_")
    if is_peak:
        events = PEAKS[value.removeprefix("peak_")](session)
    else:
        events = COUNTS[value.removeprefix("max_").removesuffix("_in_session")](session)
    total = 0
    for fact, amount in sorted(
        events, key=lambda event: (event[0][TIME_FIELD], event[0][ID_FIELD])
    ):
        total = amount if is_peak else total + amount
        if total >= threshold:
            return UnlockMoment(fact[TIME_FIELD], session.row.id, fact[ID_FIELD])
    return None
