"""Matrix, as an ordinary account of any homeserver.

`MATRIX_HOMESERVER` and `MATRIX_ACCESS_TOKEN` are needed; who the bot is, the server says.
Encrypted rooms are NOT supported: their messages cannot be read. The log says so, and so
does a notice in the room, once. Whatever the bot sends is sent in the clear.

What may be written under `platforms.matrix` in config.yaml:

    auto_join       true: rooms the bot is invited to are joined. Who is answered there is
                    decided at the door, by lists and by pairing.
    timeline_limit  50: messages of a room in one batch; what is more is fetched by the page
    sync_seconds    30: how long the server may let a request wait for something new

A room of two is a direct chat, and so is one that the account lists under `m.direct`. What was
said before the first start, or before the bot was invited, is not answered. A text that is
sent twice under the same key is one event, as long as the server remembers the key for the
same access token (Synapse: a day).
"""

from __future__ import annotations

import asyncio
import json
import logging
from typing import TYPE_CHECKING, Any, ClassVar, Final
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
from hermes_core.errors import PlatformDownError, PlatformRefusedError

if TYPE_CHECKING:
    from gateway.platforms.base import AdapterContext, Receive

MAX_TEXT_CHARS: Final = 12_000  # characters of four bytes each leave room for what is around them
MAX_CONTENT_BYTES: Final = 60_000  # bytes
EDIT_FALLBACK_CHARS: Final = 200  # characters, for clients that know no edits


def render_html(text: str) -> str:
    """Markdown as HTML; HTML in it stays what it looks like."""
    return str(markdown.create_parser(has_breaks=True).render(text)).strip()


def text_content(outgoing: OutgoingMessage, *, is_plain: bool = False) -> dict[str, Any]:
    """A text as the content of an event."""
    content = {**_text(outgoing.text, is_plain=is_plain), "m.mentions": {}}
    relation = relation_content(outgoing)
    return content | ({"m.relates_to": relation} if relation else {})


def edit_content(outgoing: OutgoingMessage, message_id: str) -> dict[str, Any]:
    """A text in the place of another."""
    return {
        "msgtype": "m.text",
        "body": f"* {outgoing.text[:EDIT_FALLBACK_CHARS]}",
        "m.mentions": {},
        "m.new_content": {**_text(outgoing.text), "m.mentions": {}},
        "m.relates_to": {"rel_type": "m.replace", "event_id": message_id},
    }


def file_content(
    outgoing: OutgoingMessage, name: str, mime: str, size: int, url: str
) -> dict[str, Any]:
    """A file that was uploaded; the text is its caption."""
    kind = {"image": "m.image", "audio": "m.audio", "video": "m.video"}
    content: dict[str, Any] = {
        "msgtype": kind.get(mime.partition("/")[0], "m.file"),
        "body": outgoing.text or name,
        "filename": name,
        "url": url,
        "info": {"mimetype": mime, "size": size},
        "m.mentions": {},
    }
    relation = relation_content(outgoing)
    return content | ({"m.relates_to": relation} if relation else {})


def relation_content(outgoing: OutgoingMessage) -> dict[str, Any]:
    """What it belongs to: a thread, a message it answers, or nothing."""
    answered = outgoing.reply_to or outgoing.thread_id
    reply = {"m.in_reply_to": {"event_id": answered}} if answered else {}
    if not outgoing.thread_id:
        return reply
    thread = {"rel_type": "m.thread", "event_id": outgoing.thread_id}
    return {**thread, "is_falling_back": not outgoing.reply_to, **reply}


def _text(text: str, *, is_plain: bool = False) -> dict[str, Any]:
    plain = {"msgtype": "m.text", "body": text}
    rendered = "" if is_plain else render_html(text)
    if not rendered or rendered == f"<p>{text}</p>":
        return plain
    rich = {**plain, "format": "org.matrix.custom.html", "formatted_body": rendered}
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
        self._listening: asyncio.Task[None] | None = None

    async def connect(self, receive: Receive) -> None:
        """Find out who we are, where the last run stopped, and listen from there."""
        await self.disconnect()
        self._problems.clear_all()
        self._client = client = _client(self._context)
        try:
            listener = await self._introduced(client)
            await listener.begin()
        except (ClientError, OSError, TimeoutError) as error:
            reason = f"No response from the homeserver: {results.describe_exception(error)}"
            raise PlatformDownError(reason) from error
        self._listening = asyncio.create_task(listener.run(receive))
        self._listening.add_done_callback(self._problems.ended)

    async def _introduced(self, client: AsyncClient) -> MatrixListener:
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
        direct = [one for chat in chats if isinstance(chat, list) for one in chat]
        rooms = MatrixRooms(client, self.account, direct)
        reader = MatrixMessageReader(client, self.account, name, rooms, self._context)
        extra = self._context.config.extra
        memory = self._context.memory
        return MatrixListener(client, rooms, reader, memory, self._problems, extra)

    async def disconnect(self) -> None:
        """Stop listening."""
        listening, self._listening = self._listening, None
        client, self._client = self._client, None
        if listening is not None:
            listening.cancel()
            await asyncio.wait([listening])
        if client is not None:
            await client.close()

    async def send(self, outgoing: OutgoingMessage) -> SendResult:
        """Send a text or a file; what the server does not take as rich text is sent plain."""
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
        """Put another text in the place of a message."""
        key = idempotency_key("edit", outgoing.key, message_id, outgoing.text)
        content = edit_content(outgoing, message_id)
        try:
            return await self._put(outgoing.chat_id, content, key)
        except (ClientError, TimeoutError) as error:
            return results.no_response(error)

    async def _put(
        self, room_id: str, content: dict[str, Any], key: str, kind: str = "m.room.message"
    ) -> SendResult:
        if self._client is None:
            return NOT_CONNECTED
        answer = await self._client.room_send(room_id, kind, content, tx_id=key)
        if results.is_error(answer):
            return results.refusal(answer)
        return SendResult(True, message_id=answer.event_id)

    async def typing(self, chat_id: str, thread_id: str | None = None) -> None:
        """Show that an answer is being written."""
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
        """Put a small picture to a message."""
        relation = {"rel_type": "m.annotation", "event_id": message_id, "key": emoji}
        key = idempotency_key("react", message_id, emoji)
        try:
            result = await self._put(chat_id, {"m.relates_to": relation}, key, "m.reaction")
        except (ClientError, TimeoutError) as error:
            result = results.no_response(error)
        if not result.success:
            log.info("reaction not added: %s", result.error)


def make(context: AdapterContext) -> MatrixAdapter:
    """The adapter of the account whose token is configured."""
    return MatrixAdapter(context)


def _client(context: AdapterContext) -> AsyncClient:
    """A client that gives up instead of trying for ever: when to try again is decided here."""
    config = AsyncClientConfig(
        max_limit_exceeded=0, max_timeouts=0, request_timeout=REQUEST_SECONDS
    )
    client = AsyncClient(_address(context.secret("MATRIX_HOMESERVER")), config=config)
    client.access_token = context.secret("MATRIX_ACCESS_TOKEN")
    return client


def _address(written: str) -> str:
    address = (written if "://" in written else f"https://{written}").rstrip("/")
    found = urlparse(address)
    if found.scheme not in {"http", "https"} or not found.hostname:
        raise PlatformRefusedError(
            "Invalid MATRIX_HOMESERVER. Use a URL such as https://matrix.example.org."
        )
    return address
