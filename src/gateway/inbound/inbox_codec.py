"""Serialises a message for the inbox, complete enough to answer it after a restart."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

from gateway.platforms.base import MessageEvent, MessageType
from gateway.routing.sources import SessionSource
from hermes_core.errors import UsageError

if TYPE_CHECKING:
    from hermes_state.delivery.nodes import BoundMessage
    from hermes_state.delivery.rows import IncomingMessage
    from hermes_state.delivery.stored_json import MessagePayload

log = logging.getLogger(__name__)

UNREADABLE: Final = "unreadable message"
PLAIN_FIELDS: Final = (
    "text", "message_id", "platform_update_id", "media_urls", "media_types", "media_names",
    "reply_to_message_id", "reply_to_text", "is_edit", "group_id", "is_addressed",
    "internal", "question_id", "timestamp", "instructions", "channel_context",
    "undecided",
)  # fmt: skip


def encode(event: MessageEvent) -> MessagePayload:
    """The payload of an event; the platform's raw message is left out."""
    if event.source is None:
        raise UsageError("A message without a source cannot be answered.")
    return {
        "text": event.text,
        "message_id": event.message_id,
        "platform_update_id": event.platform_update_id,
        "media_urls": event.media_urls,
        "media_types": event.media_types,
        "media_names": event.media_names,
        "reply_to_message_id": event.reply_to_message_id,
        "reply_to_text": event.reply_to_text,
        "is_edit": event.is_edit,
        "group_id": event.group_id,
        "is_addressed": event.is_addressed,
        "internal": event.internal,
        "question_id": event.question_id,
        "timestamp": event.timestamp,
        "instructions": event.instructions,
        "continues": event.continues,
        "channel_context": event.channel_context,
        "undecided": event.undecided,
        "type": event.message_type.value,
        "source": event.source.to_dict(),
    }


def decode(payload: MessagePayload) -> MessageEvent:
    """The event of a payload."""
    if not isinstance(payload["text"], str):
        raise TypeError("the text of a message is a string")
    fields: dict[str, Any] = {name: payload[name] for name in PLAIN_FIELDS if name in payload}
    point = payload.get("continues")
    return MessageEvent(
        **fields,
        continues=(point[0], point[1]) if point else None,
        message_type=MessageType(payload.get("type", "text")),
        source=SessionSource.from_dict(payload["source"]),
    )


def decode_row(row: IncomingMessage | BoundMessage) -> MessageEvent | None:
    """The event of a row; None if it is unreadable, e.g. damaged or of a newer release."""
    try:
        return decode(row.payload)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        log.error("message %s is unreadable: %s: %s", row.inbox_id, type(error).__name__, error)
        return None


def message_uid(inbox_id: int) -> str:
    """The message uid under which an inbox row is stored in a conversation."""
    return f"inbox:{inbox_id}"
