"""Sums over a period of a history: pure functions of the analytics data.

The store has one sum of tokens and costs per session. It is distributed over the active
days in proportion to the messages of each day, so that a chat of several months is not
counted on its first day only.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import asdict, dataclass
from datetime import date, datetime, timedelta
from datetime import time as clock_time
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pydantic import BaseModel, Field

from hermes_achievements.evaluation.standings import MESSAGES_SENT
from hermes_achievements.recap import periods
from hermes_achievements.scan.history import SessionKind
from hermes_core.config.file import ConfigFile
from hermes_core.config.yaml_reader import is_set
from hermes_dashboard.models.text import Dollars, ProgressView, Rounded, Text
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


class Length(BaseModel):
    """Conversations by how many messages they have."""

    label: str
    min: int
    max: int | None
    sessions: int


class Duration(BaseModel):
    """Conversations by how long they lasted, from the first row's start to the last activity."""

    label: str
    min_seconds: int
    max_seconds: int | None
    sessions: int


class ConversationSize(NamedTuple):
    """The length of one conversation."""

    messages: int
    seconds: float


def sizes_of(data: AnalyticsData, span: Span) -> Iterator[ConversationSize]:
    """The lengths of the conversations of a period."""
    zone = data.calendar.zone
    begin = _midnight(date.fromisoformat(span.first), zone)
    end = _midnight(min(date.fromisoformat(span.last), MAX_DATE) + timedelta(days=1), zone)
    for session in data.numbers.values():
        if session.shown == LISTED and begin <= session.last_active < end and span.matches(session):
            yield ConversationSize(
                session.messages, session.last_active - _started_at(data, session)
            )


def _midnight(day: date, zone: Any) -> float:
    return datetime.combine(day, clock_time.min, zone).timestamp()


def _started_at(data: AnalyticsData, session: SessionNumbers) -> float:
    root = data.numbers.get(session.root_id)
    return (root and root.started_at) or session.started_at


def lengths(sizes: list[ConversationSize]) -> list[Length]:
    """The distribution of lengths."""
    return [
        Length(
            label=f"{low}{DASH}{high}" if high else f"{low}+",
            min=low,
            max=high,
            sessions=sum(low <= n and (not high or n <= high) for n, _ in sizes),
        )
        for low, high in LENGTH_BUCKETS
    ]


def durations(sizes: list[ConversationSize]) -> list[Duration]:
    """The distribution of durations."""
    return [
        Duration(
            label=label,
            min_seconds=low,
            max_seconds=high,
            sessions=sum(low <= n and (not high or n < high) for _, n in sizes),
        )
        for label, low, high in DURATION_BUCKETS
    ]


class TotalsView(BaseModel):
    """Sums over a period."""

    sessions: Rounded
    messages: Rounded
    tool_calls: Rounded
    tool_failures: Rounded
    input_tokens: Rounded
    output_tokens: Rounded
    cache_read_tokens: Rounded
    cost_usd: Dollars
    active_days: Rounded
    active_seconds: Rounded


class DayOfAnalytics(BaseModel):
    """One day."""

    day: str
    sessions: Rounded
    messages: Rounded
    tool_calls: Rounded
    tool_failures: Rounded
    input_tokens: Rounded
    output_tokens: Rounded
    cost_usd: Dollars


class ModelDay(BaseModel):
    """A model on one day."""

    tokens: Rounded
    cost_usd: Dollars


class ModelUse(BaseModel):
    """Usage of a model."""

    model: Text
    sessions: Rounded
    input_tokens: Rounded
    output_tokens: Rounded
    cost_usd: Dollars
    days: dict[str, ModelDay]


class SourceUse(BaseModel):
    """Numbers of one source."""

    source: Text
    sessions: Rounded
    messages: Rounded
    tokens: Rounded
    cost_usd: Dollars


class ProjectUse(BaseModel):
    """Numbers of one project: a repository, otherwise a working folder."""

    folder: Text
    sessions: Rounded
    tokens: Rounded
    cost_usd: Dollars


class ToolUsage(BaseModel):
    """How often a tool was used, and how often it failed."""

    tool: Text
    calls: int
    failures: int
    sessions: int


class BudgetView(BaseModel):
    """The user's own budget of the current month, and what was spent so far."""

    month: str
    limit_usd: float
    spent_usd: float
    is_exceeded: bool


class Analytics(BaseModel):
    """Analytics of a period."""

    since: str
    until: str
    today: str = Field(description="The current day where the server counts days.")
    zone: str
    is_complete: bool
    progress: ProgressView | None
    error: Text | None = Field(description="Error while reading the statistics, if any.")
    totals: TotalsView
    before: TotalsView
    days: list[DayOfAnalytics]
    before_days: list[DayOfAnalytics]
    hours: list[list[int]]
    models: list[ModelUse]
    sources: list[SourceUse]
    projects: list[ProjectUse]
    tools: list[ToolUsage]
    budget: BudgetView | None = Field(description="Setting display.dollars_per_month.")
    lengths: list[Length]
    durations: list[Duration]


class Span(NamedTuple):
    """Days from *first* to *last*, both included, and a filter for sessions."""

    first: str
    last: str
    source: str | None = None
    model: str | None = None  # a part of the name
    folder: str | None = None  # with its subfolders
    person: str | None = None
    only_model: str | None = None  # the full name

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
        if self.person is not None and numbers.person != self.person:
            return False
        if self.only_model is not None and numbers.model != self.only_model:
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
        row.parent_id or "",
    )


class SubagentOwners:
    """The conversations that sub-agents worked for: their usage is counted there."""

    def __init__(self, data: AnalyticsData) -> None:
        self._data = data
        self._purged: dict[str, SessionNumbers] = {}

    def attribute(self, numbers: SessionNumbers) -> SessionNumbers:
        """The numbers with the source, project and person of the conversation."""
        owner, visited = numbers, {numbers.id}
        while owner.kind == DELEGATE:
            parent = self._find(owner.parent_id)
            if parent is None or parent.id in visited:
                break
            visited.add(parent.id)
            owner = parent
        if owner is numbers:
            return numbers
        return numbers._replace(
            source=owner.source, folder=owner.folder or numbers.folder, person=owner.person
        )

    def _find(self, session_id: str) -> SessionNumbers | None:
        if session_id in self._data.numbers:
            return self._data.numbers[session_id]
        if session_id not in self._purged and session_id in self._data.activities:
            activity = self._data.activities[session_id]
            self._purged[session_id] = purged_numbers(activity, self._data)
        return self._purged.get(session_id)


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
    cache_write_tokens: float = 0.0
    cost_usd: float = 0.0
    unpriced_tokens: float = 0.0  # of models without a known price
    active_days: int = 0
    active_seconds: float = 0.0

    def fields(self) -> dict[str, Any]:
        """The amounts by name, with the sum of sent and received tokens."""
        return {**asdict(self), "tokens": self.input_tokens + self.output_tokens}

    def add_share(self, numbers: SessionNumbers | ModelNumbers, share: float) -> None:
        """Add a fraction of the tokens and costs of a session."""
        self.input_tokens += numbers.input_tokens * share
        self.output_tokens += numbers.output_tokens * share
        self.cache_read_tokens += numbers.cache_read_tokens * share
        self.cache_write_tokens += numbers.cache_write_tokens * share
        self.cost_usd += numbers.cost_usd * share
        if not numbers.is_priced:
            self.unpriced_tokens += (numbers.input_tokens + numbers.output_tokens) * share


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
        self._active_days: set[str] = set()
        self._roots_of_day: dict[str, set[str]] = defaultdict(set)
        self._roots_of: dict[tuple[str, str], set[str]] = defaultdict(set)
        self._multiple_models = data.models
        self._add_all(data)

    def _add_all(self, data: AnalyticsData) -> None:
        calendar = data.calendar
        owners = SubagentOwners(data)
        for stored, activity in sessions_of(data):
            numbers = stored
            if stored.kind == DELEGATE:
                numbers = owners.attribute(stored)
            if self.span.only_model is not None:
                numbers = self._of_model(numbers, self.span.only_model)
            if not self.span.matches(numbers):
                continue
            shares = day_shares(numbers, activity, self.span, calendar)
            if shares:
                self._add(numbers, shares)
        for day, roots in self._roots_of_day.items():
            self.days[day].sessions = len(roots)
        parts = {"source": self.sources, "folder": self.folders, "model": self.models}
        for (part, name), roots in self._roots_of.items():
            parts[part][name].sessions = len(roots)
        self.totals.sessions = len(self._roots)
        self.totals.active_days = len(self._active_days)

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

    def _of_model(self, numbers: SessionNumbers, model: str) -> SessionNumbers:
        """The part of a session with several models that *model* was used for."""
        for used in self._multiple_models.get(numbers.id, ()):
            if used.model == model:
                return numbers._replace(**used._asdict())
        return numbers

    def _models_of(self, numbers: SessionNumbers) -> Sequence[SessionNumbers | ModelNumbers]:
        """The models of a session; usually one, which its row names."""
        if self.span.only_model is not None:
            return [numbers]
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
            if day.sent:
                self._active_days.add(day.day)
            day_sums.messages += day.messages
            self.totals.messages += day.messages
            self.totals.active_seconds += day.active_seconds
            self.sources[numbers.source].messages += day.messages
            row = self.hours[periods.weekday(day.day)]
            for hour, messages in day.hours:
                row[hour] += messages


def analytics(data: AnalyticsData, span: Span) -> Analytics:
    """The data of the analytics page, without the budget."""
    sums, before = Sums(data, span), Sums(data, span.previous())
    sizes = list(sizes_of(data, span))
    return Analytics(
        since=span.first,
        until=span.last,
        today=data.today,
        zone=data.zone,
        is_complete=data.is_complete,
        progress=progress_of(data),
        error=data.error,
        totals=TotalsView(**sums.totals.fields()),
        before=TotalsView(**before.totals.fields()),
        days=_days(sums),
        before_days=_days(before),
        hours=sums.hours,
        models=_models(sums),
        sources=_sources(sums),
        projects=_projects(sums),
        tools=_tools(sums),
        budget=None,
        lengths=lengths(sizes),
        durations=durations(sizes),
    )


def _days(sums: Sums) -> list[DayOfAnalytics]:
    return [
        DayOfAnalytics(day=day, **(sums.days.get(day) or Amounts()).fields())
        for day in sums.span.days()
    ]


def progress_of(data: AnalyticsData) -> ProgressView | None:
    """The progress of reading the history."""
    if data.progress is None:
        return None
    done, total = data.progress
    return ProgressView(done=done, total=total)


def _models(sums: Sums) -> list[ModelUse]:
    def by_tokens(item: tuple[str, Amounts]) -> tuple[int, str]:
        return -round(item[1].input_tokens) - round(item[1].output_tokens), item[0]

    return [
        ModelUse(
            model=name,
            days={
                day: ModelDay.model_validate({"tokens": tokens, "cost_usd": cost})
                for day, (tokens, cost) in sorted(sums.model_days[name].items())
                if tokens or cost
            },
            **amounts.fields(),
        )
        for name, amounts in sorted(sums.models.items(), key=by_tokens)
    ]


def _sources(sums: Sums) -> list[SourceUse]:
    order = sorted(sums.sources.items(), key=lambda item: (-item[1].sessions, item[0]))
    return [SourceUse(source=name, **amounts.fields()) for name, amounts in order]


def _projects(sums: Sums) -> list[ProjectUse]:
    def by_cost(item: tuple[str, Amounts]) -> tuple[float, int, str]:
        return -item[1].cost_usd, -item[1].sessions, item[0]

    return [
        ProjectUse(folder=name, **amounts.fields())
        for name, amounts in sorted(sums.folders.items(), key=by_cost)
    ]


def choices_of(data: AnalyticsData) -> dict[str, list[str]]:
    """The values that the statistics can be limited to, most used first."""
    counts: Counter[tuple[str, str]] = Counter()
    for numbers, _ in sessions_of(data):
        names = [model.model for model in data.models.get(numbers.id, ())]
        counts.update(("models", name) for name in names or [numbers.model or ""])
        if numbers.kind != DELEGATE:
            counts["sources", numbers.source] += 1
            counts["projects", numbers.folder] += 1
            counts["people", numbers.person] += 1
    ordered = sorted(counts, key=lambda item: (-counts[item], item))
    return {
        kind: [name for found, name in ordered if found == kind and name]
        for kind in ("sources", "models", "projects", "people")
    }


def _tools(sums: Sums) -> list[ToolUsage]:
    order = sorted(sums.tools.items(), key=lambda item: (-item[1][0], item[0]))
    return [
        ToolUsage(tool=name, calls=calls, failures=failures, sessions=sessions)
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


SETTING = "display.dollars_per_month"


def month_budget(data: AnalyticsData) -> BudgetView | None:
    """The budget of the current month; None without a budget, or before all costs are counted."""
    limit = budget_limit()
    if not limit or not data.is_complete:
        return None
    first = date.fromisoformat(data.today).replace(day=1)
    sums = Sums(data, Span(first.isoformat(), data.today))
    spent = round(sums.totals.cost_usd, 6)
    return BudgetView(
        month=data.today[:7], limit_usd=limit, spent_usd=spent, is_exceeded=spent > limit
    )


def budget_limit() -> float:
    """The budget in the settings; 0 without one."""
    if not is_set(SETTING):
        return 0.0
    return ConfigFile.of_home().settings().get_float(SETTING)
