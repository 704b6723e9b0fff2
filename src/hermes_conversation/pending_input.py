"""Input that arrives while a turn runs: steer the turn, queue for the next, or interrupt.

The agent reads steering after its next tool result. Steering it has not read when the turn
ends, and queued input, become the next turn, in order. After an interrupted or failed turn
they are returned to the user instead. Terminals keep them in the store until then, so that
a crash returns them too; chat messages are kept by the inbox.
"""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hermes_agent.agent import AIAgent
    from hermes_state import SessionDB

META_KEY: Final = "hermes_unread:"  # released files have it; the session id follows

BusyMode = Literal["steer", "queue", "interrupt"]


class HasAgent(Protocol):
    """A conversation; its agent changes with its model."""

    db: SessionDB

    @property
    def agent(self) -> AIAgent: ...

    @property
    def session_id(self) -> str: ...


class AfterTurn(NamedTuple):
    """What a finished turn leaves: the next input, and the inputs returned to the user."""

    next_input: str = ""
    returned: tuple[str, ...] = ()


class PendingInput:
    """The pending input of one conversation; called by the turn's thread and by front ends."""

    def __init__(self, conversation: HasAgent) -> None:
        self._conversation = conversation
        self._steering: list[str] = []
        self._queued: list[str] = []
        self._replacement: list[str] = []
        self._is_interrupted = False
        self._is_stored = False
        self._lock = threading.Lock()

    def submit(self, text: str, mode: BusyMode) -> None:
        """Apply the configured mode to *text*."""
        if mode == "steer":
            self.steer(text)
        elif mode == "interrupt":
            self.interrupt(text)
        else:
            self.queue(text)

    def steer(self, text: str) -> None:
        """Give *text* to the running turn."""
        with self._lock:
            self._steering.append(text)
            self._store()
            self._conversation.agent.steer(text)

    def queue(self, text: str) -> None:
        """Keep *text* for after the turn."""
        with self._lock:
            self._queued.append(text)
            self._store()

    def interrupt(self, replacement: str = "") -> None:
        """Stop the turn, and continue with *replacement* where it is given."""
        self.hold(replacement)
        self._conversation.agent.interrupt()

    def hold(self, replacement: str = "") -> None:
        """Continue with nothing but *replacement* after the turn, which is about to be stopped."""
        with self._lock:
            self._is_interrupted = True
            if replacement:
                self._replacement.append(replacement)
                self._store()

    def mark_read(self) -> None:
        """The agent has read steering; what it has been given since is still pending."""
        with self._lock:
            if self._steering:
                self._steering = self._conversation.agent.pending_steering()
                self._store()

    def waiting(self) -> list[str]:
        """All pending input, in order."""
        with self._lock:
            return self._all()

    def after_turn(self, *, is_complete: bool) -> AfterTurn:
        """Decide what follows the turn that has just ended."""
        unread = self._conversation.agent.pending_steering()
        self._conversation.agent.pop_steering()  # the unread part is kept here as well
        with self._lock:
            # Plugins steer the agent directly.
            self._steering += [text for text in unread if text not in self._steering]
            if is_complete and not self._is_interrupted:
                result = AfterTurn(self._next())
            else:
                returned = (*self._steering, *self._queued)
                result = AfterTurn(join_inputs(self._replacement), returned)
                self._steering, self._queued = [], []
            self._replacement, self._is_interrupted = [], False
            self._store()
            return result

    def restore(self) -> str:
        """The pending input of a process that crashed; it is returned once.

        Input of a turn that another process runs is left to that process.
        """
        conversation = self._conversation
        if conversation.db.leases.is_held_elsewhere(conversation.session_id):
            return ""
        with self._lock:
            key = META_KEY + conversation.session_id
            meta = conversation.db.get_meta(key)
            if meta:
                conversation.db.meta.delete(key)
        return join_inputs(json.loads(meta)) if meta else ""

    def _next(self) -> str:
        if self._steering:
            steering, self._steering = self._steering, []
            return join_inputs(steering)
        return self._queued.pop(0) if self._queued else ""

    def _all(self) -> list[str]:
        return self._steering + self._queued + self._replacement

    def _store(self) -> None:
        db, key = self._conversation.db, META_KEY + self._conversation.session_id
        waiting = self._all()
        if waiting:
            db.set_meta(key, json.dumps(waiting))
        elif self._is_stored:
            db.meta.delete(key)
        self._is_stored = bool(waiting)


def join_inputs(texts: Iterable[str]) -> str:
    """Inputs as one text."""
    return "\n\n".join(texts)


def submit_to_agent(agent: AIAgent, text: str, mode: BusyMode, uid: str) -> None:
    """Apply *mode* to a message that the inbox keeps; *uid* identifies it when it is read."""
    if mode == "interrupt":
        agent.interrupt("interrupted by another message")
    elif mode == "steer":
        agent.steer(text, uid)
