"""Hooks, their plugins, and the log of session boundaries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from fastapi import BackgroundTasks, HTTPException, Query
from pydantic import BaseModel, Field

import hermes_plugin_host
from hermes_conversation import boundary_delivery
from hermes_core.hooks import HOOKS
from hermes_dashboard.models.text import MAX_ROW_ID, Identifier, Text, problems
from hermes_dashboard.routes import ResourceRouter

if TYPE_CHECKING:
    from hermes_core.hooks import HookSpec
    from hermes_dashboard.context import DashboardContext
    from hermes_state.store import SessionDB


class Hook(BaseModel):
    """A hook and its plugins."""

    name: str
    help: str
    listeners: list[Text]
    last_error: Text | None


class Hooks(BaseModel):
    """Every hook, and how many boundary events are yet to be delivered."""

    hooks: list[Hook]
    pending: int


class Boundary(BaseModel):
    """A session boundary and its delivery to plugins."""

    event_id: Text
    sequence: int
    session_id: Text
    session_title: Text | None
    kind: Text
    reason: Text
    old_session_id: Text | None
    new_session_id: Text | None
    platform: Text
    at: float = Field(validation_alias="occurred_at")
    state: Text
    attempts: int
    error: Text | None


class Boundaries(BaseModel):
    """A page of the boundary log, newest first."""

    items: list[Boundary]
    has_more: bool


class Replayed(BaseModel):
    """The event that is being delivered again."""

    event_id: Text


def router(context: DashboardContext) -> ResourceRouter:
    """The routes of hooks and boundaries."""
    routes = ResourceRouter("/api", tag="hooks")
    db = context.db

    @routes.get("/hooks", responses=problems(503))
    def list_hooks() -> Hooks:
        """All hooks and the plugins registered for them."""
        return Hooks(hooks=[_hook(hook) for hook in HOOKS], pending=db.boundaries.pending())

    @routes.get("/boundaries", responses=problems(400, 404, 409, 503))
    def list_boundaries(
        limit: Annotated[int, Query(ge=1, le=500)] = 50,
        session_id: Identifier | None = None,
        before: Annotated[int, Query(ge=0, le=MAX_ROW_ID)] | None = None,
    ) -> Boundaries:
        """Session boundaries, newest first, and their delivery to plugins."""
        resolved = None if session_id is None else _resolve(db, session_id)
        rows = db.boundaries.recent(resolved, limit + 1, before=before)
        items = [
            Boundary(**row._asdict(), session_title=db.titles.get_session_title(row.session_id))
            for row in rows[:limit]
        ]
        return Boundaries(items=items, has_more=len(rows) > limit)

    @routes.post("/boundaries/{event_id}/replay", status_code=202, responses=problems(404, 503))
    def replay(event_id: Identifier, background: BackgroundTasks) -> Replayed:
        """Deliver a boundary to plugins again, with the same event ID."""
        if not db.boundaries.replay(event_id):
            raise HTTPException(404, f"Event not found: {event_id}")
        background.add_task(boundary_delivery.make_delivery(db).deliver_due)
        return Replayed(event_id=event_id)

    return routes


def _resolve(db: SessionDB, name: str) -> str:
    """The session ID of *name*; a deleted session counts while its boundaries exist."""
    return name if db.boundaries.recent(name, 1) else db.lookup.resolve(name)


def _hook(hook: HookSpec) -> Hook:
    callbacks = hermes_plugin_host.active().callbacks(hook.name)
    errors = (callback.last_error for callback in callbacks if callback.last_error)
    return Hook(
        name=hook.name,
        help=hook.moment,
        listeners=[callback.plugin for callback in callbacks],
        last_error=next(errors, None),
    )
