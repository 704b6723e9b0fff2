"""What an open conversation keeps of its messages for the next request."""

from __future__ import annotations

import tracemalloc
from typing import TYPE_CHECKING

from hermes_agent.providers.openai_compatible import EncodedMessages
from hermes_agent.providers.rules import UNKNOWN

if TYPE_CHECKING:
    from hermes_agent.messages import Message


def test_short_messages_are_kept_in_little_memory() -> None:
    messages: list[Message] = [
        {"role": "user", "content": f"message {number}"} for number in range(500)
    ]
    encoded = EncodedMessages()
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        kept = encoded.of(messages, UNKNOWN)
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept[7] == b'{"role":"user","content":"message 7"}'
    assert (after - before) / len(messages) < 500  # bytes; a buffer of orjson has 4,000
