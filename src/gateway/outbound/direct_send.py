"""Messages that are not replies: sent through the outbox and recorded in the conversation.

A message that a script or another agent sends to a chat becomes part of the conversation there,
so the agent has it in context when a user answers it.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final, NamedTuple

from gateway.config import find_platform
from gateway.inbound import prompt_format
from gateway.platforms.base import MessageEvent, split_text
from gateway.platforms.names import Platform
from gateway.routing.sources import SessionEntry, SessionSource
from hermes_core.errors import UsageError
from hermes_state.delivery import inbox
from hermes_state.files import media_of, shared_files

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from gateway.config import GatewayConfig
    from hermes_state.delivery.rows import ReplyPayload, ReplyTarget, StoredRoute
    from hermes_state.store import SessionDB


class Channel(NamedTuple):
    """A chat and its current conversation."""

    platform: str
    chat_id: str
    thread_id: str | None
    name: str
    kind: str
    session_id: str | None = None
    session_key: str | None = None
    last_active: float | None = None

    @property
    def address(self) -> str:
        """The address of the chat: `platform:chat` or `platform:chat#thread`."""
        thread = f"#{self.thread_id}" if self.thread_id else ""
        return f"{self.platform}:{self.chat_id}{thread}"

    def target(self) -> ReplyTarget:
        """The target of an outbox row."""
        return {"chat_id": self.chat_id, "thread_id": self.thread_id}


def list_channels(db: SessionDB, config: GatewayConfig) -> list[Channel]:
    """All known chats, most recently used first; then home channels without messages."""
    used = [
        channel
        for route in db.routes.all()
        if (channel := _channel_of(route.entry, route.updated_at))
    ]
    used.sort(key=lambda channel: channel.last_active or 0, reverse=True)
    known = {channel[:3] for channel in used}
    unused = (channel for channel in _home_channels(config) if channel[:3] not in known)
    return [*used, *unused]


def _channel_of(entry: StoredRoute, at: float) -> Channel | None:
    try:
        route = SessionEntry.from_dict(entry)
    except (TypeError, ValueError, KeyError):
        return None  # the gateway logs it when it starts
    origin = route.origin
    if origin is None:
        return None
    name = origin.chat_name or route.display_name or origin.user_name or origin.chat_id
    return Channel(
        origin.platform.value,
        origin.chat_id,
        origin.thread_id,
        name,
        route.chat_type,
        route.session_id,
        route.session_key,
        at,
    )


def origin_of(entry: StoredRoute) -> SessionSource | None:
    """The chat and its last sender in a stored route."""
    try:
        return SessionEntry.from_dict(entry).origin
    except (TypeError, ValueError, KeyError):
        return None


def _home_channels(config: GatewayConfig) -> Iterable[Channel]:
    for platform, written in config.platforms.items():
        home = written.home_channel
        if home is not None:
            yield Channel(platform.value, home.chat_id, home.thread_id, home.name, "home")


def find_channel(db: SessionDB, config: GatewayConfig, text: str) -> Channel:
    """The chat of `platform:chat`, of a platform's home channel, or with a name."""
    known = list_channels(db, config)
    platform, colon, rest = text.partition(":")
    if colon and rest:
        return _by_address(known, platform.lower(), rest)
    homes = [
        home_channel
        for home_channel in _home_channels(config)
        if home_channel.platform == text.lower()
    ]
    if homes:
        return next((item for item in known if item.address == homes[0].address), homes[0])
    matching = [item for item in known if text.casefold() in {item.name.casefold(), item.platform}]
    if not matching:
        raise UsageError(f"unknown chat {text!r}; `hermes gateway channels` lists the known ones")
    targets = {(item.platform, item.chat_id, item.thread_id) for item in matching}
    if len(targets) > 1:
        addresses = ", ".join(sorted({item.address for item in matching}))
        raise UsageError(f"{text!r} matches several chats: {addresses}")
    return matching[0]


def _by_address(known: list[Channel], platform: str, rest: str) -> Channel:
    chat_id, _, thread_id = rest.partition("#") if not rest.startswith("#") else (rest, "", "")
    for item in known:
        if item.platform == platform and item.chat_id == rest and item.thread_id is None:
            return item
        if (item.platform, item.chat_id, item.thread_id) == (platform, chat_id, thread_id or None):
            return item
    if platform not in {item.value for item in Platform}:
        raise UsageError(f"unknown platform {platform!r}")
    return Channel(platform, chat_id, thread_id or None, chat_id, "dm")


MAX_PART_CHARS: Final = 4000
MIRROR_ACCOUNT: Final = "mirror"  # the account of these messages in the inbox


def send(
    db: SessionDB, channel: Channel, text: str, key: str = "", file: Path | None = None
) -> list[int]:
    """Store a message to a chat in the outbox; the outbox IDs of its parts.

    *key* is an idempotency key. The message is recorded in the conversation of the chat, if any.
    """
    if not text.strip() and file is None:
        raise UsageError("Nothing to send: give a text or a file.")
    key = key or db.ids.new()
    payloads: list[ReplyPayload] = [
        {"text": item} for item in split_text(text, MAX_PART_CHARS) or [""]
    ]
    if file is not None:
        payloads[-1]["file"] = str(file.resolve())
        if shared_files(db) is not None:  # another node may send it
            payloads[-1]["media"] = media_of(db).keep(file.read_bytes(), file.name).path.name
    outbox_ids = [
        db.outbox.add(
            f"send:{key}:{number}",
            platform=channel.platform,
            target=channel.target(),
            payload=payload,
            session_id=channel.session_id,
        )
        for number, payload in enumerate(payloads)
    ]
    record_sent(
        db, channel, text if file is None else f"{text}\n[Sent file: {file.name}]".strip(), key
    )
    return outbox_ids


def record_sent(db: SessionDB, channel: Channel, text: str, key: str) -> None:
    """Record in the conversation of a chat what was sent there.

    The record is an inbox message like any other, so it keeps its position among them.
    """
    message = sent_message(channel, text, key)
    if message is not None:
        db.engine.write(lambda tx: inbox.enqueue(tx, **message))


def sent_message(channel: Channel, text: str, key: str) -> dict[str, str] | None:
    """The inbox message that records what was sent; None for a chat without a conversation."""
    platform = find_platform(channel.platform)
    if channel.session_key is None or platform is None:
        return None
    source = SessionSource(
        platform, channel.chat_id, chat_type=channel.kind, thread_id=channel.thread_id
    )
    event = MessageEvent(f"/sent {text}", source=source, message_id=f"sent:{key}", internal=True)
    return {
        "platform": channel.platform,
        "account": MIRROR_ACCOUNT,
        "chat_id": channel.chat_id,
        "message_id": f"sent:{key}",
        "session_key": channel.session_key,
        "payload": json.dumps(prompt_format.encode(event)),
    }
