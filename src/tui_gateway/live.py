"""A live session: a conversation somebody has open, its running turn, its open questions."""

from __future__ import annotations

import os
import threading
import time
from typing import TYPE_CHECKING, Any

from hermes_agent import events
from hermes_cli import talking
from hermes_cli.desk import Desk
from hermes_core.isolate import Step, attempt
from tui_gateway.frames import BUSY, RpcError
from tui_gateway.questions import Questions

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes_cli.talking import Wish
    from hermes_state import SessionDB

STATUS = {
    events.TurnEnd.COMPLETE: "complete",
    events.TurnEnd.TOO_LONG: "complete",
    events.TurnEnd.INTERRUPTED: "interrupted",
    events.TurnEnd.FAILED: "error",
}


class Live:
    """One open conversation; its live id is not the id it is stored under."""

    def __init__(
        self, db: SessionDB, wish: Wish, send: Callable[[str, str, dict[str, Any]], None]
    ) -> None:
        self.id = os.urandom(4).hex()
        self._send = send
        self.questions = Questions(self.emit)
        self.desk = Desk(db, self.questions, wish)
        self.started_at = time.time()
        self.shown = ""  # of the answer that is under way
        self._turn: threading.Thread | None = None
        self._lock = threading.Lock()

    def emit(self, kind: str, payload: dict[str, Any]) -> None:
        """Tell whoever listens to this session."""
        self._send(kind, self.id, payload)

    @property
    def is_running(self) -> bool:
        """Whether a turn is under way."""
        return self._turn is not None and self._turn.is_alive()

    def info(self) -> dict[str, Any]:
        """What a front end shows beside the conversation."""
        row = self.desk.row()
        return {
            "model": self.desk.agent.model,
            "cwd": str(self.desk.agent.cwd),
            "title": row.get("title"),
            "running": self.is_running,
            "stored_session_id": self.desk.session_id,
            "message_count": row.get("message_count") or 0,
        }

    def messages(self) -> list[dict[str, Any]]:
        """The conversation so far, as it is shown."""
        if not self.desk.exists:
            return []
        names = ("id", "role", "content", "tool_name", "tool_calls", "timestamp", "finish_reason")
        rows = self.desk.db.get_messages(self.desk.session_id)
        return [{name: row.get(name) for name in names} for row in rows]

    def submit(self, text: str) -> None:
        """Say something; the turn runs on, and its events are sent as they come."""
        with self._lock:
            if self.is_running:
                raise RpcError(BUSY, "a turn is running; wait for it, interrupt it, or steer it")
            self.shown = ""
            self._turn = threading.Thread(
                target=lambda: self._run(text), name=f"hermes-turn-{self.id}", daemon=True
            )
            self._turn.start()

    def _run(self, text: str) -> None:
        self.emit("message.start", {})
        failure = attempt(Step("run a turn", lambda: self._play(text)))
        if failure is not None:
            self.emit("error", {"message": str(failure.error)})
            self._complete("", "error", str(failure.error), {})
        self.emit("session.info", self.info())

    def _play(self, text: str) -> None:
        for event in self.desk.say(text):
            self._tell(event)

    def _tell(self, event: events.Event) -> None:
        if isinstance(event, events.TextDelta):
            self.shown += event.text
            self.emit("message.delta", {"text": event.text})
        elif isinstance(event, events.ReasoningDelta):
            self.emit("reasoning.delta", {"text": event.text})
        elif isinstance(event, events.ToolStarted):
            self.emit(
                "tool.start",
                {
                    "tool_id": event.call.id,
                    "name": event.call.name,
                    "context": talking.summary(event.call.name, event.call.arguments),
                    "args_text": event.call.arguments,
                },
            )
        elif isinstance(event, events.ToolOutput):
            self.emit("tool.output", {"tool_id": event.call_id, "text": event.text})
        elif isinstance(event, events.ToolFinished):
            self.emit(
                "tool.complete",
                {
                    "tool_id": event.call.id,
                    "name": event.call.name,
                    "result": event.result,
                    "duration_s": round(event.seconds, 3),
                },
            )
        else:
            self._tell_the_rest(event)

    def _tell_the_rest(self, event: events.Event) -> None:
        if isinstance(event, events.Retrying):
            self.emit("status.update", {"kind": "retrying", "text": event.reason})
        elif isinstance(event, events.Notice):
            self.emit("status.update", {"kind": "status", "text": event.text})
        elif isinstance(event, events.TurnFinished):
            usage = event.usage._asdict()
            self._complete(event.text, STATUS[event.end], event.error, usage)

    def _complete(self, text: str, status: str, error: str, usage: dict[str, int]) -> None:
        payload = {"text": text, "status": status, "error": error or None, "usage": usage}
        self.emit("message.complete", payload)

    def interrupt(self) -> bool:
        """Stop the running turn; whether there was one."""
        was_running = self.is_running
        self.desk.agent.interrupt()
        self.questions.give_up()
        return was_running

    def wait(self, seconds: float) -> bool:
        """Wait for the turn's end; whether it has ended."""
        if self._turn is not None:
            self._turn.join(timeout=seconds)
        return not self.is_running

    def as_session(self) -> dict[str, Any]:
        """The session as the finaliser takes it."""
        return {
            "agent": self.desk.agent if self.desk.exists else None,
            "history": self.messages(),
            "history_lock": threading.Lock(),
            "session_key": self.desk.session_id if self.desk.exists else None,
        }
