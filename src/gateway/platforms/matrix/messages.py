"""Events of Matrix rooms made into messages, with what has to be asked for: files, replies."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

from gateway import config_values
from gateway.platforms import incoming_files
from gateway.platforms.base import MessageEvent, MessageType
from gateway.platforms.keys import key_of
from gateway.platforms.matrix import events, media, results
from gateway.platforms.names import Platform
from gateway.routing.sources import SessionSource

if TYPE_CHECKING:
    from nio import AsyncClient  # type: ignore[import-untyped] # it has no types

    from gateway.platforms.base import Surroundings
    from gateway.platforms.matrix.events import Said
    from gateway.platforms.matrix.rooms import Room, Rooms

log = logging.getLogger(__name__)

NO_KEYS: Final = (
    "I cannot read encrypted messages. Please write to me in a room without encryption."
)


class Reader:
    """Reads events for one account."""

    def __init__(
        self, client: AsyncClient, me: str, name: str, rooms: Rooms, surroundings: Surroundings
    ) -> None:
        self._client = client
        self._me = me
        self._name = name
        self._rooms = rooms
        self._media = surroundings.media
        self._memory = surroundings.memory

    async def message(self, room_id: str, event: dict[str, Any]) -> MessageEvent | None:
        """An event as a message; None where it is none, or our own."""
        sender = config_values.text(event.get("sender"))
        if not sender or sender == self._me:
            return None
        if event.get("type") == "m.room.encrypted":
            await self._say_so(room_id)
            return None
        said = events.read(event)
        is_empty = said is not None and not said.text.strip() and said.file is None
        if said is None or is_empty or not said.message_id:
            return None
        room = await self._rooms.get(room_id)
        made = self._made(room_id, room, sender, said)
        made.timestamp = (
            config_values.number(event.get("origin_server_ts"), 0) / 1000 or made.timestamp
        )
        made.raw_message = event
        await self._look_up_reply(room_id, made)
        await self._fetch(made, said)
        return made

    def _made(self, room_id: str, room: Room, sender: str, said: Said) -> MessageEvent:
        kind = self._rooms.kind(room_id, room)
        name = room.members.get(self._me, self._name)  # it may have another one in a room
        text, is_named = events.without_mention(said.text, self._me, name)
        is_command = said.kind is MessageType.TEXT and text.startswith("/")
        return MessageEvent(
            text,
            MessageType.COMMAND if is_command else said.kind,
            SessionSource(
                Platform.MATRIX,
                room_id,
                chat_name=room.name,
                chat_type=kind,
                user_id=sender,
                user_name=room.name_of(sender),
                thread_id=said.thread_id,
            ),
            message_id=said.message_id,
            reply_to_message_id=said.reply_to,
            is_edit=said.is_edit,
            is_addressed=kind == "dm" or is_named or self._me in said.mentioned,
        )

    async def _look_up_reply(self, room_id: str, made: MessageEvent) -> None:
        """What is answered, and whether it is ours; a message that is gone is left out."""
        if made.reply_to_message_id is None:
            return
        answer = await self._client.room_get_event(room_id, made.reply_to_message_id)
        if results.is_error(answer):
            log.info("a message that was answered is gone: %s", results.described(answer))
            return
        source = answer.event.source
        content = config_values.mapping(source.get("content"))
        made.reply_to_text = config_values.text(content.get("body")) or None
        made.is_addressed = made.is_addressed or source.get("sender") == self._me

    async def _fetch(self, made: MessageEvent, said: Said) -> None:
        if said.file is None:
            return
        found = await media.kept(self._client, self._media, said.file)
        if found is None:
            incoming_files.leave_note(made, said.file.name)
        else:
            incoming_files.attach(made, found, made.message_type)

    async def _say_so(self, room_id: str) -> None:
        """That a room is encrypted is said once in it, and once in the log."""
        name = f"encrypted:{self._me}:{room_id}"
        if await self._memory.recall(name):
            return
        log.warning("the room %s is encrypted: messages in it cannot be read", room_id)
        content = {"msgtype": "m.notice", "body": NO_KEYS, "m.mentions": {}}
        key = key_of(name)
        answer = await self._client.room_send(room_id, "m.room.message", content, tx_id=key)
        if results.is_error(answer):
            log.warning("it could not be said there: %s", results.described(answer))
        await self._memory.keep(name, "said")
