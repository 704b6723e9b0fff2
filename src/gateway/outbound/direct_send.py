"""Messages that answer nobody: sent through the outbox, and noted where they arrive.

What a script or another agent sends to a chat is part of the conversation there: whoever
answers it finds an agent that knows what was said.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from gateway.config import known_platform
from gateway.inbound import inbox_codec
from gateway.outbound.chunks import pieces
from gateway.platforms.base import MessageEvent
from gateway.routing.sources import SessionSource
from hermes_core.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from gateway.outbound.channel_directory import Channel
    from hermes_state import SessionDB

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
