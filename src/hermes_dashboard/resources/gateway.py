"""The chat gateway: what it does, what waits in it, and who may talk."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from fastapi import APIRouter, HTTPException, Response

from hermes_dashboard.models.system import GatewayState, Paired, Pairing
from hermes_dashboard.models.text import Named, problems

if TYPE_CHECKING:
    from hermes_dashboard.context import DashboardContext
    from hermes_state import SessionDB

MAX_CHATS: Final = 200
MAX_ERRORS: Final = 50
MAX_UNSENT: Final = 50


def router(parts: DashboardContext) -> APIRouter:
    """The addresses of the gateway."""
    routes = APIRouter(prefix="/api/gateway", tags=["gateway"])
    db = parts.db

    @routes.get("", response_model=GatewayState, responses=problems(503))
    def show_gateway() -> dict[str, Any]:
        """Platforms, chats, the queue, errors, approved users and pending requests."""
        state = parts.gateway.state()
        named = ("pid", "started_at", "version")
        return {
            "is_running": bool(state.get("is_running")),
            **{name: state.get(name) for name in named},
            "platforms": state.get("platforms") or [],
            "queue": queue_of(db),
            "chats": [
                {**one, "title": db.get_session_title(one["session_id"])}
                for one in parts.gateway.chats(MAX_CHATS)
            ],
            "errors": parts.gateway.errors(MAX_ERRORS),
            "unsent": [_unsent(one) for one in db.unsent_replies(MAX_UNSENT)],
            "asking": [{**one, "asked_at": one["created_at"]} for one in db.asking_users()],
            "allowed": [{**one, "since": one["allowed_at"]} for one in db.allowed_users()],
        }

    @routes.post("/pairings", response_model=Paired, responses=problems(400, 404, 429, 503))
    def approve(asked: Pairing) -> dict[str, str]:
        """Approve the user with this code; codes are single-use and expire after an hour."""
        platform = asked.platform.strip().lower()
        approved = db.approve_pairing(platform, asked.code)
        if approved is not None:
            return {"user_id": approved.user_id, "user_name": approved.user_name}
        if db.is_pairing_locked(platform):
            raise HTTPException(
                429, f"too many wrong codes were given for {platform}; wait an hour"
            )
        raise HTTPException(
            404,
            f"unknown or expired code for {platform} "
            "(codes are single-use and expire after an hour)",
        )

    @routes.delete(
        "/users/{platform}/{user_id:path}",
        status_code=204,
        response_class=Response,
        responses=problems(404, 503),
    )
    def revoke(platform: Named, user_id: Named) -> None:
        """Revoke a user's access."""
        if not db.revoke_user(platform.lower(), user_id):
            raise HTTPException(404, f"user {user_id} has no access on {platform}")

    return routes


def queue_of(db: SessionDB) -> dict[str, Any]:
    """How many messages are in which state."""
    counts = db.mail_counts()

    def number(box: str, *states: str) -> int:
        return sum(many for (_, state), many in counts[box].items() if state in states)

    return {
        "waiting": number("inbox", "waiting"),
        "handling": number("inbox", "claimed"),
        "owed": number("outbox", "waiting", "sending"),
        "ambiguous": number("outbox", "ambiguous"),
        "failed": sum(one["state"] == "failed" for one in db.unsent_replies(MAX_UNSENT)),
        "oldest_waiting_at": db.oldest_waiting(),
    }


def _unsent(row: dict[str, Any]) -> dict[str, Any]:
    target = row["target"]
    words = target if isinstance(target, str) else json.dumps(target, ensure_ascii=False)
    return {**row, "id": row["outbox_id"], "target": words}
