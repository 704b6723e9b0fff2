"""Matrix, as an ordinary account of any homeserver.

Requires `MATRIX_HOMESERVER` and `MATRIX_ACCESS_TOKEN`; the server returns the account. Messages in
encrypted rooms are decrypted, and everything sent there is encrypted.

Under `platforms.matrix` in config.yaml:

    auto_join         true: join rooms the bot is invited to; access control decides who is
                      answered there
    only_verified     false: send to the verified devices of encrypted rooms only
    key_wait_seconds  600: how long a message waits for its key
    timeline_limit    50: messages of a room per sync; further ones are fetched by page
    sync_seconds      30: timeout of long polling

A room of two members is a direct chat, as is one that the account lists under `m.direct`.
Messages from before the first start or before the invitation are ignored. A text that is sent
twice under the same key is one event for as long as the server remembers the key for the same
access token (Synapse: a day).
"""

from __future__ import annotations

import asyncio
import functools
import json
import logging
from typing import TYPE_CHECKING, ClassVar, Final

from aiohttp import ClientError, InvalidURL

from gateway import config_values
from gateway.platforms import markdown
from gateway.platforms.base import Abilities, ErrorKind, OutgoingMessage, SendResult
from gateway.platforms.deduplication import idempotency_key
from gateway.platforms.matrix import files, results
from gateway.platforms.matrix.client import MatrixClient
from gateway.platforms.matrix.encryption.inbound import KEY_WAIT_SECONDS, EncryptedInbox
from gateway.platforms.matrix.encryption.key_store import KeyStore, KeyStoreTakenError
from gateway.platforms.matrix.encryption.machine import ENCRYPTED_TYPE
from gateway.platforms.matrix.encryption.own_device import open_device
from gateway.platforms.matrix.encryption.verification import Verifications
from gateway.platforms.matrix.listener import MatrixListener
from gateway.platforms.matrix.messages import MatrixMessageReader
from gateway.platforms.matrix.rooms import MatrixRooms
from gateway.platforms.problems import ConnectionProblems, ReportsProblem
from gateway.platforms.quarantine import UpdateGuard
from hermes_core.errors import (
    HermesError,
    PlatformDownError,
    PlatformError,
    PlatformRefusedError,
)

if TYPE_CHECKING:
    from gateway.platforms.base import AdapterContext, Receive
    from gateway.platforms.matrix.encryption.machine import EncryptionMachine
    from gateway.platforms.matrix.files import UploadedFile
    from hermes_core.json_values import JsonData

MAX_TEXT_CHARS: Final = 11_000  # four bytes per character, encrypted, still fit into an event
MAX_CONTENT_BYTES: Final = 46_000  # of 65,536 of an event: encryption adds a third
EDIT_FALLBACK_CHARS: Final = 200  # for clients without support for edits


def render_html(text: str) -> str:
    """Markdown as HTML; HTML in it is treated as text."""
    return str(markdown.create_parser(has_breaks=True).render(text)).strip()


def text_content(outgoing: OutgoingMessage, *, is_plain: bool = False) -> dict[str, JsonData]:
    """The event content of a text."""
    content: dict[str, JsonData] = {
        **_text(outgoing.text, is_plain=is_plain),
        "m.mentions": {},
    }
    relation = relation_content(outgoing)
    return content | ({"m.relates_to": relation} if relation else {})


def edit_content(outgoing: OutgoingMessage, message_id: str) -> dict[str, JsonData]:
    """The event content of an edit."""
    return {
        "msgtype": "m.text",
        "body": f"* {outgoing.text[:EDIT_FALLBACK_CHARS]}",
        "m.mentions": {},
        "m.new_content": {**_text(outgoing.text), "m.mentions": {}},
        "m.relates_to": {"rel_type": "m.replace", "event_id": message_id},
    }


def file_content(outgoing: OutgoingMessage, name: str, file: UploadedFile) -> dict[str, JsonData]:
    """The event content of an uploaded file; the text is its caption."""
    kind = {"image": "m.image", "audio": "m.audio", "video": "m.video"}
    content: dict[str, JsonData] = {
        "msgtype": kind.get(file.mime.partition("/")[0], "m.file"),
        "body": outgoing.text or name,
        "filename": name,
        **file.reference(),
        "info": {"mimetype": file.mime, "size": file.size},
        "m.mentions": {},
    }
    relation = relation_content(outgoing)
    return content | ({"m.relates_to": relation} if relation else {})


def relation_content(outgoing: OutgoingMessage) -> dict[str, JsonData]:
    """The relation of an event: a thread, a reply, or none."""
    answered = outgoing.reply_to or outgoing.thread_id
    reply: dict[str, JsonData] = {"m.in_reply_to": {"event_id": answered}} if answered else {}
    if not outgoing.thread_id:
        return reply
    thread = {"rel_type": "m.thread", "event_id": outgoing.thread_id}
    return {**thread, "is_falling_back": not outgoing.reply_to, **reply}


def _text(text: str, *, is_plain: bool = False) -> dict[str, JsonData]:
    plain: dict[str, JsonData] = {"msgtype": "m.text", "body": text}
    rendered = "" if is_plain else render_html(text)
    if not rendered or rendered == f"<p>{text}</p>":
        return plain
    rich: dict[str, JsonData] = {
        **plain,
        "format": "org.matrix.custom.html",
        "formatted_body": rendered,
    }
    size = len(json.dumps(rich, ensure_ascii=False).encode("utf-8", "surrogatepass"))
    return rich if size <= MAX_CONTENT_BYTES else plain


log = logging.getLogger(__name__)

REOPEN_SECONDS: Final = 1.0  # until the other program has finished
TYPING_MILLISECONDS: Final = 10_000
NOT_IN_ROOM: Final = SendResult(
    False, error="the bot is not in this room", error_kind=ErrorKind.FORBIDDEN
)


class MatrixAdapter(ReportsProblem):
    """An account on a homeserver."""

    abilities: ClassVar = Abilities(
        edit=True,
        typing=True,
        reactions=True,
        files=True,
        threads=True,
        idempotent=True,
        longest_text=MAX_TEXT_CHARS,
    )

    def __init__(self, context: AdapterContext) -> None:
        self.account = ""
        self._problems = ConnectionProblems("Matrix")
        self._context = context
        self._client: MatrixClient | None = None
        self._rooms: MatrixRooms | None = None
        self._machine: EncryptionMachine | None = None
        self._listener: MatrixListener | None = None
        self._listen_task: asyncio.Task[None] | None = None

    async def connect(self, receive: Receive) -> None:
        """Look up the account and listen from where the last run stopped."""
        await self.disconnect()
        self._problems.clear_all()
        secret = self._context.secret
        self._client = client = MatrixClient(
            secret("MATRIX_HOMESERVER"), secret("MATRIX_ACCESS_TOKEN")
        )
        try:
            await self._open(client)
        except (ClientError, OSError, TimeoutError) as error:
            reason = f"No response from the homeserver: {results.describe_exception(error)}"
            raise PlatformDownError(reason) from error
        listen = functools.partial(self._listen, client, receive)
        self._listen_task = self._problems.start_listener(listen)

    async def _open(self, client: MatrixClient) -> None:
        """Open the key store and create the listener."""
        client.before_request = None
        try:
            answer = await client.whoami()
        except (InvalidURL, ValueError) as error:
            raise PlatformRefusedError(f"Invalid MATRIX_HOMESERVER: {error}") from error
        if results.is_error(answer):
            raise results.platform_error(answer)
        client.user_id = self.account = str(answer.user_id)
        await self._context.memory.keep("account", self.account)
        if self._context.records is None:
            raise PlatformRefusedError("Matrix requires a store for its encryption keys.")
        store = KeyStore(self._context.records, self.account)
        extra = self._context.config.extra
        store.sends_to_all = not config_values.flag(extra.get("only_verified"), default=False)
        machine = await open_device(client, store, self.account, answer.device_id)
        rooms = MatrixRooms(client, self.account, await _direct_rooms(client))
        self._rooms, self._machine = rooms, machine
        self._listener = await self._create_listener(client, rooms, machine)
        await self._listener.begin()

    async def _create_listener(
        self, client: MatrixClient, rooms: MatrixRooms, machine: EncryptionMachine
    ) -> MatrixListener:
        named = await client.get_displayname(self.account)
        name = "" if results.is_error(named) else named.displayname or ""
        context = self._context
        extra = context.config.extra
        verifications = Verifications(
            client, machine, self.account, context.memory, context.is_owner, self.send_event
        )
        await verifications.clear()
        seconds = config_values.number(extra.get("key_wait_seconds"), KEY_WAIT_SECONDS, minimum=1)
        encrypted = EncryptedInbox(
            machine, verifications, self.send_event, context.is_owner, seconds
        )
        reader = MatrixMessageReader(client, self.account, name, rooms, context, machine.decrypt)
        guard = UpdateGuard(context.quarantine, (ClientError,))
        return MatrixListener(
            client, rooms, reader, encrypted, context.memory, self._problems, extra, guard
        )

    async def _listen(self, client: MatrixClient, receive: Receive) -> None:
        """Listen; if another program has changed the keys, with those."""
        while self._listener is not None:
            try:
                await self._listener.run(receive)
            except KeyStoreTakenError:
                log.info("Matrix key store was changed by another program; reading it again")
                await asyncio.sleep(REOPEN_SECONDS)
                await self._open(client)

    async def disconnect(self) -> None:
        """Stop listening."""
        task, self._listen_task = self._listen_task, None
        client, self._client = self._client, None
        if task is not None:
            task.cancel()
            await asyncio.wait([task])
        if client is not None:
            await client.close()

    async def send(self, outgoing: OutgoingMessage) -> SendResult:
        """Send a text or a file; if the server rejects the formatting, as plain text."""
        try:
            if outgoing.file is not None:
                return await self._send_file(outgoing)
            key = idempotency_key(outgoing.key)
            content = text_content(outgoing)
            result = await self._put(outgoing.chat_id, content, key)
            if result.error_kind is ErrorKind.BAD_FORMAT and "formatted_body" in content:
                plain = text_content(outgoing, is_plain=True)
                return await self._put(outgoing.chat_id, plain, key)
        except (ClientError, TimeoutError) as error:
            return results.no_response(error)
        return result

    async def send_event(self, room_id: str, kind: str, content: dict[str, JsonData]) -> SendResult:
        """Send an event of a verification or a notice, to all devices."""
        key = idempotency_key(room_id, kind, json.dumps(content, sort_keys=True))
        try:
            return await self._put(room_id, content, key, kind, is_for_all=True)
        except (ClientError, TimeoutError) as error:
            return results.no_response(error)

    async def _send_file(self, outgoing: OutgoingMessage) -> SendResult:
        path = outgoing.file
        if self._client is None or path is None:
            return self._problems.not_connected
        try:
            is_encrypted = await self._is_encrypted(outgoing.chat_id)
            file = await files.upload_file(self._client, path, is_encrypted=is_encrypted)
        except (ClientError, TimeoutError, PlatformError) as error:
            return results.no_response(error)._replace(may_have_arrived=False)
        except OSError as error:
            text = f"cannot read the file: {error}"
            return SendResult(False, error=text, error_kind=ErrorKind.NOT_FOUND)
        if results.is_error(file.answer):
            return results.refusal(file.answer)._replace(may_have_arrived=False)
        content = file_content(outgoing, path.name, file)
        return await self._put(outgoing.chat_id, content, idempotency_key(outgoing.key))

    async def edit(self, outgoing: OutgoingMessage, message_id: str) -> SendResult:
        """Replace the text of a message."""
        key = idempotency_key("edit", outgoing.key, message_id, outgoing.text)
        content = edit_content(outgoing, message_id)
        try:
            return await self._put(outgoing.chat_id, content, key)
        except (ClientError, TimeoutError) as error:
            return results.no_response(error)

    async def _put(
        self,
        room_id: str,
        content: dict[str, JsonData],
        key: str,
        kind: str = "m.room.message",
        *,
        is_for_all: bool = False,
    ) -> SendResult:
        client, machine, rooms = self._client, self._machine, self._rooms
        if client is None or machine is None or rooms is None:
            return self._problems.not_connected
        try:
            if await self._is_encrypted(room_id):
                users = (await rooms.get(room_id)).members
                if not users:
                    return NOT_IN_ROOM
                content = await machine.encrypt(
                    room_id, users, kind, content, is_for_all=is_for_all
                )
                kind = ENCRYPTED_TYPE
            answer = await client.room_send(room_id, kind, content, tx_id=key)
        except HermesError as error:  # before anything was sent
            return SendResult(False, error=str(error), error_kind=ErrorKind.TRANSIENT)
        if results.is_error(answer):
            return results.refusal(answer)
        return SendResult(True, message_id=answer.event_id)

    async def _is_encrypted(self, room_id: str) -> bool:
        """Whether a room is encrypted; one that was encrypted once always is."""
        if self._machine is None or self._rooms is None:
            raise PlatformDownError(str(self._problems.not_connected.error))
        store = self._machine.store
        if room_id not in store.encrypted_rooms and (await self._rooms.get(room_id)).is_encrypted:
            store.add_encrypted_room(room_id)
        return room_id in store.encrypted_rooms

    async def typing(self, chat_id: str, thread_id: str | None = None) -> None:
        """Show the typing indicator."""
        if self._client is None:
            return
        try:
            answer = await self._client.room_typing(chat_id, timeout=TYPING_MILLISECONDS)
        except (ClientError, TimeoutError) as error:
            log.info("typing indicator not shown: %s", error)
            return
        if results.is_error(answer):
            log.info("typing indicator not shown: %s", results.describe_response(answer))

    async def react(self, chat_id: str, message_id: str, emoji: str) -> None:
        """Add an emoji reaction."""
        relation = {"rel_type": "m.annotation", "event_id": message_id, "key": emoji}
        key = idempotency_key("react", message_id, emoji)
        try:
            result = await self._put(chat_id, {"m.relates_to": relation}, key, "m.reaction")
        except (ClientError, TimeoutError) as error:
            result = results.no_response(error)
        if not result.success:
            log.info("reaction not added: %s", result.error)


def make(context: AdapterContext) -> MatrixAdapter:
    """Create the adapter."""
    return MatrixAdapter(context)


async def _direct_rooms(client: MatrixClient) -> list[str]:
    """The rooms that the account lists as direct."""
    listed = await client.list_direct_rooms()
    chats = [] if results.is_error(listed) else listed.rooms.values()
    return [item for chat in chats if isinstance(chat, list) for item in chat]
