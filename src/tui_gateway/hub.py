"""The hub: every conversation that is open in this process, whoever looks at it."""

from __future__ import annotations

import logging
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final

from hermes_core.isolate import Step, attempt
from hermes_plugin_host import delivery
from tui_gateway import server
from tui_gateway.frames import NO_SESSION, RpcError
from tui_gateway.live_session import LiveSession

if TYPE_CHECKING:
    from hermes_conversation.agent_factory import ConversationOptions
    from hermes_state import SessionDB
    from tui_gateway.live_session import SessionListener

log = logging.getLogger(__name__)

SLOW_THREADS: Final = 8
GRACE_SECONDS: Final = 5.0
ALONE_SECONDS: Final = 20.0
FORGOTTEN_SECONDS: Final = 6 * 3600.0


class Hub:
    """The open conversations of one store."""

    def __init__(self, db: SessionDB) -> None:
        self.db = db
        self.is_leaving = False  # a plain flag, because signal handlers set it
        self.pool = ThreadPoolExecutor(SLOW_THREADS, thread_name_prefix="hermes-rpc")
        self._lives: dict[str, LiveSession] = {}
        self._lock = threading.Lock()
        self._doors = threading.RLock()  # one opens or closes at a time

    def open(self, wish: ConversationOptions, listener: SessionListener) -> dict[str, Any]:
        """Open a conversation, or look at it where it is open already; what there is to see."""
        with self._doors:
            live = self.live_of(wish.session_id) if wish.session_id else None
            if live is None:
                live = LiveSession(self.db, wish)
                with self._lock:
                    self._lives[live.id] = live
            elif _wants_other_model(live, wish):
                live.conversation.use_model(wish.model)
            return self.look(live, listener)

    def look(self, live: LiveSession, listener: SessionListener) -> dict[str, Any]:
        """Let somebody look at an open conversation, unless they are gone meanwhile."""
        with self._doors:
            opened = live.attach(listener)
            if getattr(listener, "is_gone", False):
                live.detach(listener)
        listener.event("session.info", live.id, opened["info"])
        return opened

    def turn_away(self, live: LiveSession, listener: SessionListener, reason: str) -> bool:
        """Somebody looks elsewhere; a conversation that is left alone and idle is ended."""
        live.detach(listener)
        with self._doors:
            if not live.is_alone or live.is_running:
                return False
            self.close(live, reason)
        return True

    def live(self, live_id: str) -> LiveSession:
        """An open conversation by its live id."""
        with self._lock:
            found = self._lives.get(live_id)
        if found is None:
            raise RpcError(NO_SESSION, f"no conversation is open under {live_id!r}")
        return found

    def live_of(self, session_id: str) -> LiveSession | None:
        """The open conversation that is stored under *session_id*."""
        return next(
            (one for one in self.all_live() if one.conversation.session_id == session_id), None
        )

    def all_live(self) -> list[LiveSession]:
        """All open conversations."""
        with self._lock:
            return list(self._lives.values())

    # Ends

    def forget(self, listener: SessionListener) -> None:
        """Somebody is gone; what was open only for them is closed."""
        for live in self.all_live():
            live.detach(listener)
            if live.closes_when_alone and live.alone_since is not None:
                self.close(live, "ws_disconnect")

    def sweep(self) -> None:
        """Close what nobody has looked at for a while, unless a turn is at work in it."""
        for live in self.all_live():
            with self._doors:  # nobody comes back to it while it is being closed
                reason = _over(live)
                if reason:
                    self.close(live, reason)

    def close(self, live: LiveSession, reason: str) -> None:
        """End an open conversation: its turn stopped, its words stored, its row closed."""
        live.interrupt()
        if not live.wait(GRACE_SECONDS):
            log.warning("a turn of %s did not end in time", live.conversation.session_id)
        with self._doors:
            live.conversation.stop()
            server._finalize_session(live.as_session(), end_reason=reason)  # noqa: SLF001 - the seam
            with self._lock:
                self._lives.pop(live.id, None)
        attempt(Step("tell plugins of boundaries", lambda: delivery.deliver_due(self.db)))

    def leave(self) -> None:
        """Ask for the end; it comes when the loop sees it."""
        self.is_leaving = True

    def close_all(self, reason: str) -> None:
        """End every open conversation, all at the same time."""
        lives = self.all_live()
        for live in lives:
            live.emit("gateway.leaving", {})
            live.interrupt()
            live.conversation.agent.reviews_at_end = False  # there is no time for it any more
        for live in lives:
            attempt(Step("close a session", lambda live=live: self.close(live, reason)))  # type: ignore[misc]
        self.pool.shutdown(wait=False, cancel_futures=True)


def _wants_other_model(live: LiveSession, wish: ConversationOptions) -> bool:
    """Whether the model is to be changed, and can be without asking anybody for a key."""
    is_other = bool(wish.model) and wish.model != live.conversation.options.model
    return (
        is_other and not live.is_running and not live.conversation.missing_key_setting(wish.model)
    )


def _over(live: LiveSession) -> str:
    """Why a conversation nobody looks at is over; empty when it is not."""
    since = live.alone_since
    if since is None:
        return ""
    alone_seconds = time.monotonic() - since
    if not live.is_running:
        return "ws_orphan_reap" if alone_seconds > ALONE_SECONDS else ""
    is_forgotten = live.status() == "waiting" and alone_seconds > FORGOTTEN_SECONDS
    return "idle_timeout" if is_forgotten else ""
