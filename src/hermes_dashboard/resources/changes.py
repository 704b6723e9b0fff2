"""Changes of conversations: titles, pins, tags, the archive and the trash."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from fastapi import HTTPException
from pydantic import BaseModel, Field, StringConstraints

from hermes_core.errors import HermesError, SessionNotFoundError, UsageError
from hermes_dashboard.models.text import Identifier, Text, problems
from hermes_dashboard.resources.sessions import SessionItem, session_item
from hermes_dashboard.routes import ResourceRouter

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes_dashboard.context import DashboardContext
    from hermes_state.store import SessionDB

Tag = Annotated[str, StringConstraints(max_length=80)]


CHANGE_PROBLEMS = problems(400, 404, 409, 503)


class SessionChange(BaseModel):
    """Fields to change; omitted fields are unchanged."""

    title: Annotated[str, StringConstraints(max_length=1000)] | None = None
    pinned: bool | None = None
    archived: bool | None = None
    tags: Annotated[list[Tag], Field(max_length=50)] | None = None
    is_read: Literal[True] | None = None

    def has_field(self, name: str) -> bool:
        """Whether the request has this field."""
        return name in self.model_fields_set


class BulkChange(BaseModel):
    """One change of many conversations."""

    ids: Annotated[list[Identifier], Field(max_length=1000)]
    action: Literal["pin", "unpin", "archive", "unarchive", "trash", "restore", "tag", "untag"]
    tag: Tag | None = None


class NotDone(BaseModel):
    """A conversation that was not changed, with the reason."""

    id: Text
    detail: Text


class BulkReport(BaseModel):
    """Result of a bulk change."""

    done: list[Text] = Field(description="Conversations in the requested state.")
    changed: list[Text] = Field(description="Those of them that were changed.")
    failed: list[NotDone]


class Trashed(BaseModel):
    """Sessions moved to the trash."""

    trashed: list[Text]


class Purged(BaseModel):
    """Number of permanently deleted sessions."""

    purged: int


def router(context: DashboardContext) -> ResourceRouter:
    """The routes that change conversations."""
    routes = ResourceRouter("/api", tag="sessions")
    db = context.db

    @routes.post("/sessions/bulk", responses=problems(400, 503))
    def change_many(change: BulkChange) -> BulkReport:
        """Apply a change to many conversations; a failure does not affect the others."""
        return apply_bulk_change(db, change)

    @routes.patch("/sessions/{session_id}", responses=CHANGE_PROBLEMS)
    def change_session(session_id: Identifier, change: SessionChange) -> SessionItem:
        """Rename, pin, archive or tag a conversation, or mark it as read."""
        resolved = resolve_untrashed(db, session_id)
        apply_change(db, resolved, change)
        return session_item(db, resolved)

    @routes.delete("/sessions/{session_id}", responses=CHANGE_PROBLEMS)
    def trash_session(session_id: Identifier) -> Trashed:
        """Move a conversation to the trash, with the tasks delegated from it."""
        resolved = resolve_untrashed(db, session_id)
        db.trash.delete_session(resolved)
        return Trashed(trashed=db.pages.family_in_trash(resolved))

    @routes.post("/sessions/{session_id}/restore", responses=CHANGE_PROBLEMS)
    def restore_session(session_id: Identifier) -> SessionItem:
        """Restore a conversation from the trash."""
        db.trash.restore(session_id)
        return session_item(db, session_id)

    @routes.remove("/trash/{session_id}", 400, 404, 409, 503)
    def purge_session(session_id: Identifier) -> None:
        """Delete a conversation permanently; it must be in the trash."""
        if not db.pages.family_in_trash(session_id):
            raise SessionNotFoundError(f"session {session_id} is not in the trash")
        db.trash.purge(session_id)

    @routes.delete("/trash", responses=problems(503))
    def empty_trash() -> Purged:
        """Empty the trash permanently."""
        return Purged(purged=db.trash.purge_expired(older_than_days=0))

    return routes


def resolve_untrashed(db: SessionDB, name: str) -> str:
    """The session ID of *name*; a 409 error if it is in the trash."""
    session_id = db.lookup.resolve(name)
    if db.pages.family_in_trash(session_id):
        raise HTTPException(409, "This conversation is in the trash. Restore it first.")
    return session_id


def apply_change(db: SessionDB, session_id: str, change: SessionChange) -> None:
    """Apply all fields of *change*; those that can be rejected come first."""
    if change.has_field("title"):
        db.titles.set_session_title(session_id, change.title)
    if change.tags is not None:
        db.tags.replace(session_id, change.tags)
    if change.pinned is not None:
        db.sessions.set_session_pinned(session_id, change.pinned)
    if change.archived is not None:
        db.sessions.set_session_archived(session_id, change.archived)
    if change.is_read:
        db.sessions.mark_session_read(session_id)


def apply_bulk_change(db: SessionDB, change: BulkChange) -> BulkReport:
    """Apply a change to many conversations in sequence."""
    action = _action(db, change)
    done: list[str] = []
    changed: list[str] = []
    failed: list[NotDone] = []
    for session_id in dict.fromkeys(change.ids):
        is_unchanged = _is_in_state(db, session_id, change)
        try:
            if change.action not in ("restore", "trash") and db.pages.family_in_trash(session_id):
                raise UsageError("It is in the trash. Restore it first.")
            if not is_unchanged and action(session_id) is False:
                raise SessionNotFoundError(f"session not found: {session_id}")
        except HermesError as error:
            failed.append(NotDone(id=session_id, detail=str(error)))
        else:
            done.append(session_id)
            changed += [] if is_unchanged else [session_id]
    return BulkReport(done=done, changed=changed, failed=failed)


def _is_in_state(db: SessionDB, session_id: str, change: BulkChange) -> bool:
    """Whether a conversation is already in the requested state."""
    rows = db.pages.items([session_id])
    if not rows:
        return False
    row, tag = rows[0], (change.tag or "").strip().casefold()
    has_tag = tag in {existing.casefold() for existing in row.tags}
    states: dict[str, bool] = {
        "pin": bool(row.session.pinned),
        "unpin": not row.session.pinned,
        "archive": bool(row.session.archived),
        "unarchive": not row.session.archived,
        "trash": row.trashed_at is not None,
        "tag": has_tag,
        "untag": not has_tag,
    }
    return states.get(change.action, False)


def _action(db: SessionDB, change: BulkChange) -> Callable[[str], object]:
    tag = change.tag or ""
    if change.action in ("tag", "untag") and not tag.strip():
        raise UsageError("`tag` is missing.")
    actions: dict[str, Callable[[str], object]] = {
        "pin": db.sessions.set_session_pinned,
        "unpin": lambda session_id: db.sessions.set_session_pinned(session_id, False),
        "archive": db.sessions.set_session_archived,
        "unarchive": lambda session_id: db.sessions.set_session_archived(session_id, False),
        "trash": db.trash.delete_session,
        "restore": db.trash.restore,
        "tag": lambda session_id: db.tags.change(session_id, tag),
        "untag": lambda session_id: db.tags.change(session_id, tag, False),
    }
    return actions[change.action]
