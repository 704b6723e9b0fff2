"""Room in the window: made before a request that would not fit, and after one that did not.

Older messages are summed up first. Where there is nothing to sum up, long results are
shortened further for the request. The history keeps everything.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from hermes_agent.events import Failed

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes_agent.context.compaction import Compacted
    from hermes_agent.messages import Message, ModelRequest
    from hermes_agent.providers.retry import FallbackProvider

BYTES: Final = 4  # to a token, roughly: of English text and JSON; other scripts take more of both
PICTURE_TOKENS: Final = 1_500
MESSAGE_TOKENS: Final = 4  # around each message
RESULT_SHARE: Final = 0.2  # of the window: the most that one tool's result may take
MIN_RESULT: Final = 400  # characters
RESERVE_SHARE: Final = 0.125  # of the window: kept free for the answer
MAX_RESERVE: Final = 8_192  # tokens


def tokens_in(text: str) -> int:
    """How many tokens a text is, roughly."""
    return len(text.encode("utf-8", "replace")) // BYTES


def estimated(request: ModelRequest) -> int:
    """How many tokens a request is, roughly."""
    tools = tokens_in(json.dumps(request.tools, ensure_ascii=False)) if request.tools else 0
    return tools + sum(_message(message) for message in request.messages)


def _message(message: Message) -> int:
    calls = message.get("tool_calls")
    called = tokens_in(json.dumps(calls, ensure_ascii=False)) if calls else 0
    return MESSAGE_TOKENS + called + _content(message.get("content"))


def _content(content: Any) -> int:
    if not isinstance(content, list):
        return tokens_in(str(content or ""))
    texts = [part.get("text") if isinstance(part, dict) else str(part) for part in content]
    return sum(PICTURE_TOKENS if text is None else tokens_in(str(text)) for text in texts)


def reserve(window: int) -> int:
    """How many tokens of a window are kept for the answer."""
    return min(MAX_RESERVE, int(window * RESERVE_SHARE))


def longest_result(window: int) -> int:
    """How many characters of a tool's result a model with this window is shown."""
    return max(MIN_RESULT, int(window * RESULT_SHARE) * BYTES)


def with_short_results(messages: list[Message], characters: int) -> list[Message]:
    """The same messages, with the middle of long results left out; the store keeps them whole."""
    return [_short(message, characters) for message in messages]


def _short(message: Message, characters: int) -> Message:
    text = message.get("content")
    if message.get("role") != "tool" or not isinstance(text, str) or len(text) <= characters:
        return message
    half = characters // 2
    left_out = f"\n… ({len(text) - 2 * half:,} characters omitted: too long) …\n"
    return {**message, "content": text[:half] + left_out + text[-half:]}


def newest_that_fit(messages: list[Message], tokens: int) -> list[Message]:
    """The first message and as many of the last ones as *tokens* allow."""
    if sum(map(_message, messages)) <= tokens or not messages:
        return messages
    left = tokens - _message(messages[0])
    kept: list[Message] = []
    for message in reversed(messages[1:]):
        left -= _message(message)
        if left < 0:
            break
        kept.append(message)
    return [messages[0], *reversed(kept)]


SUMMED_UP: Final = "Older messages were summarized to free up context; the history keeps them all."
SHORTENED: Final = "Long results were shortened to free up context; the history keeps them in full."
REFUSED_SHARE: Final = 0.9  # of what was refused: the most that is tried next
MIN_WINDOW: Final = 2_048  # tokens: no model in use reads less, whatever a server refuses
SHORTER: Final = 4


class ContextWindow:
    """The window of the model that answers, during one turn."""

    def __init__(
        self, patient: FallbackProvider, compress: Callable[[], Compacted | Failed]
    ) -> None:
        self._patient = patient
        self._compress = compress
        self._divisor = 1
        self._is_used_up = False

    def fitted(self, messages: list[Message]) -> list[Message]:
        """The messages as they are sent: no result takes more than its share."""
        limit = longest_result(self._patient.current.window)
        return with_short_results(messages, limit // self._divisor)

    def is_short(self, request: ModelRequest) -> bool:
        """Whether a request is likely to leave too little room for the answer."""
        window = self._patient.current.window
        return not self._is_used_up and estimated(request) > window - reserve(window)

    def learn(self, refused: ModelRequest) -> None:
        """The model does not read as much as was thought."""
        provider = self._patient.current
        likely = max(MIN_WINDOW, int(REFUSED_SHARE * estimated(refused)))
        provider.window = min(provider.window, likely)

    def make(self) -> str:
        """Make room; what was done, for people."""
        result = self._compress()
        if not isinstance(result, Failed) and result.summary:
            return SUMMED_UP
        self._divisor *= SHORTER
        self._is_used_up = True  # more cannot be done in this turn
        return SHORTENED
