"""The output of one question for programs: one object, or typed events line by line."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypedDict

from hermes_agent import events
from hermes_cli.commands.chat.turn_printer import exit_code

if TYPE_CHECKING:
    from hermes_agent.messages import Usage
    from hermes_cli.output import CommandOutput
    from hermes_conversation.conversation import Conversation

    OutputFormat = Literal["json", "stream-json"]


TEXT_TYPES: Final = {
    events.TextDelta: "text",
    events.ReasoningDelta: "reasoning",
    events.Notice: "notice",
}


class UsageFields(TypedDict):
    """Tokens of the turn."""

    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    reasoning_tokens: int


class ErrorFields(TypedDict):
    """Why a turn failed."""

    kind: str
    message: str
    status: int | None
    request_id: str | None
    retry_after: float | None


class ResultFields(TypedDict):
    """The end of a turn."""

    type: str
    session_id: str
    model: str
    text: str
    end: str
    finish_reason: str
    problem: str | None
    notice: str | None
    error: ErrorFields | None
    usage: UsageFields
    cost_usd: float | None
    steps: int
    seconds: float
    exit_code: int


class _Run(NamedTuple):
    """What is known of a turn before it ends."""

    started_at: float
    cost_before: float | None


class StructuredPrinter:
    """Sends a prompt to the agent and prints the turn as JSON."""

    def __init__(
        self, conversation: Conversation, out: CommandOutput, output_format: OutputFormat
    ) -> None:
        self._conversation = conversation
        self._out = out
        self._is_streamed = output_format == "stream-json"
        self._steps = 0

    def run_turn(self, text: str) -> int:
        """Run one turn; return the exit code."""
        run = _Run(time.monotonic(), self._cost())
        code = 1
        for event in self._conversation.send(text):
            if isinstance(event, events.UsageReport):
                self._steps += 1
            if isinstance(event, events.TurnFinished):
                code = exit_code(event)
                self._print(self._result(event, run, code))
            elif self._is_streamed:
                fields = self._fields(event)
                if fields is not None:
                    self._print(fields)
        return code

    def _print(self, fields: object) -> None:
        self._out.json_line(fields)
        self._out.flush()

    def _fields(self, event: events.Event) -> dict[str, object] | None:
        """An event for programs; None for one that they do not need."""
        match event:
            case events.TurnStarted():
                agent = self._conversation.agent
                return {
                    "type": "session",
                    "session_id": event.session_id,
                    "model": agent.model,
                    "cwd": str(agent.cwd),
                }
            case events.TextDelta() | events.ReasoningDelta() | events.Notice():
                return {"type": TEXT_TYPES[type(event)], "text": event.text}
            case events.UsageReport():
                return {"type": "usage", "model": event.model, **_usage(event.request)}
            case events.Retrying():
                return {
                    "type": "retry",
                    "reason": event.reason,
                    "seconds": event.seconds,
                    "attempt": event.attempt,
                    "max_attempts": event.max_attempts,
                    "model": event.model or None,
                    "drops_text": event.drops_text,
                }
        return _tool_fields(event)

    def _result(self, finished: events.TurnFinished, run: _Run, code: int) -> ResultFields:
        after = self._cost()
        return {
            "type": "result",
            "session_id": self._conversation.session_id,
            "model": self._conversation.agent.model,
            "text": finished.text,
            "end": str(finished.end),
            "finish_reason": finished.finish_reason,
            "problem": finished.problem,
            "notice": finished.notice or None,
            "error": _error(finished),
            "usage": _usage(finished.usage),
            "cost_usd": None if after is None else round(after - (run.cost_before or 0.0), 6),
            "steps": self._steps,
            "seconds": round(time.monotonic() - run.started_at, 3),
            "exit_code": code,
        }

    def _cost(self) -> float | None:
        row = self._conversation.row()
        if row is None:
            return None
        return row.estimated_cost_usd if row.actual_cost_usd is None else row.actual_cost_usd


def _tool_fields(event: events.Event) -> dict[str, object] | None:
    if isinstance(event, events.ToolStarted):
        call = event.call
        return {"type": "tool_call", "id": call.id, "name": call.name, "arguments": call.arguments}
    if isinstance(event, events.ToolFinished):
        return {
            "type": "tool_result",
            "id": event.call.id,
            "name": event.call.name,
            "result": event.result,
            "seconds": round(event.seconds, 3),
        }
    return None


def _usage(usage: Usage) -> UsageFields:
    return {
        "input_tokens": usage.input,
        "output_tokens": usage.output,
        "cache_read_tokens": usage.cache_read,
        "cache_write_tokens": usage.cache_write,
        "reasoning_tokens": usage.reasoning,
    }


def _error(finished: events.TurnFinished) -> ErrorFields | None:
    if not finished.error:
        return None
    failure = finished.failure
    return {
        "kind": str(failure.kind) if failure else "internal",
        "message": finished.error,
        "status": failure.status_code if failure else None,
        "request_id": (failure.request_id or None) if failure else None,
        "retry_after": failure.retry_after if failure else None,
    }
