"""A live session: a conversation that is open here, and the turn that runs in it.

Whoever looks at it is told what happens; nobody needs to. A turn goes on when the last
terminal is closed, and is found as it stands by the next one.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from typing import TYPE_CHECKING, Any, Final, Protocol

from hermes_agent import events
from hermes_conversation import agent_factory
from hermes_conversation.conversation import Conversation
from hermes_conversation.pending_input import PendingInput
from hermes_core.isolate import Step, attempt
from tui_gateway.frames import BUSY, RpcError
from tui_gateway.questions import Questions
from tui_gateway.turn_view import View, as_shown, usage

if TYPE_CHECKING:
    Told = tuple[str, dict[str, Any]]
    from collections.abc import Iterator

    from hermes_conversation.agent_factory import ConversationOptions
    from hermes_conversation.slash_commands import CommandOutcome
    from hermes_state import SessionDB

STATUS: Final = {
    events.TurnEnd.COMPLETE: "complete",
    events.TurnEnd.TOO_LONG: "complete",
    events.TurnEnd.INTERRUPTED: "interrupted",
    events.TurnEnd.FAILED: "error",
}


def told(event: events.Event) -> Told | None:
    """The name and the payload under which a client hears of *event*; None if it does not."""
    if isinstance(event, events.TextDelta):
        return "message.delta", {"text": event.text}
    if isinstance(event, events.ReasoningDelta):
        return "reasoning.delta", {"text": event.text}
    if isinstance(event, events.ToolStarted | events.ToolOutput | events.ToolFinished):
        return _tool(event)
    if isinstance(event, events.Retrying):
        return "status.update", {"kind": "retrying", "text": event.reason}
    if isinstance(event, events.Notice):
        return "status.update", {"kind": "status", "text": event.text}
    return None


def _tool(event: events.ToolStarted | events.ToolOutput | events.ToolFinished) -> Told:
    if isinstance(event, events.ToolOutput):
        return "tool.output", {"tool_id": event.call_id, "text": event.text}
    call = event.call
    about = {"tool_id": call.id, "name": call.name}
    if isinstance(event, events.ToolStarted):
        context = agent_factory.summarize_call(call.name, call.arguments)
        return "tool.start", {**about, "context": context, "args_text": call.arguments}
    return (
        "tool.complete",
        {**about, "result": event.result, "duration_s": round(event.seconds, 3)},
    )


def ended(finished: events.TurnFinished) -> dict[str, Any]:
    """The payload of `message.complete`."""
    return {
        "text": finished.text,
        "status": STATUS[finished.end],
        "error": finished.error or None,
        "usage": finished.usage._asdict(),
    }


def broken(error: BaseException) -> dict[str, Any]:
    """The payload of `message.complete` when a turn fell over instead of ending."""
    return {"text": "", "status": "error", "error": str(error), "usage": {}}


OCCUPIED = "a turn is running; wait for it, interrupt it, or steer it"


class SessionListener(Protocol):
    """Somebody who looks at a conversation."""

    def event(self, kind: str, session_id: str, payload: dict[str, Any]) -> None:
        """Hear that something happened."""


class LiveSession:
    """One open conversation; its live id is not the id it is stored under."""

    def __init__(self, db: SessionDB, wish: ConversationOptions) -> None:
        self.id = os.urandom(4).hex()
        self.questions = Questions(self.emit)
        self.conversation = Conversation(db, self.questions, wish)
        self.started_at = time.time()
        self.closes_when_alone = False
        self.alone_since: float | None = time.monotonic()
        self._listeners: list[SessionListener] = []
        self._is_running = False
        self._is_changing = False
        self._idle = threading.Event()
        self._idle.set()
        self._lock = threading.Lock()
        self._pending = PendingInput(self.conversation)
        self._returned = self._pending.restore()  # input that no client has taken back yet
        self._view = View()

    # Who looks

    def attach(self, listener: SessionListener) -> dict[str, Any]:
        """Tell *listener* from now on; all that it would have to know is in the answer."""
        with self._lock:
            if listener not in self._listeners:
                self._listeners.append(listener)
            self.alone_since = None
            return self._opened()

    def _opened(self) -> dict[str, Any]:
        messages = self.messages()
        returned, self._returned = self._returned, ""
        inflight = self._view.inflight(messages) if self._is_running else None
        if inflight is not None:
            inflight |= {
                "questions": self.questions.open_ones(),
                "waiting": self._pending.waiting(),
            }
        return {
            "session_id": self.id,
            "stored_session_id": self.conversation.session_id,
            "message_count": len(messages),
            "messages": messages,
            "info": self.info(),
            "running": self._is_running,
            "started_at": self.started_at,
            "inflight": inflight,
            "unread": returned,
        }

    def detach(self, listener: SessionListener) -> None:
        """Tell *listener* no more."""
        with self._lock:
            if listener in self._listeners:
                self._listeners.remove(listener)
                if not self._listeners:
                    self.alone_since = time.monotonic()

    @property
    def is_alone(self) -> bool:
        """Whether nobody looks."""
        return self.alone_since is not None

    def emit(self, kind: str, payload: dict[str, Any], but: SessionListener | None = None) -> None:
        """Tell whoever looks, *but* the one who knows already."""
        with self._lock:
            listeners = list(self._listeners)
        self._send(listeners, kind, payload, but)

    def _send(
        self,
        listeners: list[SessionListener],
        kind: str,
        payload: dict[str, Any],
        but: SessionListener | None = None,
    ) -> None:
        for listener in listeners:
            if listener is not but:
                listener.event(kind, self.id, payload)

    # What is known

    @property
    def is_running(self) -> bool:
        """Whether a turn is under way."""
        return self._is_running

    def status(self) -> str:
        """In a word: idle, working, or waiting for an answer."""
        if not self._is_running:
            return "idle"
        return "waiting" if self.questions.open_ones() else "working"

    def info(self) -> dict[str, Any]:
        """What a front end shows beside the conversation."""
        row = self.conversation.row()
        return {
            "model": self.conversation.agent.model,
            "window": self.conversation.agent.window,
            "context_tokens": self.conversation.agent.context_tokens,
            "cwd": str(self.conversation.agent.cwd),
            "title": row.get("title"),
            "running": self.is_running,
            "stored_session_id": self.conversation.session_id,
            "message_count": row.get("message_count") or 0,
            "usage": usage(row),
        }

    def messages(self) -> list[dict[str, Any]]:
        """The conversation so far, as it is shown."""
        if not self.conversation.exists:
            return []
        return [
            as_shown(row) for row in self.conversation.db.get_messages(self.conversation.session_id)
        ]

    # Changes that no turn may meet

    @contextlib.contextmanager
    def changing(self) -> Iterator[Conversation]:
        """Change the conversation while no turn runs; input typed meanwhile is submitted after."""
        with self._lock:
            if self._is_running or self._is_changing:
                raise RpcError(BUSY, OCCUPIED)
            self._is_changing = True
        self.questions.begin()
        try:
            yield self.conversation
        finally:
            with self._lock:
                self._is_changing = False
                following = self._pending.after_turn(is_complete=True).next_input
            if following:
                self.say(following)

    # The turn

    def submit(self, text: str) -> None:
        """Say something; the turn runs on, and its events are sent as they come."""
        with self._lock:
            if self._is_running:
                raise RpcError(BUSY, OCCUPIED)
        self.say(text)

    def say(self, text: str) -> bool:
        """Say something now, or after what is under way; whether it is said now."""
        with self._lock:
            if self._is_running or self._is_changing:
                self._pending.queue(text)
                return False
            self._is_running = True
            self._idle.clear()
        threading.Thread(
            target=lambda: self._run(text), name=f"hermes-turn-{self.id}", daemon=True
        ).start()
        return True

    def steer(self, text: str) -> bool:
        """Say something to the running turn, or now where none runs; whether it is said now."""
        with self._lock:
            if self._is_running:
                self._pending.steer(text)
                return False
        return self.say(text)

    def _run(self, text: str) -> None:
        try:
            while text:
                text = self._turn(text)
        finally:
            self._is_running = False
            self._idle.set()

    def _turn(self, text: str) -> str:
        """One turn; what is to be said next of what waited."""
        self.questions.begin()
        with self._lock:
            self._view.begin(text)
            listeners = list(self._listeners)
        self._send(listeners, "message.start", {"text": text})
        ends: list[dict[str, Any]] = []
        failure = attempt(Step("run a turn", lambda: self._play(text, ends)))
        end = ends[0] if ends else broken(RuntimeError("the turn ended without a word"))
        if failure is not None:
            end = broken(failure.error)
        with self._lock:
            after = self._pending.after_turn(is_complete=end["status"] == "complete")
            self._is_running = bool(after.next_input)
            self._view.end()
            listeners = list(self._listeners)
            if after.returned and not listeners:
                self._returned = after.returned  # for the next client that attaches
        self._send(listeners, "message.complete", {**end, "unread": after.returned})
        attempt(Step("tell how it stands", lambda: self.emit("session.info", self.info())))
        return after.next_input

    def _play(self, text: str, ends: list[dict[str, Any]]) -> None:
        has_begun = False
        self.conversation.agent.on_review = self._remember
        for event in self.conversation.send(text):
            if isinstance(event, events.TurnFinished):
                ends.append(ended(event))
            elif isinstance(event, events.MessageStored):
                self._stored(event, has_begun=has_begun)
                has_begun = True
            else:
                self._tell(event)

    def _remember(self, text: str) -> None:
        """What a look back on the conversation has put into memory, in one line."""
        self.emit("status.update", {"kind": "review", "text": text})

    def _stored(self, event: events.MessageStored, *, has_begun: bool) -> None:
        with self._lock:
            self._view.stored(event.role)
        if event.role == "user" and has_begun:
            self._pending.mark_read()
            self.emit("steer.read", {})

    def _tell(self, event: events.Event) -> None:
        found = told(event)
        if found is None:
            return
        kind, payload = found
        with self._lock:  # whoever looks from now on knows it from what stands here
            self._view.add(kind, payload)
            listeners = list(self._listeners)
        self._send(listeners, kind, payload)

    def interrupt(self, instead: str = "") -> bool:
        """Stop the running turn, to say something *instead* if there is; whether one ran."""
        with self._lock:
            was_running = self._is_running
            if was_running:
                self._pending.hold(instead)
        self.conversation.agent.interrupt()
        self.questions.give_up()
        return was_running

    def wait(self, seconds: float) -> bool:
        """Wait for the turn's end; whether it has ended."""
        return self._idle.wait(timeout=seconds)

    def follow(self, outcome: CommandOutcome) -> bool:
        """Do what a command asks to be done with the running turn; whether it could be."""
        if outcome.answer:
            return self.questions.answer("", outcome.answer)
        if outcome.steer or outcome.queue:
            text = outcome.steer or outcome.queue
            _ = self.steer(text) if outcome.steer else self.say(text)
            return True
        return self.interrupt() if outcome.stop else True

    def as_session(self) -> dict[str, Any]:
        """The session as the finaliser takes it."""
        return {
            "agent": self.conversation.agent if self.conversation.exists else None,
            "history": self.messages(),
            "history_lock": threading.Lock(),
            "session_key": self.conversation.session_id if self.conversation.exists else None,
        }
