"""A question to the model that nobody watches: for a summary, for a review."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_agent.costs import Meter
from hermes_agent.events import Failed, FailureKind, Reply

if TYPE_CHECKING:
    from hermes_agent.conversation_store import ConversationStore
    from hermes_agent.messages import ModelRequest
    from hermes_agent.providers.retry import FallbackProvider
    from hermes_agent.turn_control import Cancel


def asked(
    patient: FallbackProvider, request: ModelRequest, cancel: Cancel, keeping: ConversationStore
) -> Reply | Failed:
    """Ask, and count what it costs; the model's last word."""
    meter = Meter(keeping, patient, request)
    for event in patient.stream(request, cancel):
        if isinstance(event, Reply | Failed):
            return event._replace(usage=meter.settle(event))
        meter.see(event)
    return Failed(FailureKind.BROKEN, "The provider ended the stream without a reply.")
