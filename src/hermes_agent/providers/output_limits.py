"""The output limit of a request: within the context window, and as servers correct it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from hermes_agent.events import Failed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from hermes_agent.events import ProviderEvent
    from hermes_agent.messages import ModelRequest
    from hermes_agent.providers.base import Provider

MIN_OUTPUT_TOKENS: Final = 1_024
INPUT_MARGIN: Final = 1.4  # the number of tokens of a request is only estimated
# Error messages that name the limit of a model.
LIMIT_PATTERNS: Final = (
    re.compile(r"max_tokens: [\d,]+ > ([\d,]+)"),
    re.compile(r"supports at most ([\d,]+) completion tokens"),
    re.compile(
        r"max(?:imum)?(?: allowed)?(?: number of)? (?:output|completion) tokens\D{1,40}([\d,]+)"
    ),
)


def within_window(limit: int, request: ModelRequest, window: int) -> int:
    """The limit as far as the context window has room for it beside the request."""
    room = int(window - request.input_tokens * INPUT_MARGIN)
    return min(limit, max(room, MIN_OUTPUT_TOKENS))


def stream_within_limit(
    provider: Provider, send: Callable[[], Iterator[ProviderEvent]]
) -> Iterator[ProviderEvent]:
    """Send a request; once more if the server rejects it and names its output limit."""
    for event in send():
        limit = _learned_limit(event, provider.max_output) if isinstance(event, Failed) else 0
        if limit:
            provider.max_output = limit
            yield from send()
            return
        yield event


def _learned_limit(event: Failed, sent: int) -> int:
    """The lower output limit that a rejected request names; 0 if it names none."""
    if event.status_code != 400:
        return 0
    for pattern in LIMIT_PATTERNS:
        match = pattern.search(event.message)
        if match is not None:
            limit = int(match[1].replace(",", ""))
            return limit if 0 < limit < sent else 0
    return 0
