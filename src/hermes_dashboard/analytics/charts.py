"""Sums over some days of a history: pure functions of what is known.

A session has one sum of tokens and costs. It is spread over the days on which it was
active in proportion to the messages of each day, so that a chat of months does not put
everything on the day it began.
"""

from __future__ import annotations

from collections import defaultdict
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
    from collections.abc import Iterator, Mapping, Sequence

    from hermes_achievements.activity import Activity, DayActivity
    from hermes_achievements.calendar import Calendar
    from hermes_dashboard.analytics.analysis import AnalyticsData
    from hermes_state.sessions.totals import ModelNumbers

DASH: Final = "\N{EN DASH}"
LAST_DAY: Final = date(9998, 12, 31)  # clocks know no day behind the next year's
LENGTHS: Final = ((1, 4), (5, 9), (10, 19), (20, 49), (50, 99), (100, 199), (200, None))
DURATIONS: Final = (
    ("< 1 min", 0, 60),
    (f"1{DASH}5 min", 60, 300),
    (f"5{DASH}15 min", 300, 900),
    (f"15{DASH}60 min", 900, 3600),
    (f"1{DASH}4 h", 3600, 14400),
    ("> 4 h", 14400, None),
)


class Size(NamedTuple):
    """How long one conversation is."""

    messages: int
    seconds: float


def bars(known: AnalyticsData, span: Span) -> dict[str, Any]:
    """Both pictures."""
    sizes = list(_sizes(known, span))
    return {"lengths": _lengths(sizes), "durations": _durations(sizes)}


def _sizes(known: AnalyticsData, span: Span) -> Iterator[Size]:
    zone = known.calendar.zone
    begin = _midnight(date.fromisoformat(span.first), zone)
    end = _midnight(min(date.fromisoformat(span.last), LAST_DAY) + timedelta(days=1), zone)
    for one in known.numbers.values():
        if one.shown == LISTED and begin <= one.last_active < end and span.wants(one):
            yield Size(one.messages, one.last_active - _began(known, one))


def _midnight(day: date, zone: Any) -> float:
    return datetime.combine(day, clock_time.min, zone).timestamp()


def _began(known: AnalyticsData, one: SessionNumbers) -> float:
    root = known.numbers.get(one.root_id)
    return (root and root.started_at) or one.started_at


def _lengths(sizes: list[Size]) -> list[dict[str, Any]]:
    return [
        {
            "label": f"{low}{DASH}{high}" if high else f"{low}+",
            "min": low,
            "max": high,
            "sessions": sum(low <= n and (not high or n <= high) for n, _ in sizes),
        }
        for low, high in LENGTHS
    ]


def _durations(sizes: list[Size]) -> list[dict[str, Any]]:
    return [
        {
            "label": label,
            "min_seconds": low,
            "max_seconds": high,
            "sessions": sum(low <= n and (not high or n < high) for _, n in sizes),
        }
        for label, low, high in DURATIONS
    ]


class Span(NamedTuple):
    """Days from *first* to *last*, both included; and what sessions are asked for."""

    first: str
    last: str
    source: str | None = None
    model: str | None = None

    def before(self) -> Span:
        """As many days before."""
        begin, end = date.fromisoformat(self.first), date.fromisoformat(self.last)
        last = begin - timedelta(days=1)
        return self._replace(first=(last - (end - begin)).isoformat(), last=last.isoformat())

    def days(self) -> list[str]:
        """Every day."""
        return periods.list_days(self.first, self.last)

    def wants(self, numbers: SessionNumbers) -> bool:
        """Whether a session is one of those that are asked for."""
        if self.source is not None and numbers.source != self.source:
            return False
        return not self.model or self.model.lower() in (numbers.model or "").lower()


class Part(NamedTuple):
    """What a session adds to one day."""

    day: str
    share: float  # of its tokens and costs
    activity: DayActivity | None


def gone(activity: Activity, known: AnalyticsData) -> SessionNumbers:
    """The numbers of a session that was removed for good, as the ledger remembers them."""
    row = activity.row
    return SessionNumbers(
        row.id,
        _first_row(activity, known),
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
    )


def _first_row(activity: Activity, known: AnalyticsData) -> str:
    """The row with which the conversation of a removed one began."""
    row = activity.row
    seen = {row.id}
    while row.kind == SessionKind.CONTINUATION and row.parent_id and row.parent_id not in seen:
        if row.parent_id in known.numbers:
            return known.numbers[row.parent_id].root_id
        if row.parent_id not in known.activities:
            return row.parent_id
        row = known.activities[row.parent_id].row
        seen.add(row.id)
    return row.id


def sessions_of(known: AnalyticsData) -> Iterator[tuple[SessionNumbers, Activity | None]]:
    """Every session there is or was, with its activity where that is known."""
    for session_id, numbers in known.numbers.items():
        yield numbers, known.activities.get(session_id)
    for session_id, activity in known.activities.items():
        if session_id not in known.numbers:
            yield gone(activity, known), activity


def parts_of(
    numbers: SessionNumbers, activity: Activity | None, span: Span, calendar: Calendar
) -> list[Part]:
    """The days of a session that lie in *span*."""
    days = activity.days if activity is not None else ()
    if not days:
        started = calendar.day(numbers.started_at)
        return [Part(started, 1.0, None)] if span.first <= started <= span.last else []
    if days[-1].day < span.first or days[0].day > span.last:
        return []
    if len(days) == 1:
        return [Part(days[0].day, 1.0, days[0])]
    total = sum(one.messages for one in days)
    return [
        Part(one.day, one.messages / total if total else 1 / len(days), one)
        for one in days
        if span.first <= one.day <= span.last
    ]


class Sums:
    """Everything that charts show of some days."""

    def __init__(self, known: AnalyticsData, span: Span) -> None:
        self.span = span
        self.days: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
        self.totals: dict[str, float] = defaultdict(float)
        self.hours = [[0] * 24 for _ in range(7)]
        self.models: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
        self.model_days: dict[str, dict[str, list[float]]] = defaultdict(dict)
        self.sources: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
        self.tools: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
        self._roots: set[str] = set()
        self._roots_of_day: dict[str, set[str]] = defaultdict(set)
        self._roots_of: dict[tuple[str, str], set[str]] = defaultdict(set)
        self._several = known.models
        self._read(known)

    def _read(self, known: AnalyticsData) -> None:
        calendar = known.calendar
        for numbers, activity in sessions_of(known):
            if not self.span.wants(numbers):
                continue
            parts = parts_of(numbers, activity, self.span, calendar)
            if parts:
                self._add(numbers, parts)
        for day, roots in self._roots_of_day.items():
            self.days[day]["sessions"] = len(roots)
        self.totals["sessions"] = len(self._roots)
        self.totals["active_days"] = sum(1 for one in self.days.values() if one["messages"])

    def _add(self, numbers: SessionNumbers, parts: list[Part]) -> None:
        is_talk = numbers.kind != DELEGATE
        tools: set[str] = set()
        for part in parts:
            self._spread(numbers, part)
            if part.activity is not None:
                self._count(numbers, part.activity, is_talk=is_talk)
                tools.update(use.tool for use in part.activity.tools)
            if is_talk:
                self._roots_of_day[part.day].add(numbers.root_id)
        for tool in tools:
            self.tools[tool][2] += 1
        if is_talk:
            root = numbers.root_id
            self._roots.add(root)
            self._roots_of["source", numbers.source].add(root)
            for one in self._models_of(numbers):
                self._roots_of["model", one.model or ""].add(root)

    def _spread(self, numbers: SessionNumbers, part: Part) -> None:
        """Tokens and costs, which a session has as a whole."""
        _add_share(numbers, part.share, self.totals, self.days[part.day])
        _add_share(numbers, part.share, self.sources[numbers.source])
        for one in self._models_of(numbers):
            name = one.model or ""
            _add_share(one, part.share, self.models[name])
            held = self.model_days[name].setdefault(part.day, [0.0, 0.0])
            held[0] += (one.input_tokens + one.output_tokens) * part.share
            held[1] += one.cost_usd * part.share

    def _models_of(self, numbers: SessionNumbers) -> Sequence[SessionNumbers | ModelNumbers]:
        """Who answered in a session: most often one model, which its row names."""
        return self._several.get(numbers.id) or ([numbers] if numbers.model else [])

    def _count(self, numbers: SessionNumbers, day: DayActivity, *, is_talk: bool) -> None:
        """Messages, tools and hours, which happened on that day."""
        here = self.days[day.day]
        calls = failures = 0
        for use in day.tools:
            held = self.tools[use.tool]
            held[0] += use.calls
            held[1] += use.failures
            calls += use.calls
            failures += use.failures
        for place in (here, self.totals):
            place["tool_calls"] += calls
            place["tool_failures"] += failures
        if is_talk:
            here["messages"] += day.messages
            self.totals["messages"] += day.messages
            self.totals["active_seconds"] += day.active_seconds
            self.sources[numbers.source]["messages"] += day.messages
            row = self.hours[periods.weekday(day.day)]
            for hour, messages in day.hours:
                row[hour] += messages

    def count_of(self, what: str, name: str) -> int:
        """How many conversations have that source or model."""
        return len(self._roots_of[what, name])


AMOUNTS: Final = ("input_tokens", "output_tokens", "cache_read_tokens", "cost_usd")


def _add_share(
    numbers: SessionNumbers | ModelNumbers, share: float, *places: dict[str, float]
) -> None:
    for name in AMOUNTS:
        amount = getattr(numbers, name) * share
        for place in places:
            place[name] += amount


def analytics(known: AnalyticsData, span: Span) -> dict[str, Any]:
    """Everything that the analytics page shows."""
    sums = Sums(known, span)
    return {
        "since": span.first,
        "until": span.last,
        "zone": known.zone,
        **progress_of(known),
        "totals": totals_of(sums),
        "before": totals_of(Sums(known, span.before())),
        "days": [{"day": day, **_whole(sums.days.get(day, {}), DAY)} for day in span.days()],
        "hours": sums.hours,
        "models": _models(sums),
        "sources": _sources(sums),
        "tools": _tools(sums),
        **bars(known, span),
    }


def progress_of(known: AnalyticsData) -> dict[str, Any]:
    """How far the history has been read."""
    done = known.progress and dict(zip(("done", "total"), known.progress, strict=True))
    return {"is_complete": known.is_complete, "progress": done, "error": known.error}


DAY: Final = (
    "sessions", "messages", "tool_calls", "tool_failures", "input_tokens", "output_tokens",
)  # fmt: skip
TOTAL: Final = (*DAY, "cache_read_tokens", "active_days", "active_seconds")


def _whole(sums: Mapping[str, float], names: tuple[str, ...]) -> dict[str, Any]:
    counts = {name: round(sums.get(name, 0)) for name in names}
    return {**counts, "cost_usd": round(sums.get("cost_usd", 0.0), 6)}


def totals_of(sums: Sums) -> dict[str, Any]:
    """The sums over all days."""
    return _whole(sums.totals, TOTAL)


def _models(sums: Sums) -> list[dict[str, Any]]:
    found = [
        {
            "model": name,
            "sessions": sums.count_of("model", name),
            **_whole(one, ("input_tokens", "output_tokens")),
            "days": {
                day: {"tokens": round(tokens), "cost_usd": round(cost, 6)}
                for day, (tokens, cost) in sorted(sums.model_days[name].items())
                if tokens or cost
            },
        }
        for name, one in sums.models.items()
    ]
    return sorted(found, key=lambda m: (-m["input_tokens"] - m["output_tokens"], m["model"]))


def _sources(sums: Sums) -> list[dict[str, Any]]:
    found = [
        {
            "source": name,
            "sessions": sums.count_of("source", name),
            "tokens": round(one["input_tokens"] + one["output_tokens"]),
            **_whole(one, ("messages",)),
        }
        for name, one in sums.sources.items()
    ]
    return sorted(found, key=lambda s: (-s["sessions"], s["source"]))


def _tools(sums: Sums) -> list[dict[str, Any]]:
    found = [
        {"tool": name, "calls": calls, "failures": failures, "sessions": sessions}
        for name, (calls, failures, sessions) in sums.tools.items()
    ]
    return sorted(found, key=lambda t: (-t["calls"], t["tool"]))


def first_day(known: AnalyticsData) -> date | None:
    """The first day with anything on it."""
    days = [one.days[0].day for one in known.activities.values() if one.days]
    moments = [one.started_at for one in known.numbers.values()]
    days += [known.calendar.day(min(moments))] if moments else []
    return date.fromisoformat(min(days)) if days else None


def sent_by_day(known: AnalyticsData) -> dict[str, dict[str, int]]:
    """What people wrote on each day, as streaks are told by."""
    found: dict[str, int] = defaultdict(int)
    for activity in known.activities.values():
        for day in activity.days:
            found[day.day] += day.sent
    return {day: {MESSAGES_SENT: number} for day, number in found.items()}
