"""Analytics of a history by day, hour, model, source and tool."""

from __future__ import annotations

import contextlib
from datetime import date, timedelta
from typing import TYPE_CHECKING, Annotated, Final

from fastapi import Query
from pydantic import BaseModel, Field, StringConstraints

from hermes_core.errors import UsageError
from hermes_dashboard.analytics.charts import (
    Analytics,
    Span,
    Sums,
    analytics,
    choices_of,
    first_day,
    month_budget,
    progress_of,
)
from hermes_dashboard.models.text import Text, encodable_text, problems
from hermes_dashboard.routes import ResourceRouter

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from hermes_dashboard.analytics.analysis import AnalyticsData
    from hermes_dashboard.context import DashboardContext

DEFAULT_DAYS: Final = 90
MAX_DAYS: Final = 3700
WEEKS: Final = 53
MAX_CACHED: Final = 32
MIN_DATE: Final = date(1970, 1, 2)

Name = Annotated[str, StringConstraints(max_length=1000)]
Year = Annotated[int, Query(ge=1970, le=9000)]
Days = Annotated[int, Query(ge=1, le=MAX_DAYS)]


class AnalyticsChoices(BaseModel):
    """What statistics can be limited to, most used first."""

    sources: list[Text]
    models: list[Text]
    projects: list[Text]
    people: list[Text]


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


class AnalyticsFilter(BaseModel):
    """Limits statistics to some conversations, with the work of their sub-agents."""

    source: Name | None = None
    model: Name | None = Field(None, description="A part of the model's name.")
    only_model: Name | None = Field(None, description="The full name of a model.")
    project: Name | None = Field(None, description="A folder, with its subfolders.")
    person: Name | None = Field(None, description="A user of a chat app.")

    def span(self, first: date, last: date) -> Span:
        """The days from *first* to *last* with this filter."""
        return Span(
            first.isoformat(), last.isoformat(), self.source or None, self.model or None,
            self.project or None, self.person or None, self.only_model or None,
        )  # fmt: skip


class AnalyticsCache:
    """The last responses, valid until the data changes."""

    def __init__(self) -> None:
        self._cached: tuple[int, dict[Span, Analytics]] = (-1, {})

    def get(self, data: AnalyticsData, span: Span) -> Analytics:
        """The response for *span*."""
        cached = self._cached
        if cached[0] != data.edition or len(cached[1]) > MAX_CACHED:
            cached = self._cached = (data.edition, {})
        if span not in cached[1]:
            cached[1][span] = analytics(data, span)
        changing = {
            "is_complete": data.is_complete,
            "progress": progress_of(data),
            "error": encodable_text(data.error),  # a copy is not validated
            "budget": month_budget(data),
        }
        return cached[1][span].model_copy(update=changing)


def router(context: DashboardContext) -> ResourceRouter:
    """The routes of analytics."""
    analysis = context.analysis
    cache = AnalyticsCache()

    @contextlib.asynccontextmanager
    async def lifespan(_app: object) -> AsyncIterator[None]:
        yield
        analysis.close()

    routes = ResourceRouter("/api/analytics", tag="analytics", lifespan=lifespan)

    @routes.get("", responses=problems(400, 503))
    def show_analytics(
        filters: Annotated[AnalyticsFilter, Query()],
        since: date | None = None,
        until: date | None = None,
        days: Days | None = None,
    ) -> Analytics:
        """Statistics of a period; by default the last 90 days.

        `days` is the number of days up to `until`, in place of `since`. Days are those of the
        server. `before` has the sums of the preceding period of the same length.
        While the history is being read for the first time, `is_complete` is false.
        A `since` before the first active day becomes that day; the response has the day used.
        """
        data = analysis.data()
        first, last = days_of(data, since, until, days)
        return cache.get(data, filters.span(first, last))

    @routes.get("/choices", response_model=AnalyticsChoices, responses=problems(503))
    def show_choices() -> dict[str, list[str]]:
        """The sources, models, projects and people that the statistics can be limited to."""
        return choices_of(analysis.data())

    @routes.get("/calendar", responses=problems(503))
    def show_calendar(
        filters: Annotated[AnalyticsFilter, Query()], year: Year | None = None
    ) -> CalendarView:
        """Days with activity, of a year or of the last 53 weeks."""
        data = analysis.data()
        last = date.fromisoformat(data.today)
        monday = last - timedelta(days=last.weekday())
        first = monday - timedelta(weeks=WEEKS - 1)
        if year is not None:
            first, last = date(year, 1, 1), date(year, 12, 31)
        sums = Sums(data, filters.span(first, last)).days
        shown_days = [
            CalendarDay(day=day, **amounts.fields()) for day, amounts in sorted(sums.items())
        ]
        return CalendarView(
            first=first.isoformat(), last=last.isoformat(), days=shown_days, error=data.error
        )

    return routes


def days_of(
    data: AnalyticsData, since: date | None, until: date | None, days: int | None = None
) -> tuple[date, date]:
    """The first and last day of a request; days before the first activity are omitted."""
    last = until or date.fromisoformat(data.today)
    if last < MIN_DATE:
        raise UsageError(f"`until` ({last}) must not be before {MIN_DATE}.")
    if days is not None and since is not None:
        raise UsageError("`days` and `since` cannot be combined.")
    if days is not None:
        since = max(last - timedelta(days=min(days, MAX_DAYS) - 1), MIN_DATE)
    if since is None:
        return max(last - timedelta(days=DEFAULT_DAYS - 1), MIN_DATE), last
    if since > last:
        raise UsageError(f"`since` ({since}) is after `until` ({last}).")
    first_active = first_day(data) or last - timedelta(days=DEFAULT_DAYS - 1)
    first = max(since, MIN_DATE, last - timedelta(days=min(MAX_DAYS, last.toordinal()) - 1))
    return (max(first, first_active) if first_active <= last else first), last
