"""The platform interface: events, send results, abilities, length limits, adapter protocols."""

from __future__ import annotations

import math
import re
import time
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Final,
    NamedTuple,
    Protocol,
    Self,
    runtime_checkable,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from pathlib import Path

    from gateway.config import PlatformConfig
    from gateway.platforms.quarantine import Quarantine
    from gateway.process.http_server import HttpServer
    from gateway.routing.sources import SessionSource
    from hermes_core.media_store import MediaStore
    from hermes_core.roles import Role
    from hermes_state.delivery.api_requests import ApiRequestRepository
    from hermes_state.delivery.rows import StoredFailure, StoredUsage

    # Called for every message; when it returns, the message is stored and may be acknowledged.
    Receive = Callable[["MessageEvent"], Awaitable[None]]
    from collections.abc import Callable, Iterator


FENCE: Final = re.compile(r"^(\s*)(`{3,}|~{3,})(.*)$")
MIN_CHUNK_SHARE: Final = 0.5  # of the maximum: a better boundary is not worth a shorter chunk


def split_text(text: str, max_length: int, length: Callable[[str], int] = len) -> list[str]:
    """*text* in chunks of at most *max_length* by *length*; only whitespace at cuts is dropped."""
    if max_length < 1:
        raise ValueError("a chunk must have at least one character")
    chunks = _chunks(text.strip("\n"), max_length, length)
    return [chunk for chunk in chunks if chunk.strip()]


def utf16_length(text: str) -> int:
    """The length in UTF-16 units, as some platforms count it."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def _chunks(text: str, max_length: int, length: Callable[[str], int]) -> Iterator[str]:
    opening = ""
    while text:
        remaining = opening + text
        if length(remaining) <= max_length:
            yield remaining
            return
        limit = _fitting_length(remaining, max_length, length)
        cut = max(_cut_position(remaining, limit), len(opening) + 1)
        chunk, rest = remaining[:cut], remaining[cut:]
        fence = _open_fence(chunk)
        if fence and length(chunk) + length(_closing(fence)) > max_length:
            limit = _fitting_length(remaining, max(max_length - length(_closing(fence)), 1), length)
            cut = max(_cut_position(remaining, limit), len(opening) + 1)
            chunk, rest = remaining[:cut], remaining[cut:]
            fence = _open_fence(chunk)
        fits = fence and length(chunk) + length(_closing(fence)) <= max_length
        yield chunk.rstrip("\n") + (_closing(fence) if fits else "")
        opening = f"{fence}\n" if fits else ""
        text = rest.lstrip("\n") if not fits else rest.removeprefix("\n")


def _fitting_length(text: str, max_length: int, length: Callable[[str], int]) -> int:
    """How many characters from the start fit."""
    low, high = 0, min(len(text), max_length)
    while low < high:
        middle = (low + high + 1) // 2
        if length(text[:middle]) <= max_length:
            low = middle
        else:
            high = middle - 1
    return max(low, 1)


def _cut_position(text: str, limit: int) -> int:
    """Where to cut within *limit* characters: after the best boundary that is far enough."""
    minimum = int(limit * MIN_CHUNK_SHARE)
    for boundary in ("\n\n", "\n", " "):
        result = text.rfind(boundary, minimum, limit)
        if result > 0:
            return result + len(boundary)
    return limit


def _open_fence(text: str) -> str:
    """The opening line of a code block that *text* does not close."""
    opened = ""
    for line in text.split("\n"):
        match = FENCE.match(line)
        if not match:
            continue
        if not opened:
            opened = line
        elif not match[3].strip() and match[2].startswith(_marks(opened)):
            opened = ""
    return opened


def _marks(line: str) -> str:
    match = FENCE.match(line)
    return match[2] if match else ""


def _closing(fence: str) -> str:
    match = FENCE.match(fence)
    return f"\n{match[1]}{match[2]}" if match else ""


PRESS_PREFIX: Final = "button:"  # of the IDs of pressed buttons
COMMAND_PREFIX: Final = "command:"  # of the IDs of commands from a menu
MAX_BUTTON_BYTES: Final = 64  # Telegram's limit


class MessageType(Enum):
    """The kind of a message."""

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
    """A message in platform-independent form."""

    text: str
    message_type: MessageType = MessageType.TEXT
    source: SessionSource | None = None
    raw_message: Any = None
    message_id: str | None = None
    platform_update_id: int | None = None
    media_urls: list[str] = field(default_factory=list)
    media_types: list[str] = field(default_factory=list)
    media_names: list[str] = field(default_factory=list)  # as the sender called them, or empty
    reply_to_message_id: str | None = None
    reply_to_text: str | None = None
    is_edit: bool = False
    is_deletion: bool = False  # the sender has deleted the message with this ID
    group_id: str | None = None  # of an album
    is_addressed: bool = True  # False in a group without a mention or a reply
    internal: bool = False
    question_id: str = ""  # of the question whose button was pressed; the text is the command
    timestamp: float = field(default_factory=time.time)
    instructions: str = ""  # of an API client, for the conversation
    continues: tuple[str, int] | None = None  # a conversation and its last message
    channel_context: str | None = None  # earlier messages of the chat, from the adapter
    undecided: str = ""  # why no plugin has decided yet whether the message may be handled

    def __post_init__(self) -> None:
        """Accept a datetime as the time, as adapters of hermes-agent pass it."""
        at: object = self.timestamp
        if isinstance(at, datetime):
            self.timestamp = at.timestamp()

    @property
    def is_in_chat(self) -> bool:
        """Whether the chat shows the message, so that a reply can refer to it."""
        message_id = self.message_id or PRESS_PREFIX
        return not message_id.startswith((PRESS_PREFIX, COMMAND_PREFIX))

    def get_command(self) -> str | None:
        """The command of a message without slash and bot name; None if it is not a command."""
        if not self.text.startswith("/"):
            return None
        word = (self.text[1:].split(maxsplit=1) or [""])[0]
        name = word.partition("@")[0].lower()
        return name if name and "/" not in name else None

    def get_command_args(self) -> str:
        """The arguments of a command; an em dash from a phone keyboard becomes `--` again."""
        if not self.get_command():
            return self.text
        _, *arguments = self.text.split(maxsplit=1)
        return "".join(arguments).replace("—", "--").strip()


class ErrorKind(Enum):
    """Why a message was not sent."""

    TOO_LONG = "too_long"
    BAD_FORMAT = "bad_format"
    FORBIDDEN = "forbidden"
    NOT_FOUND = "not_found"
    RATE_LIMITED = "rate_limited"
    TRANSIENT = "transient"
    UNKNOWN = "unknown"


class _SendFields(NamedTuple):
    success: bool
    message_id: str | None = None
    error: str | None = None
    error_kind: ErrorKind | None = None
    retry_after: float | None = None
    may_have_arrived: bool = False  # the response was lost
    raw_response: Any = None


class SendResult(_SendFields):
    """The outcome of a send; plugins of hermes-agent give `retryable` instead of a kind."""

    __slots__ = ()

    def __new__(
        cls, success: bool, *fields: Any, retryable: bool | None = None, **named: Any
    ) -> Self:
        """The fields are those above."""
        result = super().__new__(cls, success, *fields, **named)
        if success or retryable is None or result.error_kind is not None:
            return result
        kind = ErrorKind.TRANSIENT if retryable else ErrorKind.FORBIDDEN
        return result._replace(error_kind=kind)

    @property
    def retryable(self) -> bool:
        """Whether another attempt makes sense."""
        return self.error_kind in {ErrorKind.RATE_LIMITED, ErrorKind.TRANSIENT, ErrorKind.UNKNOWN}


class Abilities(NamedTuple):
    """What a platform supports besides sending text."""

    edit: bool = False
    typing: bool = False
    reactions: bool = False
    files: bool = False
    threads: bool = False
    buttons: bool = False
    idempotent: bool = False  # a repeated send with the same key arrives once
    idempotent_seconds: float = math.inf  # for so long after the first send
    longest_text: int = 4000


class Button(NamedTuple):
    """A button below a message; pressing it sends a command."""

    label: str
    data: str  # at most MAX_BUTTON_BYTES; the platform returns it as it is

    @classmethod
    def create(cls, label: str, question_id: str, command: str) -> Button:
        """A button that answers a question with a command."""
        return cls(label, f"{question_id} {command}")


def pressed(data: str, source: SessionSource, message_id: str) -> MessageEvent | None:
    """The message that pressing a button sends; None if the button is not from the gateway."""
    question_id, _, command = data.partition(" ")
    if not question_id or not command.startswith("/"):
        return None
    return MessageEvent(
        command,
        MessageType.COMMAND,
        source,
        message_id=f"{PRESS_PREFIX}{message_id}",
        question_id=question_id,
    )


class OutgoingMessage(NamedTuple):
    """A message to send."""

    chat_id: str
    text: str
    key: str  # the idempotency key, the same for every attempt
    thread_id: str | None = None
    reply_to: str | None = None
    file: Path | None = None  # the text is its caption; only where abilities.files
    buttons: tuple[Button, ...] = ()  # only where abilities.buttons
    usage: StoredUsage | None = None  # of the turn that this is the reply of
    failure: StoredFailure | None = None  # the text describes it
    session_id: str | None = None
    inbox_id: int | None = None  # of the message that this answers
    problem: str = ""  # why the answer is not complete; the text describes it


class Adapter(Protocol):
    """The connection to a platform.

    An adapter whose connection can fail permanently, e.g. after its token is revoked, has an
    attribute `problem`: the reason, empty while the connection works.
    """

    abilities: ClassVar[Abilities]
    account: str  # the account of the bot; known once connected

    async def connect(self, receive: Receive) -> None:
        """Start listening; each message is passed to *receive* before it is acknowledged.

        Returns once it listens. PlatformDownError: try again later; PlatformRefusedError:
        the configuration is wrong. The adapter reconnects on its own after that.
        """

    async def disconnect(self) -> None:
        """Stop listening; acknowledged messages are stored. Also after a failed connect."""

    async def send(self, outgoing: OutgoingMessage) -> SendResult:
        """Send a text or a file; an error response of the platform does not raise."""


@runtime_checkable
class Listens(Protocol):
    """A platform whose loop the gateway runs; `connect` and `disconnect` are optional then."""

    async def listen(self, receive: Receive) -> None:
        """Pass each message to *receive*, until cancelled; called again after an error."""


@runtime_checkable
class Edits(Protocol):
    """A platform with `abilities.edit`."""

    async def edit(self, outgoing: OutgoingMessage, message_id: str) -> SendResult:
        """Replace the text of a sent message."""


@runtime_checkable
class Streams(Protocol):
    """A platform that streams replies regardless of the streaming settings."""

    async def piece(self, outgoing: OutgoingMessage, earlier: str) -> None:
        """The current message so far; *earlier* is the text of the messages before it.

        *earlier* and the text together only grow; the complete reply is sent in any case.
        """


@runtime_checkable
class Types(Protocol):
    """A platform with `abilities.typing`."""

    async def typing(self, chat_id: str, thread_id: str | None = None) -> None:
        """Show the typing indicator for a few seconds; a failure is only logged."""


@runtime_checkable
class Reacts(Protocol):
    """A platform with `abilities.reactions`."""

    async def react(self, chat_id: str, message_id: str, emoji: str) -> None:
        """Add an emoji reaction to a message; a failure is only logged."""


class Memory(Protocol):
    """Small texts by name that an adapter keeps across restarts."""

    async def recall(self, name: str) -> str | None:
        """The text stored under a name."""

    async def keep(self, name: str, text: str) -> None:
        """Store a text; when this returns, it is on disk."""


class MenuCommand(NamedTuple):
    """A command in the menu of a platform."""

    name: str
    help: str
    hint: str = ""  # of its arguments


class Records(Protocol):
    """Binary records by name that an adapter keeps across restarts; other nodes see them, too.

    The methods block: call them in a thread.
    """

    def load(self, prefix: str) -> dict[str, bytes]:
        """The records whose names start with a prefix, by the rest of their names."""

    def change(
        self,
        prefix: str,
        changes: Mapping[str, bytes | None],
        guard: tuple[str, bytes] | None = None,
    ) -> bool:
        """Store and delete records together; False if the record of *guard* has changed."""


async def drop_update(update_id: str, content: object, error: str) -> None:
    """The quarantine of an adapter without a store: none."""


class AdapterContext(NamedTuple):
    """What an adapter is created with."""

    config: PlatformConfig  # `extra` holds the platform's keys of config.yaml
    secret: Callable[[str], str]  # by variable name; empty if it is not set
    media: MediaStore  # stores incoming files
    memory: Memory
    front: HttpServer  # the HTTP server, for webhooks
    find_api_key: Callable[[str], ApiKey | None] = lambda _key: None
    quarantine: Quarantine = drop_update
    commands: tuple[MenuCommand, ...] = ()  # for the command menu of the platform
    records: Records | None = None
    is_owner: Callable[[str], bool] = lambda _user_id: False  # whether a user is the owner
    # Whether a message is for the agent and its sender has access. It blocks: call it in a
    # thread, before files of the message are downloaded.
    is_accepted: Callable[[MessageEvent], bool] = lambda _event: True
    api_requests: ApiRequestRepository | None = None


class ApiKey(NamedTuple):
    """A key of `hermes api-keys`."""

    name: str
    role: Role


def __getattr__(name: str) -> Any:
    """The base class that adapters of hermes-agent extend; it uses names of this module."""
    if name == "BasePlatformAdapter":
        from hermes_compat.platforms import (  # noqa: PLC0415 - it imports this one
            BasePlatformAdapter,
        )

        return BasePlatformAdapter
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
