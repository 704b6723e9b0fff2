"""Files that come with messages of Telegram: which one it is, and its fetching."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import TYPE_CHECKING, Final, NamedTuple

import aiohttp
from aiogram.exceptions import AiogramError

from gateway.platforms import incoming_files
from gateway.platforms.base import MessageType
from hermes_core.errors import UsageError

if TYPE_CHECKING:
    from aiogram import Bot
    from aiogram.types import Message

    from gateway.platforms.telegram.results import Cleaner
    from hermes_core.media_store import Kept, MediaStore

log = logging.getLogger(__name__)

FETCH_SECONDS: Final = 60
TRIES: Final = 2
TOO_LARGE: Final = "[a file that is too large to be fetched: {name}]"
# Attributes of a message that hold a file, with what it is called when it has no name.
HOLDERS: Final = (
    ("voice", MessageType.VOICE, "voice.ogg", "audio/ogg"),
    ("audio", MessageType.AUDIO, "audio.mp3", "audio/mpeg"),
    ("video", MessageType.VIDEO, "video.mp4", "video/mp4"),
    ("video_note", MessageType.VIDEO, "video.mp4", "video/mp4"),
    ("animation", MessageType.VIDEO, "animation.mp4", "video/mp4"),
    ("document", MessageType.DOCUMENT, "document", ""),
)


class Attached(NamedTuple):
    """A file that a message comes with."""

    file_id: str
    kind: MessageType
    name: str
    mime: str
    bytes: int  # 0 when nobody said


class Fetched(NamedTuple):
    """The file in our store, or the note that stands for it."""

    kept: Kept | None
    note: str = ""  # with a place for its name


def attached(message: Message) -> Attached | None:
    """The file of a message; a photo in the largest size there is."""
    if message.photo:
        best = max(message.photo, key=lambda one: one.width * one.height)
        size = best.file_size or 0
        return Attached(best.file_id, MessageType.PHOTO, "photo.jpg", "image/jpeg", size)
    for holder, kind, name, mime in HOLDERS:
        found = getattr(message, holder)
        if found is not None:
            known_as = getattr(found, "file_name", None) or name
            known_kind = getattr(found, "mime_type", None) or mime
            return Attached(found.file_id, kind, known_as, known_kind, found.file_size or 0)
    return None


class Fetching:
    """Fetches files into the store."""

    def __init__(self, bot: Bot, media: MediaStore, clean: Cleaner) -> None:
        self._bot = bot
        self._media = media
        self._clean = clean

    async def __call__(self, file: Attached) -> Fetched:
        """Fetch and keep a file. OSError when our own disk does not take it."""
        try:
            data = await self._tried(file)
            kept = await asyncio.to_thread(self._media.keep, data, file.name, file.mime)
        except UsageError:
            return Fetched(None, TOO_LARGE)
        except _UnfetchedError as error:
            log.warning("a file of a Telegram message could not be fetched: %s", error)
            return Fetched(
                None, TOO_LARGE if "too big" in str(error) else incoming_files.NOT_FETCHED
            )
        return Fetched(kept)

    async def _tried(self, file: Attached) -> bytes:
        for is_last in [False] * (TRIES - 1) + [True]:
            try:
                return await self._fetch(file)
            except (AiogramError, aiohttp.ClientError, TimeoutError) as error:
                if is_last:
                    raise _UnfetchedError(self._clean(error)) from None
        raise AssertionError("a file is tried once at least")

    async def _fetch(self, file: Attached) -> bytes:
        incoming_files.check(file.bytes, self._media.largest)
        found = await self._bot.get_file(file.file_id, request_timeout=FETCH_SECONDS)
        incoming_files.check(found.file_size or 0, self._media.largest)
        address = self._bot.session.api.file_url(self._bot.token, found.file_path or "")
        data = bytearray()
        stream = self._bot.session.stream_content(address, timeout=FETCH_SECONDS)
        async with contextlib.aclosing(stream):
            async for chunk in stream:
                data += chunk
                incoming_files.check(len(data), self._media.largest)
        return bytes(data)


class _UnfetchedError(Exception):
    """Telegram did not give the file."""
