"""The module `gateway.platforms.helpers` that adapters of hermes-agent import.

Hermes itself recognizes repeated messages by their rows in the inbox.
"""

from __future__ import annotations

import re
import time
from collections import OrderedDict
from typing import Final

MARKDOWN: Final = (
    (re.compile(r"```[\w+-]*\n?(.*?)```", re.DOTALL), r"\1"),
    (re.compile(r"`([^`]+)`"), r"\1"),
    (re.compile(r"!?\[([^\]]*)\]\(([^)\s]+)[^)]*\)"), r"\1 (\2)"),
    (re.compile(r"^#{1,6}\s+", re.MULTILINE), ""),
    (re.compile(r"(\*\*|__)(?=\S)(.+?)(?<=\S)\1", re.DOTALL), r"\2"),
    (re.compile(r"(?<!\w)([*_])(?=\S)(.+?)(?<=\S)\1(?!\w)", re.DOTALL), r"\2"),
)
MIN_SHOWN_DIGITS: Final = 4


def strip_markdown(text: str) -> str:
    """A text without Markdown, for platforms that show plain text."""
    for pattern, replacement in MARKDOWN:
        text = pattern.sub(replacement, text)
    return text.strip()


def redact_phone(number: str) -> str:
    """A phone number of which only the ends are shown, for logs."""
    if len(number) <= 2 * MIN_SHOWN_DIGITS:
        return "*" * len(number)
    return f"{number[:MIN_SHOWN_DIGITS]}****{number[-MIN_SHOWN_DIGITS:]}"


class MessageDeduplicator:
    """Recognizes the IDs of messages that were received before, within a time."""

    def __init__(self, max_size: int = 2000, ttl_seconds: float = 300.0) -> None:
        self._max_size = max_size
        self._ttl_seconds = ttl_seconds
        self._seen: OrderedDict[str, float] = OrderedDict()

    def is_duplicate(self, message_id: str) -> bool:
        """Whether an ID was seen before; it is remembered."""
        now = time.monotonic()
        seen_at = self._seen.pop(message_id, None)
        self._seen[message_id] = now
        while len(self._seen) > self._max_size:
            self._seen.popitem(last=False)
        return bool(message_id) and seen_at is not None and now - seen_at < self._ttl_seconds

    def clear(self) -> None:
        """Forget all IDs."""
        self._seen.clear()
