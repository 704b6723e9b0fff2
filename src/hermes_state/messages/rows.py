"""Encoding of messages into rows, and decoding of rows."""

from __future__ import annotations

import functools
import json
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from hermes_core.messages import (
    HOOK_FEEDBACK,
    has_lone_surrogate,
    preview,
    without_memory_blocks,
)
from hermes_state.engine.values import amount_of, text_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hermes_core.ids import MessageIds
    from hermes_core.messages import Content, Message, ToolCallDict
    from hermes_state.engine.transaction import Columns, Tx
    from hermes_state.engine.values import SqlValue

JSON_PREFIX: Final = "\x00json:"
PORTABLE_JSON_PREFIX: Final = "\x01json:"  # for databases that store no zero character
JSON_PREFIXES: Final = (JSON_PREFIX, PORTABLE_JSON_PREFIX)


# The finish reason of a user message that its sender has deleted on the platform it came from.
DELETED: Final = "deleted"
DELETED_TEXT: Final = "(deleted by sender)"  # what the model gets instead of its text
HOOK_ROLE: Final = "hook"  # under which feedback of hooks is shown
SUMMARY: Final = "summary"  # role and finish reason under which a summary is shown


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


def shared_content(stored: Any) -> Any:
    """Stored content as files and exports have it: with the prefix that hermes-agent uses."""
    if isinstance(stored, str) and stored.startswith(PORTABLE_JSON_PREFIX):
        return JSON_PREFIX + stored[len(PORTABLE_JSON_PREFIX) :]
    return stored


def decode_content(stored: Any) -> Any:
    """Message content decoded from the column; invalid JSON is returned as text."""
    if not isinstance(stored, str) or not stored.startswith(JSON_PREFIXES):
        return stored
    try:
        return json.loads(stored[len(JSON_PREFIX) :])
    except (ValueError, RecursionError):
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
    except (ValueError, RecursionError):
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
        self, values: dict[str, SqlValue], uid: str | None, tool_calls: int, preview: str
    ) -> None:
        self.values = values
        self.uid = uid
        self.tool_calls = tool_calls
        self.preview = preview
        self.has_new_uid = False

    @property
    def timestamp(self) -> float:
        """When the message was written; 0 before it is stored."""
        return float(self.values.get("timestamp") or 0)

    def ensure_uid(self, ids: MessageIds) -> None:
        """Set a new identity if the message has none; a new identity needs no lookup."""
        if self.uid is None:
            self.uid = ids.new()
            self.has_new_uid = True

    @classmethod
    def encode(cls, message: Message, uid: str | None = None) -> NewMessage:
        """Encode a message whose fields are columns; other fields are ignored."""
        calls = message.get("tool_calls")
        is_prompt = message.get("role") == "user"
        return cls(
            values={n: _encode(n, value) for n, value in message.items() if value is not None},
            uid=uid,
            tool_calls=tool_call_count(calls) if calls else 0,
            preview=to_utf8_text(preview(message.get("content"))) or "" if is_prompt else "",
        )

    @classmethod
    def from_conversation(cls, message: Message) -> NewMessage:
        """Encode a message in the format of model APIs."""
        fields = {name: message.get(name) for name in MESSAGE_COLUMNS if name in message}
        fields["role"] = message.get("role") or "unknown"
        fields["tool_name"] = message.get("tool_name") or message.get("name")
        if fields.get("platform_message_id") is None:
            fields["platform_message_id"] = message.get("message_id")
        uid = message.get(UID_KEY)
        return cls.encode(cast("Message", fields), uid if isinstance(uid, str) else None)


def _encode(name: str, value: object) -> SqlValue:
    if name == "content":
        return encode_content(value)
    if name in _JSON_COLUMNS:
        return encode_json(value)
    if name == "observed":
        return int(bool(value))
    if isinstance(value, str):
        return to_utf8_text(value)
    if isinstance(value, (bytes, int, float)):
        return value
    return encode_json(value)


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


class MessageRow(NamedTuple):
    """A message, with content and tool calls decoded, and other JSON columns as text.

    `others` are the values of the file's further columns, in the order of `other_columns`.
    """

    id: int
    session_id: str
    role: str
    content: Content
    tool_call_id: str | None
    tool_calls: list[ToolCallDict] | str | None
    tool_name: str | None
    timestamp: float
    token_count: int | None
    finish_reason: str | None
    reasoning: str | None
    reasoning_content: str | None
    reasoning_details: str | None
    codex_reasoning_items: str | None
    codex_message_items: str | None
    platform_message_id: str | None
    observed: int | None
    active: int | None
    compacted: int | None
    display_metadata: str | None  # of a prompt: a note to the model
    others: tuple[SqlValue, ...]

    @property
    def is_live(self) -> bool:
        """Whether the message is in the model's context."""
        return self.active is None or self.active == 1

    @property
    def is_deleted(self) -> bool:
        """Whether the sender of the message has deleted it; the history keeps it."""
        return self.role == "user" and self.finish_reason == DELETED

    @property
    def shown_role(self) -> str:
        """The role under which the message is shown: feedback and summaries are not of the user."""
        if self.role == "user" and self.finish_reason == SUMMARY:
            return SUMMARY
        return HOOK_ROLE if self.finish_reason == HOOK_FEEDBACK else self.role

    @property
    def is_undone(self) -> bool:
        """Whether the message was undone, not compacted."""
        return not self.is_live and not self.compacted


COLUMNS: Final = MessageRow._fields[:-1]
_CONTENT: Final = COLUMNS.index("content")
_TOOL_CALLS: Final = COLUMNS.index("tool_calls")
_TIMESTAMP: Final = COLUMNS.index("timestamp")
_TOKEN_COUNT: Final = COLUMNS.index("token_count")
_NUMBERS: Final = frozenset(
    map(COLUMNS.index, ("timestamp", "token_count", "observed", "active", "compacted"))
)


def other_columns(columns: Columns) -> tuple[str, ...]:
    """The file's columns of messages that `MessageRow` does not name."""
    return tuple(name for name in columns.messages if name not in MessageRow._fields)


def by_column(columns: Columns, message: MessageRow) -> dict[str, object]:
    """All columns of a message."""
    return dict(zip(column_names(columns), message[:-1] + message.others, strict=True))


def column_names(columns: Columns) -> tuple[str, ...]:
    """All columns of a message: those of `MessageRow`, then the file's further ones."""
    return (*COLUMNS, *other_columns(columns))


def select_list(columns: Columns) -> str:
    """What is selected of a message; a column that the file lacks is empty."""
    present = ("id", "session_id", *columns.messages)
    names = column_names(columns)
    return ", ".join(name if name in present else f"NULL AS {name}" for name in names)


def to_messages(rows: Iterable[tuple[Any, ...]]) -> list[MessageRow]:
    """Messages from the columns of `select_list`."""
    return [_to_message(row) for row in rows]


def _to_message(row: tuple[Any, ...]) -> MessageRow:
    known = len(COLUMNS)
    values = [*row[:known], row[known:]]
    if bytes in map(type, row[:known]):
        values[:known] = (
            _readable_value(position, value) for position, value in enumerate(row[:known])
        )
    values[_TIMESTAMP] = amount_of(values[_TIMESTAMP])
    if values[_TOKEN_COUNT] is not None:
        values[_TOKEN_COUNT] = int(amount_of(values[_TOKEN_COUNT]))
    values[_CONTENT] = decode_content(values[_CONTENT])
    if values[_TOOL_CALLS] is not None:
        values[_TOOL_CALLS] = decode_json(values[_TOOL_CALLS])
    return MessageRow._make(values)


def _readable_value(position: int, value: Any) -> Any:
    """A value of a column; a blob that another program has written is shown as text."""
    if not isinstance(value, bytes):
        return value
    return 0 if position in _NUMBERS else text_of(value)


def as_turn(row: MessageRow) -> Message:
    """A row in the format of model APIs, with an identity that prevents duplicates."""
    turn: Message = {
        "role": row.role,
        "content": DELETED_TEXT if row.is_deleted else _clean(row),
        "timestamp": row.timestamp,
        "hermes_uid": f"row-{row.id}",
    }
    if row.tool_call_id:
        turn["tool_call_id"] = row.tool_call_id
    if row.tool_name:
        turn["tool_name"] = row.tool_name
    if row.tool_calls and not isinstance(row.tool_calls, str):
        turn["tool_calls"] = row.tool_calls
    if row.platform_message_id:
        turn["message_id"] = row.platform_message_id
    if row.observed:
        turn["observed"] = True
    if row.finish_reason == HOOK_FEEDBACK:
        turn["finish_reason"] = HOOK_FEEDBACK
    if row.display_metadata and row.role == "user":
        turn["display_metadata"] = decode_json(row.display_metadata)
    return turn if row.role != "assistant" else turn | _assistant_fields(row)


def _clean(row: MessageRow) -> Content:
    """The content without memory blocks, which hermes-agent has left in old answers."""
    if row.role != "assistant" or not isinstance(row.content, str):
        return row.content
    return without_memory_blocks(row.content)


def _assistant_fields(row: MessageRow) -> Message:
    fields: Message = {}
    if row.finish_reason:
        fields["finish_reason"] = row.finish_reason
    if row.reasoning:
        fields["reasoning"] = row.reasoning
    if row.reasoning_content is not None:
        fields["reasoning_content"] = row.reasoning_content
    if row.reasoning_details:
        fields["reasoning_details"] = decode_json(row.reasoning_details)
    if row.codex_reasoning_items:
        fields["codex_reasoning_items"] = decode_json(row.codex_reasoning_items)
    if row.codex_message_items:
        fields["codex_message_items"] = decode_json(row.codex_message_items)
    return fields


SELECT_VERSION = """
    SELECT (SELECT max(id) FROM messages WHERE session_id = s.id), rewind_count,
           (SELECT max(undo_id) FROM hermes_undo WHERE session_id = s.id AND is_open = 1)
    FROM sessions s WHERE id = ? AND ended_at IS NULL
"""


class HistoryVersion(NamedTuple):
    """A value that differs after every change of the messages of an open session.

    Messages are only added or moved in and out of the model's context. Every change by Hermes
    changes the last row, the number of rewinds or the open undo; a change by another process or
    program changes `Tx.foreign_changes`.
    """

    last_row: int | None
    rewinds: int
    open_undo: int | None
    foreign_changes: int


def history_version(tx: Tx, session_id: str) -> HistoryVersion | None:
    """The version now; None if the session has ended."""
    row = tx.row(SELECT_VERSION, (session_id,))
    if row is None:
        return None
    last_row, rewinds, open_undo = row
    return HistoryVersion(last_row, rewinds, open_undo, tx.foreign_changes)
