"""The context window: estimates, and freeing up context before or after a request.

Older messages are summarized first. If there is nothing to summarize, long results are
shortened further in the request. The history keeps everything.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from hermes_agent.events import Failed
from hermes_agent.messages import image_in

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes_agent.context.compaction import CompactionResult
    from hermes_agent.messages import Message, ModelRequest, ToolSchema
    from hermes_agent.providers.base import Provider
    from hermes_agent.providers.retry import FallbackProvider

BYTES_PER_TOKEN: Final = 4  # approximate, for English text and JSON
IMAGE_TOKENS: Final = 1_500
MESSAGE_TOKENS: Final = 4  # overhead per message
RESULT_SHARE: Final = 0.2  # of the window: limit of one tool result
MIN_RESULT_CHARACTERS: Final = 400  # characters
RESERVE_SHARE: Final = 0.125  # of the window: reserved for the answer
MAX_RESERVE_TOKENS: Final = 8_192  # tokens


def tokens_in(text: str) -> int:
    """The approximate number of tokens of a text."""
    return len(text.encode("utf-8", "replace")) // BYTES_PER_TOKEN


def estimate_tokens(request: ModelRequest) -> int:
    """The approximate number of tokens of a request."""
    return schema_tokens(request.tools) + sum(map(message_tokens, request.messages))


def schema_tokens(schemas: list[ToolSchema]) -> int:
    """The approximate number of tokens of tool schemas."""
    return tokens_in(json.dumps(schemas, ensure_ascii=False)) if schemas else 0


def message_tokens(message: Message) -> int:
    """The approximate number of tokens of a message."""
    calls = message.get("tool_calls")
    called = tokens_in(json.dumps(calls, ensure_ascii=False)) if calls else 0
    image = IMAGE_TOKENS if image_in(message) else 0
    return MESSAGE_TOKENS + called + image + _content(message.get("content"))


def _content(content: Any) -> int:
    if not isinstance(content, list):
        return tokens_in(str(content or ""))
    texts = [part.get("text") if isinstance(part, dict) else str(part) for part in content]
    return sum(IMAGE_TOKENS if text is None else tokens_in(str(text)) for text in texts)


def reserve(window: int) -> int:
    """The tokens reserved for the answer."""
    return min(MAX_RESERVE_TOKENS, int(window * RESERVE_SHARE))


def max_result_characters(window: int) -> int:
    """The maximum characters of a tool result for this window."""
    return max(MIN_RESULT_CHARACTERS, int(window * RESULT_SHARE) * BYTES_PER_TOKEN)


def with_short_results(messages: list[Message], characters: int) -> list[Message]:
    """The messages with the middle of long results omitted."""
    return [shorten(message, characters) for message in messages]


def shorten(message: Message, characters: int) -> Message:
    """The message; of a long result, without the middle."""
    text = message.get("content")
    if message.get("role") != "tool" or not isinstance(text, str) or len(text) <= characters:
        return message
    half = characters // 2
    omission = f"\n… ({len(text) - 2 * half:,} characters omitted: too long) …\n"
    return {**message, "content": text[:half] + omission + text[-half:]}


def newest_that_fit(messages: list[Message], tokens: int) -> list[Message]:
    """The first message and the last ones that fit into *tokens*."""
    if sum(map(message_tokens, messages)) <= tokens or not messages:
        return messages
    remaining = tokens - message_tokens(messages[0])
    tail: list[Message] = []
    for message in reversed(messages[1:]):
        remaining -= message_tokens(message)
        if remaining < 0:
            break
        tail.append(message)
    return [messages[0], *reversed(tail)]


def last_place(prompt: Message, messages: list[Message]) -> int:
    """The last place of a prompt among messages that were read again; -1 if it is not there."""
    for place in range(len(messages) - 1, -1, -1):
        message = messages[place]
        if message.get("role") == "user" and message.get("content") == prompt.get("content"):
            return place
    return -1


SUMMARIZED_NOTICE: Final = (
    "Older messages were summarized to free up context; the history keeps them all."
)
SHORTENED_NOTICE: Final = (
    "Long results were shortened to free up context; the history keeps them in full."
)
REFUSED_SHARE: Final = 0.9  # of a rejected request: the assumed window
MIN_WINDOW_TOKENS: Final = 2_048  # no current model has a smaller window
SHORTEN_FACTOR: Final = 4


class ContextWindow:
    """The context window of the current model during one turn."""

    def __init__(
        self, provider: FallbackProvider, compress: Callable[[], CompactionResult | Failed]
    ) -> None:
        self._provider = provider
        self._compress = compress
        self._divisor = 1
        self._is_exhausted = False
        self._guess: tuple[Provider, int] | None = None  # the provider and its window before

    @property
    def max_characters(self) -> int:
        """The maximum length of a tool result."""
        return max_result_characters(self._provider.current.window) // self._divisor

    def shortened(self, messages: list[Message]) -> list[Message]:
        """The messages with results shortened to their limit."""
        return with_short_results(messages, self.max_characters)

    def is_exceeded_by(self, tokens: int) -> bool:
        """Whether a request of this size probably leaves too few tokens for the answer."""
        window = self._provider.current.window
        return not self._is_exhausted and tokens > window - reserve(window)

    def accept(self, tokens: int) -> None:
        """Note the size of a request that was answered: the window is not smaller."""
        provider = self._provider.current
        provider.accepted_tokens = max(provider.accepted_tokens, tokens)

    def shrink(self, refused: ModelRequest, named: int = 0) -> None:
        """Learn the window after a rejected request.

        The number that the error names is kept. Without one the window is guessed from the
        request, for this turn only. It is never smaller than a request that was answered.
        """
        provider = self._provider.current
        if named:
            provider.window = min(provider.window, max(named, provider.accepted_tokens))
            return
        likely = max(MIN_WINDOW_TOKENS, int(REFUSED_SHARE * estimate_tokens(refused)))
        guess = min(provider.window, max(likely, provider.accepted_tokens))
        if guess < provider.window and self._guess is None:
            self._guess = provider, provider.window
        provider.window = guess

    def forget_guess(self) -> None:
        """Restore the window that was known before it was guessed, after the turn."""
        if self._guess is not None:
            provider, window = self._guess
            provider.window = window
            self._guess = None

    def free_up(self) -> str:
        """Summarize or shorten; returns a notice for the user."""
        result = self._compress()
        if not isinstance(result, Failed) and result.summary:
            return SUMMARIZED_NOTICE
        self._divisor *= SHORTEN_FACTOR
        self._is_exhausted = True  # nothing more can be done in this turn
        return SHORTENED_NOTICE
