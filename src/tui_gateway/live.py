"""A live session: a conversation that is open here, and the turn that runs in it.

Whoever looks at it is told what happens; nobody needs to. A turn goes on when the last
terminal is closed, and is found as it stands by the next one.
"""

from __future__ import annotations

import os
import threading
import time
from typing import TYPE_CHECKING, Any, Protocol

from hermes_agent import events
from hermes_cli.desk import Desk
from hermes_core.isolate import Step, attempt
from tui_gateway import telling
from tui_gateway.frames import BUSY, RpcError
from tui_gateway.questions import Questions
from tui_gateway.unread import Unread

if TYPE_CHECKING:
    from hermes_cli.slash import Outcome
    from hermes_cli.talking import Wish
    from hermes_state import SessionDB

FIELDS = (
    "id", "role", "content", "reasoning", "tool_name", "tool_calls", "timestamp", "finish_reason",
)  # fmt: skip


class Listener(Protocol):
    """Somebody who looks at a conversation."""

    def event(self, kind: str, session_id: str, payload: dict[str, Any]) -> None:
        """Hear that something happened."""


class Live:
    """One open conversation; its live id is not the id it is stored under."""

    def __init__(self, db: SessionDB, wish: Wish) -> None:
        self.id = os.urandom(4).hex()
        self.questions = Questions(self.emit)
        self.desk = Desk(db, self.questions, wish)
        self.started_at = time.time()
        self.closes_when_alone = False
        self.alone_since: float | None = time.monotonic()
        self._listeners: list[Listener] = []
        self._is_running = False
        self._idle = threading.Event()
        self._idle.set()
        self._lock = threading.Lock()
        self._unread = Unread()
        self._shown = ""  # of the answer that is under way
        self._tools: dict[str, dict[str, Any]] = {}  # those that run

    # Who looks

    def attach(self, listener: Listener) -> None:
        """Tell *listener* from now on."""
        with self._lock:
            if listener not in self._listeners:
                self._listeners.append(listener)
            self.alone_since = None

    def detach(self, listener: Listener) -> None:
        """Tell *listener* no more."""
        with self._lock:
            if listener in self._listeners:
                self._listeners.remove(listener)
                if not self._listeners:
                    self.alone_since = time.monotonic()

    def emit(self, kind: str, payload: dict[str, Any]) -> None:
        """Tell whoever looks."""
        with self._lock:
            listeners = list(self._listeners)
        for listener in listeners:
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
        row = self.desk.row()
        return {
            "model": self.desk.agent.model,
            "window": self.desk.agent.window,
            "context_tokens": self.desk.agent.context_tokens,
            "cwd": str(self.desk.agent.cwd),
            "title": row.get("title"),
            "running": self.is_running,
            "stored_session_id": self.desk.session_id,
            "message_count": row.get("message_count") or 0,
            "usage": usage(row),
        }

    def messages(self) -> list[dict[str, Any]]:
        """The conversation so far, as it is shown."""
        if not self.desk.exists:
            return []
        rows = self.desk.db.get_messages(self.desk.session_id)
        return [{name: row.get(name) for name in FIELDS} for row in rows]

    def inflight(self) -> dict[str, Any] | None:
        """What a running turn has shown and not stored as a message yet."""
        with self._lock:
            if not self._is_running:
                return None
            tools = [dict(tool) for tool in self._tools.values()]
            return {"text": self._shown, "tools": tools, "questions": self.questions.open_ones()}

    # The turn

    def submit(self, text: str) -> None:
        """Say something; the turn runs on, and its events are sent as they come."""
        with self._lock:
            if self._is_running:
                raise RpcError(BUSY, "a turn is running; wait for it, interrupt it, or steer it")
            self._is_running = True
            self._idle.clear()
        threading.Thread(
            target=lambda: self._run(text), name=f"hermes-turn-{self.id}", daemon=True
        ).start()

    def _run(self, text: str) -> None:
        while text:
            text = self._turn(text)

    def _turn(self, text: str) -> str:
        """One turn; what is to be said next of what waited."""
        self._shown = ""
        self._tools = {}
        self.emit("message.start", {"text": text})
        ends: list[dict[str, Any]] = []
        failure = attempt(Step("run a turn", lambda: self._play(text, ends)))
        end = ends[0] if ends else None
        if failure is not None:
            end = telling.broken(failure.error)
        end = end or telling.broken(RuntimeError("the turn ended without a word"))
        is_well = end["status"] == "complete"
        with self._lock:
            steering = self.desk.agent.take_steering()
            following, back = self._unread.after(steering, is_well=is_well)
            self._is_running = bool(following)
            self._shown = ""
        self.emit("message.complete", {**end, "unread": back})
        self.emit("session.info", self.info())
        if not following:
            self._idle.set()
        return following

    def _play(self, text: str, ends: list[dict[str, Any]]) -> None:
        has_begun = False
        self.desk.agent.on_review = self._remember
        for event in self.desk.say(text):
            if isinstance(event, events.TurnFinished):
                ends.append(telling.ended(event))
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
            if event.role == "assistant":
                self._shown = ""
        if event.role == "user" and has_begun:
            self.emit("steer.read", {})

    def _tell(self, event: events.Event) -> None:
        found = telling.told(event)
        if found is None:
            return
        kind, payload = found
        with self._lock:
            if kind == "message.delta":
                self._shown += payload["text"]
            elif kind == "tool.start":
                self._tools[payload["tool_id"]] = payload
            elif kind == "tool.complete":
                self._tools.pop(payload["tool_id"], None)
        self.emit(kind, payload)

    def steer(self, text: str) -> bool:
        """Say something to the running turn; False when none runs."""
        with self._lock:
            if self._is_running:
                self.desk.agent.steer(text)
            return self._is_running

    def say_later(self, text: str) -> bool:
        """Say something when the running turn is over; False when none runs."""
        with self._lock:
            if self._is_running:
                self._unread.add(text)
            return self._is_running

    def interrupt(self, instead: str = "") -> bool:
        """Stop the running turn, to say something *instead* if there is; whether one ran."""
        with self._lock:
            was_running = self._is_running
            if was_running:
                self._unread.hold(instead)
        self.desk.agent.interrupt()
        self.questions.give_up()
        return was_running

    def wait(self, seconds: float) -> bool:
        """Wait for the turn's end; whether it has ended."""
        return self._idle.wait(timeout=seconds)

    def follow(self, outcome: Outcome) -> bool:
        """Do what a command asks to be done with the running turn; whether there was one."""
        if outcome.answer:
            return self.questions.answer("", outcome.answer)
        if outcome.steer:
            return self.steer(outcome.steer)
        if outcome.queue:
            return self.say_later(outcome.queue)
        return self.interrupt() if outcome.stop else True

    def as_session(self) -> dict[str, Any]:
        """The session as the finaliser takes it."""
        return {
            "agent": self.desk.agent if self.desk.exists else None,
            "history": self.messages(),
            "history_lock": threading.Lock(),
            "session_key": self.desk.session_id if self.desk.exists else None,
        }


def usage(row: dict[str, Any]) -> dict[str, Any]:
    """The tokens of a conversation, and what they cost where that is known."""
    names = ("input", "output", "cache_read", "cache_write", "reasoning")
    cost = row.get("actual_cost_usd")
    return {
        **{name: row.get(f"{name}_tokens") or 0 for name in names},
        "cost_usd": row.get("estimated_cost_usd") if cost is None else cost,
    }
