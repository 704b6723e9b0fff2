"""What was said: the messages of a conversation, page by page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Query

from hermes_dashboard.models.message_shapes import message_of
from hermes_dashboard.models.sessions import MessagePage
from hermes_dashboard.models.text import MessageId, Named, problems

if TYPE_CHECKING:
    from hermes_dashboard.context import Parts

Inactive = Annotated[bool, Query(description="Also what was taken back (undone).")]


def router(parts: Parts) -> APIRouter:
    """The messages of a conversation."""
    routes = APIRouter(prefix="/api/sessions", tags=["sessions"])
    db = parts.db

    @routes.get(
        "/{session_id}/messages",
        response_model=MessagePage,
        responses=problems(400, 404, 409, 503),
    )
    def list_messages(
        session_id: Named,
        limit: Annotated[int, Query(ge=1, le=500)] = 100,
        before: MessageId | None = None,
        after: MessageId | None = None,
        around: MessageId | None = None,
        inactive: Inactive = True,
    ) -> dict[str, Any]:
        """Messages in order: before or after one, around one, or the last ones.

        All rows of a conversation read as one. A page holds about 4 MB at most, so it may
        be shorter than `limit`; `has_before` and `has_after` tell whether there is more.
        """
        page = db.transcript_page(
            db.resolve(session_id),
            limit,
            before=before,
            after=after,
            around=around,
            with_undone=inactive,
        )
        return {
            "items": [message_of(row) for row in page.rows],
            "has_before": page.has_before,
            "has_after": page.has_after,
        }

    return routes
