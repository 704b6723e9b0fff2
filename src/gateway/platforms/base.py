"""What a chat platform is to the gateway: messages in, messages out, what it is able to do."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from gateway.config import PlatformConfig
    from gateway.process.http_server import HttpServer
    from gateway.routing.sources import SessionSource
    from hermes_core.media_store import MediaStore

    # Called for every message; when it returns, the message is safe and may be confirmed.
    Receive = Callable[["MessageEvent"], Awaitable[None]]


class MessageType(Enum):
    """What a message is."""

    TEXT = "text"
    LOCATION = "location"
    PHOTO = "photo"
    VIDEO = "video"
    AUDIO = "audio"
    VOICE = "voice"
    DOCUMENT = "document"
    STICKER = "sticker"
    COMMAND = "command"


@dataclass
class MessageEvent:
    """A message from a platform, in the words of none."""

    text: str
    message_type: MessageType = MessageType.TEXT
    source: SessionSource | None = None
    raw_message: Any = None
    message_id: str | None = None
    platform_update_id: int | None = None
    media_urls: list[str] = field(default_factory=list)
    media_types: list[str] = field(default_factory=list)
    reply_to_message_id: str | None = None
    reply_to_text: str | None = None
    is_edit: bool = False
    group_id: str | None = None  # of an album
    is_addressed: bool = True  # False in a group, when neither a mention nor a reply is in it
    internal: bool = False
    timestamp: float = field(default_factory=time.time)

    def get_command(self) -> str | None:
        """The command a message is, without its slash and the bot's name; None when it is none."""
        if not self.text.startswith("/"):
            return None
        word = (self.text[1:].split(maxsplit=1) or [""])[0]
        name = word.partition("@")[0].lower()
        return name if name and "/" not in name else None

    def get_command_args(self) -> str:
        """What stands behind a command; a dash that a phone made of two is two again."""
        if not self.get_command():
            return self.text
        _, *words = self.text.split(maxsplit=1)
        return "".join(words).replace("—", "--").strip()


class ErrorKind(Enum):
    """Why a message was not sent."""

    TOO_LONG = "too_long"
    BAD_FORMAT = "bad_format"
    FORBIDDEN = "forbidden"
    NOT_FOUND = "not_found"
    RATE_LIMITED = "rate_limited"
    TRANSIENT = "transient"
    UNKNOWN = "unknown"


class SendResult(NamedTuple):
    """What became of sending."""

    success: bool
    message_id: str | None = None
    error: str | None = None
    error_kind: ErrorKind | None = None
    retry_after: float | None = None
    may_have_arrived: bool = False  # the answer got lost: nobody knows
    raw_response: Any = None

    @property
    def retryable(self) -> bool:
        """Whether another try makes sense."""
        return self.error_kind in {ErrorKind.RATE_LIMITED, ErrorKind.TRANSIENT, ErrorKind.UNKNOWN}


class Abilities(NamedTuple):
    """What a platform can do besides sending text."""

    edit: bool = False
    typing: bool = False
    reactions: bool = False
    files: bool = False
    threads: bool = False
    idempotent: bool = False  # a repeated send with the same key arrives once
    longest_text: int = 4000


class OutgoingMessage(NamedTuple):
    """Something to be sent."""

    chat_id: str
    text: str
    key: str  # the same for every try
    thread_id: str | None = None
    reply_to: str | None = None
    file: Path | None = None  # the text is its caption; only where abilities.files


class Adapter(Protocol):
    """A platform.

    One that can come to an end by itself (its token is revoked, say) has an attribute
    `problem`: why nothing is heard any more, empty while all is well.
    """

    abilities: ClassVar[Abilities]
    account: str  # who the bot is there; known once it is connected

    async def connect(self, receive: Receive) -> None:
        """Begin to listen; each message is handed to *receive* before it is confirmed.

        Returns once it listens. PlatformDownError: try again later; PlatformRefusedError:
        what is configured is wrong. Later losses of the connection the adapter mends itself.
        """

    async def disconnect(self) -> None:
        """Stop listening; what was confirmed was handed over. Also after a failed connect."""

    async def send(self, outgoing: OutgoingMessage) -> SendResult:
        """Send a text, or a file; never raises for what the platform answers."""


@runtime_checkable
class Edits(Protocol):
    """A platform with `abilities.edit`."""

    async def edit(self, outgoing: OutgoingMessage, message_id: str) -> SendResult:
        """Put another text in the place of a message that was sent."""


@runtime_checkable
class Streams(Protocol):
    """A platform that hands an answer on while it is written, whatever the user has set."""

    async def piece(self, outgoing: OutgoingMessage, earlier: str) -> None:
        """What is written of the present message so far, and what stood before it.

        *earlier* and the text together only grow; the answer itself is sent in any case.
        """


@runtime_checkable
class Types(Protocol):
    """A platform with `abilities.typing`."""

    async def typing(self, chat_id: str, thread_id: str | None = None) -> None:
        """Show for a few seconds that an answer is being written; a failure is only logged."""


@runtime_checkable
class Reacts(Protocol):
    """A platform with `abilities.reactions`."""

    async def react(self, chat_id: str, message_id: str, emoji: str) -> None:
        """Put a small picture to a message; a failure is only logged."""


class Memory(Protocol):
    """What an adapter remembers from one start to the next: small texts by name."""

    async def recall(self, name: str) -> str | None:
        """What was kept under a name."""

    async def keep(self, name: str, text: str) -> None:
        """Keep a text; when this returns, it is on the disk."""


class AdapterContext(NamedTuple):
    """What an adapter is made from."""

    config: PlatformConfig  # `extra` holds what is written for the platform in config.yaml
    secret: Callable[[str], str]  # by the name of its variable; empty when it is not set
    media: MediaStore  # where files that come in are kept
    memory: Memory
    front: HttpServer  # the web server, for platforms that call us
