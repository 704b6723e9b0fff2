"""A message on its way into a row, and a row on its way out."""

from __future__ import annotations

import functools
import json
from typing import TYPE_CHECKING, Any, Final

from hermes_core.messages import has_lone_surrogate, preview

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hermes_core.ids import MessageIds
    from hermes_state.engine.columns import Columns

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


UID_KEY: Final = "hermes_uid"

# Every column a message of ours may fill; a file of an older release lacks the last four.
WRITTEN: Final = (
    "role",
    "content",
    "tool_call_id",
    "tool_calls",
    "tool_name",
    "timestamp",
    "token_count",
    "finish_reason",
    "reasoning",
    "reasoning_content",
    "reasoning_details",
    "codex_reasoning_items",
    "codex_message_items",
    "platform_message_id",
    "observed",
    "effect_disposition",
    "api_content",
    "display_kind",
    "display_metadata",
)
_CODED: Final = frozenset(
    {"tool_calls", "reasoning_details", "codex_reasoning_items", "codex_message_items"}
)


class NewMessage:
    """A message to be stored: column values, its identity, and what the index needs."""

    __slots__ = ("is_named_here", "tool_calls", "uid", "values", "words")

    def __init__(
        self, values: dict[str, Any], uid: str | None, tool_calls: int, words: str
    ) -> None:
        self.values = values
        self.uid = uid
        self.tool_calls = tool_calls
        self.words = words
        self.is_named_here = False

    def name_if_nameless(self, ids: MessageIds) -> None:
        """Give the message an identity if its maker did not; nobody can know it yet."""
        if self.uid is None:
            self.uid = ids.new()
            self.is_named_here = True

    @classmethod
    def from_fields(cls, fields: Mapping[str, Any], uid: str | None = None) -> NewMessage:
        """Encode what a caller gave."""
        content = fields.get("content")
        calls = fields.get("tool_calls")
        values = {name: _encode(name, value) for name, value in fields.items() if value is not None}
        return cls(
            values=values,
            uid=uid,
            tool_calls=tool_call_count(calls) if calls else 0,
            words=storable(preview(content)) or "" if fields.get("role") == "user" else "",
        )

    @classmethod
    def from_conversation(cls, message: Mapping[str, Any]) -> NewMessage:
        """Encode a message of a conversation, as models and agents pass it around."""
        fields = {name: message.get(name) for name in WRITTEN}
        fields["role"] = message.get("role") or "unknown"
        fields["tool_name"] = message.get("tool_name") or message.get("name")
        if fields["platform_message_id"] is None:
            fields["platform_message_id"] = message.get("message_id")
        uid = message.get(UID_KEY)
        return cls.from_fields(fields, uid if isinstance(uid, str) else None)


def _encode(name: str, value: Any) -> Any:
    if name == "content":
        return encode_content(value)
    if name in _CODED:
        return encode_json(value)
    if name == "observed":
        return int(bool(value))
    if isinstance(value, str):
        return storable(value)
    if isinstance(value, (dict, list)):
        return encode_json(value)
    return value


def written_columns(columns: Columns) -> tuple[str, ...]:
    """The columns of `WRITTEN` that the file has."""
    return tuple(name for name in WRITTEN if name in columns.messages)


@functools.lru_cache(maxsize=256)
def insert_statement(names: tuple[str, ...]) -> str:
    """The INSERT of a message with these columns: those without a value are left out.

    Binding a None costs the driver more than binding a short text, and most columns of
    most messages are empty.
    """
    marks = ", ".join("?" * (len(names) + 1))
    return f"INSERT INTO messages (session_id, {', '.join(names)}) VALUES ({marks})"  # noqa: S608


def select_list(columns: Columns, prefix: str = "") -> str:
    """Every column of a message, in the file's order."""
    return ", ".join(prefix + name for name in columns.messages)


def as_message(row: dict[str, Any]) -> dict[str, Any]:
    """A row as plugins know it: content and tool calls decoded, other JSON left as text."""
    row["content"] = decode_content(row["content"])
    if row["tool_calls"] is not None:
        row["tool_calls"] = decode_json(row["tool_calls"])
    return row


_ASSISTANT_TEXT: Final = ("finish_reason", "reasoning", "reasoning_content")


def as_turn(row: dict[str, Any]) -> dict[str, Any]:
    """A row as models know it, with the identity that makes saving it again harmless."""
    turn: dict[str, Any] = {
        "role": row["role"],
        "content": decode_content(row["content"]),
        "timestamp": row["timestamp"],
        UID_KEY: f"row-{row['id']}",
    }
    for name in ("tool_call_id", "tool_name"):
        if row[name]:
            turn[name] = row[name]
    if row["tool_calls"]:
        turn["tool_calls"] = decode_json(row["tool_calls"])
    if row["platform_message_id"]:
        turn["message_id"] = row["platform_message_id"]
    if row["observed"]:
        turn["observed"] = True
    if row["role"] == "assistant":
        turn.update({name: row[name] for name in _ASSISTANT_TEXT if row[name]})
        turn.update({name: decode_json(row[name]) for name in JSON_TEXT_COLUMNS if row[name]})
    return turn
