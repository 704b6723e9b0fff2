"""A message on its way into a row, and a row on its way out."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Final

from hermes_core.messages import preview
from hermes_state.messages import codec

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hermes_core.ids import MessageIds
    from hermes_state.engine.columns import Columns

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
            tool_calls=codec.tool_call_count(calls) if calls else 0,
            words=codec.storable(preview(content)) or "" if fields.get("role") == "user" else "",
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
        return codec.encode_content(value)
    if name in _CODED:
        return codec.encode_json(value)
    if name == "observed":
        return int(bool(value))
    if isinstance(value, str):
        return codec.storable(value)
    if isinstance(value, (dict, list)):
        return codec.encode_json(value)
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
    row["content"] = codec.decode_content(row["content"])
    if row["tool_calls"] is not None:
        row["tool_calls"] = codec.decode_json(row["tool_calls"])
    return row


_ASSISTANT_TEXT: Final = ("finish_reason", "reasoning", "reasoning_content")


def as_turn(row: dict[str, Any]) -> dict[str, Any]:
    """A row as models know it, with the identity that makes saving it again harmless."""
    turn: dict[str, Any] = {
        "role": row["role"],
        "content": codec.decode_content(row["content"]),
        "timestamp": row["timestamp"],
        UID_KEY: f"row-{row['id']}",
    }
    for name in ("tool_call_id", "tool_name"):
        if row[name]:
            turn[name] = row[name]
    if row["tool_calls"]:
        turn["tool_calls"] = codec.decode_json(row["tool_calls"])
    if row["platform_message_id"]:
        turn["message_id"] = row["platform_message_id"]
    if row["observed"]:
        turn["observed"] = True
    if row["role"] == "assistant":
        turn.update({name: row[name] for name in _ASSISTANT_TEXT if row[name]})
        turn.update(
            {name: codec.decode_json(row[name]) for name in codec.JSON_TEXT_COLUMNS if row[name]}
        )
    return turn
