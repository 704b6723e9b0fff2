"""The overview: today, the streak, recent and running conversations, health."""

from __future__ import annotations

from datetime import date, timedelta
from typing import TYPE_CHECKING, Final

from pydantic import BaseModel, Field

from hermes_achievements.evaluation.standings import list_active_days, streak_days
from hermes_core import __version__
from hermes_dashboard.analytics.charts import (
    BudgetView,
    Span,
    Sums,
    month_budget,
    progress_of,
    sent_by_day,
)
from hermes_dashboard.caches import LatestValue
from hermes_dashboard.models.text import Dollars, ProgressView, Rounded, Text, View, problems
from hermes_dashboard.resources.gateway import queue_of
from hermes_dashboard.resources.health import OK
from hermes_dashboard.resources.sessions import SessionItem, item_of
from hermes_dashboard.routes import ResourceRouter

if TYPE_CHECKING:
    from hermes_dashboard.analytics.analysis import AnalyticsData
    from hermes_dashboard.context import DashboardContext
    from hermes_state.store import SessionDB

RECENT_SESSIONS: Final = 8
WEEK_DAYS: Final = 14


class Today(BaseModel):
    """Activity of today."""

    sessions: int
    messages: int
    tool_calls: int
    tokens: Rounded
    cost_usd: Dollars


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


class PlatformState(View):
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


def router(context: DashboardContext) -> ResourceRouter:
    """The route of the overview."""
    routes = ResourceRouter("/api/overview", tag="overview")
    db = context.db
    sums = LatestValue[tuple[Sums, StreakView]]()
    size = LatestValue[HistorySize]()

    @routes.get("", responses=problems(503))
    def show_overview() -> Overview:
        """Data of the overview page."""
        data = context.analysis.data()
        running = db.pages.items(sorted(db.leases.running()))
        days, streak = sums.get((data.edition, data.today), lambda: _recent_sums(data))
        return Overview(
            is_complete=data.is_complete,
            progress=progress_of(data),
            error=data.error,
            day=data.today,
            zone=data.zone,
            today=Today(**days.days[data.today].fields()),
            streak=streak,
            budget=month_budget(data),
            recent=[item_of(row) for row in db.pages.page(limit=RECENT_SESSIONS).rows],
            running=[item_of(row) for row in running],
            week=[WeekDay(day=day, messages=days.days[day].messages) for day in days.span.days()],
            history=size.get(db.engine.version(), lambda: _size(db)),
            gateway=_gateway(context),
            health=_health(context),
            version=__version__,
            home=str(context.home),
            is_demo=context.is_demo,
        )

    return routes


def _size(db: SessionDB) -> HistorySize:
    stats = db.statistics.stats()
    return HistorySize(
        conversations=db.pages.count(),
        sessions=stats.sessions,
        stored_messages=stats.messages,
        first_started_at=stats.first_started_at,
        database_bytes=stats.database_bytes,
    )


def _recent_sums(data: AnalyticsData) -> tuple[Sums, StreakView]:
    """The last two weeks and the streak."""
    return _last_days(data), streak_of(sent_by_day(data), data.today)


def _last_days(data: AnalyticsData) -> Sums:
    last = date.fromisoformat(data.today)
    first = last - timedelta(days=WEEK_DAYS - 1)
    return Sums(data, Span(first.isoformat(), last.isoformat()))


def streak_of(days: dict[str, dict[str, int]], today: str) -> StreakView:
    """The current streak and the longest one."""
    active = list_active_days(days)
    steps = streak_days(active)
    last = steps[-1] if steps else None
    is_today_done = last is not None and last.day == today
    # The streak is alive if a message today would continue it.
    with_today = steps if is_today_done else streak_days([*active, today])
    is_alive = last is not None and (is_today_done or with_today[-1].length > 1)
    return StreakView(
        days=last.length if last and is_alive else 0,
        longest=max((step.length for step in steps), default=0),
        forgiven=last.forgiven if last and is_alive else 0,
        last_day=last.day if last else None,
        is_today_done=is_today_done,
    )


def _gateway(context: DashboardContext) -> GatewayGlance:
    state, waiting = context.gateway.state(), queue_of(context.db).waiting
    return GatewayGlance.model_validate({**state._asdict(), "waiting": waiting})


def _health(context: DashboardContext) -> HealthGlance:
    notes = [
        f"{check.name}: {check.detail}" for check in context.health.run() if check.status != OK
    ]
    return HealthGlance(status="attention" if notes else "ok", notes=notes)
