"""A conversation as it is shown: what is stored, and what a turn has shown and not stored yet."""

from __future__ import annotations

from typing import Any, Final

from hermes_conversation.attachments import text_of
from hermes_core import media_store

FIELDS: Final = (
    "id", "role", "content", "reasoning", "tool_name", "tool_calls", "tool_call_id", "timestamp",
    "finish_reason",
)  # fmt: skip


class View:
    """What a running turn has shown; whoever holds it guards it with a lock."""

    def __init__(self) -> None:
        self._asked = ""
        self._text = ""
        self._tools: dict[str, dict[str, Any]] = {}

    def begin(self, text: str) -> None:
        """A turn begins."""
        self._asked, self._text, self._tools = text, "", {}

    def add(self, kind: str, payload: dict[str, Any]) -> None:
        """Something was shown."""
        if kind == "message.delta":
            self._text += payload["text"]
        elif kind == "tool.start":
            self._tools[payload["tool_id"]] = payload
        elif kind == "tool.complete":
            self._tools.pop(payload["tool_id"], None)

    def stored(self, role: str) -> None:
        """A message is in the store."""
        if role == "user":
            self._asked = ""
        elif role == "assistant":
            self._text = ""

    def end(self) -> None:
        """The turn is over, and everything of it is stored."""
        self._asked, self._text, self._tools = "", "", {}

    def inflight(self, messages: list[dict[str, Any]]) -> dict[str, Any]:
        """What is shown besides *messages*; what was stored a moment ago is not shown twice."""
        return {
            "asked": "" if _ends_with(messages, "user", self._asked) else self._asked,
            "text": "" if _ends_with(messages, "assistant", self._text) else self._text,
            "tools": [dict(tool) for tool in self._tools.values()],
        }


def _ends_with(messages: list[dict[str, Any]], role: str, text: str) -> bool:
    last = next((one for one in reversed(messages) if one["role"] == role), None)
    return bool(text) and last is not None and text_of(last["content"]).strip() == text.strip()


def as_shown(row: dict[str, Any]) -> dict[str, Any]:
    """A stored message for a front end; of pictures only that they are there."""
    found = {name: row.get(name) for name in FIELDS}
    if isinstance(found["content"], list):
        found["content"] = [_part(part) for part in found["content"]]
    return found


def _part(part: Any) -> Any:
    if not isinstance(part, dict) or part.get("type") != "image_url":
        return part
    url = media_store.url_of(part)
    size = (
        media_store.of_home().size_of(url) if media_store.is_reference(part) else len(url) * 3 // 4
    )
    return {"type": "image", "bytes": size, "text": "[picture]"}


def usage(row: dict[str, Any]) -> dict[str, Any]:
    """The tokens of a conversation, and what they cost where that is known."""
    names = ("input", "output", "cache_read", "cache_write", "reasoning")
    cost = row.get("actual_cost_usd")
    return {
        **{name: row.get(f"{name}_tokens") or 0 for name in names},
        "cost_usd": row.get("estimated_cost_usd") if cost is None else cost,
    }
