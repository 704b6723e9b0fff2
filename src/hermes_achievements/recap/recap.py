"""A look back: what a year, a month or a week was made of.

Sums come from the tally, which dates every event by its day. Hours, favourites and single
sessions are read from the books of the sessions that were active in the period.
"""

from __future__ import annotations

from collections import Counter
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from hermes_achievements.classification import tool_kinds
from hermes_achievements.classification.model_names import normal_model
from hermes_achievements.classification.shell_commands import BACKGROUND
from hermes_achievements.evaluation.values import SENT, streaks
from hermes_achievements.metrics.facts import TIME_FIELD, Book
from hermes_achievements.metrics.session_view import SessionFacts
from hermes_achievements.metrics.talk import active_seconds
from hermes_achievements.recap import periods

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from hermes_achievements.calendar import Calendar
    from hermes_achievements.metrics.tally import Days, Tally
    from hermes_achievements.scan.history import Ledger

    Titles = Callable[[Iterable[str]], Mapping[str, str]]
    OnProgress = Callable[[int, int], object]

FAVOURITES: Final = 8
AT_ONCE: Final = 100
TOKENS: Final = ("input_tokens", "output_tokens", "cached_tokens")


class RecapTotals(NamedTuple):
    """Sums over the period; a cost is in US cents."""

    conversations: int
    messages: int
    tool_calls: int
    files_touched: int
    commits: int
    test_runs: int
    tokens: int
    cost_cents: int
    active_seconds: int


class DayOf(NamedTuple):
    """One day of the period."""

    day: str
    messages: int
    tool_calls: int


class RecapCount(NamedTuple):
    """Something, and how often."""

    name: str
    times: int


class Longest(NamedTuple):
    """The session with the most of something."""

    session_id: str
    title: str
    amount: int


class RecapStreak(NamedTuple):
    """Active days in a row; one missed day in any seven is forgiven."""

    days: int
    last_day: str


class Comebacks(NamedTuple):
    """Getting up again."""

    stubborn_recoveries: int
    test_comebacks: int
    returns_after_week: int


class Failures(NamedTuple):
    """How many tool results were failures, now and in as many days before."""

    failed: int
    results: int
    failed_before: int
    results_before: int

    @property
    def share(self) -> float | None:
        """The share of failures; None without results."""
        return self.failed / self.results if self.results else None

    @property
    def share_before(self) -> float | None:
        """The share of failures before; None without results."""
        return self.failed_before / self.results_before if self.results_before else None


class Recap(NamedTuple):
    """A period, as plain data."""

    first_day: str
    last_day: str
    totals: RecapTotals
    days: tuple[DayOf, ...]
    active_days: int
    hours: tuple[int, ...]  # messages by the hour of the day
    weekdays: tuple[int, ...]  # and by the day of the week, Monday first
    tools: tuple[RecapCount, ...]
    programs: tuple[RecapCount, ...]
    models: tuple[RecapCount, ...]
    longest_by_time: Longest | None  # in active seconds
    longest_by_calls: Longest | None
    best_day: DayOf | None
    streak: RecapStreak | None
    comebacks: Comebacks
    failures: Failures
    tier_ups: tuple[Mapping[str, Any], ...]

    @property
    def is_empty(self) -> bool:
        """Whether nothing happened."""
        return not (self.totals.messages or self.totals.tool_calls)

    def plain(self) -> dict[str, Any]:
        """Everything as dictionaries and lists, for JSON."""
        result: dict[str, Any] = _plain(self)
        for name in ("share", "share_before"):
            result["failures"][name] = getattr(self.failures, name)
        return result


def _plain(value: Any) -> Any:
    if hasattr(value, "_asdict"):
        return {name: _plain(item) for name, item in value._asdict().items()}
    return [_plain(item) for item in value] if isinstance(value, tuple) else value


def recap(
    ledger: Ledger,
    tally: Tally,
    calendar: Calendar,
    first_day: str,
    last_day: str,
    on_progress: OnProgress | None = None,
    *,
    timeline: Sequence[Mapping[str, Any]] = (),
    titles: Titles | None = None,
) -> Recap:
    """Look back on the days from *first_day* to *last_day*.

    *timeline* holds unlocks as `views.timeline` gives them; *titles* finds sessions' titles.
    """
    within = {day: counts for day, counts in tally.days.items() if first_day <= day <= last_day}
    days = tuple(_day(day, within) for day in periods.every_day(first_day, last_day))
    reading = _Reading(calendar, first_day, last_day)
    reading.read(ledger, sorted(within), on_progress)
    known = titles(reading.longest_ids()) if titles else {}
    return Recap(
        first_day=first_day,
        last_day=last_day,
        totals=_totals(within),
        days=days,
        active_days=sum(1 for item in days if item.messages),
        hours=tuple(reading.hours),
        weekdays=_weekdays(days),
        tools=_ranked(reading.tools),
        programs=_ranked(reading.programs),
        models=_ranked(reading.models),
        longest_by_time=_longest(reading.longest_time, known),
        longest_by_calls=_longest(reading.longest_calls, known),
        best_day=_best_day(days),
        streak=_streak(within),
        comebacks=Comebacks(*(_sum(within, name) for name in Comebacks._fields)),
        failures=_failures(tally.days, within, first_day, last_day),
        tier_ups=tuple(
            {**item, "day": day}
            for item in timeline
            if first_day <= (day := calendar.day(item["at"])) <= last_day
        ),
    )


class _Reading:
    """The books of a period under way: only what happened inside it is counted."""

    def __init__(self, calendar: Calendar, first_day: str, last_day: str) -> None:
        self.hours = [0] * 24
        self.tools: Counter[str] = Counter()
        self.programs: Counter[str] = Counter()
        self.models: Counter[str] = Counter()
        self.longest_time = ("", 0)
        self.longest_calls = ("", 0)
        self._calendar = calendar
        self._first = first_day
        self._last = last_day

    def read(self, ledger: Ledger, days: list[str], on_progress: OnProgress | None) -> None:
        ids = sorted({item for day in days for item in ledger.sessions_on(day)})
        for start in range(0, len(ids), AT_ONCE):
            for stored in ledger.books(ids[start : start + AT_ONCE]).values():
                self._take(SessionFacts(Book.unpack(stored), self._calendar))
            if on_progress is not None:
                on_progress(min(start + AT_ONCE, len(ids)), len(ids))

    def longest_ids(self) -> list[str]:
        return [item for item, _ in (self.longest_time, self.longest_calls) if item]

    def _take(self, session: SessionFacts) -> None:
        said = [fact[TIME_FIELD] for fact in session.said if self._is_within(fact[TIME_FIELD])]
        for moment in said:
            self.hours[self._calendar.at(moment).hour] += 1
        model = normal_model(session.row.model)
        if said and model:
            self.models[model] += len(said)
        calls = [call for call in session.calls if self._is_within(call.fact[TIME_FIELD])]
        for call in calls:
            self.tools[call.tool] += 1
            if call.does == tool_kinds.SHELL:
                self.programs.update(
                    {word.partition(" ")[0] for word in call.words if word != BACKGROUND}
                )
        spent = sum(n for fact, n in active_seconds(session) if self._is_within(fact[TIME_FIELD]))
        self._compare(session.row.id, spent, len(calls))

    def _compare(self, session_id: str, spent: int, calls: int) -> None:
        if spent > self.longest_time[1]:
            self.longest_time = (session_id, spent)
        if calls > self.longest_calls[1]:
            self.longest_calls = (session_id, calls)

    def _is_within(self, moment: float) -> bool:
        return self._first <= self._calendar.day(moment) <= self._last


def _day(day: str, within: Days) -> DayOf:
    counts = within.get(day, {})
    return DayOf(day, counts.get(SENT, 0), counts.get("tool_calls", 0))


def _sum(days: Days, name: str) -> int:
    return sum(counts.get(name, 0) for counts in days.values())


def _totals(within: Days) -> RecapTotals:
    names = {**{name: name for name in RecapTotals._fields}, "messages": SENT}
    sums = {field: _sum(within, name) for field, name in names.items()}
    return RecapTotals(**{**sums, "tokens": sum(_sum(within, name) for name in TOKENS)})


def _weekdays(days: Iterable[DayOf]) -> tuple[int, ...]:
    counts = [0] * 7
    for day in days:
        counts[periods.weekday(day.day)] += day.messages
    return tuple(counts)


def _ranked(counts: Counter[str]) -> tuple[RecapCount, ...]:
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return tuple(RecapCount(name, count) for name, count in ranked[:FAVOURITES])


def _longest(found: tuple[str, int], titles: Mapping[str, str]) -> Longest | None:
    session_id, amount = found
    return Longest(session_id, titles.get(session_id) or "", amount) if session_id else None


def _best_day(days: Iterable[DayOf]) -> DayOf | None:
    """The day with the most messages; of equal ones the one with more tool calls."""
    best = max(days, key=lambda item: (item.messages, item.tool_calls), default=None)
    return best if best is not None and best.messages else None


def _streak(within: Days) -> RecapStreak | None:
    streak = max(streaks(within), key=lambda item: item[1], default=None)
    return RecapStreak(streak[1], streak[0]) if streak else None


def _failures(everything: Days, within: Days, first_day: str, last_day: str) -> Failures:
    begin, end = date.fromisoformat(first_day), date.fromisoformat(last_day)
    since = (begin - (end - begin) - timedelta(days=1)).isoformat()
    before = {day: counts for day, counts in everything.items() if since <= day < first_day}
    failed, failed_before = _sum(within, "failed_calls"), _sum(before, "failed_calls")
    return Failures(
        failed,
        failed + _sum(within, "successful_calls"),
        failed_before,
        failed_before + _sum(before, "successful_calls"),
    )
