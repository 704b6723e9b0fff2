"""Changing conversations: names, pins, tags, the archive and the trash."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, HTTPException, Response

from hermes_core.errors import HermesError, SessionNotFoundError, UsageError
from hermes_dashboard.models.sessions import (
    BulkChange,
    BulkReport,
    Purged,
    SessionChange,
    SessionItem,
    Trashed,
)
from hermes_dashboard.models.text import Named, problems
from hermes_dashboard.resources.sessions import item

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes_dashboard.context import DashboardContext
    from hermes_state import SessionDB

CHANGING = problems(400, 404, 409, 503)


def router(parts: DashboardContext) -> APIRouter:
    """The addresses that change conversations."""
    routes = APIRouter(prefix="/api", tags=["sessions"])
    db = parts.db

    @routes.post("/sessions/bulk", response_model=BulkReport, responses=problems(400, 503))
    def change_many(asked: BulkChange) -> dict[str, Any]:
        """Apply a change to many conversations; a failure does not affect the others."""
        return changed_all(db, asked)

    @routes.patch("/sessions/{session_id}", response_model=SessionItem, responses=CHANGING)
    def change_session(session_id: Named, asked: SessionChange) -> dict[str, Any]:
        """Rename, pin, archive or tag a conversation, or mark it as read."""
        found = kept(db, session_id)
        change(db, found, asked)
        return item(db, found)

    @routes.delete("/sessions/{session_id}", response_model=Trashed, responses=CHANGING)
    def trash_session(session_id: Named) -> dict[str, Any]:
        """Move a conversation to the trash, with the tasks delegated from it."""
        found = kept(db, session_id)
        db.delete_session(found)
        return {"trashed": db.family_in_trash(found)}

    @routes.post("/sessions/{session_id}/restore", response_model=SessionItem, responses=CHANGING)
    def restore_session(session_id: Named) -> dict[str, Any]:
        """Restore a conversation from the trash."""
        db.restore_session(session_id)
        return item(db, session_id)

    @routes.delete(
        "/trash/{session_id}", status_code=204, response_class=Response, responses=CHANGING
    )
    def purge_session(session_id: Named) -> None:
        """Delete a conversation permanently; it must be in the trash."""
        if not db.family_in_trash(session_id):
            raise SessionNotFoundError(f"session {session_id} is not in the trash")
        db.purge_session(session_id)

    @routes.delete("/trash", response_model=Purged, responses=problems(503))
    def empty_trash() -> dict[str, int]:
        """Empty the trash permanently."""
        return {"purged": db.purge_trash(older_than_days=0)}

    return routes


def kept(db: SessionDB, name: str) -> str:
    """The conversation meant, which must not lie in the trash."""
    found = db.resolve(name)
    if db.family_in_trash(found):
        raise HTTPException(409, "this conversation lies in the trash; restore it first")
    return found


def change(db: SessionDB, session_id: str, asked: SessionChange) -> None:
    """Everything that was asked for; what can be refused comes first."""
    if asked.is_given("title"):
        db.set_session_title(session_id, asked.title)
    if asked.tags is not None:
        db.set_session_tags(session_id, asked.tags)
    if asked.pinned is not None:
        db.set_session_pinned(session_id, asked.pinned)
    if asked.archived is not None:
        db.set_session_archived(session_id, asked.archived)
    if asked.is_read:
        db.mark_session_read(session_id)


def changed_all(db: SessionDB, asked: BulkChange) -> dict[str, Any]:
    """Do one thing to many conversations, one after the other."""
    act = _action(db, asked)
    done: list[str] = []
    changed: list[str] = []
    failed: list[dict[str, str]] = []
    for one in dict.fromkeys(asked.ids):
        is_so = _is_so(db, one, asked)
        try:
            if asked.action not in ("restore", "trash") and db.family_in_trash(one):
                raise UsageError("it lies in the trash; restore it first")
            if not is_so and act(one) is False:
                raise SessionNotFoundError(f"session not found: {one}")
        except HermesError as error:
            failed.append({"id": one, "detail": str(error)})
        else:
            done.append(one)
            changed += [] if is_so else [one]
    return {"done": done, "changed": changed, "failed": failed}


def _is_so(db: SessionDB, session_id: str, asked: BulkChange) -> bool:
    """Whether a conversation is already as it is asked to be."""
    rows = db.session_items([session_id])
    if not rows:
        return False
    row, tag = rows[0], (asked.tag or "").strip().casefold()
    has_tag = tag in {one.casefold() for one in row["tags"]}
    states: dict[str, bool] = {
        "pin": bool(row.get("pinned")),
        "unpin": not row.get("pinned"),
        "archive": bool(row["archived"]),
        "unarchive": not row["archived"],
        "trash": row["trashed_at"] is not None,
        "tag": has_tag,
        "untag": not has_tag,
    }
    return states.get(asked.action, False)


def _action(db: SessionDB, asked: BulkChange) -> Callable[[str], object]:
    tag = asked.tag or ""
    if asked.action in ("tag", "untag") and not tag.strip():
        raise UsageError("`tag` says which one")
    actions: dict[str, Callable[[str], object]] = {
        "pin": db.set_session_pinned,
        "unpin": lambda one: db.set_session_pinned(one, False),
        "archive": db.set_session_archived,
        "unarchive": lambda one: db.set_session_archived(one, False),
        "trash": db.delete_session,
        "restore": db.restore_session,
        "tag": lambda one: db.change_session_tag(one, tag),
        "untag": lambda one: db.change_session_tag(one, tag, False),
    }
    return actions[asked.action]
