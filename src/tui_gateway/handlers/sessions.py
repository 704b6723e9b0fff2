"""Which conversation: begin one, find one, open it, close it, throw it away."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from hermes_conversation.agent_factory import ConversationOptions
from hermes_conversation.latest import latest_session_in
from hermes_core.errors import HermesError, UsageError
from tui_gateway.frames import LIVE_SESSION, NO_AGENT, NO_STORED_SESSION, RpcError

if TYPE_CHECKING:
    from hermes_state import SessionDB
    from tui_gateway.dispatcher import Dispatcher

    Params = dict[str, Any]

LISTED: Final = 200
NAMED: Final = 1000  # so many recent ones are looked at by name; what was said is searched in all
FIELDS: Final = (
    "id", "title", "preview", "started_at", "last_active", "message_count", "source", "cwd",
)  # fmt: skip


def create(peer: Dispatcher, params: Params) -> Any:
    opened = _open(peer, params, None)
    if params.get("title"):
        peer.hub.live(opened["session_id"]).conversation.title(params["title"])
    return opened


def resume(peer: Dispatcher, params: Params) -> Any:
    found = stored(peer, params["session_id"])
    return {**_open(peer, params, found), "resumed": found}


def stored(peer: Dispatcher, text: str) -> str:
    """The stored conversation a text means; one that is open and still empty is not stored."""
    if peer.hub.live_of(text) is not None:
        return text
    try:
        return str(peer.hub.db.resolve_resume_session_id(peer.hub.db.resolve(text)))
    except UsageError as error:
        raise RpcError(NO_STORED_SESSION, str(error)) from error


def _open(peer: Dispatcher, params: Params, session_id: str | None) -> dict[str, Any]:
    cwd = Path(params["cwd"]).expanduser() if params.get("cwd") else None
    wish = ConversationOptions(
        session_id, params.get("model") or "", params.get("source") or "tui", "tui", cwd
    )
    opened = open_as_wished(peer, wish)
    live = peer.hub.live(opened["session_id"])
    live.closes_when_alone = bool(params.get("close_on_disconnect"))
    return opened


def open_as_wished(peer: Dispatcher, wish: ConversationOptions) -> dict[str, Any]:
    """Open a conversation; what is wrong with the model is told as such."""
    try:
        return peer.hub.open(wish, peer)
    except HermesError as error:
        raise RpcError(NO_AGENT, str(error)) from error


def listed(peer: Dispatcher, params: Params) -> Any:
    limit = params.get("limit") or LISTED
    words = params.get("search") or ""
    folder = params.get("cwd") or None
    db = peer.hub.db
    if words:
        rows = _matching(db, words, limit, folder)
    else:
        rows = db.list_sessions_rich(limit=limit, order_by_last_active=True, cwd_prefix=folder)
    return {"sessions": [{name: row.get(name) for name in FIELDS} for row in rows]}


def _matching(db: SessionDB, words: str, limit: int, folder: str | None) -> list[dict[str, Any]]:
    """Recent conversations with the words in their name, then those in which they were said."""
    recent = db.list_sessions_rich(limit=NAMED, order_by_last_active=True, cwd_prefix=folder)
    wanted = words.casefold()
    found = {row["id"]: row for row in recent if wanted in _name(row)}
    known = {row["id"]: row for row in recent}
    for hit in db.search_messages(words, limit=limit):
        tip = db.get_compression_tip(hit["session_id"])
        row = known.get(tip) or (None if folder else db.get_session(tip))
        if row is not None:
            found.setdefault(tip, row)
    return list(found.values())[:limit]


def _name(row: dict[str, Any]) -> str:
    return f"{row.get('title') or ''} {row.get('preview') or ''} {row['id']}".casefold()


def most_recent(peer: Dispatcher, params: Params) -> Any:
    """The latest one, of a folder if one is named."""
    db, folder = peer.hub.db, params.get("cwd")
    if folder is None:
        row = next(iter(db.list_sessions_rich(limit=1, order_by_last_active=True)), None)
    else:
        row = latest_session_in(db, folder)
    if row is None:
        return {"session_id": None}
    return {name: row.get(name) for name in FIELDS} | {"session_id": row["id"]}


def activate(peer: Dispatcher, params: Params) -> Any:
    return peer.hub.look(peer.hub.live(params["session_id"]), peer)


def active_list(peer: Dispatcher, _params: Params) -> Any:
    return {
        "sessions": [
            {"session_id": live.id, "status": live.status(), **live.info()}
            for live in peer.hub.all_live()
        ]
    }


def close(peer: Dispatcher, params: Params) -> Any:
    """End it, unless somebody else looks at it: then only this one looks away."""
    live = peer.hub.live(params["session_id"])
    live.detach(peer)
    if not live.is_alone or (params.get("unless_running") and live.is_running):
        return {"closed": False}
    peer.hub.close(live, "tui_close")
    return {"closed": True}


def delete(peer: Dispatcher, params: Params) -> Any:
    try:
        found = peer.hub.db.resolve(params["session_id"])
    except UsageError as error:
        raise RpcError(NO_STORED_SESSION, str(error)) from error
    if peer.hub.live_of(found) is not None:
        raise RpcError(LIVE_SESSION, "this conversation is open; close it first")
    return {"deleted": peer.hub.db.delete_session(found)}
