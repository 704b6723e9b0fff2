"""Conversations: lists of them, what they can be chosen by, and one of them."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Query

from hermes_core.errors import SessionNotFoundError
from hermes_dashboard.models.session_query import PagedQuery, cursor_of, place_of
from hermes_dashboard.models.sessions import (
    FacetsView,
    SessionDetail,
    SessionFamily,
    SessionPageView,
    item_of,
)
from hermes_dashboard.models.text import Named, problems

if TYPE_CHECKING:
    from hermes_dashboard.context import DashboardContext
    from hermes_state import SessionDB


def router(parts: DashboardContext) -> APIRouter:
    """The addresses below /api/sessions that only read."""
    routes = APIRouter(prefix="/api/sessions", tags=["sessions"])
    db = parts.db

    @routes.get("", response_model=SessionPageView, responses=problems(400, 503))
    def list_sessions(asked: Annotated[PagedQuery, Query()]) -> dict[str, Any]:
        """A page of conversations, most recently active first.

        `next` is the cursor of the next page; only the first page has `total`.
        """
        active = parts.analysis.sessions_with(asked) if asked.asks_for_activity else None
        choice = asked.choice(active)
        after = None if asked.cursor is None else place_of(asked.cursor)
        page = db.session_page(choice, asked.limit, after)
        return {
            "items": [item_of(row) for row in page.rows],
            "next": None if page.next is None else cursor_of(page.next),
            "total": None if after else db.count_sessions(choice),
        }

    @routes.get("/facets", response_model=FacetsView, responses=problems(503))
    def list_facets() -> dict[str, Any]:
        """All sources, models and tags, with the number of conversations of each."""
        found = db.session_facets()
        return {
            **{name: _counted(getattr(found, name)) for name in ("sources", "models", "tags")},
            "counts": {
                "active": found.active,
                "archived": found.archived,
                "trash": found.trash,
            },
        }

    @routes.get(
        "/{session_id}", response_model=SessionDetail, responses=problems(400, 404, 409, 503)
    )
    def show_session(session_id: Named) -> dict[str, Any]:
        """One conversation, by ID, the beginning of its ID, or title."""
        return detail_of(db, db.resolve(session_id))

    @routes.get(
        "/{session_id}/tree", response_model=SessionFamily, responses=problems(400, 404, 409, 503)
    )
    def show_family(session_id: Named) -> dict[str, Any]:
        """All sessions with the same root: branches, delegated tasks."""
        found = db.resolve(session_id)
        rows = db.session_family(found)
        nodes = [row | {"is_current": row["id"] == found} for row in rows]
        return {"nodes": [node | {"message_count": node["message_count"] or 0} for node in nodes]}

    return routes


def _counted(counts: dict[str, int]) -> list[dict[str, Any]]:
    return [{"name": name, "count": number} for name, number in counts.items()]


def item(db: SessionDB, session_id: str) -> dict[str, Any]:
    """A conversation as lists show it."""
    rows = db.session_items([session_id])
    if not rows:
        raise SessionNotFoundError(f"session not found: {session_id}")
    return item_of(rows[0])


def detail_of(db: SessionDB, session_id: str) -> dict[str, Any]:
    """A conversation with everything that is known about it."""
    shown = item(db, session_id)
    return {
        **shown,
        "system_prompt": (db.get_session(session_id) or {}).get("system_prompt"),
        "session_key": shown.get("session_key"),
        "git_branch": shown.get("git_branch"),
        "resume_command": shlex.join(["hermes", "chat", "--resume", session_id]),
        "rows": db.conversation_rows(session_id),
    }
