"""Telegram updates as message events, with their files."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import TYPE_CHECKING, Final, NamedTuple

import aiohttp
from aiogram.exceptions import AiogramError
from aiogram.types import Message

from gateway.platforms import incoming_files
from gateway.platforms.base import MessageEvent, MessageType, pressed
from gateway.platforms.names import Platform
from gateway.routing.sources import SessionSource
from hermes_core.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from aiogram import Bot
    from aiogram.types import CallbackQuery, MessageEntity, Update, User

    from gateway.platforms.telegram.results import TokenRedactor
    from hermes_core.media_store import MediaStore, StoredFile


log = logging.getLogger(__name__)

DOWNLOAD_TIMEOUT_SECONDS: Final = 60
DOWNLOAD_ATTEMPTS: Final = 2
TOO_LARGE_NOTE: Final = "[Attached file, too large to download: {name}]"
# Attributes of a message that hold a file: type, default name, default MIME type.
FILE_ATTRIBUTES: Final = (
    ("voice", MessageType.VOICE, "voice.ogg", "audio/ogg"),
    ("audio", MessageType.AUDIO, "audio.mp3", "audio/mpeg"),
    ("video", MessageType.VIDEO, "video.mp4", "video/mp4"),
    ("video_note", MessageType.VIDEO, "video.mp4", "video/mp4"),
    ("animation", MessageType.VIDEO, "animation.mp4", "video/mp4"),
    ("document", MessageType.DOCUMENT, "document", ""),
)


class TelegramAttachment(NamedTuple):
    """The file of a message."""

    file_id: str
    kind: MessageType
    name: str
    mime: str
    bytes: int  # 0 if unknown


class DownloadResult(NamedTuple):
    """The stored file, or the template of a note about it."""

    stored: StoredFile | None
    note: str = ""  # with {name}


def attachment_of(message: Message) -> TelegramAttachment | None:
    """The file of a message; of a photo the largest size."""
    if message.photo:
        best = max(message.photo, key=lambda item: item.width * item.height)
        size = best.file_size or 0
        return TelegramAttachment(best.file_id, MessageType.PHOTO, "photo.jpg", "image/jpeg", size)
    for holder, kind, name, mime in FILE_ATTRIBUTES:
        result = getattr(message, holder)
        if result is not None:
            known_as = getattr(result, "file_name", None) or name
            known_kind = getattr(result, "mime_type", None) or mime
            return TelegramAttachment(
                result.file_id, kind, known_as, known_kind, result.file_size or 0
            )
    return None


class TelegramFiles:
    """Downloads files into the media store."""

    def __init__(
        self,
        bot: Bot,
        media: MediaStore,
        clean: TokenRedactor,
        is_accepted: Callable[[MessageEvent], bool],
    ) -> None:
        self._bot = bot
        self._media = media
        self._clean = clean
        self._is_accepted = is_accepted

    async def __call__(self, event: MessageEvent, file: TelegramAttachment) -> DownloadResult:
        """Download and store a file of an accepted message; OSError if the local disk fails."""
        if not await asyncio.to_thread(self._is_accepted, event):
            return DownloadResult(None, incoming_files.NOT_DOWNLOADED_NOTE)
        try:
            data = await self._download_with_retry(file)
            name = "" if file.kind is MessageType.PHOTO else file.name  # a photo has none
            stored = await asyncio.to_thread(self._media.keep, data, name, file.mime)
        except UsageError:
            return DownloadResult(None, TOO_LARGE_NOTE)
        except _DownloadError as error:
            log.warning("file download failed: %s", error)
            return DownloadResult(
                None,
                TOO_LARGE_NOTE if "too big" in str(error) else incoming_files.DOWNLOAD_FAILED_NOTE,
            )
        return DownloadResult(stored)

    async def _download_with_retry(self, file: TelegramAttachment) -> bytes:
        for is_last in [False] * (DOWNLOAD_ATTEMPTS - 1) + [True]:
            try:
                return await self._download(file)
            except (AiogramError, aiohttp.ClientError, TimeoutError) as error:
                if is_last:
                    raise _DownloadError(self._clean(error)) from None
        raise AssertionError("unreachable: at least one attempt is made")

    async def _download(self, file: TelegramAttachment) -> bytes:
        incoming_files.check_size(file.bytes, self._media.max_bytes)
        result = await self._bot.get_file(file.file_id, request_timeout=DOWNLOAD_TIMEOUT_SECONDS)
        incoming_files.check_size(result.file_size or 0, self._media.max_bytes)
        address = self._bot.session.api.file_url(self._bot.token, result.file_path or "")
        data = bytearray()
        stream = self._bot.session.stream_content(address, timeout=DOWNLOAD_TIMEOUT_SECONDS)
        async with contextlib.aclosing(stream):
            async for chunk in stream:
                data += chunk
                incoming_files.check_size(len(data), self._media.max_bytes)
        return bytes(data)


class _DownloadError(Exception):
    """Telegram did not deliver the file."""


MESSAGE_UPDATES: Final = ("message", "edited_message", "channel_post", "edited_channel_post")
UPDATE_TYPES: Final = (*MESSAGE_UPDATES, "callback_query")
CHAT_TYPES: Final = {"private": "dm", "group": "group", "supergroup": "group"}
UTF16: Final = "utf-16-le"  # Telegram counts offsets in UTF-16 units


class AddressedText(NamedTuple):
    """A text without mentions of the bot, and whether there was one."""

    text: str
    is_mentioned: bool


async def read_update(
    update: Update, me: User, files: TelegramFiles, since: float
) -> MessageEvent | None:
    """The message of an update, with its file; None if it has none or is older than *since*."""
    name, message = next(
        (
            (update_type, result)
            for update_type in MESSAGE_UPDATES
            if (result := getattr(update, update_type)) is not None
        ),
        ("", None),
    )
    if message is None or (message.from_user is not None and message.from_user.id == me.id):
        return None
    if message.date.timestamp() < since:
        return None
    is_edit = name.startswith("edited")
    if is_edit and message.location is not None:
        return None  # an update of a live location
    event = _event(message, me)
    event.platform_update_id = update.update_id
    event.is_edit = is_edit
    await _add_file(event, message, files)
    return event if event.text or event.media_urls else None


def read_press(query: CallbackQuery) -> MessageEvent | None:
    """The command of a pressed button; the one who presses it is the sender."""
    if query.message is None or query.data is None:
        return None
    chat = query.message.chat
    thread = _thread(query.message) if isinstance(query.message, Message) else None
    source = SessionSource(
        Platform.TELEGRAM,
        str(chat.id),
        chat_name=chat.title or chat.full_name or None,
        chat_type=CHAT_TYPES.get(chat.type, "channel"),
        user_id=str(query.from_user.id),
        user_name=query.from_user.full_name,
        thread_id=thread,
    )
    return pressed(query.data, source, query.id)


def _event(message: Message, me: User) -> MessageEvent:
    addressed = _addressed_text(message, me)
    source = source_of(message)
    replied = _replied(message)
    is_reply_to_us = (
        replied is not None and replied.from_user is not None and replied.from_user.id == me.id
    )
    event = MessageEvent(
        addressed.text,
        source=source,
        raw_message=message,
        message_id=str(message.message_id),
        reply_to_message_id=str(replied.message_id) if replied else None,
        reply_to_text=_quoted(message, replied),
        group_id=message.media_group_id,
        is_addressed=source.chat_type == "dm" or addressed.is_mentioned or is_reply_to_us,
        timestamp=message.date.timestamp(),
    )
    _set_type(event, message)
    return event


def source_of(message: Message) -> SessionSource:
    """The chat and sender of a message; a channel is its own sender."""
    chat, person, channel = message.chat, message.from_user, message.sender_chat
    # Users who write as a channel or as the group share one account.
    writer = channel or person
    return SessionSource(
        Platform.TELEGRAM,
        str(chat.id),
        chat_name=chat.title or chat.full_name or None,
        chat_type=CHAT_TYPES.get(chat.type, "channel"),
        user_id=str(writer.id) if writer else None,
        user_name=(channel.title or None if channel else person.full_name if person else None),
        thread_id=_thread(message),
        is_bot=bool(channel is None and person and person.is_bot),
        message_id=str(message.message_id),
    )


def _thread(message: Message) -> str | None:
    """The forum topic; reply threads elsewhere are not separate chats."""
    if message.is_topic_message and message.message_thread_id is not None:
        return str(message.message_thread_id)
    return None


def _replied(message: Message) -> Message | None:
    """The message replied to; in a topic every message "replies" to the topic's first one."""
    reply_to_message = message.reply_to_message
    if reply_to_message is None or reply_to_message.forum_topic_created is not None:
        return None
    return reply_to_message


def _quoted(message: Message, replied: Message | None) -> str | None:
    if message.quote is not None:
        return message.quote.text
    return (replied.text or replied.caption) if replied else None


# Mentions


def _addressed_text(message: Message, me: User) -> AddressedText:
    """The text or caption, without mentions of the bot."""
    text = message.text or message.caption or ""
    entities = message.entities or message.caption_entities or []
    data = text.encode(UTF16, "surrogatepass")
    is_mentioned = False
    for entity in sorted(entities, key=lambda item: item.offset, reverse=True):
        name = _name_at(entity, data, me)
        if name is not None:
            data = data[: name.start] + data[name.stop :]
            is_mentioned = True
    cut = data.decode(UTF16, "surrogatepass")
    return AddressedText(cut.strip() if is_mentioned else cut, is_mentioned)


def _name_at(entity: MessageEntity, data: bytes, me: User) -> slice | None:
    """The bytes of the bot's name in an entity; of a command only the `@name` suffix."""
    start, stop = entity.offset * 2, (entity.offset + entity.length) * 2
    if entity.type == "text_mention":
        return slice(start, stop) if entity.user and entity.user.id == me.id else None
    if entity.type not in {"mention", "bot_command"}:
        return None
    before, at, name = data[start:stop].decode(UTF16, "surrogatepass").partition("@")
    if not at or name.lower() != (me.username or "").lower():
        return None
    return slice(start + len(before) * 2, stop)


# Types


def _set_type(event: MessageEvent, message: Message) -> None:
    """Set the message type; a message without text gets a description."""
    if event.get_command():
        event.message_type = MessageType.COMMAND
    elif message.location is not None:
        place = message.venue.title if message.venue else "location"
        event.message_type = MessageType.LOCATION
        event.text = f"[{place}: {message.location.latitude}, {message.location.longitude}]"
    elif message.sticker is not None:
        event.message_type = MessageType.STICKER
        event.text = f"[sticker: {message.sticker.emoji or '?'}]"
    elif message.contact is not None:
        who = f"{message.contact.first_name} {message.contact.last_name or ''}".strip()
        event.text = f"[contact: {who}, {message.contact.phone_number}]"
    elif message.poll is not None:
        options = ", ".join(option.text for option in message.poll.options)
        event.text = f"[poll: {message.poll.question} {options}]"
    elif message.dice is not None:
        event.text = f"[{message.dice.emoji}: {message.dice.value}]"


async def _add_file(event: MessageEvent, message: Message, files: TelegramFiles) -> None:
    file = attachment_of(message)
    if file is None:
        return
    if event.message_type is not MessageType.COMMAND:
        event.message_type = file.kind
    result = await files(event, file)
    if result.stored is not None:
        incoming_files.attach(event, result.stored, event.message_type)
    else:
        incoming_files.add_note(event, file.name, result.note)
