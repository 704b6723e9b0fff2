"""Middleware of plugins around tool calls, and the other effects of plugins on a turn.

`tool_request` may change the arguments of a call. `tool_execution` runs around it: it gets
`next_call`, which runs the rest, and returns the result. Changed arguments are checked as the
model's own are.
"""

from __future__ import annotations

import asyncio
import inspect
import json
from typing import TYPE_CHECKING, Any, Final

from hermes_agent.turn_hooks import TurnPlugins
from hermes_core.config.probe import may_be_set
from hermes_core.errors import PluginError

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes_core.json_values import JsonObject
    from hermes_plugin_host.callbacks import Callback

    Run = Callable[[JsonObject], str]

TOOL_REQUEST: Final = "tool_request"
TOOL_EXECUTION: Final = "tool_execution"


def turn_plugins() -> TurnPlugins:
    """The effects of the enabled plugins; without any, nothing is imported."""
    if not may_be_set("plugins.enabled"):
        return TurnPlugins()
    import hermes_plugin_host  # noqa: PLC0415 - most have no plugins

    def change_arguments(facts: JsonObject, arguments: JsonObject) -> JsonObject:
        for middleware in hermes_plugin_host.active().middleware(TOOL_REQUEST):
            answer = middleware.call({**facts, "args": dict(arguments)}).result
            changed = answer.get("args") if isinstance(answer, dict) else None
            arguments = changed if isinstance(changed, dict) else arguments
        return arguments

    def execute(facts: JsonObject, arguments: JsonObject, run: Run) -> str:
        around = hermes_plugin_host.active().middleware(TOOL_EXECUTION)
        return _run_chain(around, facts, arguments, run)

    return TurnPlugins(hermes_plugin_host.has_hook, change_arguments, execute)


def _run_chain(around: list[Callback], facts: JsonObject, arguments: JsonObject, run: Run) -> str:
    if not around:
        return run(arguments)
    first, rest = around[0], around[1:]
    results: list[str] = []

    def next_call(args: JsonObject | None = None) -> str:
        chosen = arguments if args is None else args
        results.append(_run_chain(rest, facts, chosen, run))
        return results[-1]

    answer = _called(first, {**facts, "args": arguments, "next_call": next_call})
    if answer is None:  # it only observes
        return results[-1] if results else next_call()
    return answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False)


def _called(middleware: Callback, facts: dict[str, Any]) -> Any:
    """Call middleware in this thread: it takes as long as the tool does."""
    try:
        answer = middleware.function(**facts)
        return asyncio.run(_awaited(answer)) if inspect.isawaitable(answer) else answer
    except SystemExit as stop:
        raise PluginError(f"the plugin {middleware.plugin} called sys.exit ({stop})") from stop


async def _awaited(answer: Any) -> Any:
    return await answer
