"""Going elsewhere: another conversation for whoever asks, the old one as it was for the others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hermes_core import human_format
from tui_gateway.frames import BUSY, RpcError
from tui_gateway.handlers.errors import told
from tui_gateway.handlers.sessions import open_as_wished, stored
from tui_gateway.live_session import OCCUPIED

if TYPE_CHECKING:
    from tui_gateway.dispatcher import Dispatcher
    from tui_gateway.live_session import Live

    Opened = dict[str, Any]


def move(peer: Dispatcher, live: Live, command: str, words: str) -> Opened | None:
    """Carry out a command that goes elsewhere; None when it is none of those."""
    if command == "new":
        opened = _go(peer, live, None, "new_session")
        return {**opened, "output": f"A new conversation: {opened['stored_session_id']}"}
    if command == "resume" and words:
        opened = _go(peer, live, stored(peer, words), "resumed_other")
        name = opened["info"]["title"] or opened["stored_session_id"]
        said = human_format.plural(opened["message_count"], "message")
        return {**opened, "output": f"Going on with {name} ({said})"}
    if command == "branch":
        opened = open_branch(peer, live, words)
        return {**opened, "output": f"Going on in a branch: {opened['stored_session_id']}"}
    return None


def open_branch(peer: Dispatcher, live: Live, title: str, before_message: int = 0) -> Opened:
    """Go on in a second conversation that begins as this one, or ends before a message."""
    if live.is_running:
        raise RpcError(BUSY, OCCUPIED)
    found = told(lambda: live.desk.branched(title, before_message))
    return _go(peer, live, found, "branched")


def _go(peer: Dispatcher, live: Live, session_id: str | None, reason: str) -> Opened:
    """Look at another conversation; one that is left alone and idle is ended."""
    if session_id == live.desk.session_id:
        return peer.hub.look(live, peer)
    wish = live.desk.wish._replace(session_id=session_id, cwd=live.desk.agent.cwd)
    opened = open_as_wished(peer, wish)
    peer.hub.turn_away(live, peer, reason)
    return opened
