"""Sums over a period of a history: pure functions of the analytics data.

The store has one sum of tokens and costs per session. It is distributed over the active
days in proportion to the messages of each day, so that a chat of several months is not
counted on its first day only.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from datetime import time as clock_time
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from hermes_achievements.evaluation.values import MESSAGES_SENT
from hermes_achievements.recap import periods
from hermes_achievements.scan.history import SessionKind
from hermes_state.sessions.index import LISTED, PURGED
from hermes_state.sessions.lineage import DELEGATE
from hermes_state.sessions.totals import SessionNumbers

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hermes_achievements.activity import Activity, DayActivity
    from hermes_achievements.calendar import Calendar
    from hermes_dashboard.analytics.analysis import AnalyticsData
    from hermes_state.sessions.totals import ModelNumbers

DASH: Final = "\N{EN DASH}"
MAX_DATE: Final = date(9998, 12, 31)  # datetime cannot represent the midnight after year 9999
LENGTH_BUCKETS: Final = ((1, 4), (5, 9), (10, 19), (20, 49), (50, 99), (100, 199), (200, None))
DURATION_BUCKETS: Final = (
    ("< 1 min", 0, 60),
    (f"1{DASH}5 min", 60, 300),
    (f"5{DASH}15 min", 300, 900),
    (f"15{DASH}60 min", 900, 3600),
    (f"1{DASH}4 h", 3600, 14400),
    ("> 4 h", 14400, None),
)


class Size(NamedTuple):
    """The length of one conversation."""

    messages: int
    seconds: float


def histograms(data: AnalyticsData, span: Span) -> dict[str, Any]:
    """The distributions of lengths and durations."""
    sizes = list(_sizes(data, span))
    return {"lengths": _lengths(sizes), "durations": _durations(sizes)}


def _sizes(data: AnalyticsData, span: Span) -> Iterator[Size]:
    zone = data.calendar.zone
    begin = _midnight(date.fromisoformat(span.first), zone)
    end = _midnight(min(date.fromisoformat(span.last), MAX_DATE) + timedelta(days=1), zone)
    for session in data.numbers.values():
        if session.shown == LISTED and begin <= session.last_active < end and span.matches(session):
            yield Size(session.messages, session.last_active - _started_at(data, session))


def _midnight(day: date, zone: Any) -> float:
    return datetime.combine(day, clock_time.min, zone).timestamp()


def _started_at(data: AnalyticsData, session: SessionNumbers) -> float:
    root = data.numbers.get(session.root_id)
    return (root and root.started_at) or session.started_at


def _lengths(sizes: list[Size]) -> list[dict[str, Any]]:
    return [
        {
            "label": f"{low}{DASH}{high}" if high else f"{low}+",
            "min": low,
            "max": high,
            "sessions": sum(low <= n and (not high or n <= high) for n, _ in sizes),
        }
        for low, high in LENGTH_BUCKETS
    ]


def _durations(sizes: list[Size]) -> list[dict[str, Any]]:
    return [
        {
            "label": label,
            "min_seconds": low,
            "max_seconds": high,
            "sessions": sum(low <= n and (not high or n < high) for _, n in sizes),
        }
        for label, low, high in DURATION_BUCKETS
    ]


class Span(NamedTuple):
    """Days from *first* to *last*, both included, and a filter for sessions."""

    first: str
    last: str
    source: str | None = None
    model: str | None = None
    folder: str | None = None

    def previous(self) -> Span:
        """The period of the same length before this one."""
        begin, end = date.fromisoformat(self.first), date.fromisoformat(self.last)
        last = begin - timedelta(days=1)
        return self._replace(first=(last - (end - begin)).isoformat(), last=last.isoformat())

    def days(self) -> list[str]:
        """Every day."""
        return periods.list_days(self.first, self.last)

    def matches(self, numbers: SessionNumbers) -> bool:
        """Whether the session matches the filter."""
        if self.source is not None and numbers.source != self.source:
            return False
        if self.folder and not f"{numbers.folder}/".startswith(f"{self.folder.rstrip('/')}/"):
            return False
        return not self.model or self.model.lower() in (numbers.model or "").lower()


class DayShare(NamedTuple):
    """The contribution of a session to one day."""

    day: str
    fraction: float  # of the session's tokens and costs
    activity: DayActivity | None


def purged_numbers(activity: Activity, data: AnalyticsData) -> SessionNumbers:
    """The numbers of a permanently deleted session, from the ledger."""
    row = activity.row
    return SessionNumbers(
        row.id,
        _first_row(activity, data),
        "root" if activity.is_conversation else DELEGATE,
        PURGED,
        row.source,
        row.model or None,
        row.started_at,
        row.ended_at or row.started_at,
        sum(day.messages for day in activity.days),
        sum(use.calls for day in activity.days for use in day.tools),
        row.input_tokens,
        row.output_tokens,
        row.cached_tokens,
        row.cost_usd,
        "",  # the ledger has a digest of the folder only
    )


def _first_row(activity: Activity, data: AnalyticsData) -> str:
    """The first row of a deleted session's conversation."""
    row = activity.row
    visited = {row.id}
    while row.kind == SessionKind.CONTINUATION and row.parent_id and row.parent_id not in visited:
        if row.parent_id in data.numbers:
            return data.numbers[row.parent_id].root_id
        if row.parent_id not in data.activities:
            return row.parent_id
        row = data.activities[row.parent_id].row
        visited.add(row.id)
    return row.id


def sessions_of(data: AnalyticsData) -> Iterator[tuple[SessionNumbers, Activity | None]]:
    """Every existing or deleted session, with its activity if available."""
    for session_id, numbers in data.numbers.items():
        yield numbers, data.activities.get(session_id)
    for session_id, activity in data.activities.items():
        if session_id not in data.numbers:
            yield purged_numbers(activity, data), activity


def day_shares(
    numbers: SessionNumbers, activity: Activity | None, span: Span, calendar: Calendar
) -> list[DayShare]:
    """The active days of a session within *span*."""
    days = activity.days if activity is not None else ()
    if not days:
        started = calendar.day(numbers.started_at)
        return [DayShare(started, 1.0, None)] if span.first <= started <= span.last else []
    if days[-1].day < span.first or days[0].day > span.last:
        return []
    if len(days) == 1:
        return [DayShare(days[0].day, 1.0, days[0])]
    total = sum(day.messages for day in days)
    return [
        DayShare(day.day, day.messages / total if total else 1 / len(days), day)
        for day in days
        if span.first <= day.day <= span.last
    ]


@dataclass(slots=True)
class Amounts:
    """What was used by a period, a day, a model or a source."""

    sessions: int = 0
    messages: int = 0
    tool_calls: int = 0
    tool_failures: int = 0
    input_tokens: float = 0.0
    output_tokens: float = 0.0
    cache_read_tokens: float = 0.0
    cost_usd: float = 0.0
    active_days: int = 0
    active_seconds: float = 0.0

    def add_share(self, numbers: SessionNumbers | ModelNumbers, share: float) -> None:
        """Add a fraction of the tokens and costs of a session."""
        self.input_tokens += numbers.input_tokens * share
        self.output_tokens += numbers.output_tokens * share
        self.cache_read_tokens += numbers.cache_read_tokens * share
        self.cost_usd += numbers.cost_usd * share


class Sums:
    """All sums of a period."""

    def __init__(self, data: AnalyticsData, span: Span) -> None:
        self.span = span
        self.days: dict[str, Amounts] = defaultdict(Amounts)
        self.totals = Amounts()
        self.hours = [[0] * 24 for _ in range(7)]
        self.models: dict[str, Amounts] = defaultdict(Amounts)
        self.model_days: dict[str, dict[str, list[float]]] = defaultdict(dict)
        self.sources: dict[str, Amounts] = defaultdict(Amounts)
        self.folders: dict[str, Amounts] = defaultdict(Amounts)
        self.tools: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
        self._roots: set[str] = set()
        self._roots_of_day: dict[str, set[str]] = defaultdict(set)
        self._roots_of: dict[tuple[str, str], set[str]] = defaultdict(set)
        self._multiple_models = data.models
        self._add_all(data)

    def _add_all(self, data: AnalyticsData) -> None:
        calendar = data.calendar
        for numbers, activity in sessions_of(data):
            if not self.span.matches(numbers):
                continue
            shares = day_shares(numbers, activity, self.span, calendar)
            if shares:
                self._add(numbers, shares)
        for day, roots in self._roots_of_day.items():
            self.days[day].sessions = len(roots)
        self.totals.sessions = len(self._roots)
        self.totals.active_days = sum(1 for day in self.days.values() if day.messages)

    def _add(self, numbers: SessionNumbers, shares: list[DayShare]) -> None:
        is_conversation = numbers.kind != DELEGATE
        tools: set[str] = set()
        for share in shares:
            self._add_amounts(numbers, share)
            if share.activity is not None:
                self._add_activity(numbers, share.activity, is_conversation=is_conversation)
                tools.update(use.tool for use in share.activity.tools)
            if is_conversation:
                self._roots_of_day[share.day].add(numbers.root_id)
        for tool in tools:
            self.tools[tool][2] += 1
        if is_conversation:
            root = numbers.root_id
            self._roots.add(root)
            self._roots_of["source", numbers.source].add(root)
            self._roots_of["folder", numbers.folder].add(root)
            for model in self._models_of(numbers):
                self._roots_of["model", model.model or ""].add(root)

    def _add_amounts(self, numbers: SessionNumbers, share: DayShare) -> None:
        """Add the day's share of the session's tokens and costs."""
        for amounts in (
            self.totals, self.days[share.day], self.sources[numbers.source],
            self.folders[numbers.folder],
        ):  # fmt: skip
            amounts.add_share(numbers, share.fraction)
        for model in self._models_of(numbers):
            name = model.model or ""
            self.models[name].add_share(model, share.fraction)
            of_day = self.model_days[name].setdefault(share.day, [0.0, 0.0])
            of_day[0] += (model.input_tokens + model.output_tokens) * share.fraction
            of_day[1] += model.cost_usd * share.fraction

    def _models_of(self, numbers: SessionNumbers) -> Sequence[SessionNumbers | ModelNumbers]:
        """The models of a session; usually one, which its row names."""
        return self._multiple_models.get(numbers.id) or ([numbers] if numbers.model else [])

    def _add_activity(
        self, numbers: SessionNumbers, day: DayActivity, *, is_conversation: bool
    ) -> None:
        """Add the messages, tool calls and hours of a day."""
        day_sums = self.days[day.day]
        calls = failures = 0
        for use in day.tools:
            counts = self.tools[use.tool]
            counts[0] += use.calls
            counts[1] += use.failures
            calls += use.calls
            failures += use.failures
        for target in (day_sums, self.totals):
            target.tool_calls += calls
            target.tool_failures += failures
        if is_conversation:
            day_sums.messages += day.messages
            self.totals.messages += day.messages
            self.totals.active_seconds += day.active_seconds
            self.sources[numbers.source].messages += day.messages
            row = self.hours[periods.weekday(day.day)]
            for hour, messages in day.hours:
                row[hour] += messages

    def count_of(self, dimension: str, name: str) -> int:
        """The number of conversations with that source, model or folder."""
        return len(self._roots_of[dimension, name])


def analytics(data: AnalyticsData, span: Span) -> dict[str, Any]:
    """The data of the analytics page."""
    sums = Sums(data, span)
    return {
        "since": span.first,
        "until": span.last,
        "zone": data.zone,
        **progress_of(data),
        "totals": totals_of(sums),
        "before": totals_of(Sums(data, span.previous())),
        "days": [
            {"day": day, **_rounded(sums.days.get(day, Amounts()), DAY_FIELDS)}
            for day in span.days()
        ],
        "hours": sums.hours,
        "models": _models(sums),
        "sources": _sources(sums),
        "tools": _tools(sums),
        **histograms(data, span),
    }


def progress_of(data: AnalyticsData) -> dict[str, Any]:
    """The progress of reading the history."""
    done = data.progress and dict(zip(("done", "total"), data.progress, strict=True))
    return {"is_complete": data.is_complete, "progress": done, "error": data.error}


DAY_FIELDS: Final = (
    "sessions", "messages", "tool_calls", "tool_failures", "input_tokens", "output_tokens",
)  # fmt: skip
TOTAL_FIELDS: Final = (*DAY_FIELDS, "cache_read_tokens", "active_days", "active_seconds")


def _rounded(amounts: Amounts, names: tuple[str, ...]) -> dict[str, float]:
    counts = {name: round(getattr(amounts, name)) for name in names}
    return {**counts, "cost_usd": round(amounts.cost_usd, 6)}


def totals_of(sums: Sums) -> dict[str, float]:
    """The sums over the period."""
    return _rounded(sums.totals, TOTAL_FIELDS)


def _models(sums: Sums) -> list[dict[str, Any]]:
    order = sorted(sums.models.items(), key=_by_tokens)
    return [
        {
            "model": name,
            "sessions": sums.count_of("model", name),
            **_rounded(amounts, ("input_tokens", "output_tokens")),
            "days": {
                day: {"tokens": round(tokens), "cost_usd": round(cost, 6)}
                for day, (tokens, cost) in sorted(sums.model_days[name].items())
                if tokens or cost
            },
        }
        for name, amounts in order
    ]


def _by_tokens(model: tuple[str, Amounts]) -> tuple[int, str]:
    name, amounts = model
    return -round(amounts.input_tokens) - round(amounts.output_tokens), name


def _sources(sums: Sums) -> list[dict[str, Any]]:
    order = sorted(sums.sources, key=lambda name: (-sums.count_of("source", name), name))
    return [
        {
            "source": name,
            "sessions": sums.count_of("source", name),
            "tokens": round(amounts.input_tokens + amounts.output_tokens),
            **_rounded(amounts, ("messages",)),
        }
        for name, amounts in ((name, sums.sources[name]) for name in order)
    ]


def _tools(sums: Sums) -> list[dict[str, Any]]:
    order = sorted(sums.tools.items(), key=lambda item: (-item[1][0], item[0]))
    return [
        {"tool": name, "calls": calls, "failures": failures, "sessions": sessions}
        for name, (calls, failures, sessions) in order
    ]


def first_day(data: AnalyticsData) -> date | None:
    """The first day with any activity."""
    days = [activity.days[0].day for activity in data.activities.values() if activity.days]
    timestamps = [session.started_at for session in data.numbers.values()]
    days += [data.calendar.day(min(timestamps))] if timestamps else []
    return date.fromisoformat(min(days)) if days else None


def sent_by_day(data: AnalyticsData) -> dict[str, dict[str, int]]:
    """Messages of the user by day, as streaks are computed from."""
    sent: dict[str, int] = defaultdict(int)
    for activity in data.activities.values():
        for day in activity.days:
            sent[day.day] += day.sent
    return {day: {MESSAGES_SENT: number} for day, number in sent.items()}
