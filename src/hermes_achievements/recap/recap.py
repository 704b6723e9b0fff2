"""The recap of a period: totals, days, favourites and notable sessions.

Totals come from the tally, which is grouped by day. Hours, favourites and single sessions
are computed from the recorded facts of the sessions that were active in the period.
"""

from __future__ import annotations

from collections import Counter
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from hermes_achievements.classification import tool_kinds
from hermes_achievements.classification.model_names import normal_model
from hermes_achievements.classification.shell_commands import BACKGROUND_LABEL
from hermes_achievements.evaluation.snapshot import TimelineStep
from hermes_achievements.evaluation.standings import MESSAGES_SENT, streaks
from hermes_achievements.metrics.conversation import active_seconds
from hermes_achievements.metrics.facts import TIME_FIELD, RecordedFacts
from hermes_achievements.metrics.session_view import SessionView
from hermes_achievements.recap import periods

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from hermes_achievements.calendar import Calendar
    from hermes_achievements.metrics.tally import Days, Tally
    from hermes_achievements.scan.history import Ledger
    from hermes_core.json_values import JsonObject

    Titles = Callable[[Iterable[str]], Mapping[str, str]]
    OnProgress = Callable[[int, int], object]

MAX_FAVOURITES: Final = 8
BATCH_SESSIONS: Final = 100
TOKEN_METRICS: Final = ("input_tokens", "output_tokens")


class RecapTotals(NamedTuple):
    """Totals of the period; the cost is in US cents."""

    conversations: int
    messages: int
    tool_calls: int
    files_touched: int
    commits: int
    test_runs: int
    tokens: int
    cost_cents: int
    active_seconds: int


class RecapDay(NamedTuple):
    """One day of the period."""

    day: str
    messages: int
    tool_calls: int


class RecapCount(NamedTuple):
    """A name and its number of uses."""

    name: str
    times: int


class LongestSession(NamedTuple):
    """The session with the highest amount."""

    session_id: str
    title: str
    amount: int


class RecapStreak(NamedTuple):
    """Consecutive active days; one missed day in seven does not end a streak."""

    days: int
    last_day: str


class Comebacks(NamedTuple):
    """Getting up again."""

    stubborn_recoveries: int
    test_comebacks: int
    returns_after_week: int


class Failures(NamedTuple):
    """Failed tool results of the period and of the same number of days before."""

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


class RecapTier(TimelineStep):
    """A tier that was reached in the period, with its day."""

    day: str


class Recap(NamedTuple):
    """The recap of a period, as plain data."""

    first_day: str
    last_day: str
    totals: RecapTotals
    days: tuple[RecapDay, ...]
    active_days: int
    hours: tuple[int, ...]  # messages by the hour of the day
    weekdays: tuple[int, ...]  # messages by weekday, Monday first
    tools: tuple[RecapCount, ...]
    programs: tuple[RecapCount, ...]
    models: tuple[RecapCount, ...]
    longest_by_time: LongestSession | None  # in active seconds
    longest_by_calls: LongestSession | None
    best_day: RecapDay | None
    streak: RecapStreak | None
    comebacks: Comebacks
    failures: Failures
    tier_ups: tuple[RecapTier, ...]

    @property
    def is_empty(self) -> bool:
        """Whether the period has no activity."""
        return not (self.totals.messages or self.totals.tool_calls)

    def as_json(self) -> JsonObject:
        """The recap as dictionaries and lists."""
        shares = {"share": self.failures.share, "share_before": self.failures.share_before}
        result: JsonObject = _to_json(self)
        return {**result, "failures": {**_to_json(self.failures), **shares}}


def _to_json(value: Any) -> Any:
    if hasattr(value, "_asdict"):
        return {name: _to_json(item) for name, item in value._asdict().items()}
    return [_to_json(item) for item in value] if isinstance(value, tuple) else value


def build_recap(
    ledger: Ledger,
    tally: Tally,
    calendar: Calendar,
    first_day: str,
    last_day: str,
    on_progress: OnProgress | None = None,
    *,
    timeline: Sequence[TimelineStep] = (),
    titles: Titles | None = None,
) -> Recap:
    """The recap of the days from *first_day* to *last_day*.

    *timeline* has the format of `views.timeline`; *titles* looks up session titles.
    """
    within = {day: counts for day, counts in tally.days.items() if first_day <= day <= last_day}
    days = tuple(_day(day, within) for day in periods.list_days(first_day, last_day))
    reader = _PeriodReader(calendar, first_day, last_day)
    reader.read(ledger, sorted(within), on_progress)
    session_titles = titles(reader.longest_ids()) if titles else {}
    return Recap(
        first_day=first_day,
        last_day=last_day,
        totals=_totals(within),
        days=days,
        active_days=sum(1 for item in days if item.messages),
        hours=tuple(reader.hours),
        weekdays=_weekdays(days),
        tools=_ranked(reader.tools),
        programs=_ranked(reader.programs),
        models=_ranked(reader.models),
        longest_by_time=_longest(reader.longest_time, session_titles),
        longest_by_calls=_longest(reader.longest_calls, session_titles),
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


class _PeriodReader:
    """Counts the facts of a period."""

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
        ids = sorted({item for day in days for item in ledger.sessions_on_day(day)})
        for start in range(0, len(ids), BATCH_SESSIONS):
            for stored in ledger.recorded_facts(ids[start : start + BATCH_SESSIONS]).values():
                self._add_session(SessionView(RecordedFacts.unpack(stored), self._calendar))
            if on_progress is not None:
                on_progress(min(start + BATCH_SESSIONS, len(ids)), len(ids))

    def longest_ids(self) -> list[str]:
        return [item for item, _ in (self.longest_time, self.longest_calls) if item]

    def _add_session(self, session: SessionView) -> None:
        sent_at = [
            fact[TIME_FIELD] for fact in session.user_messages if self._is_within(fact[TIME_FIELD])
        ]
        for moment in sent_at:
            self.hours[self._calendar.at(moment).hour] += 1
        model = normal_model(session.row.model)
        if sent_at and model:
            self.models[model] += len(sent_at)
        calls = [call for call in session.calls if self._is_within(call.fact[TIME_FIELD])]
        for call in calls:
            self.tools[call.tool] += 1
            if call.operation == tool_kinds.SHELL:
                self.programs.update(
                    {word.partition(" ")[0] for word in call.details if word != BACKGROUND_LABEL}
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


def _day(day: str, within: Days) -> RecapDay:
    counts = within.get(day, {})
    return RecapDay(day, counts.get(MESSAGES_SENT, 0), counts.get("tool_calls", 0))


def _sum(days: Days, name: str) -> int:
    return sum(counts.get(name, 0) for counts in days.values())


def _totals(within: Days) -> RecapTotals:
    names = {**{name: name for name in RecapTotals._fields}, "messages": MESSAGES_SENT}
    sums = {field: _sum(within, name) for field, name in names.items()}
    return RecapTotals(**{**sums, "tokens": sum(_sum(within, name) for name in TOKEN_METRICS)})


def _weekdays(days: Iterable[RecapDay]) -> tuple[int, ...]:
    counts = [0] * 7
    for day in days:
        counts[periods.weekday(day.day)] += day.messages
    return tuple(counts)


def _ranked(counts: Counter[str]) -> tuple[RecapCount, ...]:
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return tuple(RecapCount(name, count) for name, count in ranked[:MAX_FAVOURITES])


def _longest(longest: tuple[str, int], titles: Mapping[str, str]) -> LongestSession | None:
    session_id, amount = longest
    return LongestSession(session_id, titles.get(session_id) or "", amount) if session_id else None


def _best_day(days: Iterable[RecapDay]) -> RecapDay | None:
    """The day with the most messages, then the most tool calls."""
    best = max(days, key=lambda item: (item.messages, item.tool_calls), default=None)
    return best if best is not None and best.messages else None


def _streak(within: Days) -> RecapStreak | None:
    streak = max(streaks(within), key=lambda item: item[1], default=None)
    return RecapStreak(streak[1], streak[0]) if streak else None


def _failures(all_days: Days, within: Days, first_day: str, last_day: str) -> Failures:
    begin, end = date.fromisoformat(first_day), date.fromisoformat(last_day)
    since = (begin - (end - begin) - timedelta(days=1)).isoformat()
    before = {day: counts for day, counts in all_days.items() if since <= day < first_day}
    failed, failed_before = _sum(within, "failed_calls"), _sum(before, "failed_calls")
    return Failures(
        failed,
        failed + _sum(within, "successful_calls"),
        failed_before,
        failed_before + _sum(before, "successful_calls"),
    )
