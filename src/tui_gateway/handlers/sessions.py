"""Handlers to create, list, open, close and delete conversations."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from hermes_agent.mcp.given_servers import parse_given_servers
from hermes_agent.permissions.approvals import parse_mode
from hermes_agent.permissions.grants import parse_rules
from hermes_conversation.agent_factory import ConversationOptions
from hermes_conversation.history_scope import latest_session_in
from hermes_core.config.definitions.models import EFFORTS
from hermes_core.errors import HermesError, UsageError
from hermes_core.ids import is_session_id
from tui_gateway.frames import INVALID_PARAMS, LIVE_SESSION, NO_AGENT, NO_STORED_SESSION, RpcError
from tui_gateway.handlers.environment import as_rpc
from tui_gateway.protocol import ConversationSummary, fields_of

if TYPE_CHECKING:
    from hermes_state.sessions.records import ListedSession
    from hermes_state.store import SessionDB
    from tui_gateway.dispatcher import Dispatcher
    from tui_gateway.frames import RpcParams
    from tui_gateway.protocol import OpenedState

DEFAULT_LIST_LIMIT: Final = 200
MAX_TITLE_MATCHES: Final = 1000  # recent sessions matched by title; message text is searched in all


def create(peer: Dispatcher, params: RpcParams) -> object:
    opened = _open(peer, params, _unused_id(peer, params.session_id))
    if params.title:
        peer.hub.live(opened.session_id).conversation.title(params.title)
    return opened


def _unused_id(peer: Dispatcher, session_id: str) -> str | None:
    """The given ID of a conversation that was never stored; None for a new ID."""
    if not session_id:
        return None
    if not is_session_id(session_id) or peer.hub.db.sessions.find(session_id) is not None:
        raise RpcError(INVALID_PARAMS, f"{session_id!r} is not an unused session ID")
    return session_id


def resume(peer: Dispatcher, params: RpcParams) -> object:
    stored = resolve_stored(peer, params.session_id)
    return {**fields_of(_open(peer, params, stored)), "resumed": stored}


def resolve_stored(peer: Dispatcher, text: str) -> str:
    """The session ID for a text; an open, empty conversation is not stored yet."""
    if peer.hub.live_of(text) is not None:
        return text
    try:
        return str(peer.hub.db.titles.resolve_resume_session_id(peer.hub.db.lookup.resolve(text)))
    except UsageError as error:
        raise RpcError(NO_STORED_SESSION, str(error)) from error


def _open(peer: Dispatcher, params: RpcParams, session_id: str | None) -> OpenedState:
    cwd = Path(params.cwd).expanduser() if params.cwd else None
    options = ConversationOptions(
        session_id,
        params.model,
        params.source or "tui",
        "tui",
        cwd,
        mode=as_rpc(lambda: parse_mode(params.mode)) if params.mode else None,
        allow=as_rpc(lambda: parse_rules(params.allow)),
        has_automatic_title=True,
        mcp_servers=as_rpc(lambda: parse_given_servers(params.mcp_servers)),
        max_steps=_limit("max_turns", params.max_turns),
        max_output=_limit("max_output_tokens", params.max_output_tokens),
        effort=_effort(params.effort),
    )
    opened = open_session(peer, options)
    live = peer.hub.live(opened.session_id)
    live.closes_when_alone = params.close_on_disconnect
    return opened


def _limit(name: str, value: int) -> int:
    if value < 0:
        raise RpcError(INVALID_PARAMS, f"`{name}` must not be negative")
    return value


def _effort(name: str) -> str:
    if name and name not in EFFORTS:
        raise RpcError(INVALID_PARAMS, f"`effort` must be one of {', '.join(EFFORTS)}")
    return name


def open_session(peer: Dispatcher, options: ConversationOptions) -> OpenedState:
    """Open a conversation; errors of the model setup get their own code."""
    try:
        return peer.hub.open(options, peer)
    except HermesError as error:
        raise RpcError(NO_AGENT, str(error)) from error


def listed(peer: Dispatcher, params: RpcParams) -> object:
    limit = params.limit or DEFAULT_LIST_LIMIT
    search = params.search
    folder = params.cwd or None
    db = peer.hub.db
    if search:
        rows = _matching(db, search, limit, folder)
    else:
        rows = db.lists.sessions(
            limit=limit, offset=params.offset, order_by_last_active=True, cwd_prefix=folder
        )
    return {"sessions": [_view(row) for row in rows]}


def _view(row: ListedSession) -> ConversationSummary:
    session = row.session
    return ConversationSummary(
        id=session.id,
        title=session.title,
        preview=row.preview,
        started_at=session.started_at,
        last_active=row.last_active,
        message_count=session.message_count,
        source=session.source,
        cwd=session.cwd,
    )


def _matching(db: SessionDB, search: str, limit: int, folder: str | None) -> list[ListedSession]:
    """Recent conversations with matching titles, then those with matching messages."""
    recent = db.lists.sessions(
        limit=MAX_TITLE_MATCHES, order_by_last_active=True, cwd_prefix=folder
    )
    needle = search.casefold()
    matches = {row.id: row for row in recent if needle in _name(row)}
    recent_by_id = {row.id: row for row in recent}
    for hit in db.search.find(search, limit=limit):
        tip = db.titles.get_compression_tip(hit.session_id)
        row = recent_by_id.get(tip) or (None if folder else db.lists.find(tip))
        if row is not None:
            matches.setdefault(tip, row)
    return list(matches.values())[:limit]


def _name(row: ListedSession) -> str:
    return f"{row.session.title or ''} {row.preview} {row.id}".casefold()


def most_recent(peer: Dispatcher, params: RpcParams) -> object:
    """The latest conversation, optionally of a folder."""
    db, folder = peer.hub.db, params.cwd
    if not folder:
        row = next(iter(db.lists.sessions(limit=1, order_by_last_active=True)), None)
    else:
        row = latest_session_in(db, folder)
    if row is None:
        return {"session_id": None}
    return {"session_id": row.id, **fields_of(_view(row))}


def activate(peer: Dispatcher, params: RpcParams) -> object:
    return peer.hub.attach(peer.hub.live(params.session_id), peer)


def active_list(peer: Dispatcher, _params: RpcParams) -> object:
    return {
        "sessions": [
            {"session_id": live.id, "status": live.status(), **fields_of(live.info())}
            for live in peer.hub.all_live()
        ]
    }


def close(peer: Dispatcher, params: RpcParams) -> object:
    """Close a conversation; if another client has it open, only detach."""
    live = peer.hub.live(params.session_id)
    live.detach(peer)
    if not live.is_alone or (params.unless_running and live.is_running):
        return {"closed": False}
    peer.hub.close(live, "tui_close")
    return {"closed": True}


def delete(peer: Dispatcher, params: RpcParams) -> object:
    try:
        resolved = peer.hub.db.lookup.resolve(params.session_id)
    except UsageError as error:
        raise RpcError(NO_STORED_SESSION, str(error)) from error
    if peer.hub.live_of(resolved) is not None:
        raise RpcError(LIVE_SESSION, "this conversation is open; close it first")
    return {"deleted": peer.hub.db.trash.delete_session(resolved)}
