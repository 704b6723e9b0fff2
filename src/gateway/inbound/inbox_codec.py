"""Serialises a message for the inbox, complete enough to answer it after a restart."""

from __future__ import annotations

from typing import Any, Final

from gateway.platforms.base import MessageEvent, MessageType
from gateway.routing.sources import SessionSource
from hermes_core.errors import UsageError

PLAIN_FIELDS: Final = (
    "text", "message_id", "platform_update_id", "media_urls", "media_types",
    "reply_to_message_id", "reply_to_text", "is_edit", "group_id", "is_addressed",
    "internal", "timestamp",
)  # fmt: skip


def encode(event: MessageEvent) -> dict[str, Any]:
    """The payload of an event; the platform's raw message is left out."""
    if event.source is None:
        raise UsageError("A message without a source cannot be answered.")
    fields = {name: getattr(event, name) for name in PLAIN_FIELDS}
    return {**fields, "type": event.message_type.value, "source": event.source.to_dict()}


def decode(payload: dict[str, Any]) -> MessageEvent:
    """The event of a payload."""
    fields = {name: payload[name] for name in PLAIN_FIELDS if name in payload}
    return MessageEvent(
        **fields,
        message_type=MessageType(payload.get("type", "text")),
        source=SessionSource.from_dict(payload["source"]),
    )


def message_uid(inbox_id: int) -> str:
    """The message uid under which an inbox row is stored in a conversation."""
    return f"inbox:{inbox_id}"
