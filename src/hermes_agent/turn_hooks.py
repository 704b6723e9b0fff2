"""The hooks of a turn: whoever listens is called through one narrow door."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from hermes_agent.toolbox import Watch
from hermes_agent.tools.base import failure

if TYPE_CHECKING:
    from hermes_agent.messages import Message, ToolCall, Usage

SECONDS: Final = 1000


class Announces(Protocol):
    """Tells everybody who registered for a hook; what they answered."""

    def __call__(self, name: str, **facts: Any) -> list[Any]: ...


def nobody(name: str, **facts: Any) -> list[Any]:
    """No plugins."""
    del name, facts
    return []


class Who(NamedTuple):
    """Which turn of which conversation."""

    session_id: str
    turn_id: str
    task_id: str
    model: str
    platform: str


class TurnHooks:
    """What is announced in one turn."""

    def __init__(self, announce: Announces, who: Who) -> None:
        self._announce = announce
        self._who = who

    def _turn(self) -> dict[str, Any]:
        who = self._who
        return {"session_id": who.session_id, "task_id": who.task_id, "turn_id": who.turn_id}

    def session_starts(self) -> None:
        """The session runs its first turn."""
        who = self._who
        self._announce(
            "on_session_start",
            session_id=who.session_id,
            model=who.model,
            platform=who.platform,
        )

    def turn_starts(self, text: Any, history: list[Message], *, is_first: bool) -> str:
        """What plugins add to the user's message for this turn."""
        who = self._who
        answers = self._announce(
            "pre_llm_call",
            **self._turn(),
            user_message=text,
            conversation_history=history,
            is_first_turn=is_first,
            model=who.model,
            platform=who.platform,
            sender_id="",
        )
        added = [
            answer.get("context") if isinstance(answer, dict) else answer for answer in answers
        ]
        return "\n\n".join(one for one in added if isinstance(one, str) and one)

    def answered(self, text: Any, answer: str, history: list[Message]) -> None:
        """The turn has its final answer."""
        who = self._who
        self._announce(
            "post_llm_call",
            **self._turn(),
            user_message=text,
            assistant_response=answer,
            conversation_history=history,
            model=who.model,
            platform=who.platform,
        )

    def turn_ends(self, *, completed: bool, interrupted: bool) -> None:
        """The turn is over, well or not."""
        who = self._who
        self._announce(
            "on_session_end",
            session_id=who.session_id,
            completed=completed,
            interrupted=interrupted,
            model=who.model,
            platform=who.platform,
        )

    def asked(self, facts: dict[str, Any]) -> None:
        """A request goes to the provider."""
        self._announce("pre_api_request", **self._turn(), **facts)

    def replied(self, facts: dict[str, Any], usage: Usage, finish: str, began: float) -> None:
        """The provider has answered."""
        self._announce(
            "post_api_request",
            **self._turn(),
            **facts,
            duration_ms=round((time.monotonic() - began) * SECONDS),
            response=None,
            usage=usage._asdict(),
            finish_reason=finish,
        )

    def refused(self, facts: dict[str, Any], error: str, *, retryable: bool, began: float) -> None:
        """The provider has failed."""
        self._announce(
            "api_request_error",
            **self._turn(),
            **facts,
            duration_ms=round((time.monotonic() - began) * SECONDS),
            status_code=None,
            retryable=retryable,
            error=error,
        )

    def watch(self, request_id: str) -> Watch:
        """Hooks around the tool calls of one answer."""
        return Watch(
            lambda call, arguments: self._before(call, arguments, request_id),
            lambda call, arguments, result, seconds: self._after(
                call, arguments, result, seconds, request_id
            ),
        )

    def _call(self, call: ToolCall, arguments: dict[str, Any], request_id: str) -> dict[str, Any]:
        return {
            **self._turn(),
            "api_request_id": request_id,
            "tool_call_id": call.id,
            "tool_name": call.name,
            "args": arguments,
        }

    def _before(self, call: ToolCall, arguments: dict[str, Any], request_id: str) -> str | None:
        for answer in self._announce("pre_tool_call", **self._call(call, arguments, request_id)):
            if isinstance(answer, dict) and answer.get("action") == "block":
                return failure(str(answer.get("message") or "A plugin blocked this."))
        return None

    def _after(
        self,
        call: ToolCall,
        arguments: dict[str, Any],
        result: str,
        seconds: float,
        request_id: str,
    ) -> str:
        facts = self._call(call, arguments, request_id)
        self._announce(
            "post_tool_call",
            **facts,
            result=result,
            duration_ms=round(seconds * SECONDS),
            status="ok",
            error_type=None,
            error_message=None,
        )
        changed = self._announce("transform_tool_result", **facts, result=result)
        return next((one for one in changed if isinstance(one, str)), result)
