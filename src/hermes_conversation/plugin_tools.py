"""Adapts the tools of plugins to tools of the agent.

A handler takes the arguments as one dict, and facts about the call as keyword arguments if
its signature accepts them; it returns text or a value that is encoded as JSON.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import logging
import os
import re
import threading
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from hermes_agent.tools import base
from hermes_agent.tools.base import failure
from hermes_core.errors import PluginError
from hermes_core.isolate import Failure, attempt

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from hermes_agent.tools.base import ToolContext
    from hermes_plugin_host.context import PluginTool
    from hermes_plugin_host.manager import PluginManager

log = logging.getLogger(__name__)

TOOL_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")  # accepted by every provider
CANCEL_POLL_SECONDS: Final = 0.05


class ProvidedTool(NamedTuple):
    """A tool and the key of the plugin that provides it."""

    plugin: str
    tool: base.Tool


def provided_tools(manager: PluginManager, taken: Iterable[str]) -> list[ProvidedTool]:
    """The usable tools of loaded plugins, in the order of their keys.

    A name that is *taken*, also by another plugin, requires `override`. Rejected tools are
    logged.
    """
    result: dict[str, ProvidedTool] = {}
    standard = set(taken)
    for key, plugin in manager.plugins.items():
        for tool in plugin.registered.tools:
            reason = _rejection_reason(tool, standard | set(result))
            if reason:
                log.warning("tool %s of plugin %s skipped: %s", tool.name, key, reason)
            else:
                result[tool.name] = ProvidedTool(key, _agent_tool(key, tool))
    return list(result.values())


def _rejection_reason(tool: PluginTool, taken: set[str]) -> str:
    if not TOOL_NAME.fullmatch(tool.name):
        return "invalid name (at most 64 letters, digits, _ and -)"
    if tool.name in taken and not tool.overrides:
        return "name already in use, and override is not set"
    missing = [name for name in tool.requires_env if not os.environ.get(name)]
    if missing:
        return f"missing environment variable {', '.join(missing)}"
    return "" if _is_ready(tool) else "its availability check failed"


def _is_ready(tool: PluginTool) -> bool:
    """Whether the check of the plugin passes; a check that raises does not."""
    check = tool.check
    if check is None:
        return True
    return attempt(f"check of tool {tool.name}", lambda: bool(_call_contained(check))) is True


def _agent_tool(key: str, tool: PluginTool) -> base.Tool:
    function = tool.schema.get("function", tool.schema)
    parameters = function.get("parameters", function if "properties" in function else {})
    return base.Tool(
        tool.name,
        str(tool.description or function.get("description") or f"Tool of the plugin {key}."),
        {"type": "object", "properties": {}, **parameters},
        lambda arguments, context: _run(key, tool, arguments, context),
    )


def _run(key: str, tool: PluginTool, arguments: dict[str, Any], context: ToolContext) -> str:
    """Call the handler in a thread that is abandoned when the turn is stopped."""
    ended: Future[str] = Future()

    def call() -> str:
        return _text(_call_contained(lambda: _call_handler(tool, arguments, context)))

    def work() -> None:
        result = attempt(f"tool {tool.name} of plugin {key}", call)
        if isinstance(result, Failure):
            result = failure(f"{type(result.error).__name__}: {result.error}")
        ended.set_result(result)

    thread = threading.Thread(target=work, name=f"plugin {key}", daemon=True)
    thread.start()
    while thread.is_alive() and not context.cancel.is_requested:
        thread.join(CANCEL_POLL_SECONDS)
    if ended.done():
        return ended.result()
    if thread.is_alive():
        return failure(f"Stopped: {context.cancel.reason}.")
    return failure("The tool ended without a result.")


def _call_contained(call: Callable[[], Any]) -> Any:
    """Call plugin code; SystemExit and CancelledError become a PluginError."""
    try:
        return call()
    except SystemExit as error:
        raise PluginError(f"the tool called sys.exit ({error})") from error
    except asyncio.CancelledError as error:
        raise PluginError("the tool was cancelled") from error


def _call_handler(tool: PluginTool, arguments: dict[str, Any], context: ToolContext) -> Any:
    facts = {
        "task_id": context.session_id,
        "session_id": context.session_id,
        "turn_id": context.turn_id,
        "tool_call_id": context.call_id,
    }
    wanted = inspect.signature(tool.handler).parameters.values()
    if not any(item.kind is inspect.Parameter.VAR_KEYWORD for item in wanted):
        names = {item.name for item in list(wanted)[1:]}
        facts = {name: value for name, value in facts.items() if name in names}
    result = tool.handler(arguments, **facts)
    return asyncio.run(_awaited(result)) if inspect.isawaitable(result) else result


async def _awaited(result: Any) -> Any:
    return await result


def _text(result: Any) -> str:
    if isinstance(result, str):
        return result
    return json.dumps({"error": None} if result is None else result, ensure_ascii=False)
