"""Incoming files: size limits, allowed hosts, and how a file appears in a message."""

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

DOWNLOAD_FAILED_NOTE: Final = "[Attached file, download failed: {name}]"
NOT_DOWNLOADED_NOTE: Final = "[Attached file, not downloaded: {name}]"  # no access
MESSAGE_TYPES: Final = {
    "image": MessageType.PHOTO,
    "audio": MessageType.AUDIO,
    "video": MessageType.VIDEO,
}
CHUNK_BYTES: Final = 65536


def message_type_of(mime: str) -> MessageType:
    """The message type of a file's MIME type."""
    return MESSAGE_TYPES.get(mime.partition("/")[0], MessageType.DOCUMENT)


def attach(event: MessageEvent, stored: StoredFile, message_type: MessageType) -> None:
    """Attach a stored file to a message; the first one sets the message type."""
    if not event.media_urls:
        event.message_type = message_type
    event.media_urls.append(str(stored.path))
    event.media_types.append(stored.mime)
    event.media_names.append(stored.name)


def add_note(event: MessageEvent, name: str, template: str = DOWNLOAD_FAILED_NOTE) -> None:
    """Mention a file in the text of a message."""
    event.text = f"{event.text}\n{template.format(name=name)}".strip()


def check_size(size: int, max_bytes: int) -> None:
    """UsageError if a file is larger than allowed."""
    if size > max_bytes:
        raise UsageError(f"the file exceeds {max_bytes} bytes")


async def read_limited(stream: StreamReader, max_bytes: int) -> bytes:
    """The bytes of a response, read up to the limit."""
    data = bytearray()
    async for part in stream.iter_chunked(CHUNK_BYTES):
        data += part
        check_size(len(data), max_bytes)
    return bytes(data)


def is_hosted_by(url: str, hosts: Iterable[str], base_url: str) -> bool:
    """Whether a URL belongs to a platform; a sender may put any other into a message.

    A *base_url* replaces the platform's hosts.
    """
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return False
    if base_url:
        own = urlsplit(base_url)
        return (parts.scheme, parts.netloc) == (own.scheme, own.netloc)
    host = parts.hostname or ""
    is_known = any(host == item or host.endswith(f".{item}") for item in hosts)
    return parts.scheme == "https" and is_known and port in {None, 443}
