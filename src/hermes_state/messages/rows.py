"""Encoding of messages into rows, and decoding of rows."""

from __future__ import annotations

import functools
import json
from typing import TYPE_CHECKING, Any, Final

from hermes_core.messages import has_lone_surrogate, preview

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hermes_core.ids import MessageIds
    from hermes_state.engine.columns import Columns

JSON_PREFIX: Final = "\x00json:"
PORTABLE_JSON_PREFIX: Final = "\x01json:"  # for databases that store no zero character
JSON_PREFIXES: Final = (JSON_PREFIX, PORTABLE_JSON_PREFIX)

# JSON columns that message rows return as text.
JSON_TEXT_COLUMNS: Final = ("reasoning_details", "codex_reasoning_items", "codex_message_items")


def encode_content(content: Any) -> str | None:
    """Message content as stored in the column."""
    if content is None:
        return None
    if (
        isinstance(content, str)
        and not has_lone_surrogate(content)
        and "\0" not in content
        and not content.startswith(PORTABLE_JSON_PREFIX)
    ):
        return content
    if isinstance(content, (bytes, bytearray)):
        content = bytes(content).decode("utf-8", "backslashreplace")
    return JSON_PREFIX + json.dumps(content, default=str)


def decode_content(stored: Any) -> Any:
    """Message content decoded from the column; invalid JSON is returned as text."""
    if isinstance(stored, str) and stored.startswith(JSON_PREFIXES):
        try:
            return json.loads(stored[len(JSON_PREFIX) :])
        except ValueError:
            return stored
    return stored


def encode_json(value: Any) -> str | None:
    """A value as stored in a JSON column; text is assumed to be JSON already."""
    if value is None:
        return None
    if isinstance(value, str):
        return to_utf8_text(value)
    return json.dumps(value, default=str)


def decode_json(stored: Any) -> Any:
    """A decoded JSON column; invalid JSON is returned as text."""
    if not isinstance(stored, str):
        return stored
    try:
        return json.loads(stored)
    except ValueError:
        return stored


def to_utf8_text(text: str | None) -> str | None:
    """Text that can be stored as UTF-8: lone surrogates are escaped."""
    if text is None or not has_lone_surrogate(text):
        return text
    return text.encode("utf-8", "backslashreplace").decode()


def tool_call_count(tool_calls: Any) -> int:
    """Number of tool calls of a message."""
    if isinstance(tool_calls, str):
        tool_calls = decode_json(tool_calls)
    return len(tool_calls) if isinstance(tool_calls, list) else 0


UID_KEY: Final = "hermes_uid"

# Columns that messages may set; files of older releases lack the last four.
MESSAGE_COLUMNS: Final = (
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
_JSON_COLUMNS: Final = frozenset(
    {"tool_calls", "reasoning_details", "codex_reasoning_items", "codex_message_items"}
)


class NewMessage:
    """A message to be stored: column values, identity, and data for the index."""

    __slots__ = ("has_new_uid", "preview", "tool_calls", "uid", "values")

    def __init__(
        self, values: dict[str, Any], uid: str | None, tool_calls: int, preview: str
    ) -> None:
        self.values = values
        self.uid = uid
        self.tool_calls = tool_calls
        self.preview = preview
        self.has_new_uid = False

    def ensure_uid(self, ids: MessageIds) -> None:
        """Set a new identity if the message has none; a new identity needs no lookup."""
        if self.uid is None:
            self.uid = ids.new()
            self.has_new_uid = True

    @classmethod
    def from_fields(cls, fields: Mapping[str, Any], uid: str | None = None) -> NewMessage:
        """Encode the fields of a message."""
        content = fields.get("content")
        calls = fields.get("tool_calls")
        values = {name: _encode(name, value) for name, value in fields.items() if value is not None}
        return cls(
            values=values,
            uid=uid,
            tool_calls=tool_call_count(calls) if calls else 0,
            preview=to_utf8_text(preview(content)) or "" if fields.get("role") == "user" else "",
        )

    @classmethod
    def from_conversation(cls, message: Mapping[str, Any]) -> NewMessage:
        """Encode a message in the format of model APIs."""
        fields = {name: message.get(name) for name in MESSAGE_COLUMNS}
        fields["role"] = message.get("role") or "unknown"
        fields["tool_name"] = message.get("tool_name") or message.get("name")
        if fields["platform_message_id"] is None:
            fields["platform_message_id"] = message.get("message_id")
        uid = message.get(UID_KEY)
        return cls.from_fields(fields, uid if isinstance(uid, str) else None)


def _encode(name: str, value: Any) -> Any:
    if name == "content":
        return encode_content(value)
    if name in _JSON_COLUMNS:
        return encode_json(value)
    if name == "observed":
        return int(bool(value))
    if isinstance(value, str):
        return to_utf8_text(value)
    if isinstance(value, (dict, list)):
        return encode_json(value)
    return value


def written_columns(columns: Columns) -> tuple[str, ...]:
    """The columns of `MESSAGE_COLUMNS` that exist in the file."""
    return tuple(name for name in MESSAGE_COLUMNS if name in columns.messages)


@functools.lru_cache(maxsize=256)
def insert_statement(names: tuple[str, ...]) -> str:
    """The INSERT statement for these columns; columns without a value are omitted.

    Binding None costs the driver more than binding a short text, and most columns of a
    message are empty.
    """
    placeholders = ", ".join("?" * (len(names) + 1))
    return f"INSERT INTO messages (session_id, {', '.join(names)}) VALUES ({placeholders})"  # noqa: S608


def select_list(columns: Columns, prefix: str = "") -> str:
    """All columns of a message, in the file's order."""
    return ", ".join(prefix + name for name in columns.messages)


def as_message(row: dict[str, Any]) -> dict[str, Any]:
    """A row with content and tool calls decoded, and other JSON columns as text."""
    row["content"] = decode_content(row["content"])
    if row["tool_calls"] is not None:
        row["tool_calls"] = decode_json(row["tool_calls"])
    return row


_ASSISTANT_TEXT: Final = ("finish_reason", "reasoning", "reasoning_content")


def as_turn(row: dict[str, Any]) -> dict[str, Any]:
    """A row in the format of model APIs, with an identity that prevents duplicates."""
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
