"""Discord messages as message events, with their files."""

from __future__ import annotations

import asyncio
import logging
import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import discord
from aiohttp import ClientError, ClientSession, ClientTimeout

from gateway.platforms import incoming_files
from gateway.platforms.base import MessageEvent, MessageType
from gateway.platforms.deduplication import RecentItems
from gateway.platforms.discord import results
from gateway.platforms.names import Platform
from gateway.routing.sources import SessionSource
from hermes_core.errors import PlatformDownError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from gateway.platforms.discord.listener import DiscordClient
    from hermes_core.media_store import MediaStore, StoredFile

log = logging.getLogger(__name__)

DOWNLOAD_TIMEOUT_SECONDS: Final = 120.0
OWN_HOSTS: Final = ("discordapp.com", "discordapp.net", "discord.com")


class DiscordFiles:
    """Downloads the files of messages."""

    def __init__(
        self, base_url: str, media: MediaStore, is_accepted: Callable[[MessageEvent], bool]
    ) -> None:
        self._base_url = base_url  # replaces the hosts of Discord
        self._media = media
        self._is_accepted = is_accepted

    async def add(self, event: MessageEvent, message: discord.Message) -> None:
        """Attach the files of an accepted message; a failed download is mentioned in the text."""
        forwarded = [
            file
            for message_snapshot in message.message_snapshots
            for file in message_snapshot.attachments
        ]
        found = [*message.attachments, *forwarded]
        if found and not await asyncio.to_thread(self._is_accepted, event):
            for file in found:
                incoming_files.add_note(event, file.filename, incoming_files.NOT_DOWNLOADED_NOTE)
            return
        for file in found:
            stored = await self._store(file)
            if stored is None:
                incoming_files.add_note(event, file.filename)
            else:
                incoming_files.attach(event, stored, _kind(file, stored.mime))

    async def _store(self, file: discord.Attachment) -> StoredFile | None:
        """Download and store a file; None if that fails."""
        try:
            data = await self._download(file)
            mime = file.content_type or ""
            return await asyncio.to_thread(self._media.keep, data, file.filename, mime)
        except (ClientError, TimeoutError, UsageError) as error:
            log.warning("file download failed: %s", results.describe_error(error))
            return None

    async def _download(self, file: discord.Attachment) -> bytes:
        if not incoming_files.is_hosted_by(file.url, OWN_HOSTS, self._base_url):
            raise UsageError("the file is not hosted by Discord")
        incoming_files.check_size(file.size, self._media.max_bytes)
        async with (
            ClientSession(timeout=ClientTimeout(total=DOWNLOAD_TIMEOUT_SECONDS)) as session,
            session.get(file.url, allow_redirects=False) as response,
        ):
            if response.status != 200:
                raise UsageError(f"Discord returned HTTP {response.status}")
            return await incoming_files.read_limited(response.content, self._media.max_bytes)


def _kind(file: discord.Attachment, mime: str) -> MessageType:
    return MessageType.VOICE if file.is_voice_message() else incoming_files.message_type_of(mime)


USER_MESSAGE_TYPES: Final = (discord.MessageType.default, discord.MessageType.reply)


class DiscordChannel(NamedTuple):
    """A channel and its server, as far as known."""

    channel: discord.abc.Messageable | None
    guild: discord.Guild | None


class DiscordMessageReader:
    """Converts messages for one account."""

    def __init__(self, me: int, files: DiscordFiles) -> None:
        self._me = me
        self._files = files
        self._client: DiscordClient | None = None
        self._threads = RecentItems()  # message ID to thread ID

    def use(self, client: DiscordClient) -> None:
        """Use another client."""
        self._client = client

    def channel_of(self, chat_id: str, message_id: str) -> str:
        """The channel of a message; a thread is a channel of its own."""
        return self._threads.note_of(message_id) or chat_id

    async def find_channel(self, channel: int) -> DiscordChannel:
        """A channel, from the cache or from Discord."""
        if self._client is None:
            raise PlatformDownError("Discord is not connected")
        result: Any = self._client.get_channel(channel) or await self._client.fetch_channel(channel)
        is_messageable = isinstance(result, discord.abc.Messageable)
        return DiscordChannel(result if is_messageable else None, getattr(result, "guild", None))

    async def read(self, message: discord.Message, *, is_edit: bool = False) -> MessageEvent | None:
        """The event of a message; None for system messages, bots and empty ones such as polls."""
        author = message.author
        if (
            author.id == self._me
            or author.bot
            or message.webhook_id
            or message.type not in USER_MESSAGE_TYPES
        ):
            return None
        text, is_named = self._text(message)
        source = await self.source_of(author, message.channel, message.guild)
        if source.thread_id is not None:
            self._threads.add(str(message.id), source.thread_id)
        event = MessageEvent(
            text,
            MessageType.COMMAND if text.startswith("/") else MessageType.TEXT,
            source,
            message_id=str(message.id),
            is_edit=is_edit,
            is_addressed=source.chat_type == "dm" or is_named,
            timestamp=message.created_at.timestamp(),
        )
        self._add_reply(message, event)
        await self._files.add(event, message)
        return event if event.text or event.media_urls or is_named else None

    def _text(self, message: discord.Message) -> tuple[str, bool]:
        """The text with names instead of IDs, and whether it mentions the bot."""
        text = message.content
        role = message.guild.self_role if message.guild else None
        mine = rf"<@!?{self._me}>" + (rf"|<@&{role.id}>" if role else "")
        is_named = bool(re.search(mine, text))
        text = re.sub(rf"(?:{mine})[:,]?\s*", "", text)
        for user in message.mentions:
            for written in (f"<@{user.id}>", f"<@!{user.id}>"):
                text = text.replace(written, f"@{user.display_name}")
        forwarded = [
            message_snapshot.content
            for message_snapshot in message.message_snapshots
            if message_snapshot.content
        ]
        stickers = [f"[sticker: {sticker.name}]" for sticker in message.stickers]
        full_text = "\n".join(filter(None, (text.strip(), *forwarded, *stickers)))
        return full_text, is_named

    async def source_of(
        self,
        user: discord.User | discord.Member,
        channel: Any,
        guild: discord.Guild | None = None,
    ) -> SessionSource:
        """The chat and the sender of a message or an interaction."""
        if isinstance(channel, discord.PartialMessageable):
            channel = await self._look_up(channel)
        guild = guild or getattr(channel, "guild", None)
        source = SessionSource(
            Platform.DISCORD,
            str(channel.id),
            chat_name=getattr(channel, "name", None),
            chat_type="dm" if isinstance(channel, discord.DMChannel) else "channel",
            user_id=str(user.id),
            user_name=user.display_name,
            guild_id=str(guild.id) if guild else None,
        )
        if isinstance(channel, discord.Thread):
            source.chat_type, source.thread_id = "thread", str(channel.id)
            source.chat_id = source.parent_chat_id = str(channel.parent_id)
        return source

    async def _look_up(self, channel: discord.PartialMessageable) -> Any:
        try:
            return (await self.find_channel(channel.id)).channel or channel
        except (discord.Forbidden, discord.NotFound):
            return channel
        except discord.DiscordException as error:
            raise PlatformDownError(results.describe_error(error)) from error

    def _add_reply(self, message: discord.Message, event: MessageEvent) -> None:
        reference = message.reference
        if reference is None or message.type is not discord.MessageType.reply:
            return
        event.reply_to_message_id = str(reference.message_id) if reference.message_id else None
        answered = reference.resolved
        if isinstance(answered, discord.Message):
            event.reply_to_text = answered.content or None
            event.is_addressed = event.is_addressed or answered.author.id == self._me
