"""Files that come in from Discord: fetched from its own hosts, without the token."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from aiohttp import ClientError, ClientSession, ClientTimeout

from gateway.platforms import incoming_files
from gateway.platforms.base import MessageEvent, MessageType
from gateway.platforms.discord import results
from hermes_core.errors import UsageError

if TYPE_CHECKING:
    import discord

    from hermes_core.media_store import Kept, MediaStore

log = logging.getLogger(__name__)

FETCH_SECONDS: Final = 120.0
OWN_HOSTS: Final = ("discordapp.com", "discordapp.net", "discord.com")


class Files:
    """Fetches files."""

    def __init__(self, base_url: str, media: MediaStore) -> None:
        self._base_url = base_url  # where Discord is, when it is somewhere else
        self._media = media

    async def add(self, event: MessageEvent, message: discord.Message) -> None:
        """Put the files of a message to it; one that cannot be fetched leaves a note."""
        forwarded = [file for one in message.message_snapshots for file in one.attachments]
        for file in (*message.attachments, *forwarded):
            kept = await self._kept(file)
            if kept is None:
                incoming_files.leave_note(event, file.filename)
            else:
                incoming_files.attach(event, kept, _kind(file, kept.mime))

    async def _kept(self, file: discord.Attachment) -> Kept | None:
        """Fetch a file and keep it; None where that cannot be."""
        try:
            data = await self._fetched(file)
            mime = file.content_type or ""
            return await asyncio.to_thread(self._media.keep, data, file.filename, mime)
        except (ClientError, TimeoutError, UsageError) as error:
            log.warning("a file was not fetched: %s", results.described(error))
            return None

    async def _fetched(self, file: discord.Attachment) -> bytes:
        if not incoming_files.is_at(file.url, OWN_HOSTS, self._base_url):
            raise UsageError("it is not kept by Discord")
        incoming_files.check(file.size, self._media.largest)
        async with (
            ClientSession(timeout=ClientTimeout(total=FETCH_SECONDS)) as session,
            session.get(file.url, allow_redirects=False) as response,
        ):
            if response.status != 200:
                raise UsageError(f"Discord answered with HTTP {response.status}")
            return await incoming_files.read(response.content, self._media.largest)


def _kind(file: discord.Attachment, mime: str) -> MessageType:
    return MessageType.VOICE if file.is_voice_message() else incoming_files.kind_of(mime)
