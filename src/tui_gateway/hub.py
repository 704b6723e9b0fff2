"""The hub: all conversations open in this process, shared by all clients."""

from __future__ import annotations

import functools
import logging
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final

from hermes_conversation import boundary_delivery
from hermes_core.isolate import Step, attempt, run_all
from tui_gateway.frames import NO_SESSION, RpcError
from tui_gateway.live_session import LiveSession
from tui_gateway.protocol import GatewayLeaving, StatusUpdate

if TYPE_CHECKING:
    from hermes_conversation.agent_factory import ConversationOptions
    from hermes_state.store import SessionDB
    from tui_gateway.live_session import SessionListener
    from tui_gateway.protocol import OpenedState

log = logging.getLogger(__name__)

SLOW_THREADS: Final = 8
STOP_SECONDS: Final = 5.0
ORPHAN_SECONDS: Final = 20.0
WAITING_ORPHAN_SECONDS: Final = 6 * 3600.0


class Hub:
    """The open conversations of one store."""

    def __init__(self, db: SessionDB) -> None:
        self.db = db
        self.is_leaving = False  # a plain flag, because signal handlers set it
        self.pool = ThreadPoolExecutor(SLOW_THREADS, thread_name_prefix="hermes-rpc")
        self._lives: dict[str, LiveSession] = {}
        self._lock = threading.Lock()
        self._open_lock = threading.RLock()  # serializes opening and closing

    def open(self, options: ConversationOptions, listener: SessionListener) -> OpenedState:
        """Open a conversation, or attach to it if it is open; returns its state.

        All options that are given apply to an open one, too, or an error is raised.
        """
        with self._open_lock:
            live, notice = self.live_of(options.session_id) if options.session_id else None, ""
            if live is None:
                live = LiveSession(self.db, options)
                with self._lock:
                    self._lives[live.id] = live
            else:
                notice = live.use(options)
            opened = self.attach(live, listener)
        if notice:
            listener.event(live.id, StatusUpdate("status", notice))
        return opened

    def attach(self, live: LiveSession, listener: SessionListener) -> OpenedState:
        """Attach a client to an open conversation, unless it has disconnected meanwhile."""
        with self._open_lock:
            opened = live.attach(listener)
            if getattr(listener, "is_gone", False):
                live.detach(listener)
        listener.event(live.id, opened.info)
        return opened

    def replace(
        self,
        live: LiveSession,
        listener: SessionListener,
        reason: str,
        new_session_id: str,
        *,
        ends_old: bool = True,
    ) -> None:
        """Detach a client that continues with another conversation.

        The old conversation is closed if it is idle and has no other client; without *ends_old*
        its row stays open, because it was handed off. The other one is only opened: its row
        does not change before the first message.
        """
        live.detach(listener)
        with self._open_lock:
            if not ends_old:
                old = live.conversation.session_id
                self.db.sessions.switch(old, new_session_id, reason, ends_old=False)
            if live.is_alone and not live.is_running:
                self.close(live, reason, new_session_id)

    def live(self, live_id: str) -> LiveSession:
        """An open conversation by its live ID."""
        with self._lock:
            live = self._lives.get(live_id)
        if live is None:
            raise RpcError(NO_SESSION, f"no open conversation {live_id!r}")
        return live

    def live_of(self, session_id: str) -> LiveSession | None:
        """The open conversation with the stored *session_id*."""
        return next(
            (live for live in self.all_live() if live.conversation.session_id == session_id), None
        )

    def all_live(self) -> list[LiveSession]:
        """All open conversations."""
        with self._lock:
            return list(self._lives.values())

    # Closing

    def forget(self, listener: SessionListener) -> None:
        """Detach a disconnected client; closes conversations opened with `close_on_disconnect`."""
        for live in self.all_live():
            live.detach(listener)
            if live.closes_when_alone and live.alone_since is not None:
                self.close(live, "ws_disconnect")

    def sweep(self) -> None:
        """Close conversations without a client for a while, unless a turn runs."""
        for live in self.all_live():
            with self._open_lock:  # no client may attach during the close
                reason = _close_reason(live)
                if reason:
                    self.close(live, reason)

    def close(self, live: LiveSession, reason: str, new_session_id: str | None = None) -> None:
        """Close a conversation and interrupt its turn; it ends if it was written to here.

        Nothing is saved: what was shown is stored already. *new_session_id* is the conversation
        with which its client continues.
        """
        live.interrupt()
        if not live.wait(STOP_SECONDS):
            log.warning("turn of %s did not stop in time", live.conversation.session_id)
        with self._open_lock:
            agent, session_id = live.conversation.agent, live.conversation.session_id
            leave = self.db.sessions.leave
            steps = [
                Step("stop the conversation", live.conversation.stop),
                Step("announce the end of the turn", agent.announce_end),
                Step("commit memory", agent.commit_memory),
                Step(
                    "leave the row",
                    lambda: leave(session_id, reason, new_session_id=new_session_id),
                ),
            ]
            run_all(steps)
            with self._lock:
                self._lives.pop(live.id, None)
        attempt("deliver boundaries to plugins", lambda: boundary_delivery.deliver_due(self.db))

    def leave(self) -> None:
        """Request the shutdown; the main loop carries it out."""
        self.is_leaving = True

    def close_all(self, reason: str) -> None:
        """Close all conversations; their turns are interrupted in parallel."""
        lives = self.all_live()
        for live in lives:
            live.emit(GatewayLeaving())
            live.interrupt()
            live.conversation.agent.reviews_at_end = False  # too slow during a shutdown
        for live in lives:
            attempt("close a session", functools.partial(self.close, live, reason))
        self.pool.shutdown(wait=False, cancel_futures=True)


def _close_reason(live: LiveSession) -> str:
    """The reason to close a conversation without clients, or an empty text."""
    since = live.alone_since
    if since is None:
        return ""
    alone_seconds = time.monotonic() - since
    if not live.is_running:
        return "ws_orphan_reap" if alone_seconds > ORPHAN_SECONDS else ""
    is_forgotten = live.status() == "waiting" and alone_seconds > WAITING_ORPHAN_SECONDS
    return "idle_timeout" if is_forgotten else ""
