"""Matrix, as an ordinary account of any homeserver.

Requires `MATRIX_HOMESERVER` and `MATRIX_ACCESS_TOKEN`; the server returns the account. Encrypted
rooms are NOT supported: their messages are unreadable, which the log and a one-time notice in
the room report. The bot sends everything unencrypted.

Under `platforms.matrix` in config.yaml:

    auto_join       true: join rooms the bot is invited to; access control decides who is
                    answered there
    timeline_limit  50: messages of a room per sync; further ones are fetched by page
    sync_seconds    30: timeout of long polling

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
from urllib.parse import urlparse

from aiohttp import ClientError, InvalidURL
from nio import AsyncClient, AsyncClientConfig  # type: ignore[import-untyped] # it has no types

from gateway.platforms import markdown
from gateway.platforms.base import Abilities, ErrorKind, OutgoingMessage, SendResult
from gateway.platforms.deduplication import idempotency_key
from gateway.platforms.matrix import messages, results
from gateway.platforms.matrix.listener import MatrixListener, MatrixRooms
from gateway.platforms.matrix.messages import MatrixMessageReader
from gateway.platforms.problems import ConnectionProblems, ReportsProblem
from gateway.platforms.quarantine import UpdateGuard
from hermes_core.errors import PlatformDownError, PlatformRefusedError

if TYPE_CHECKING:
    from gateway.platforms.base import AdapterContext, Receive
    from hermes_core.json_values import JsonData

MAX_TEXT_CHARS: Final = 12_000  # four bytes per character still fit into an event
MAX_CONTENT_BYTES: Final = 60_000  # bytes
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


def file_content(
    outgoing: OutgoingMessage, name: str, mime: str, size: int, url: str
) -> dict[str, JsonData]:
    """The event content of an uploaded file; the text is its caption."""
    kind = {"image": "m.image", "audio": "m.audio", "video": "m.video"}
    content: dict[str, JsonData] = {
        "msgtype": kind.get(mime.partition("/")[0], "m.file"),
        "body": outgoing.text or name,
        "filename": name,
        "url": url,
        "info": {"mimetype": mime, "size": size},
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

REQUEST_SECONDS: Final = 60
TYPING_MILLISECONDS: Final = 10_000
NOT_CONNECTED: Final = SendResult(
    False, error="Matrix is not connected", error_kind=ErrorKind.TRANSIENT
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
        self._client: AsyncClient | None = None
        self._listen_task: asyncio.Task[None] | None = None

    async def connect(self, receive: Receive) -> None:
        """Look up the account and listen from where the last run stopped."""
        await self.disconnect()
        self._problems.clear_all()
        self._client = client = _client(self._context)
        try:
            listener = await self._create_listener(client)
            await listener.begin()
        except (ClientError, OSError, TimeoutError) as error:
            reason = f"No response from the homeserver: {results.describe_exception(error)}"
            raise PlatformDownError(reason) from error
        listen = functools.partial(listener.run, receive)
        self._listen_task = self._problems.start_listener(listen)

    async def _create_listener(self, client: AsyncClient) -> MatrixListener:
        try:
            answer = await client.whoami()
        except (InvalidURL, ValueError) as error:
            raise PlatformRefusedError(f"Invalid MATRIX_HOMESERVER: {error}") from error
        if results.is_error(answer):
            raise results.platform_error(answer)
        client.user_id = self.account = str(answer.user_id)
        named = await client.get_displayname(self.account)
        name = "" if results.is_error(named) else named.displayname or ""
        listed = await client.list_direct_rooms()
        chats = [] if results.is_error(listed) else listed.rooms.values()
        direct = [item for chat in chats if isinstance(chat, list) for item in chat]
        rooms = MatrixRooms(client, self.account, direct)
        reader = MatrixMessageReader(client, self.account, name, rooms, self._context)
        extra = self._context.config.extra
        memory = self._context.memory
        guard = UpdateGuard(self._context.quarantine)
        return MatrixListener(client, rooms, reader, memory, self._problems, extra, guard)

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

    async def _send_file(self, outgoing: OutgoingMessage) -> SendResult:
        path = outgoing.file
        if self._client is None or path is None:
            return NOT_CONNECTED
        try:
            answer, mime, size = await messages.upload_file(self._client, path)
        except (ClientError, TimeoutError) as error:
            return results.no_response(error)._replace(may_have_arrived=False)
        except OSError as error:
            text = f"cannot read the file: {error}"
            return SendResult(False, error=text, error_kind=ErrorKind.NOT_FOUND)
        if results.is_error(answer):
            return results.refusal(answer)._replace(may_have_arrived=False)
        content = file_content(outgoing, path.name, mime, size, answer.content_uri)
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
        self, room_id: str, content: dict[str, JsonData], key: str, kind: str = "m.room.message"
    ) -> SendResult:
        if self._client is None:
            return NOT_CONNECTED
        answer = await self._client.room_send(room_id, kind, content, tx_id=key)
        if results.is_error(answer):
            return results.refusal(answer)
        return SendResult(True, message_id=answer.event_id)

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


def _client(context: AdapterContext) -> AsyncClient:
    """A client without retries: the gateway decides when to retry."""
    config = AsyncClientConfig(
        max_limit_exceeded=0, max_timeouts=0, request_timeout=REQUEST_SECONDS
    )
    client = AsyncClient(_server_url(context.secret("MATRIX_HOMESERVER")), config=config)
    client.access_token = context.secret("MATRIX_ACCESS_TOKEN")
    return client


def _server_url(configured: str) -> str:
    address = (configured if "://" in configured else f"https://{configured}").rstrip("/")
    result = urlparse(address)
    if result.scheme not in {"http", "https"} or not result.hostname:
        raise PlatformRefusedError(
            "Invalid MATRIX_HOMESERVER. Use a URL such as https://matrix.example.org."
        )
    return address
