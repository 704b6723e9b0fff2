"""Everything at a glance: today, the streak, what goes on, and whether all is well."""

from __future__ import annotations

from datetime import date, timedelta
from typing import TYPE_CHECKING, Any, Final

from fastapi import APIRouter

from hermes_achievements.evaluation.values import streaks
from hermes_core import __version__
from hermes_dashboard.analytics.charts import Span, Sums, sent_by_day
from hermes_dashboard.models.analytics import Overview
from hermes_dashboard.models.sessions import item_of
from hermes_dashboard.models.text import problems
from hermes_dashboard.resources.gateway import queue_of
from hermes_dashboard.resources.health import OK, examine

if TYPE_CHECKING:
    from hermes_dashboard.analytics.analysis import AnalyticsData
    from hermes_dashboard.context import DashboardContext

RECENT: Final = 8
WEEK_DAYS: Final = 14
FORGIVEN: Final = 2  # days since the last active one that do not end a streak yet


def router(parts: DashboardContext) -> APIRouter:
    """The address of the overview."""
    routes = APIRouter(prefix="/api/overview", tags=["overview"])
    db = parts.db

    @routes.get("", response_model=Overview, responses=problems(503))
    def show_overview() -> dict[str, Any]:
        """Data of the overview page."""
        known = parts.analysis.known()
        running = db.session_items(sorted(db.running_turns()))
        stats = db.stats()
        days = _last_days(known)
        return {
            "today": _today(days, known.today),
            "streak": streak_of(sent_by_day(known), known.today),
            "recent": [item_of(row) for row in db.session_page(limit=RECENT).rows],
            "running": [item_of(row) for row in running],
            "week": [
                {"day": day, "messages": round(days.days[day]["messages"])}
                for day in days.span.days()
            ],
            "history": {
                "sessions": stats["sessions"],
                "messages": stats["messages"],
                "first_started_at": stats["first_started_at"],
                "database_bytes": stats["database_bytes"],
            },
            "gateway": _gateway(parts),
            "health": _health(parts),
            "version": __version__,
            "home": str(parts.home),
            "is_demo": parts.is_demo,
        }

    return routes


def _last_days(known: AnalyticsData) -> Sums:
    last = date.fromisoformat(known.today)
    first = last - timedelta(days=WEEK_DAYS - 1)
    return Sums(known, Span(first.isoformat(), last.isoformat()))


def _today(sums: Sums, today: str) -> dict[str, Any]:
    found = sums.days[today]
    return {
        "sessions": round(found["sessions"]),
        "messages": round(found["messages"]),
        "tool_calls": round(found["tool_calls"]),
        "tokens": round(found["input_tokens"] + found["output_tokens"]),
        "cost_usd": round(found["cost_usd"], 6),
    }


def streak_of(days: dict[str, dict[str, int]], today: str) -> dict[str, Any]:
    """The streak that is going on, if one is, and the longest there was."""
    found = streaks(days)
    last_day, length = found[-1] if found else (None, 0)
    since = 0 if last_day is None else _days_between(last_day, today)
    is_over = last_day is None or since > FORGIVEN
    return {
        "days": 0 if is_over else length,
        "longest": max((one for _, one in found), default=0),
        "last_day": last_day,
        "is_today_done": last_day == today,
    }


def _days_between(first: str, last: str) -> int:
    return (date.fromisoformat(last) - date.fromisoformat(first)).days


def _gateway(parts: DashboardContext) -> dict[str, Any]:
    state = parts.gateway.state()
    platforms = state.get("platforms") or []
    return {
        "is_running": bool(state.get("is_running")),
        "platforms": [{"name": one["name"], "state": one["state"]} for one in platforms],
        "waiting": queue_of(parts.db)["waiting"],
    }


def _health(parts: DashboardContext) -> dict[str, Any]:
    notes = [f"{one['name']}: {one['detail']}" for one in examine(parts) if one["status"] != OK]
    return {"status": "attention" if notes else "ok", "notes": notes}
