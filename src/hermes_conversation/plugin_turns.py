"""Plugins in a turn: middleware around tool calls, and the agent as plugins use it.

`tool_request` may change the arguments of a call. `tool_execution` runs around it: it gets
`next_call`, which runs the rest, and returns the result. Changed arguments are checked as the
model's own are.
"""

from __future__ import annotations

import asyncio
import inspect
import json
from typing import TYPE_CHECKING, Any, Final

from hermes_agent.events import Failed
from hermes_agent.messages import ModelRequest
from hermes_agent.turn_hooks import TurnPlugins
from hermes_core.config.yaml_reader import is_set
from hermes_core.errors import PluginError
from hermes_plugin_host.services import ModelAnswer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from hermes_agent.agent import AIAgent
    from hermes_core.json_values import JsonObject
    from hermes_plugin_host.callbacks import Callback

    Run = Callable[[JsonObject], str]

TOOL_REQUEST: Final = "tool_request"
TOOL_EXECUTION: Final = "tool_execution"


def turn_plugins() -> TurnPlugins:
    """The effects of the enabled plugins; without any, nothing is imported."""
    if not is_set("plugins.enabled"):
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


class AgentForPlugins:
    """One agent, for `ctx.inject_message`, `ctx.dispatch_tool` and `ctx.llm`.

    Unread input of a chat stays in the inbox, so chats take none from here.
    """

    def __init__(self, agent: AIAgent, *, is_chat: bool) -> None:
        self._agent = agent
        self._is_chat = is_chat

    @property
    def session_id(self) -> str:
        """The session ID."""
        return self._agent.session_id

    def inject(self, text: str) -> bool:
        """Give a text to the running turn; whether there is one that takes it."""
        if self._is_chat or not self._agent.is_running:
            return False
        self._agent.steer(text)
        return True

    def call_tool(self, name: str, arguments: dict[str, Any]) -> str:
        """Call a tool with the rights of the conversation."""
        return self._agent.call_tool(name, arguments)

    def complete(self, messages: Sequence[Any], max_tokens: int | None) -> ModelAnswer:
        """Ask the model of the conversation."""
        answer = self._agent.complete(ModelRequest(list(messages), [], max_tokens))
        if isinstance(answer, Failed):
            raise PluginError(str(answer))
        return ModelAnswer(answer.text, self._agent.model, answer.usage._asdict())


def offer_to_plugins(agent: AIAgent, *, is_chat: bool) -> Callable[[], None]:
    """Let plugins use a conversation; returns the function that ends it."""
    if not is_set("plugins.enabled"):
        return lambda: None
    import hermes_plugin_host  # noqa: PLC0415 - most have no plugins

    offered = AgentForPlugins(agent, is_chat=is_chat)
    hermes_plugin_host.conversations().add(offered)
    return lambda: hermes_plugin_host.conversations().remove(offered)
