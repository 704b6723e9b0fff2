"""Asking a model one short question, to see whether it answers at all."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_agent.cancel import Cancel
from hermes_agent.events import Failed, FailureKind, Reply
from hermes_agent.messages import Request

if TYPE_CHECKING:
    from hermes_agent.providers.base import Provider

QUESTION: Final = "Say hello in one short sentence."


class Trial(NamedTuple):
    """What came of it; seconds until the first sign of life and until the end."""

    text: str
    first_seconds: float
    seconds: float
    failure: Failed | None = None


def try_out(provider: Provider) -> Trial:
    """Ask once, without a second try; the provider is let go of afterwards."""
    began = time.monotonic()
    first: float | None = None
    text, failure = "", None
    try:
        request = Request([{"role": "user", "content": QUESTION}], [])
        for event in provider.stream(request, Cancel()):
            first = first if first is not None else time.monotonic() - began
            if isinstance(event, Failed):
                failure = event
            elif isinstance(event, Reply):
                text = event.text
    finally:
        provider.close()
    seconds = time.monotonic() - began
    if failure is None and not text.strip():
        failure = Failed(FailureKind.BROKEN, f"{provider.model} answered with nothing.")
    return Trial(text, first or seconds, seconds, failure)
