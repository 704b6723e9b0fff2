"""Files that come in: how much of one is read, from whom, and how it shows in a message."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from gateway.platforms.base import MessageType
from hermes_core.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from aiohttp import StreamReader

    from gateway.platforms.base import MessageEvent
    from hermes_core.media_store import StoredFile

NOT_FETCHED: Final = "[a file that could not be fetched: {name}]"
KINDS: Final = {
    "image": MessageType.PHOTO,
    "audio": MessageType.AUDIO,
    "video": MessageType.VIDEO,
}
CHUNK: Final = 65536


def kind_of(mime: str) -> MessageType:
    """What a message with such a file is."""
    return KINDS.get(mime.partition("/")[0], MessageType.DOCUMENT)


def attach(event: MessageEvent, kept: StoredFile, kind: MessageType) -> None:
    """Put a file to a message; the first one says what the message is."""
    if not event.media_urls:
        event.message_type = kind
    event.media_urls.append(str(kept.path))
    event.media_types.append(kept.mime)


def leave_note(event: MessageEvent, name: str, template: str = NOT_FETCHED) -> None:
    """Say in a message that there was a file."""
    event.text = f"{event.text}\n{template.format(name=name)}".strip()


def check(size: int, largest: int) -> None:
    """UsageError where a file has more bytes than are taken."""
    if size > largest:
        raise UsageError(f"it is larger than {largest} bytes")


async def read(stream: StreamReader, largest: int) -> bytes:
    """The bytes of an answer, read no further than is allowed."""
    data = bytearray()
    async for part in stream.iter_chunked(CHUNK):
        data += part
        check(len(data), largest)
    return bytes(data)


def is_at(url: str, hosts: Iterable[str], base_url: str) -> bool:
    """Whether an address is one of a platform's own.

    Whoever writes a message may name any other; *base_url* stands in for the platform's hosts.
    """
    try:
        place = urlsplit(url)
        port = place.port
    except ValueError:
        return False
    if base_url:
        own = urlsplit(base_url)
        return (place.scheme, place.netloc) == (own.scheme, own.netloc)
    host = place.hostname or ""
    is_known = any(host == one or host.endswith(f".{one}") for one in hosts)
    return place.scheme == "https" and is_known and port in {None, 443}
