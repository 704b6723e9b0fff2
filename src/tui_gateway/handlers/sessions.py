"""Handlers to create, list, open, close and delete conversations."""

from __future__ import annotations

import dataclasses
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
from hermes_state.search.repository import SearchOptions
from tui_gateway.frames import INVALID_PARAMS, LIVE_SESSION, NO_AGENT, NO_STORED_SESSION, RpcError
from tui_gateway.handlers.environment import as_rpc
from tui_gateway.protocol import ConversationSummary, RecentSession, SessionStatus, fields_of

if TYPE_CHECKING:
    from typing import Unpack

    from hermes_state.sessions.records import ListedSession
    from hermes_state.store import SessionDB
    from tui_gateway.dispatcher import Dispatcher
    from tui_gateway.protocol import NoSession, OpenedState, OpenParams

DEFAULT_LIST_LIMIT: Final = 200
MAX_TITLE_MATCHES: Final = 1000  # recent sessions matched by title; message text is searched in all


def create(
    peer: Dispatcher, *, session_id: str = "", title: str = "", **options: Unpack[OpenParams]
) -> OpenedState:
    """Start a conversation."""
    opened = _open(peer, _unused_id(peer, session_id), options)
    if title:
        peer.hub.live(opened.session_id).conversation.title(title)
    return opened


def _unused_id(peer: Dispatcher, session_id: str) -> str | None:
    """The given ID of a conversation that was never stored; None for a new ID."""
    if not session_id:
        return None
    if not is_session_id(session_id) or peer.hub.db.sessions.find(session_id) is not None:
        raise RpcError(INVALID_PARAMS, f"{session_id!r} is not an unused session ID")
    return session_id


def resume(peer: Dispatcher, *, session_id: str, **options: Unpack[OpenParams]) -> OpenedState:
    """Open a stored conversation, or one that is open already."""
    stored = resolve_stored(peer, session_id)
    return dataclasses.replace(_open(peer, stored, options), resumed=stored)


def resolve_stored(peer: Dispatcher, text: str) -> str:
    """The session ID for a text; an open, empty conversation is not stored yet."""
    if peer.hub.live_of(text) is not None:
        return text
    try:
        return str(peer.hub.db.titles.resolve_resume_session_id(peer.hub.db.lookup.resolve(text)))
    except UsageError as error:
        raise RpcError(NO_STORED_SESSION, str(error)) from error


def _open(peer: Dispatcher, session_id: str | None, given: OpenParams) -> OpenedState:
    cwd, mode = given.get("cwd"), given.get("mode")
    options = ConversationOptions(
        session_id,
        given.get("model", ""),
        given.get("source") or "tui",
        "tui",
        Path(cwd).expanduser() if cwd else None,
        mode=as_rpc(lambda: parse_mode(mode)) if mode else None,
        allow=as_rpc(lambda: parse_rules(given.get("allow", ""))),
        has_automatic_title=True,
        mcp_servers=as_rpc(lambda: parse_given_servers(given.get("mcp_servers", ""))),
        max_steps=_limit("max_turns", given.get("max_turns", 0)),
        max_output=_limit("max_output_tokens", given.get("max_output_tokens", 0)),
        effort=_effort(given.get("effort", "")),
    )
    opened = open_session(peer, options)
    live = peer.hub.live(opened.session_id)
    live.closes_when_alone = given.get("close_on_disconnect", False)
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


def listed(
    peer: Dispatcher, *, limit: int = 0, offset: int = 0, search: str = "", cwd: str = ""
) -> list[ConversationSummary]:
    """Stored conversations, newest first."""
    limit = limit or DEFAULT_LIST_LIMIT
    folder = cwd or None
    db = peer.hub.db
    if search:
        rows = _matching(db, search, limit, folder)
    else:
        rows = db.lists.sessions(
            limit=limit, offset=offset, order_by_last_active=True, cwd_prefix=folder
        )
    return [_view(row) for row in rows]


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
    options = SearchOptions(is_typing=True, limit=limit)
    for hit in db.search.answer(search, options).hits:
        tip = db.titles.get_compression_tip(hit.session_id)
        row = recent_by_id.get(tip) or (None if folder else db.lists.find(tip))
        if row is not None:
            matches.setdefault(tip, row)
    return list(matches.values())[:limit]


def _name(row: ListedSession) -> str:
    return f"{row.session.title or ''} {row.preview} {row.id}".casefold()


def most_recent(peer: Dispatcher, *, cwd: str = "") -> RecentSession | NoSession:
    """The latest stored conversation."""
    db, folder = peer.hub.db, cwd
    if not folder:
        row = next(iter(db.lists.sessions(limit=1, order_by_last_active=True)), None)
    else:
        row = latest_session_in(db, folder)
    if row is None:
        return {"session_id": None}
    return RecentSession(**fields_of(_view(row)), session_id=row.id)


def activate(peer: Dispatcher, *, session_id: str) -> OpenedState:
    """Receive the events of an open conversation."""
    return peer.hub.attach(peer.hub.live(session_id), peer)


def active_list(peer: Dispatcher) -> list[SessionStatus]:
    """List open conversations."""
    return [
        SessionStatus(**fields_of(live.info()), status=live.status(), session_id=live.id)
        for live in peer.hub.all_live()
    ]


def close(peer: Dispatcher, *, session_id: str, unless_running: bool = False) -> bool:
    """Close a conversation, unless another client has it open."""
    live = peer.hub.live(session_id)
    live.detach(peer)
    if not live.is_alone or (unless_running and live.is_running):
        return False
    peer.hub.close(live, "tui_close")
    return True


def delete(peer: Dispatcher, *, session_id: str) -> bool:
    """Move a stored conversation to the trash."""
    try:
        resolved = peer.hub.db.lookup.resolve(session_id)
    except UsageError as error:
        raise RpcError(NO_STORED_SESSION, str(error)) from error
    if peer.hub.live_of(resolved) is not None:
        raise RpcError(LIVE_SESSION, "this conversation is open; close it first")
    return peer.hub.db.trash.delete_session(resolved)
