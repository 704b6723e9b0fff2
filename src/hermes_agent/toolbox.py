"""The tools of an agent; runs calls in the order of the answer, isolated from each other."""

from __future__ import annotations

import functools
import itertools
import json
import logging
import queue
import threading
import time
from functools import cached_property
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from hermes_agent.context.window import schema_tokens
from hermes_agent.events import ToolFinished, ToolOutput, ToolStarted
from hermes_agent.tools.base import ToolContext, error_in, failure
from hermes_core.isolate import Failure, attempt

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from hermes_agent.messages import ToolCall, ToolSchema
    from hermes_agent.tools.base import Tool
    from hermes_agent.tools.prompter import Prompter
    from hermes_agent.turn_control import Cancel
    from hermes_core.json_values import JsonObject

    # Returns why a call is not allowed, or None.
    Guard = Callable[[str, JsonObject, ToolContext], str | None]
    from collections.abc import Mapping

    from hermes_agent.mcp.server_pool import McpToolCatalog

log = logging.getLogger(__name__)

INTERRUPTED: Final = "Interrupted before it could finish."
INVALID_ARGUMENTS: Final = (
    "arguments are not a valid JSON object; call the tool again with valid JSON"
)
DOES_NOT_STOP: Final = "Interrupted; the tool did not stop, and its result is ignored."
POLL_SECONDS: Final = 1.0
STOP_SECONDS: Final = 10.0  # that calls get to end after a cancellation


class TurnContext(NamedTuple):
    """The context shared by all calls of a turn."""

    session_id: str
    turn_id: str
    cwd: Path
    cancel: Cancel
    prompter: Prompter
    guard: Guard
    is_review: bool = False


def no_guard(tool: str, arguments: JsonObject, context: ToolContext) -> str | None:
    """Allow everything."""
    del tool, arguments, context
    return None


CallStatus = Literal["ok", "error", "blocked", "cancelled"]


class CallOutcome(NamedTuple):
    """How a call ended, and its result for the model."""

    result: str
    status: CallStatus = "ok"
    error_type: str | None = None
    error_message: str | None = None

    @classmethod
    def failed(
        cls, message: str, status: CallStatus = "error", error_type: str = "ToolError"
    ) -> CallOutcome:
        """A call that did not run, or ended with an exception."""
        return cls(failure(message), status, error_type, message)

    @classmethod
    def of_result(cls, result: str) -> CallOutcome:
        """A call that returned; a result with an `error` is a failure."""
        message = error_in(result)
        return cls(result) if message is None else cls(result, "error", "ToolError", message)


class ToolHooks(NamedTuple):
    """Hooks around a call.

    `before` may block it with a message, `arguments` may change its arguments, `execute` runs it,
    `after` may change its result, `output` the output of a command in it.
    """

    before: Callable[[ToolCall, JsonObject], str | None]
    after: Callable[[ToolCall, JsonObject, CallOutcome, float], str]
    output: Callable[[ToolCall, str, str, int | None], str]
    arguments: Callable[[ToolCall, JsonObject], JsonObject]
    execute: Callable[[ToolCall, JsonObject, Callable[[JsonObject], str]], str]


class Toolbox:
    """Tools by name."""

    def __init__(self, tools: Iterable[Tool]) -> None:
        self._tools = {tool.name: tool for tool in tools}

    def schemas(self) -> list[ToolSchema]:
        """The schemas for the model, of the tools that are offered now."""
        offered = tuple(name for name, is_offered in self._conditions if is_offered())
        return self._schemas if not offered else [*self._schemas, *map(self._schema, offered)]

    def _schema(self, name: str) -> ToolSchema:
        return self._tools[name].schema()

    @cached_property
    def _conditions(self) -> list[tuple[str, Callable[[], bool]]]:
        tools = self._tools.values()
        return [(tool.name, tool.is_offered) for tool in tools if tool.is_offered is not None]

    @cached_property
    def _schemas(self) -> list[ToolSchema]:
        return [tool.schema() for tool in self._tools.values() if tool.is_offered is None]

    @cached_property
    def schema_tokens(self) -> int:
        """The approximate number of tokens of the schemas."""
        return schema_tokens(self._schemas)

    def names(self) -> list[str]:
        """The names of the tools."""
        return list(self._tools)

    def only(self, names: Iterable[str]) -> Toolbox:
        """A toolbox with only these tools."""
        return Toolbox(self._tools[name] for name in names if name in self._tools)

    def run_calls(
        self, calls: tuple[ToolCall, ...], context: TurnContext, hooks: ToolHooks
    ) -> Iterator[ToolStarted | ToolOutput | ToolFinished]:
        """Run *calls*; yields events, with one ToolFinished for each call, in their order.

        Adjacent calls that are known to change nothing run together, all others alone.
        """
        for only_reads, group in itertools.groupby(
            calls, lambda call: self._only_reads(call, context, hooks)
        ):
            for batch in [list(group)] if only_reads else ([call] for call in group):
                yield from self._run(batch, context, hooks)

    def _only_reads(self, call: ToolCall, turn: TurnContext, hooks: ToolHooks) -> bool:
        tool, arguments = self._tools.get(call.name), parse_arguments(call.arguments)
        if tool is None or arguments is None:
            return False
        return tool.only_reads(arguments, _context(call, turn, hooks, lambda _event: None))

    def _run(
        self, calls: list[ToolCall], context: TurnContext, hooks: ToolHooks
    ) -> Iterator[ToolStarted | ToolOutput | ToolFinished]:
        events: queue.SimpleQueue[ToolOutput | ToolFinished] = queue.SimpleQueue()
        for call in calls:
            yield ToolStarted(call)
            threading.Thread(
                target=self._run_call, args=(call, context, hooks, events.put), daemon=True
            ).start()
        pending = list(calls)
        finished: dict[str, ToolFinished] = {}
        while pending:
            event = _next_event(events, context.cancel)
            if isinstance(event, ToolOutput):
                yield event
            elif event is not None:
                finished[event.call.id] = event
            else:
                running = [call for call in pending if call.id not in finished]
                log.error("tools still running: %s", ", ".join(call.name for call in running))
                for call in running:
                    finished[call.id] = ToolFinished(call, failure(DOES_NOT_STOP), STOP_SECONDS)
            while pending and pending[0].id in finished:
                yield finished[pending.pop(0).id]

    def _run_call(
        self,
        call: ToolCall,
        context: TurnContext,
        hooks: ToolHooks,
        put: Callable[[ToolOutput | ToolFinished], object],
    ) -> None:
        started_at = time.monotonic()
        arguments = parse_arguments(call.arguments)
        outcome = attempt(
            f"tool {call.name}", lambda: self._call_tool(call, arguments, context, hooks, put)
        )
        if isinstance(outcome, Failure):
            kind = type(outcome.error).__name__
            outcome = CallOutcome.failed(f"{kind}: {outcome.error}", error_type=kind)
        seconds = time.monotonic() - started_at
        after = functools.partial(hooks.after, call, arguments or {}, outcome, seconds)
        result = attempt("call the hooks after a tool", after)
        if isinstance(result, Failure):
            result = outcome.result
        put(ToolFinished(call, result, time.monotonic() - started_at))

    def _call_tool(
        self,
        call: ToolCall,
        arguments: JsonObject | None,
        turn: TurnContext,
        hooks: ToolHooks,
        put: Callable[[ToolOutput | ToolFinished], object],
    ) -> CallOutcome:
        tool = self._tools.get(call.name)
        if tool is None:
            known = ", ".join(self._tools)
            return CallOutcome.failed(f"unknown tool {call.name!r}; available: {known}")
        if arguments is None:
            return CallOutcome.failed(INVALID_ARGUMENTS)
        if turn.cancel.is_requested:
            return CallOutcome.failed(INTERRUPTED, "cancelled", "Interrupted")
        arguments = hooks.arguments(call, arguments)
        message = hooks.before(call, arguments)
        if message is not None:
            return CallOutcome.failed(message, "blocked", "BlockedByPlugin")
        context = _context(call, turn, hooks, put)
        reason = turn.guard(call.name, arguments, context)
        if reason is not None:
            return CallOutcome.failed(reason, "blocked", "NotAllowed")
        result = hooks.execute(call, arguments, _guarded(call, tool, arguments, turn, context))
        return CallOutcome.of_result(result)


def _context(
    call: ToolCall,
    turn: TurnContext,
    hooks: ToolHooks,
    put: Callable[[ToolOutput | ToolFinished], object],
) -> ToolContext:
    def show(text: str) -> None:
        put(ToolOutput(call.id, text))

    return ToolContext(
        turn.session_id,
        turn.turn_id,
        call.id,
        turn.cwd,
        turn.cancel,
        turn.prompter,
        show,
        functools.partial(hooks.output, call),
        is_review=turn.is_review,
    )


def _guarded(
    call: ToolCall, tool: Tool, allowed: JsonObject, turn: TurnContext, context: ToolContext
) -> Callable[[JsonObject], str]:
    """Runs a tool; arguments other than the *allowed* ones are checked before."""

    def run(arguments: JsonObject) -> str:
        if arguments != allowed:
            reason = turn.guard(call.name, arguments, context)
            if reason is not None:
                return failure(reason)
        return tool.run(arguments, context)

    return run


def _next_event(
    events: queue.SimpleQueue[ToolOutput | ToolFinished], cancel: Cancel
) -> ToolOutput | ToolFinished | None:
    """The next event of running calls; None if they do not end after a cancellation."""
    while True:
        is_cancelled = cancel.is_requested
        try:
            return events.get(timeout=STOP_SECONDS if is_cancelled else POLL_SECONDS)
        except queue.Empty:
            if is_cancelled:
                return None


def parse_arguments(text: str) -> JsonObject | None:
    """The arguments of a call; None if they are not a JSON object."""
    try:
        document = json.loads(text or "{}")
    except ValueError:
        return None
    return document if isinstance(document, dict) else None


STANDARD_ORIGIN: Final = "standard"
LINE_CHARACTERS: Final = 100


class ToolItem(NamedTuple):
    """A tool in a list; an item with a problem stands for an unavailable server."""

    name: str
    description: str
    origin: str  # `standard`, `plugin NAME` or `mcp SERVER`
    problem: str = ""


def tool_items(tools: Iterable[Tool], plugins: Mapping[str, str]) -> list[ToolItem]:
    """List items of tools; *plugins* maps tool names to plugins."""
    return [
        ToolItem(tool.name, _line(tool.description), _origin(tool.name, plugins)) for tool in tools
    ]


def server_tool_items(catalog: McpToolCatalog) -> list[ToolItem]:
    """List items of the tools of MCP servers."""
    items = [
        ToolItem(tool.name, _line(tool.description), f"mcp {tool.name.partition('/')[0]}")
        for tool in catalog.tools
    ]
    return items + [
        ToolItem("", "", f"mcp {name}", text) for name, text in catalog.problems.items()
    ]


def _origin(name: str, plugins: Mapping[str, str]) -> str:
    return f"plugin {plugins[name]}" if name in plugins else STANDARD_ORIGIN


def _line(description: str) -> str:
    """The first sentence, shortened."""
    line = description.strip().partition("\n")[0].partition(". ")[0].rstrip(".")
    return line if len(line) <= LINE_CHARACTERS else f"{line[: LINE_CHARACTERS - 1]}…"
