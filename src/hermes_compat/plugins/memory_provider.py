"""Memory providers of hermes-agent, connected through hooks and tools.

Before each turn `prefetch` adds what is remembered to the prompt; after it `sync_turn` gets both
sides. A provider may offer tools. Each call has the time limit of a hook.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Protocol

from hermes_core.errors import PluginError
from hermes_core.messages import plain_text

if TYPE_CHECKING:
    from collections.abc import Callable


class MemoryProvider(ABC):
    """The base class that providers of hermes-agent extend."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The name of the provider."""

    @abstractmethod
    def is_available(self) -> bool:
        """Whether it is configured; without network access."""

    @abstractmethod
    def initialize(self, session_id: str, **kwargs: Any) -> None:
        """Prepare for a session."""

    def system_prompt_block(self) -> str:
        """Text about the memory, which is added to each prompt here."""
        return ""

    def prefetch(self, query: str, *, session_id: str = "") -> str:
        """What is remembered about a prompt."""
        del query, session_id
        return ""

    def sync_turn(self, user_content: str, assistant_content: str, *, session_id: str = "") -> None:
        """Remember a completed turn."""

    @abstractmethod
    def get_tool_schemas(self) -> list[dict[str, Any]]:
        """The tools of the provider."""

    def handle_tool_call(self, tool_name: str, args: dict[str, Any], **kwargs: Any) -> str:
        """Run one of its tools."""
        raise NotImplementedError(f"{self.name} has no tool {tool_name}")

    def on_session_end(self, messages: list[dict[str, Any]]) -> None:
        """A session was closed, with its last messages if this process has them."""

    def shutdown(self) -> None:
        """Not called: processes of Hermes may be killed at any moment."""


class RegistersHooksAndTools(Protocol):
    """The methods of `ctx` that a provider needs."""

    def register_hook(self, name: str, callback: Callable[..., Any]) -> None: ...

    def register_tool(
        self, name: str, toolset: str, schema: dict[str, Any], handler: Callable[..., Any]
    ) -> None: ...


class MemoryConnection:
    """Calls a provider from hooks."""

    def __init__(self, provider: Any) -> None:
        self._provider = provider
        self._histories: dict[str, list[dict[str, Any]]] = {}  # of the sessions of this process

    def connect(self, ctx: RegistersHooksAndTools) -> None:
        """Register the hooks and tools; PluginError if the provider is not available."""
        provider = self._provider
        if not provider.is_available():
            raise PluginError(f"the memory provider {provider.name} is not available")
        ctx.register_hook("pre_llm_call", self._recall)
        ctx.register_hook("post_llm_call", self._remember)
        ctx.register_hook("on_session_finalize", self._end)
        for schema in provider.get_tool_schemas():
            name = schema.get("function", schema)["name"]
            ctx.register_tool(name, "memory", schema, self._handler(name))

    def _handler(self, name: str) -> Callable[..., Any]:
        def run(args: dict[str, Any], **facts: Any) -> Any:
            return self._provider.handle_tool_call(name, args, **facts)

        return run

    def _recall(self, session_id: str, user_message: Any, platform: str, **_facts: Any) -> str:
        if session_id not in self._histories:
            self._provider.initialize(session_id, platform=platform)
            self._histories[session_id] = []
        block = self._provider.system_prompt_block()
        recalled = self._provider.prefetch(plain_text(user_message), session_id=session_id)
        return "\n\n".join(text for text in (block, recalled) if text)

    def _remember(
        self,
        session_id: str,
        user_message: Any,
        assistant_response: str,
        conversation_history: list[dict[str, Any]],
        **_facts: Any,
    ) -> None:
        self._histories[session_id] = conversation_history
        self._provider.sync_turn(
            plain_text(user_message), assistant_response, session_id=session_id
        )

    def _end(self, session_id: str, **_facts: Any) -> None:
        self._provider.on_session_end(self._histories.pop(session_id, []))
