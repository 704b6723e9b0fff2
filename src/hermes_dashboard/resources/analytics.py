"""Analytics: what a history amounts to, by day, hour, model, source and tool."""

from __future__ import annotations

import contextlib
from datetime import date, timedelta
from typing import TYPE_CHECKING, Annotated, Any, Final

from fastapi import APIRouter, Query

from hermes_core.errors import UsageError
from hermes_dashboard.analytics.charts import Span, Sums, analytics, first_day, progress_of
from hermes_dashboard.models.analytics import Analytics, CalendarView
from hermes_dashboard.models.text import problems

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from hermes_dashboard.analytics.analysis import AnalyticsData
    from hermes_dashboard.context import DashboardContext

USUAL_DAYS: Final = 90
MAX_DAYS: Final = 3700
WEEKS: Final = 53
MAX_HELD: Final = 32
EARLIEST: Final = date(1970, 1, 2)

Name = Annotated[str, Query(max_length=300)]
Year = Annotated[int, Query(ge=1970, le=9000)]


class Drawn:
    """The last answers, good as long as nothing is different."""

    def __init__(self) -> None:
        self._held: tuple[int, dict[Span, dict[str, Any]]] = (-1, {})

    def of(self, known: AnalyticsData, span: Span) -> dict[str, Any]:
        """The answer for *span*."""
        held = self._held
        if held[0] != known.edition or len(held[1]) > MAX_HELD:
            held = self._held = (known.edition, {})
        if span not in held[1]:
            held[1][span] = analytics(known, span)
        return {**held[1][span], **progress_of(known)}


def router(parts: DashboardContext) -> APIRouter:
    """The addresses of analytics."""
    engine = parts.analysis
    drawn = Drawn()

    @contextlib.asynccontextmanager
    async def lifespan(_app: object) -> AsyncIterator[None]:
        yield
        engine.close()

    routes = APIRouter(prefix="/api/analytics", tags=["analytics"], lifespan=lifespan)

    @routes.get("", response_model=Analytics, responses=problems(400, 503))
    def show_analytics(
        since: date | None = None,
        until: date | None = None,
        source: Name | None = None,
        model: Name | None = None,
    ) -> dict[str, Any]:
        """Statistics of a period; by default the last 90 days.

        `before` are the sums of as many days before. `model` is a part of the name. While
        the history is being read for the first time, `is_complete` is false. A `since` before
        the first day with anything on it becomes that day; the answer says which.
        """
        known = engine.known()
        first, last = days_of(known, since, until)
        span = Span(first.isoformat(), last.isoformat(), source or None, model or None)
        return drawn.of(known, span)

    @routes.get("/calendar", response_model=CalendarView, responses=problems(503))
    def show_calendar(year: Year | None = None) -> dict[str, Any]:
        """Days with activity, of a year or of the last 53 weeks."""
        known = engine.known()
        last = date.fromisoformat(known.today)
        monday = last - timedelta(days=last.weekday())
        first = monday - timedelta(weeks=WEEKS - 1)
        if year is not None:
            first, last = date(year, 1, 1), date(year, 12, 31)
        found = Sums(known, Span(first.isoformat(), last.isoformat())).days
        names = ("messages", "tool_calls", "sessions")
        days = [
            {"day": day, **{name: round(found[day][name]) for name in names}}
            for day in sorted(found)
        ]
        return {
            "first": first.isoformat(),
            "last": last.isoformat(),
            "days": days,
            "error": known.error,
        }

    return routes


def days_of(known: AnalyticsData, since: date | None, until: date | None) -> tuple[date, date]:
    """The first and the last day that are meant; empty days before everything are left out."""
    last = until or date.fromisoformat(known.today)
    if last < EARLIEST:
        raise UsageError(f"`until` is {last}; no history is older than {EARLIEST}")
    if since is None:
        return max(last - timedelta(days=USUAL_DAYS - 1), EARLIEST), last
    if since > last:
        raise UsageError(f"`since` ({since}) comes after `until` ({last})")
    began = first_day(known) or last - timedelta(days=USUAL_DAYS - 1)
    first = max(since, EARLIEST, last - timedelta(days=min(MAX_DAYS, last.toordinal()) - 1))
    return (max(first, began) if began <= last else first), last
