"""When a line was crossed, and by which message.

Only days, sessions and messages that can hold the answer are looked at: a sum is followed
day by day, and only the day of the crossing is looked at message by message.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_achievements.evaluation.values import DERIVED_SERIES, SENT
from hermes_achievements.metrics import COUNTS, PEAKS
from hermes_achievements.metrics.facts import ID, TIME_FIELD, Book
from hermes_achievements.metrics.session_view import SessionFacts
from hermes_achievements.metrics.tally import Contribution

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from hermes_achievements.calendar import Calendar
    from hermes_achievements.metrics.tally import Tally
    from hermes_achievements.scan.history import Ledger

MAX_SESSIONS: Final = 600  # held in memory at once
MONTHLY: Final = frozenset(
    {"improved_months", "longest_improvement", "tidy_months", "clean_months", "tested_months"}
)


class Moment(NamedTuple):
    """The message that did it."""

    at: float
    session_id: str
    message_id: int


class Threshold(NamedTuple):
    """A value and the number it has to reach."""

    value: str
    threshold: int


class Dater:
    """Finds the moments at which lines were crossed."""

    def __init__(self, ledger: Ledger, tally: Tally, calendar: Calendar) -> None:
        self._ledger = ledger
        self._tally = tally
        self._calendar = calendar
        self._days = sorted(tally.days)
        self._sessions: OrderedDict[str, SessionFacts] = OrderedDict()
        self._candidates: dict[str, list[tuple[float, str, int]]] = {}

    def moments(self, lines: Iterable[Threshold]) -> dict[Threshold, Moment]:
        """The moment of each line."""
        wanted = sorted(set(lines), key=lambda line: (line.value, line.threshold))
        self._find_candidates([line for line in wanted if _is_of_session(line.value)])
        result = {line: self._moment(line) for line in wanted}
        return {line: moment for line, moment in result.items() if moment is not None}

    def _moment(self, line: Threshold) -> Moment | None:
        name, threshold = line
        if name.startswith("total_"):
            return self._in_total(name.removeprefix("total_"), threshold)
        if name.endswith("_in_day"):
            return self._in_day(name.removeprefix("max_").removesuffix("_in_day"), threshold)
        if name.startswith("distinct_"):
            return self._in_variety(name.removeprefix("distinct_"), threshold)
        if _is_of_session(name):
            return self._in_session(name, threshold)
        return self._in_series(name, threshold)

    def _in_total(self, metric: str, threshold: int) -> Moment | None:
        total = 0
        for day in self._days:
            amount = self._tally.days[day].get(metric, 0)
            if total + amount >= threshold:
                return self._on_day(metric, day, threshold - total)
            total += amount
        return None

    def _in_day(self, metric: str, threshold: int) -> Moment | None:
        for day in self._days:
            if self._tally.days[day].get(metric, 0) >= threshold:
                return self._on_day(metric, day, threshold)
        return None

    def _on_day(self, metric: str, day: str, threshold: int) -> Moment | None:
        total = 0
        for at, session_id, message_id, amount in sorted(self._events_on(metric, day)):
            total += amount
            if total >= threshold:
                return Moment(at, session_id, message_id)
        return None

    def _events_on(self, metric: str, day: str) -> Iterable[tuple[float, str, int, int]]:
        for session in self._load(self._ledger.sessions_on(day)):
            for fact, amount in COUNTS[metric](session):
                if self._calendar.day(fact[TIME_FIELD]) == day:
                    yield fact[TIME_FIELD], session.row.id, fact[ID], amount

    def _in_variety(self, kind: str, threshold: int) -> Moment | None:
        firsts = sorted(self._tally.seen.get(kind, {}).values())
        return Moment(*firsts[threshold - 1]) if len(firsts) >= threshold else None

    def _in_series(self, name: str, threshold: int) -> Moment | None:
        series = DERIVED_SERIES[name](self._tally.days)
        day = next((day for day, value in series if value >= threshold), None)
        if day is None:
            return None
        if name in MONTHLY or name == "spotless_days":
            return self._last_on(day)
        return self._on_day(SENT, day, 1)

    def _last_on(self, day: str) -> Moment | None:
        last: Moment | None = None
        for session in self._load(self._ledger.sessions_on(day)):
            for fact in session.facts:
                if self._calendar.day(fact[TIME_FIELD]) == day:
                    moment = Moment(fact[TIME_FIELD], session.row.id, fact[ID])
                    last = moment if last is None or moment > last else last
        return last

    # The best of one session

    def _find_candidates(self, lines: list[Threshold]) -> None:
        lowest: dict[str, int] = {}
        for value, threshold in lines:
            lowest[value] = min(threshold, lowest.get(value, threshold))
        self._candidates = {value: [] for value in lowest}
        if not lowest:
            return
        for session_id, first_at, stored in self._ledger.contributions():
            contribution = Contribution.unpack(stored)
            totals = contribution.totals()
            for value, threshold in lowest.items():
                amount = _amount(value, totals, contribution.peaks)
                if amount >= threshold:
                    self._candidates[value].append((first_at, session_id, amount))
        for candidates in self._candidates.values():
            candidates.sort()

    def _in_session(self, value: str, threshold: int) -> Moment | None:
        best: Moment | None = None
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

    def _load(self, session_ids: Sequence[str]) -> Iterable[SessionFacts]:
        missing = [session_id for session_id in session_ids if session_id not in self._sessions]
        for start in range(0, len(missing), 50):
            for session_id, stored in self._ledger.books(missing[start : start + 50]).items():
                self._sessions[session_id] = SessionFacts(Book.unpack(stored), self._calendar)
        for session_id in session_ids:
            session = self._sessions.get(session_id)
            if session is not None:
                self._sessions.move_to_end(session_id)
                yield session
        while len(self._sessions) > MAX_SESSIONS:
            self._sessions.popitem(last=False)


def _is_of_session(value: str) -> bool:
    return value.endswith("_in_session") or value.startswith("peak_")


def _amount(value: str, totals: dict[str, int], peaks: dict[str, int]) -> int:
    if value.startswith("peak_"):
        return peaks.get(value.removeprefix("peak_"), 0)
    return totals.get(value.removeprefix("max_").removesuffix("_in_session"), 0)


def _crossing(session: SessionFacts, value: str, threshold: int) -> Moment | None:
    is_peak = value.startswith("peak_")
    if is_peak:
        events = PEAKS[value.removeprefix("peak_")](session)
    else:
        events = COUNTS[value.removeprefix("max_").removesuffix("_in_session")](session)
    total = 0
    for fact, amount in sorted(events, key=lambda event: (event[0][TIME_FIELD], event[0][ID])):
        total = amount if is_peak else total + amount
        if total >= threshold:
            return Moment(fact[TIME_FIELD], session.row.id, fact[ID])
    return None
