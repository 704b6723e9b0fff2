"""Analytics of a history by day, hour, model, source and tool."""

from __future__ import annotations

import contextlib
from datetime import date, timedelta
from typing import TYPE_CHECKING, Annotated, Any, Final

from fastapi import Query

from hermes_core.errors import UsageError
from hermes_dashboard.analytics.charts import Span, Sums, analytics, first_day, progress_of
from hermes_dashboard.models.analytics import Analytics, CalendarView
from hermes_dashboard.models.text import problems
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

Name = Annotated[str, Query(max_length=300)]
Year = Annotated[int, Query(ge=1970, le=9000)]


class AnalyticsCache:
    """The last responses, valid until the data changes."""

    def __init__(self) -> None:
        self._cached: tuple[int, dict[Span, dict[str, Any]]] = (-1, {})

    def get(self, data: AnalyticsData, span: Span) -> dict[str, Any]:
        """The response for *span*."""
        cached = self._cached
        if cached[0] != data.edition or len(cached[1]) > MAX_CACHED:
            cached = self._cached = (data.edition, {})
        if span not in cached[1]:
            cached[1][span] = analytics(data, span)
        return {**cached[1][span], **progress_of(data)}


def router(context: DashboardContext) -> ResourceRouter:
    """The routes of analytics."""
    analysis = context.analysis
    cache = AnalyticsCache()

    @contextlib.asynccontextmanager
    async def lifespan(_app: object) -> AsyncIterator[None]:
        yield
        analysis.close()

    routes = ResourceRouter("/api/analytics", tag="analytics", lifespan=lifespan)

    @routes.get("", response_model=Analytics, responses=problems(400, 503))
    def show_analytics(
        since: date | None = None,
        until: date | None = None,
        source: Name | None = None,
        model: Name | None = None,
    ) -> dict[str, Any]:
        """Statistics of a period; by default the last 90 days.

        `before` has the sums of the preceding period of the same length. `model` is a part of
        the name. While the history is being read for the first time, `is_complete` is false.
        A `since` before the first active day becomes that day; the response has the day used.
        """
        data = analysis.data()
        first, last = days_of(data, since, until)
        span = Span(first.isoformat(), last.isoformat(), source or None, model or None)
        return cache.get(data, span)

    @routes.get("/calendar", response_model=CalendarView, responses=problems(503))
    def show_calendar(year: Year | None = None) -> dict[str, Any]:
        """Days with activity, of a year or of the last 53 weeks."""
        data = analysis.data()
        last = date.fromisoformat(data.today)
        monday = last - timedelta(days=last.weekday())
        first = monday - timedelta(weeks=WEEKS - 1)
        if year is not None:
            first, last = date(year, 1, 1), date(year, 12, 31)
        sums = Sums(data, Span(first.isoformat(), last.isoformat())).days
        days = [
            {
                "day": day,
                "messages": amounts.messages,
                "tool_calls": amounts.tool_calls,
                "sessions": amounts.sessions,
            }
            for day, amounts in sorted(sums.items())
        ]
        return {
            "first": first.isoformat(),
            "last": last.isoformat(),
            "days": days,
            "error": data.error,
        }

    return routes


def days_of(data: AnalyticsData, since: date | None, until: date | None) -> tuple[date, date]:
    """The first and last day of a request; days before the first activity are omitted."""
    last = until or date.fromisoformat(data.today)
    if last < MIN_DATE:
        raise UsageError(f"`until` ({last}) must not be before {MIN_DATE}.")
    if since is None:
        return max(last - timedelta(days=DEFAULT_DAYS - 1), MIN_DATE), last
    if since > last:
        raise UsageError(f"`since` ({since}) is after `until` ({last}).")
    first_active = first_day(data) or last - timedelta(days=DEFAULT_DAYS - 1)
    first = max(since, MIN_DATE, last - timedelta(days=min(MAX_DAYS, last.toordinal()) - 1))
    return (max(first, first_active) if first_active <= last else first), last
