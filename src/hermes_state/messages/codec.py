"""How values are written into the shared columns, and read back.

Text is stored as it is. Anything that is not plain text (lists and dictionaries of
multimodal content, and text that UTF-8 cannot carry) is stored as a marker followed by
JSON in ASCII, which every program that knows the format reads back unchanged.
"""

from __future__ import annotations

import json
from typing import Any, Final

from hermes_core.messages import has_lone_surrogate

JSON_MARK: Final = "\x00json:"

# Columns that hold JSON as text and are given out as text in message rows.
JSON_TEXT_COLUMNS: Final = ("reasoning_details", "codex_reasoning_items", "codex_message_items")


def encode_content(content: Any) -> str | None:
    """Message content as the column holds it."""
    if content is None:
        return None
    if (
        isinstance(content, str)
        and not has_lone_surrogate(content)
        and not content.startswith(JSON_MARK)
    ):
        return content
    if isinstance(content, (bytes, bytearray)):
        content = bytes(content).decode("utf-8", "backslashreplace")
    return JSON_MARK + json.dumps(content, default=str)


def decode_content(stored: Any) -> Any:
    """Message content as it was given; damaged JSON comes back as the text it is."""
    if isinstance(stored, str) and stored.startswith(JSON_MARK):
        try:
            return json.loads(stored[len(JSON_MARK) :])
        except ValueError:
            return stored
    return stored


def encode_json(value: Any) -> str | None:
    """A JSON column; text is taken to be JSON already."""
    if value is None:
        return None
    if isinstance(value, str):
        return storable(value)
    return json.dumps(value, default=str)


def decode_json(stored: Any) -> Any:
    """A JSON column read back; damaged JSON comes back as text."""
    if not isinstance(stored, str):
        return stored
    try:
        return json.loads(stored)
    except ValueError:
        return stored


def storable(text: str | None) -> str | None:
    """Text for a plain column; what UTF-8 cannot carry is spelled out."""
    if text is None or not has_lone_surrogate(text):
        return text
    return text.encode("utf-8", "backslashreplace").decode()


def tool_call_count(tool_calls: Any) -> int:
    """How many calls a message makes."""
    if isinstance(tool_calls, str):
        tool_calls = decode_json(tool_calls)
    return len(tool_calls) if isinstance(tool_calls, list) else 0
