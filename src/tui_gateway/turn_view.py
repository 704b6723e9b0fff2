"""The display of a conversation: stored messages, and output of a turn not stored yet."""

from __future__ import annotations

from typing import Any, Final

from hermes_conversation.attachments import text_of
from hermes_core import media_store

FIELDS: Final = (
    "id", "role", "content", "reasoning", "tool_name", "tool_calls", "tool_call_id", "timestamp",
    "finish_reason",
)  # fmt: skip


class TurnView:
    """The unstored output of a running turn; the owner guards it with a lock."""

    def __init__(self) -> None:
        self._prompt = ""
        self._text = ""
        self._tools: dict[str, dict[str, Any]] = {}

    def begin(self, text: str) -> None:
        """Start a turn."""
        self._prompt, self._text, self._tools = text, "", {}

    def add(self, kind: str, payload: dict[str, Any]) -> None:
        """Add an event."""
        if kind == "message.delta":
            self._text += payload["text"]
        elif kind == "tool.start":
            self._tools[payload["tool_id"]] = payload
        elif kind == "tool.complete":
            self._tools.pop(payload["tool_id"], None)

    def stored(self, role: str) -> None:
        """Drop the output that a stored message contains."""
        if role == "user":
            self._prompt = ""
        elif role == "assistant":
            self._text = ""

    def end(self) -> None:
        """End the turn; all its messages are stored."""
        self._prompt, self._text, self._tools = "", "", {}

    def inflight(self, messages: list[dict[str, Any]]) -> dict[str, Any]:
        """The output to show after *messages*, without what they already contain."""
        return {
            "asked": "" if _ends_with(messages, "user", self._prompt) else self._prompt,
            "text": "" if _ends_with(messages, "assistant", self._text) else self._text,
            "tools": [dict(tool) for tool in self._tools.values()],
        }


def _ends_with(messages: list[dict[str, Any]], role: str, text: str) -> bool:
    last = next((message for message in reversed(messages) if message["role"] == role), None)
    return bool(text) and last is not None and text_of(last["content"]).strip() == text.strip()


def display_message(row: dict[str, Any]) -> dict[str, Any]:
    """A stored message for display; images are replaced by their size."""
    message = {name: row.get(name) for name in FIELDS}
    if isinstance(message["content"], list):
        message["content"] = [_part(part) for part in message["content"]]
    return message


def _part(part: Any) -> Any:
    if not isinstance(part, dict) or part.get("type") != "image_url":
        return part
    url = media_store.url_of(part)
    size = (
        media_store.of_home().size_of(url) if media_store.is_reference(part) else len(url) * 3 // 4
    )
    return {"type": "image", "bytes": size, "text": "[picture]"}


def usage(row: dict[str, Any]) -> dict[str, Any]:
    """The tokens of a conversation, and their cost if known."""
    names = ("input", "output", "cache_read", "cache_write", "reasoning")
    cost = row.get("actual_cost_usd")
    return {
        **{name: row.get(f"{name}_tokens") or 0 for name in names},
        "cost_usd": row.get("estimated_cost_usd") if cost is None else cost,
    }
