"""Calls the plugin hooks of a turn."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, TypedDict

from hermes_agent.toolbox import ToolHooks
from hermes_agent.tools.base import failure

if TYPE_CHECKING:
    from hermes_agent.messages import Message, ToolCall, Usage
    from hermes_core.json_values import JsonObject

MS_PER_SECOND: Final = 1000


class HookInvoker(Protocol):
    """Calls the plugins registered for a hook; returns their results."""

    def __call__(self, name: str, **facts: Any) -> list[Any]: ...


def no_plugins(name: str, **facts: Any) -> list[Any]:
    """No plugins."""
    del name, facts
    return []


class TurnIdentity(NamedTuple):
    """The identity of a turn."""

    session_id: str
    turn_id: str
    task_id: str
    model: str
    platform: str


class RequestFields(TypedDict):
    """A request to a provider, as hooks get it."""

    api_request_id: str
    model: str
    provider: str
    base_url: str
    api_mode: str
    message_count: int
    tool_count: int


class TurnHooks:
    """The hook calls of one turn."""

    def __init__(self, announce: HookInvoker, identity: TurnIdentity) -> None:
        self._announce = announce
        self._identity = identity

    def _turn(self) -> dict[str, str]:
        identity = self._identity
        return {
            "session_id": identity.session_id,
            "task_id": identity.task_id,
            "turn_id": identity.turn_id,
        }

    def session_started(self) -> None:
        """Announce the first turn of a session."""
        identity = self._identity
        self._announce(
            "on_session_start",
            session_id=identity.session_id,
            model=identity.model,
            platform=identity.platform,
        )

    def turn_started(self, text: Any, history: list[Message], *, is_first: bool) -> str:
        """Announce the turn; returns the context that plugins add to the prompt."""
        identity = self._identity
        results = self._announce(
            "pre_llm_call",
            **self._turn(),
            user_message=text,
            conversation_history=history,
            is_first_turn=is_first,
            model=identity.model,
            platform=identity.platform,
            sender_id="",
        )
        added = [
            result.get("context") if isinstance(result, dict) else result for result in results
        ]
        return "\n\n".join(context for context in added if isinstance(context, str) and context)

    def turn_completed(self, text: Any, answer: str, history: list[Message]) -> None:
        """Announce the final answer."""
        identity = self._identity
        self._announce(
            "post_llm_call",
            **self._turn(),
            user_message=text,
            assistant_response=answer,
            conversation_history=history,
            model=identity.model,
            platform=identity.platform,
        )

    def turn_ended(self, *, completed: bool, interrupted: bool) -> None:
        """Announce the end of the turn."""
        identity = self._identity
        self._announce(
            "on_session_end",
            session_id=identity.session_id,
            completed=completed,
            interrupted=interrupted,
            model=identity.model,
            platform=identity.platform,
        )

    def request_started(self, fields: RequestFields) -> None:
        """Announce a request to the provider."""
        self._announce("pre_api_request", **self._turn(), **fields, request=None)

    def request_completed(
        self, fields: RequestFields, usage: Usage, finish: str, started_at: float
    ) -> None:
        """Announce a successful request."""
        self._announce(
            "post_api_request",
            **self._turn(),
            **fields,
            duration_ms=round((time.monotonic() - started_at) * MS_PER_SECOND),
            response=None,
            usage=usage._asdict(),
            finish_reason=finish,
        )

    def request_failed(
        self, fields: RequestFields, error: str, *, retryable: bool, started_at: float
    ) -> None:
        """Announce a failed request."""
        self._announce(
            "api_request_error",
            **self._turn(),
            **fields,
            duration_ms=round((time.monotonic() - started_at) * MS_PER_SECOND),
            status_code=None,
            retryable=retryable,
            error=error,
        )

    def tool_hooks(self, request_id: str) -> ToolHooks:
        """The hooks around the tool calls of one answer."""
        return ToolHooks(
            lambda call, arguments: self._before(call, arguments, request_id),
            lambda call, arguments, result, seconds: self._after(
                call, arguments, result, seconds, request_id
            ),
        )

    def _call(self, call: ToolCall, arguments: JsonObject, request_id: str) -> JsonObject:
        return {
            **self._turn(),
            "api_request_id": request_id,
            "tool_call_id": call.id,
            "tool_name": call.name,
            "args": arguments,
        }

    def _before(self, call: ToolCall, arguments: JsonObject, request_id: str) -> str | None:
        for decision in self._announce("pre_tool_call", **self._call(call, arguments, request_id)):
            if isinstance(decision, dict) and decision.get("action") == "block":
                return failure(str(decision.get("message") or "A plugin blocked this call."))
        return None

    def _after(
        self,
        call: ToolCall,
        arguments: JsonObject,
        result: str,
        seconds: float,
        request_id: str,
    ) -> str:
        fields = self._call(call, arguments, request_id)
        self._announce(
            "post_tool_call",
            **fields,
            result=result,
            duration_ms=round(seconds * MS_PER_SECOND),
            status="ok",
            error_type=None,
            error_message=None,
        )
        changed = self._announce("transform_tool_result", **fields, result=result)
        return next((text for text in changed if isinstance(text, str)), result)
