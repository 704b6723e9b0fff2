"""An open conversation as plugins use it: `ctx.inject_message`, `ctx.dispatch_tool`, `ctx.llm`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hermes_agent.events import Failed
from hermes_agent.messages import ModelRequest
from hermes_core.config.probe import may_be_set
from hermes_core.errors import PluginError
from hermes_plugin_host.services import ModelAnswer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from hermes_agent.agent import AIAgent


class AgentForPlugins:
    """One agent; unread input of a chat stays in the inbox, so chats take none from here."""

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
    if not may_be_set("plugins.enabled"):
        return lambda: None
    import hermes_plugin_host  # noqa: PLC0415 - most have no plugins

    offered = AgentForPlugins(agent, is_chat=is_chat)
    hermes_plugin_host.conversations().add(offered)
    return lambda: hermes_plugin_host.conversations().remove(offered)
