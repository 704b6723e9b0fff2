"""The tools of one agent, and how calls are carried out: several at once, each isolated."""

from __future__ import annotations

import json
import queue
import threading
import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from hermes_agent.events import ToolFinished, ToolOutput, ToolStarted
from hermes_agent.tools.base import ToolContext, failure
from hermes_core.isolate import Step, attempt

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from hermes_agent.messages import ToolCall
    from hermes_agent.tools.base import Asks, Tool
    from hermes_agent.turn_control import Cancel

    # Why a call may not be made; None when it may.
    Guard = Callable[[str, dict[str, Any], ToolContext], str | None]
    from collections.abc import Mapping

    from hermes_agent.mcp.server_pool import McpOffers

INTERRUPTED = "Interrupted before it could finish."


class BenchmarkContext(NamedTuple):
    """What all calls of a turn share."""

    session_id: str
    turn_id: str
    cwd: Path
    cancel: Cancel
    asks: Asks
    guard: Guard


def no_guard(tool: str, arguments: dict[str, Any], context: ToolContext) -> str | None:
    """Everything may be done."""
    del tool, arguments, context
    return None


class Watch(NamedTuple):
    """Hooks around a call: `before` may answer in the tool's place, `after` may change it."""

    before: Callable[[ToolCall, dict[str, Any]], str | None]
    after: Callable[[ToolCall, dict[str, Any], str, float], str]


class Toolbox:
    """Tools by name."""

    def __init__(self, tools: Iterable[Tool]) -> None:
        self._tools = {tool.name: tool for tool in tools}

    def schemas(self) -> list[dict[str, Any]]:
        """What the model is told about them."""
        return [tool.schema() for tool in self._tools.values()]

    def names(self) -> list[str]:
        """Their names."""
        return list(self._tools)

    def only(self, names: Iterable[str]) -> Toolbox:
        """A box with some of them."""
        return Toolbox(self._tools[name] for name in names if name in self._tools)

    def carry_out(
        self, calls: tuple[ToolCall, ...], around: BenchmarkContext, watch: Watch
    ) -> Iterator[ToolStarted | ToolOutput | ToolFinished]:
        """Run *calls*; events as they happen, one ToolFinished for each call.

        Calls of tools that do not bear company run one after the other, behind the rest.
        """
        together = [call for call in calls if self._bears_company(call)]
        alone = [call for call in calls if not self._bears_company(call)]
        yield from self._run(together, around, watch)
        for call in alone:
            yield from self._run([call], around, watch)

    def _bears_company(self, call: ToolCall) -> bool:
        tool = self._tools.get(call.name)
        return tool is None or tool.is_parallel

    def _run(
        self, calls: list[ToolCall], around: BenchmarkContext, watch: Watch
    ) -> Iterator[ToolStarted | ToolOutput | ToolFinished]:
        events: queue.SimpleQueue[ToolOutput | ToolFinished] = queue.SimpleQueue()
        for call in calls:
            yield ToolStarted(call)
            threading.Thread(
                target=self._work, args=(call, around, watch, events.put), daemon=True
            ).start()
        left = len(calls)
        while left:
            event = events.get()
            left -= isinstance(event, ToolFinished)
            yield event

    def _work(
        self,
        call: ToolCall,
        around: BenchmarkContext,
        watch: Watch,
        put: Callable[[ToolOutput | ToolFinished], object],
    ) -> None:
        began = time.monotonic()
        results: list[str] = []
        failed = attempt(
            Step(
                f"tool {call.name}", lambda: results.append(self._answer(call, around, watch, put))
            )
        )
        if failed is not None:
            results = [failure(f"{type(failed.error).__name__}: {failed.error}")]
        put(ToolFinished(call, results[0], time.monotonic() - began))

    def _answer(
        self,
        call: ToolCall,
        around: BenchmarkContext,
        watch: Watch,
        put: Callable[[ToolOutput | ToolFinished], object],
    ) -> str:
        tool = self._tools.get(call.name)
        if tool is None:
            return failure(f"unknown tool {call.name!r}; available: {', '.join(self._tools)}")
        arguments = _arguments(call.arguments)
        if arguments is None:
            return failure(
                "arguments are not a valid JSON object; call the tool again with valid JSON"
            )
        if around.cancel.is_requested:
            return failure(INTERRUPTED)
        instead = watch.before(call, arguments)
        if instead is not None:
            return instead

        def show(text: str) -> None:
            put(ToolOutput(call.id, text))

        context = ToolContext(
            around.session_id,
            around.turn_id,
            call.id,
            around.cwd,
            around.cancel,
            around.asks,
            show,
        )
        refused = around.guard(call.name, arguments, context)
        if refused is not None:
            return failure(refused)
        began = time.monotonic()
        result = tool.run(arguments, context)
        return watch.after(call, arguments, result, time.monotonic() - began)


def _arguments(text: str) -> dict[str, Any] | None:
    try:
        found = json.loads(text or "{}")
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


STANDARD: Final = "standard"
LINE_CHARACTERS: Final = 100


class Item(NamedTuple):
    """One tool; one with a problem stands for a server that cannot be used."""

    name: str
    description: str
    origin: str  # `standard`, `plugin NAME` or `mcp SERVER`
    problem: str = ""


def of_tools(tools: Iterable[Tool], plugins: Mapping[str, str]) -> list[Item]:
    """The tools that are there; *plugins* says which plugin brings which."""
    return [Item(tool.name, _line(tool.description), _origin(tool.name, plugins)) for tool in tools]


def of_servers(survey: McpOffers) -> list[Item]:
    """The tools of MCP servers."""
    found = [
        Item(offer.name, _line(offer.description), f"mcp {offer.name.partition('/')[0]}")
        for offer in survey.offers
    ]
    return found + [Item("", "", f"mcp {name}", text) for name, text in survey.problems.items()]


def _origin(name: str, plugins: Mapping[str, str]) -> str:
    return f"plugin {plugins[name]}" if name in plugins else STANDARD


def _line(description: str) -> str:
    """The first sentence, or the beginning of it."""
    line = description.strip().partition("\n")[0].partition(". ")[0].rstrip(".")
    return line if len(line) <= LINE_CHARACTERS else f"{line[: LINE_CHARACTERS - 1]}…"
