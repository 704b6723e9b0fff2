"""Conversation lists, facets for filters, and single conversations."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import Query

from hermes_core.command_name import command_name
from hermes_core.errors import SessionNotFoundError
from hermes_dashboard.models.session_query import PagedQuery, cursor_of, position_of
from hermes_dashboard.models.sessions import (
    FacetsView,
    SessionDetail,
    SessionFamily,
    SessionPageView,
    item_of,
)
from hermes_dashboard.models.text import Identifier, problems
from hermes_dashboard.routes import ResourceRouter

if TYPE_CHECKING:
    from hermes_dashboard.context import DashboardContext
    from hermes_state import SessionDB


def router(context: DashboardContext) -> ResourceRouter:
    """The read-only routes below /api/sessions."""
    routes = ResourceRouter("/api/sessions", tag="sessions")
    db = context.db

    @routes.get("", response_model=SessionPageView, responses=problems(400, 503))
    def list_sessions(query: Annotated[PagedQuery, Query()]) -> dict[str, Any]:
        """A page of conversations, most recently active first.

        `next` is the cursor of the next page; only the first page has `total`.
        """
        active = context.analysis.sessions_with(query) if query.needs_activity else None
        page_filter = query.to_filter(active)
        after = None if query.cursor is None else position_of(query.cursor)
        page = db.pages.page(page_filter, query.limit, after)
        return {
            "items": [item_of(row) for row in page.rows],
            "next": None if page.next is None else cursor_of(page.next),
            "total": None if after else db.pages.count(page_filter),
        }

    @routes.get("/facets", response_model=FacetsView, responses=problems(503))
    def list_facets() -> dict[str, Any]:
        """All sources, models and tags, with the number of conversations of each."""
        facets = db.facets.facets()
        return {
            **{
                name: _facet_counts(getattr(facets, name)) for name in ("sources", "models", "tags")
            },
            "counts": {
                "active": facets.active,
                "archived": facets.archived,
                "trash": facets.trash,
            },
        }

    @routes.get(
        "/{session_id}", response_model=SessionDetail, responses=problems(400, 404, 409, 503)
    )
    def show_session(session_id: Identifier) -> dict[str, Any]:
        """One conversation, by ID, the beginning of its ID, or title."""
        return detail_of(db, db.lookup.resolve(session_id))

    @routes.get(
        "/{session_id}/tree", response_model=SessionFamily, responses=problems(400, 404, 409, 503)
    )
    def show_family(session_id: Identifier) -> dict[str, Any]:
        """All sessions with the same root: branches, delegated tasks."""
        resolved = db.lookup.resolve(session_id)
        rows = db.facets.family(resolved)
        nodes = [row | {"is_current": row["id"] == resolved} for row in rows]
        return {"nodes": [node | {"message_count": node["message_count"] or 0} for node in nodes]}

    return routes


def _facet_counts(counts: dict[str, int]) -> list[dict[str, Any]]:
    return [{"name": name, "count": number} for name, number in counts.items()]


def session_item(db: SessionDB, session_id: str) -> dict[str, Any]:
    """A conversation as a list item."""
    rows = db.pages.items([session_id])
    if not rows:
        raise SessionNotFoundError(f"session not found: {session_id}")
    return item_of(rows[0])


def detail_of(db: SessionDB, session_id: str) -> dict[str, Any]:
    """All data of a conversation except its messages."""
    fields = session_item(db, session_id)
    return {
        **fields,
        "system_prompt": (db.get_session(session_id) or {}).get("system_prompt"),
        "session_key": fields.get("session_key"),
        "git_branch": fields.get("git_branch"),
        "resume_command": f"{command_name()} {shlex.join(['chat', '--resume', session_id])}",
        "rows": db.lookup.conversation_rows(session_id),
    }
