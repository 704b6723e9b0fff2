"""A message as it is kept in the inbox: whole, so that it can be answered after a restart."""

from __future__ import annotations

from typing import Any, Final

from gateway.platforms.base import MessageEvent, MessageType
from gateway.routing.sources import SessionSource
from hermes_core.errors import UsageError

PLAIN: Final = (
    "text", "message_id", "platform_update_id", "media_urls", "media_types",
    "reply_to_message_id", "reply_to_text", "is_edit", "group_id", "is_addressed",
    "internal", "timestamp",
)  # fmt: skip


def written(event: MessageEvent) -> dict[str, Any]:
    """An event as it is kept; what only its platform understands is left out."""
    if event.source is None:
        raise UsageError("a message without a source cannot be answered")
    facts = {name: getattr(event, name) for name in PLAIN}
    return {**facts, "type": event.message_type.value, "source": event.source.to_dict()}


def read(payload: dict[str, Any]) -> MessageEvent:
    """The event that was kept."""
    facts = {name: payload[name] for name in PLAIN if name in payload}
    return MessageEvent(
        **facts,
        message_type=MessageType(payload.get("type", "text")),
        source=SessionSource.from_dict(payload["source"]),
    )


def uid(inbox_id: int) -> str:
    """The identity of what a message of the inbox says."""
    return f"inbox:{inbox_id}"
