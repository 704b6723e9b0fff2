"""The provider protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hermes_agent.events import ProviderEvent
    from hermes_agent.messages import ModelRequest
    from hermes_agent.turn_control import Cancel


class Provider(Protocol):
    """A model that answers requests; providers inherit what they do not define."""

    name: str
    model: str
    base_url: str
    api_name: str = "openai"  # the value of llm.api
    api_mode: str = "chat_completions"  # for hooks
    window: int  # context window in tokens, as far as is known
    accepted_tokens: int = 0  # of the longest request that was answered
    max_output: int = 0  # limit of an answer in tokens; 0 leaves it to the server
    is_free: bool = False  # whether requests cost nothing
    is_demo: bool = False  # whether it is too small for more than trying things out

    def resolve_window(self) -> int:
        """Return the context window; probe the server once where it is only assumed."""
        return self.window

    def stream(self, request: ModelRequest, cancel: Cancel) -> Iterator[ProviderEvent]:
        """Send a request; yield deltas as they arrive, then exactly one Reply or Failed."""
        ...

    def close(self) -> None:
        """Close the connections."""
        return
