"""Response models of analytics and the overview."""

from __future__ import annotations

from pydantic import BaseModel, Field

from hermes_dashboard.models.sessions import ProgressView, SessionItem
from hermes_dashboard.models.text import Text


class TotalsView(BaseModel):
    """Sums over a period."""

    sessions: int
    messages: int
    tool_calls: int
    tool_failures: int
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cost_usd: float
    active_days: int
    active_seconds: int


class DayOfAnalytics(BaseModel):
    """One day."""

    day: str
    sessions: int
    messages: int
    tool_calls: int
    tool_failures: int
    input_tokens: int
    output_tokens: int
    cost_usd: float


class ModelDay(BaseModel):
    """A model on one day."""

    tokens: int
    cost_usd: float


class ModelUse(BaseModel):
    """Usage of a model."""

    model: Text
    sessions: int
    input_tokens: int
    output_tokens: int
    cost_usd: float
    days: dict[str, ModelDay]


class SourceUse(BaseModel):
    """Numbers of one source."""

    source: Text
    sessions: int
    messages: int
    tokens: int
    cost_usd: float


class ProjectUse(BaseModel):
    """Numbers of one project: a repository, otherwise a working folder."""

    folder: Text
    sessions: int
    tokens: int
    cost_usd: float


class AnalyticsChoices(BaseModel):
    """What statistics can be limited to, most used first."""

    sources: list[Text]
    models: list[Text]
    projects: list[Text]
    people: list[Text]


class ToolUsage(BaseModel):
    """How often a tool was used, and how often it failed."""

    tool: Text
    calls: int
    failures: int
    sessions: int


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


class CalendarDay(BaseModel):
    """A day of a calendar; days without activity are omitted."""

    day: str
    messages: int
    tool_calls: int
    sessions: int


class CalendarView(BaseModel):
    """A year, or the last 53 weeks."""

    first: str
    last: str
    days: list[CalendarDay]
    error: Text | None = Field(description="Error while reading the statistics, if any.")


class Today(BaseModel):
    """Activity of today."""

    sessions: int
    messages: int
    tool_calls: int
    tokens: int
    cost_usd: float


class StreakView(BaseModel):
    """Consecutive active days; one missed day in any seven is allowed."""

    days: int
    longest: int
    forgiven: int = Field(description="Missed days within the current streak.")
    last_day: str | None
    is_today_done: bool


class WeekDay(BaseModel):
    """A day of the last two weeks."""

    day: str
    messages: int


class HistorySize(BaseModel):
    """What is stored: conversations as the list shows them, and rows of any kind."""

    conversations: int
    sessions: int
    stored_messages: int
    first_started_at: float | None
    database_bytes: int


class PlatformState(BaseModel):
    """A platform and its state."""

    name: Text
    state: Text


class GatewayGlance(BaseModel):
    """The gateway in short."""

    is_running: bool
    platforms: list[PlatformState]
    waiting: int


class HealthGlance(BaseModel):
    """Warnings, as sentences."""

    status: str
    notes: list[Text]


class Overview(BaseModel):
    """Everything at a glance.

    `today`, `streak` and `week` are known once `is_complete` is true; before, the history is
    being read for the first time, and `progress` is the state of that.
    """

    is_complete: bool
    progress: ProgressView | None
    error: Text | None = Field(description="Error while reading the statistics, if any.")
    today: Today
    streak: StreakView
    budget: BudgetView | None = Field(description="Setting display.dollars_per_month.")
    recent: list[SessionItem]
    running: list[SessionItem]
    week: list[WeekDay]
    history: HistorySize
    gateway: GatewayGlance
    health: HealthGlance
    version: str
    home: Text
    is_demo: bool
    day: str = Field(description="The date of today where the server counts days.")
    zone: str
