"""Messages that answer nobody: sent through the outbox, and noted where they arrive.

What a script or another agent sends to a chat is part of the conversation there: whoever
answers it finds an agent that knows what was said.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from gateway.config import known_platform
from gateway.inbound import inbox_codec
from gateway.outbound.chunks import pieces
from gateway.platforms.base import MessageEvent
from gateway.platforms.names import Platform
from gateway.routing.entries import SessionEntry
from gateway.routing.sources import SessionSource
from hermes_core.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from gateway.config import GatewayConfig
    from hermes_state import SessionDB


class Channel(NamedTuple):
    """A chat, and the conversation that is had there."""

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
        """How it is written: `platform:chat` or `platform:chat:thread`."""
        thread = f"#{self.thread_id}" if self.thread_id else ""
        return f"{self.platform}:{self.chat_id}{thread}"

    def target(self) -> dict[str, Any]:
        """As the outbox knows it."""
        return {"chat_id": self.chat_id, "thread_id": self.thread_id}


def channels(db: SessionDB, config: GatewayConfig) -> list[Channel]:
    """Every chat that is known, the one used last first; then home channels nobody has used."""
    found = [one for route in db.routes() if (one := _used(route.entry, route.updated_at))]
    found.sort(key=lambda one: one.last_active or 0, reverse=True)
    known = {(one.platform, one.chat_id, one.thread_id) for one in found}
    homes = (one for one in _homes(config) if one[:3] not in known)
    return [*found, *homes]


def _used(entry: dict[str, Any], at: float) -> Channel | None:
    try:
        read = SessionEntry.from_dict(entry)
    except (TypeError, ValueError, KeyError):
        return None  # the gateway says so when it starts
    origin = read.origin
    if origin is None:
        return None
    name = origin.chat_name or read.display_name or origin.user_name or origin.chat_id
    return Channel(
        origin.platform.value,
        origin.chat_id,
        origin.thread_id,
        name,
        read.chat_type,
        read.session_id,
        read.session_key,
        at,
    )


def _homes(config: GatewayConfig) -> Iterable[Channel]:
    for platform, written in config.platforms.items():
        home = written.home_channel
        if home is not None:
            yield Channel(platform.value, home.chat_id, home.thread_id, home.name, "home")


def find(db: SessionDB, config: GatewayConfig, text: str) -> Channel:
    """The chat somebody means: `platform:chat`, a platform's home channel, or a name."""
    known = channels(db, config)
    platform, colon, rest = text.partition(":")
    if colon and rest:
        return _by_address(known, platform.lower(), rest)
    homes = [one for one in _homes(config) if one.platform == text.lower()]
    if homes:
        return next((one for one in known if one.address == homes[0].address), homes[0])
    fitting = [one for one in known if text.casefold() in {one.name.casefold(), one.platform}]
    if not fitting:
        raise UsageError(f"no chat is called {text!r}; `hermes gateway channels` lists them")
    places = {(one.platform, one.chat_id, one.thread_id) for one in fitting}
    if len(places) > 1:
        addresses = ", ".join(sorted({one.address for one in fitting}))
        raise UsageError(f"{text!r} may be any of these: {addresses}")
    return fitting[0]


def _by_address(known: list[Channel], platform: str, rest: str) -> Channel:
    chat_id, _, thread_id = rest.partition("#") if not rest.startswith("#") else (rest, "", "")
    for one in known:
        if one.platform == platform and one.chat_id == rest and one.thread_id is None:
            return one
        if (one.platform, one.chat_id, one.thread_id) == (platform, chat_id, thread_id or None):
            return one
    if platform not in {one.value for one in Platform}:
        raise UsageError(f"there is no platform {platform!r}")
    return Channel(platform, chat_id, thread_id or None, chat_id, "dm")


LONGEST_TEXT: Final = 4000
ACCOUNT: Final = "mirror"  # whose messages these are, in the inbox


def send(
    db: SessionDB, channel: Channel, text: str, key: str = "", file: Path | None = None
) -> list[int]:
    """Owe a chat a message; the numbers of its parts in the outbox.

    The same *key* again is the same message. It is noted in the conversation of the chat, if
    one is had there.
    """
    if not text.strip() and file is None:
        raise UsageError("there is nothing to send")
    key = key or db.ids.new()
    payloads: list[dict[str, Any]] = [{"text": one} for one in pieces(text, LONGEST_TEXT)] or [
        {"text": ""}
    ]
    if file is not None:
        payloads[-1]["file"] = str(file.resolve())
    numbers = [
        db.owe_reply(
            f"send:{key}:{number}",
            platform=channel.platform,
            target=channel.target(),
            payload=payload,
            session_id=channel.session_id,
        )
        for number, payload in enumerate(payloads)
    ]
    note(db, channel, text if file is None else f"{text}\n[sent the file {file.name}]".strip(), key)
    return numbers


def note(db: SessionDB, channel: Channel, text: str, key: str) -> None:
    """Let the conversation of a chat know what was sent there, in its turn.

    It is a message of the inbox like any other, so that it stands where it belongs.
    """
    platform = known_platform(channel.platform)
    if channel.session_key is None or platform is None:
        return
    source = SessionSource(
        platform, channel.chat_id, chat_type=channel.kind, thread_id=channel.thread_id
    )
    event = MessageEvent(f"/sent {text}", source=source, message_id=f"sent:{key}", internal=True)
    db.receive(
        platform=channel.platform,
        account=ACCOUNT,
        chat_id=channel.chat_id,
        message_id=f"sent:{key}",
        session_key=channel.session_key,
        payload=inbox_codec.written(event),
    )
