"""AIAgent: one conversation, bound to the store.

It can be left and taken up again by any process: nothing that matters lives in it.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermes_agent.cancel import Cancel
from hermes_agent.compaction import compact, is_due
from hermes_agent.events import Failed, Notice, TextDelta, TurnEnd, TurnFinished, UsageReport
from hermes_agent.hearing import Hearing, Who, nobody
from hermes_agent.heartbeat import beating
from hermes_agent.keeping import Keeping
from hermes_agent.messages import Usage
from hermes_agent.toolbox import no_guard
from hermes_agent.turn import Means, Turn
from hermes_core.ids import new_session_id

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from hermes_agent.compaction import Compacted
    from hermes_agent.events import Event
    from hermes_agent.hearing import Announces
    from hermes_agent.messages import Message
    from hermes_agent.providers.patient import Patient
    from hermes_agent.toolbox import Guard, Toolbox
    from hermes_agent.tools.base import ApprovalRequest
    from hermes_state import SessionDB


class NobodyToAsk:
    """Nobody is there: nothing risky is allowed, no question is answered."""

    def approve(self, request: ApprovalRequest) -> str:
        """No."""
        del request
        return "deny"

    def clarify(self, question: str, choices: list[str]) -> str:
        """No answer."""
        del question, choices
        return ""


class AIAgent:
    """A conversation that can be talked to."""

    def __init__(
        self,
        store: SessionDB,
        patient: Patient,
        toolbox: Toolbox,
        *,
        session_id: str | None = None,
        platform: str = "cli",
        source: str | None = None,
        cwd: Path | None = None,
        system_prompt: str = "",
        asks: Any = None,
        announce: Announces = nobody,
        guard: Guard = no_guard,
        on_finalize: Callable[[list[Message]], object] | None = None,
        **facts: Any,
    ) -> None:
        self.session_id = session_id or new_session_id(store.clock)
        self.platform = platform
        self.cwd = cwd or Path.cwd()
        self.asks = asks or NobodyToAsk()
        self._store = store
        self._patient = patient
        self._toolbox = toolbox
        self._prompt = system_prompt
        self._announce = announce
        self._guard = guard
        self._on_finalize = on_finalize
        self._session_messages: list[Message] | None = None
        self.has_announced_end = False
        self._cancel = Cancel()
        self._steering: list[str] = []
        self.context_tokens = 0  # of the last request: how full the window is
        self._lock = threading.Lock()
        self.keeping = Keeping(
            store,
            self.session_id,
            source or platform,
            model=patient.current.model,
            system_prompt=system_prompt or None,
            cwd=str(self.cwd),
            **facts,
        )

    @property
    def model(self) -> str:
        """The model that answers."""
        return self._patient.current.model

    @property
    def window(self) -> int:
        """How many tokens the model can read at once."""
        return self._patient.current.window

    # Talking

    def turn(self, content: Any, **fields: Any) -> Iterator[Event]:
        """Say something; the events of the turn, the last of which is TurnFinished."""
        self._cancel = Cancel()
        self.has_announced_end = False
        is_new = self.keeping.begin()
        turn_id = self._store.ids.new()
        hearing = Hearing(self._announce, self._who(turn_id))
        if is_new:
            hearing.session_starts()
        lease = self.keeping.take_turn(f"{self.platform}, {self.model}")
        finished: TurnFinished | None = None
        last_usage = Usage()
        try:
            turn = Turn(turn_id, self._means(hearing), lease)
            with beating(lambda: self.keeping.renew_turn(lease), self._lose_turn):
                for event in turn.run(content, is_first=is_new, **fields):
                    if isinstance(event, TurnFinished):
                        finished = event
                        self._session_messages = list(turn.messages)
                    else:
                        if isinstance(event, UsageReport):
                            last_usage = event.request
                            self.context_tokens = last_usage.context or self.context_tokens
                        yield event
                if finished is not None and finished.end is TurnEnd.COMPLETE:
                    yield from self._make_room(last_usage)
        finally:
            self.keeping.give_turn_back(lease)
            is_complete = finished is not None and finished.end is TurnEnd.COMPLETE
            is_stopped = finished is None or finished.end is TurnEnd.INTERRUPTED
            hearing.turn_ends(completed=is_complete, interrupted=is_stopped)
            self.has_announced_end = True
        if finished is not None:
            yield finished

    def compress(self, focus: str = "") -> Compacted | Failed:
        """Sum up what was said before, so that there is room to go on."""
        result = compact(self.keeping, self._patient, self._prompt, self._cancel, focus)
        if any(result.usage):
            self.keeping.spend(result.usage, self.model)
        return result

    def _make_room(self, usage: Usage) -> Iterator[Event]:
        """Compact when the last request was close to what the model can read."""
        if not is_due(usage.context, self.window):
            return
        result = self.compress()
        if isinstance(result, Failed):
            yield Notice(f"The conversation is long, and could not be summed up: {result}")
        elif result.summary:
            yield Notice("Older messages were summed up to make room; the history keeps them all.")

    def _lose_turn(self) -> None:
        """Another process has taken the conversation over: this one stops."""
        self.interrupt("taken over by another process")

    def interrupt(self, reason: str = "interrupted") -> None:
        """Stop the running turn; what was shown is kept."""
        self._cancel.request(reason)

    def steer(self, text: str) -> None:
        """Say something while a turn runs: the model reads it after the next tool result."""
        with self._lock:
            self._steering.append(text)

    def take_steering(self) -> str:
        """What was said to the turn and not read by it yet; it is read now."""
        with self._lock:
            found, self._steering = self._steering, []
        return "\n\n".join(found)

    def _who(self, turn_id: str) -> Who:
        return Who(self.session_id, turn_id, self.session_id, self.model, self.platform)

    def _means(self, hearing: Hearing) -> Means:
        return Means(
            self.keeping,
            self._patient,
            self._toolbox,
            hearing,
            self.asks,
            self._guard,
            self.cwd,
            self._prompt,
            self._cancel,
            self.take_steering,
        )

    def run_conversation(
        self,
        user_message: Any,
        system_message: str | None = None,
        conversation_history: list[Message] | None = None,
        task_id: str | None = None,
        stream_callback: Callable[[str], object] | None = None,
        **_ignored: Any,
    ) -> dict[str, Any]:
        """Say something and wait for the end of the turn; what became of it."""
        del task_id
        if system_message is not None:
            self._prompt = system_message
        if conversation_history:
            self._persist_session(conversation_history)
        last: TurnFinished | None = None
        for event in self.turn(user_message):
            if isinstance(event, TextDelta) and stream_callback is not None:
                stream_callback(event.text)
            if isinstance(event, TurnFinished):
                last = event
        usage = last.usage if last else Usage()
        end = last.end if last else TurnEnd.FAILED
        return {
            "final_response": last.text if last else "",
            "messages": self._session_messages or [],
            "completed": end is TurnEnd.COMPLETE,
            "failed": end is TurnEnd.FAILED,
            "interrupted": end is TurnEnd.INTERRUPTED,
            "turn_exit_reason": str(end),
            "error": (last.error or None) if last else None,
            "session_id": self.session_id,
            **{f"{name}_tokens": value for name, value in usage._asdict().items()},
        }

    # Ending

    def _persist_session(
        self, messages: list[Message], conversation_history: list[Message] | None = None
    ) -> None:
        """Make sure that *messages* are stored, once each.

        The store knows a message by its durable identity, and where it has none by its
        place and content; what the caller takes to be old decides nothing.
        """
        del conversation_history
        self.keeping.begin()
        stored = self._store.get_messages_as_conversation(self.session_id)
        missing = _missing(messages, stored)
        if missing:
            self._store.append_messages_batch(self.session_id, missing)

    def close(self) -> None:
        """Let go of connections; the conversation stays where it is, in the store."""
        self._patient.close()

    def commit_memory_session(self, history: list[Message]) -> None:
        """The conversation is over: let memory be made of it."""
        if self._on_finalize is not None:
            self._on_finalize(history)


def _missing(messages: list[Message], stored: list[Message]) -> list[Message]:
    """What is not stored yet: everything behind the longest common beginning."""
    same = 0
    while same < min(len(messages), len(stored)) and _is_same(messages[same], stored[same]):
        same += 1
    if same < len(stored):  # the stored history knows more, or other things: it is right
        known = {_key(one) for one in stored}
        return [one for one in messages[same:] if _key(one) not in known]
    return messages[same:]


def _is_same(one: Message, other: Message) -> bool:
    return _key(one) == _key(other)


def _key(message: Message) -> tuple[str, str, str]:
    return (
        str(message.get("role")),
        str(message.get("content") or ""),
        str(message.get("tool_call_id") or ""),
    )
