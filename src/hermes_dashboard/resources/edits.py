"""Files that conversations changed, of all agents in the history."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

from fastapi import Query
from pydantic import BaseModel, Field

from hermes_conversation.line_origins import written_by
from hermes_dashboard.models.text import MessageId, ProgressView, Text, View, problems
from hermes_dashboard.routes import ResourceRouter

if TYPE_CHECKING:
    from hermes_dashboard.context import DashboardContext
    from hermes_state.calls.repository import StoredEdit

MAX_EDITS: Final = 200
FILL_SECONDS: Final = 0.1


class EditView(View):
    """An edit of a file by an agent."""

    path: Text
    session_id: Text
    title: Text
    agent: Text
    at: float
    message_id: MessageId
    prompt_message_id: MessageId | None
    prompt: Text
    added_lines: int
    removed_lines: int


class EditList(BaseModel):
    """Edits, latest first."""

    items: list[EditView]
    filling: ProgressView | None = Field(description="Conversations whose calls were read.")


def router(context: DashboardContext) -> ResourceRouter:
    """The routes of edits."""
    routes = ResourceRouter("/api/edits", tag="sessions")
    calls = context.db.calls

    @routes.get("", responses=problems(503))
    def list_edits(
        session_id: Annotated[str, Query(max_length=300)] = "",
        path: Annotated[str, Query(max_length=4_000)] = "",
        limit: Annotated[int, Query(ge=1, le=MAX_EDITS)] = 50,
    ) -> EditList:
        """The latest edits: of all agents, of one conversation, or of one file."""
        if not calls.fill(FILL_SECONDS):
            context.db.search.updater.start()
        if session_id:
            found = calls.edits_in([session_id])[::-1]
        elif path:
            found = [edit for edit in calls.edits_of([path])[::-1] if edit.path == path]
        else:
            found = calls.recent_edits(limit)
        progress = calls.progress()
        return EditList(
            items=[_view(edit) for edit in found[:limit]],
            filling=None if progress is None else ProgressView(done=progress[0], total=progress[1]),
        )

    def _view(edit: StoredEdit) -> EditView:
        turn = written_by(context.db, edit)
        return EditView(
            path=edit.path,
            session_id=turn.session_id,
            title=turn.title,
            agent=turn.source,
            at=turn.at,
            message_id=turn.message_id,
            prompt_message_id=turn.prompt_id,
            prompt=turn.prompt,
            added_lines=sum(line.is_new for line in edit.lines),
            removed_lines=len(edit.removed),
        )

    return routes
