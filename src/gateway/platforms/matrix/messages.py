"""Matrix events as message events, with their files and replied-to messages."""

from __future__ import annotations

import asyncio
import logging
import re
from typing import TYPE_CHECKING, Final, NamedTuple

from gateway import config_values
from gateway.platforms import incoming_files
from gateway.platforms.base import MessageEvent, MessageType
from gateway.platforms.matrix import files, results
from gateway.platforms.matrix.encryption.machine import ENCRYPTED_TYPE
from gateway.platforms.names import Platform
from gateway.routing.sources import SessionSource

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from gateway.platforms.base import AdapterContext
    from gateway.platforms.matrix.client import MatrixClient
    from gateway.platforms.matrix.files import MatrixFile
    from gateway.platforms.matrix.rooms import MatrixRoom, MatrixRooms
    from hermes_core.json_values import JsonObject

    # Decrypts an event of a room; None if its key is missing.
    Decrypt = Callable[[str, JsonObject], Awaitable[JsonObject | None]]

log = logging.getLogger(__name__)

MEDIA_TYPES: Final = {
    "m.image": MessageType.PHOTO,
    "m.video": MessageType.VIDEO,
    "m.audio": MessageType.AUDIO,
    "m.file": MessageType.DOCUMENT,
    "m.location": MessageType.LOCATION,
}
FILE_MESSAGE_TYPES: Final = frozenset(MEDIA_TYPES.values()) - {MessageType.LOCATION} | {
    MessageType.VOICE
}
VOICE_KEYS: Final = ("org.matrix.msc3245.voice", "m.voice")
TEXT_MSGTYPES: Final = ("m.text", "m.emote")
QUOTE_FALLBACK: Final = re.compile(r"\A(?:>.*(?:\n|\Z))+\n?")


class MatrixMessage(NamedTuple):
    """The content of a message event."""

    text: str
    kind: MessageType
    message_id: str
    thread_id: str | None
    reply_to: str | None
    is_edit: bool
    file: MatrixFile | None
    mentioned: frozenset[str]


def read_event(event: JsonObject) -> MatrixMessage | None:
    """The message of an event; None if it is not a user message."""
    content = config_values.mapping(event.get("content"))
    relation = config_values.mapping(content.get("m.relates_to"))
    is_edit = relation.get("rel_type") == "m.replace"
    if is_edit:
        new = config_values.mapping(content.get("m.new_content"))
        content = {**new, "m.mentions": content.get("m.mentions") or new.get("m.mentions")}
    kind = _kind(content)
    if event.get("type") != "m.room.message" or kind is None:
        return None
    result = files.file_in(content) if kind in FILE_MESSAGE_TYPES else None
    reply = _answered(relation)
    text = _caption(content) if result else _body(content)
    return MatrixMessage(
        QUOTE_FALLBACK.sub("", text) if reply else text,
        kind,
        config_values.text(relation.get("event_id") if is_edit else event.get("event_id")),
        config_values.text(relation.get("event_id")) or None if _is_thread(relation) else None,
        reply,
        is_edit,
        result,
        _mentioned(content),
    )


def _deletion(room_id: str, sender: str, event: JsonObject) -> MessageEvent | None:
    """The deletion of a message; its ID is in the content since room version 11."""
    content = config_values.mapping(event.get("content"))
    message_id = config_values.text(event.get("redacts") or content.get("redacts"))
    if not message_id:
        return None
    source = SessionSource(Platform.MATRIX, room_id, user_id=sender)
    return MessageEvent("", source=source, message_id=message_id, is_deletion=True)


def _body(content: JsonObject) -> str:
    """The text of a message, with the coordinates of a location."""
    parts = (config_values.text(content.get(name)) for name in ("body", "geo_uri"))
    return "\n".join(part for part in parts if part)


def _kind(content: JsonObject) -> MessageType | None:
    name = config_values.text(content.get("msgtype"))
    if name == "m.audio" and any(voice_key in content for voice_key in VOICE_KEYS):
        return MessageType.VOICE
    return MessageType.TEXT if name in TEXT_MSGTYPES else MEDIA_TYPES.get(name)


def _is_thread(relation: JsonObject) -> bool:
    return relation.get("rel_type") == "m.thread"


def _answered(relation: JsonObject) -> str | None:
    """The message replied to; in a thread the fallback for old clients is ignored."""
    if _is_thread(relation) and relation.get("is_falling_back"):
        return None
    answered = config_values.mapping(relation.get("m.in_reply_to"))
    return config_values.text(answered.get("event_id")) or None


def _mentioned(content: JsonObject) -> frozenset[str]:
    users = config_values.mapping(content.get("m.mentions")).get("user_ids")
    return frozenset(map(str, users)) if isinstance(users, list) else frozenset()


def _caption(content: JsonObject) -> str:
    """The caption of a file; a body that only repeats the file name is not one."""
    name, body = (
        config_values.text(content.get("filename")),
        config_values.text(content.get("body")),
    )
    return body if name and body != name else ""


def without_mention(text: str, me: str, name: str) -> tuple[str, bool]:
    """A text without mentions of the bot, and whether there was one.

    The ID is removed everywhere, the name only at the start and the end: inside a sentence it
    is part of the text.
    """
    result = re.sub(rf"@?{re.escape(me)}(?![\w.-])[:,]?\s*", "", text)
    is_named = result != text
    names = {item for item in (name, me.partition(":")[0]) if item}
    for item in sorted(names, key=len, reverse=True):
        word = rf"(?<!\w)@?{re.escape(item)}(?![\w:])"
        is_named = is_named or bool(
            re.search(rf"(?i){word}|(?<!\w){re.escape(item)}:(?!\w)", result)
        )
        result = re.sub(rf"(?i)\A\s*@?{re.escape(item)}(?!\w)[:,]?\s*", "", result)
        result = re.sub(rf"(?i)[\s,]*{word}([.!?]?)\s*\Z", r"\1", result)
    return (result.strip() if is_named else text), is_named


class MatrixMessageReader:
    """Converts events for one account."""

    def __init__(
        self,
        client: MatrixClient,
        me: str,
        name: str,
        rooms: MatrixRooms,
        context: AdapterContext,
        decrypt: Decrypt,
    ) -> None:
        self._client = client
        self._me = me
        self._name = name
        self._rooms = rooms
        self._media = context.media
        self._is_accepted = context.is_accepted
        self._decrypt = decrypt

    async def message(self, room_id: str, event: JsonObject) -> MessageEvent | None:
        """The message of an event; None for other events and own messages."""
        sender = config_values.text(event.get("sender"))
        if not sender or sender == self._me:
            return None
        if event.get("type") == "m.room.redaction":
            return _deletion(room_id, sender, event)
        sent = read_event(event)
        is_empty = sent is not None and not sent.text.strip() and sent.file is None
        if sent is None or is_empty or not sent.message_id:
            return None
        room = await self._rooms.get(room_id)
        created = self._create_event(room_id, room, sender, sent)
        created.timestamp = (
            config_values.number(event.get("origin_server_ts"), 0) / 1000 or created.timestamp
        )
        created.raw_message = event
        await self._look_up_reply(room_id, created)
        await self._fetch(created, sent)
        return created

    def _create_event(
        self, room_id: str, room: MatrixRoom, sender: str, sent: MatrixMessage
    ) -> MessageEvent:
        kind = self._rooms.kind(room_id, room)
        name = room.members.get(self._me, self._name)  # the name can differ per room
        text, is_named = without_mention(sent.text, self._me, name)
        is_command = sent.kind is MessageType.TEXT and text.startswith("/")
        return MessageEvent(
            text,
            MessageType.COMMAND if is_command else sent.kind,
            SessionSource(
                Platform.MATRIX,
                room_id,
                chat_name=room.name,
                chat_type=kind,
                user_id=sender,
                user_name=room.name_of(sender),
                thread_id=sent.thread_id,
            ),
            message_id=sent.message_id,
            reply_to_message_id=sent.reply_to,
            is_edit=sent.is_edit,
            is_addressed=kind == "dm"
            or self._rooms.is_direct(room_id)
            or is_named
            or self._me in sent.mentioned,
        )

    async def _look_up_reply(self, room_id: str, created: MessageEvent) -> None:
        """Add the replied-to message, and whether it is from the bot."""
        if created.reply_to_message_id is None:
            return
        answer = await self._client.room_get_event(room_id, created.reply_to_message_id)
        if results.is_error(answer):
            log.info("replied-to message is unavailable: %s", results.describe_response(answer))
            return
        source = answer.event.source
        if source.get("type") == ENCRYPTED_TYPE:
            source = await self._decrypt(room_id, source) or source
        content = config_values.mapping(source.get("content"))
        created.reply_to_text = config_values.text(content.get("body")) or None
        created.is_addressed = created.is_addressed or source.get("sender") == self._me

    async def _fetch(self, created: MessageEvent, sent: MatrixMessage) -> None:
        if sent.file is None:
            return
        if not await asyncio.to_thread(self._is_accepted, created):
            incoming_files.add_note(created, sent.file.name, incoming_files.NOT_DOWNLOADED_NOTE)
            return
        result = await files.store_file(self._client, self._media, sent.file)
        if result is None:
            incoming_files.add_note(created, sent.file.name)
        else:
            incoming_files.attach(created, result, created.message_type)
