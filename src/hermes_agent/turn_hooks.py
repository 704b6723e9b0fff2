"""Calls the plugin hooks of a turn."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, TypedDict

from hermes_agent.toolbox import ToolHooks
from hermes_core.hooks import GuardFailure

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes_agent.events import Failed, Reply
    from hermes_agent.messages import Message, ModelRequest, ToolCall, Usage
    from hermes_agent.toolbox import CallOutcome
    from hermes_core.json_values import JsonObject

MS_PER_SECOND: Final = 1000


class HookInvoker(Protocol):
    """Calls the plugins registered for a hook; returns their results."""

    def __call__(self, name: str, **facts: Any) -> list[Any]: ...


def no_plugins(name: str, **facts: Any) -> list[Any]:
    """No plugins."""
    del name, facts
    return []


def _unchanged(_facts: JsonObject, arguments: JsonObject) -> JsonObject:
    return arguments


def _executed(_facts: JsonObject, arguments: JsonObject, run: Callable[[JsonObject], str]) -> str:
    return run(arguments)


class TurnPlugins(NamedTuple):
    """What plugins do in a turn besides callbacks of hooks; the default: nothing."""

    has_hook: Callable[[str], bool] = lambda _name: False
    # Both get the facts of a tool call and its arguments.
    change_arguments: Callable[[JsonObject, JsonObject], JsonObject] = _unchanged
    execute: Callable[[JsonObject, JsonObject, Callable[[JsonObject], str]], str] = _executed


class TurnIdentity(NamedTuple):
    """The identity of a turn."""

    session_id: str
    turn_id: str
    task_id: str
    model: str
    platform: str
    sender_id: str = ""  # of the person in a chat


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

    def __init__(
        self, announce: HookInvoker, identity: TurnIdentity, plugins: TurnPlugins | None = None
    ) -> None:
        self._announce = announce
        self._identity = identity
        self._plugins = plugins or TurnPlugins()

    @property
    def changes_answers(self) -> bool:
        """Whether a plugin may change answers, so that they are not shown before."""
        return self._plugins.has_hook("transform_llm_output")

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
            sender_id=identity.sender_id,
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

    def continuation(self, text: str, continuations: int) -> str:
        """Why the turn continues after its final answer; empty if it ends."""
        identity = self._identity
        decisions = self._announce(
            "pre_turn_end",
            **self._turn(),
            response_text=text,
            continuations=continuations,
            model=identity.model,
            platform=identity.platform,
        )
        for decision in decisions:
            if isinstance(decision, dict) and decision.get("action") == "continue":
                return str(decision.get("message") or "A hook asks to continue.")
        return ""

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

    def final_answer(self, text: str) -> str:
        """The final answer as plugins change it; an empty text of a plugin changes nothing."""
        identity = self._identity
        changed = self._announce(
            "transform_llm_output",
            **self._turn(),
            response_text=text,
            model=identity.model,
            platform=identity.platform,
        )
        return next((answer for answer in changed if isinstance(answer, str) and answer), text)

    def _request(self, fields: RequestFields) -> dict[str, Any]:
        return {**self._turn(), "platform": self._identity.platform, **fields}

    def request_started(self, fields: RequestFields, request: ModelRequest) -> None:
        """Announce a request to the provider."""
        document = {
            "model": fields["model"],
            "messages": list(request.messages),
            "tools": request.tools,
            "max_tokens": request.max_tokens,
        }
        self._announce("pre_api_request", **self._request(fields), request=document)

    def request_completed(
        self, fields: RequestFields, usage: Usage, reply: Reply, started_at: float
    ) -> None:
        """Announce a successful request."""
        document = {
            "content": reply.text,
            "reasoning": reply.reasoning,
            "tool_calls": [call.stored() for call in reply.calls],
        }
        self._announce(
            "post_api_request",
            **self._request(fields),
            duration_ms=round((time.monotonic() - started_at) * MS_PER_SECOND),
            response=document,
            usage=usage._asdict(),
            finish_reason=reply.finish_reason,
        )

    def request_failed(self, fields: RequestFields, failed: Failed, started_at: float) -> None:
        """Announce a failed request."""
        self._announce(
            "api_request_error",
            **self._request(fields),
            duration_ms=round((time.monotonic() - started_at) * MS_PER_SECOND),
            status_code=failed.status_code,
            retryable=failed.is_transient,
            error=str(failed),
        )

    def tool_hooks(self, request_id: str) -> ToolHooks:
        """The hooks around the tool calls of one answer."""
        plugins = self._plugins

        def facts(call: ToolCall, arguments: JsonObject) -> JsonObject:
            return self._call(call, arguments, request_id)

        return ToolHooks(
            before=lambda call, arguments: self._before(facts(call, arguments)),
            after=lambda call, arguments, outcome, seconds: self._after(
                facts(call, arguments), outcome, seconds
            ),
            output=self._output,
            arguments=lambda call, arguments: plugins.change_arguments(
                facts(call, arguments), arguments
            ),
            execute=lambda call, arguments, run: plugins.execute(
                facts(call, arguments), arguments, run
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

    def _before(self, facts: JsonObject) -> str | None:
        for decision in self._announce("pre_tool_call", **facts):
            if isinstance(decision, GuardFailure):
                return f"This call was blocked: {decision}."
            if isinstance(decision, dict) and decision.get("action") == "block":
                return str(decision.get("message") or "A plugin blocked this call.")
        return None

    def _output(self, call: ToolCall, command: str, output: str, exit_code: int | None) -> str:
        changed = self._announce(
            "transform_terminal_output",
            **self._turn(),
            tool_call_id=call.id,
            command=command,
            output=output,
            exit_code=exit_code,
        )
        return next((text for text in changed if isinstance(text, str)), output)

    def _after(self, facts: JsonObject, outcome: CallOutcome, seconds: float) -> str:
        self._announce(
            "post_tool_call",
            **facts,
            result=outcome.result,
            duration_ms=round(seconds * MS_PER_SECOND),
            status=outcome.status,
            error_type=outcome.error_type,
            error_message=outcome.error_message,
        )
        if outcome.status not in {"ok", "error"}:
            return outcome.result  # the tool did not run
        changed = self._announce("transform_tool_result", **facts, result=outcome.result)
        return next((text for text in changed if isinstance(text, str)), outcome.result)
