"""The provider protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from hermes_agent.costs import UsageMeter
from hermes_agent.events import Failed, FailureKind, Reply

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hermes_agent.conversation_store import ConversationStore
    from hermes_agent.events import ProviderEvent
    from hermes_agent.messages import ModelRequest
    from hermes_agent.providers.retry import FallbackProvider
    from hermes_agent.turn_control import Cancel


def complete(
    provider: FallbackProvider, request: ModelRequest, cancel: Cancel, store: ConversationStore
) -> Reply | Failed:
    """Send a request and count its usage; returns the final event."""
    meter = UsageMeter(store, provider, request)
    for event in provider.stream(request, cancel):
        if isinstance(event, Reply | Failed):
            return event._replace(usage=meter.settle(event))
        meter.observe(event)
    return Failed(FailureKind.BROKEN, "The provider ended the stream without a reply.")


class Provider(Protocol):
    """A model that answers requests."""

    name: str
    model: str
    base_url: str
    api_mode: str
    window: int  # context window in tokens, as far as is known
    accepted_tokens: int  # of the longest request that was answered
    max_output: int  # limit of an answer in tokens; 0 leaves it to the server

    def resolve_window(self) -> int:
        """Return the context window; probe the server once where it is only assumed."""

    def stream(self, request: ModelRequest, cancel: Cancel) -> Iterator[ProviderEvent]:
        """Send a request; yield deltas as they arrive, then exactly one Reply or Failed."""

    def close(self) -> None:
        """Close the connections."""
