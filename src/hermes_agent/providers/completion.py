"""A request without streaming to the user: for a summary or a review."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_agent.costs import UsageMeter
from hermes_agent.events import Failed, FailureKind, Reply

if TYPE_CHECKING:
    from hermes_agent.conversation_store import ConversationStore
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
