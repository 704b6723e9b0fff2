"""The local socket: one JSON object per line in each direction, for scripts and tests.

In: `{"chat": "…", "user": "…", "id": "…", "text": "…"}`, acknowledged with `{"received": "…"}`
once it is stored; with `"deleted": true` instead of a text, the message with this ID is deleted.
Out: `{"chat": "…", "text": "…", "key": "…"}`, to be acknowledged with
`{"arrived": "…"}`; a repeated key is the same message. If a message cannot be stored, the answer
is `{"not_received": "…", "error": "…"}`: send it again.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
import logging
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple

from gateway.platforms.base import Abilities, ErrorKind, MessageEvent, OutgoingMessage, SendResult
from gateway.platforms.names import Platform
from gateway.routing.sources import SessionSource
from hermes_core.errors import HermesError
from hermes_core.json_values import text_in
from hermes_core.paths import hermes_home, private_folder

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from gateway.platforms.base import AdapterContext, Receive
    from hermes_core.json_values import JsonObject, JsonValue

log = logging.getLogger(__name__)

CONFIRM_SECONDS: Final = 10.0
MAX_LINE_BYTES: Final = 1024 * 1024
MAX_QUEUED_MESSAGES: Final = 10_000  # read but not stored yet


class LocalMessage(NamedTuple):
    """A message of a local client."""

    chat: str
    id: str
    text: str
    chat_type: str
    user: str
    user_name: str
    is_deletion: bool = False

    @classmethod
    def parse(cls, fields: JsonObject) -> LocalMessage:
        """A message with its defaults: a direct chat with the user of that name."""
        chat = text_in(fields, "chat")
        user = str(fields.get("user") or chat)
        return cls(
            chat=chat,
            id=text_in(fields, "id"),
            text="" if fields.get("deleted") is True else text_in(fields, "text"),
            chat_type=str(fields.get("chat_type") or "dm"),
            user=user,
            user_name=str(fields.get("user_name") or user),
            is_deletion=fields.get("deleted") is True,
        )


class LocalAdapter:
    """Clients on a Unix socket; a chat belongs to the client that wrote to it last."""

    abilities: ClassVar = Abilities(idempotent=True, longest_text=100_000)

    def __init__(self, path: Path, account: str = "local") -> None:
        self.account = account
        self._path = path
        self._server: asyncio.Server | None = None
        self._receive: Receive | None = None
        self._chats: dict[str, asyncio.StreamWriter] = {}
        self._arrivals: dict[str, asyncio.Future[None]] = {}

    async def connect(self, receive: Receive) -> None:
        """Start listening."""
        self._receive = receive
        private_folder(self._path.parent)
        self._path.unlink(missing_ok=True)
        self._server = await asyncio.start_unix_server(
            self._serve, str(self._path), limit=MAX_LINE_BYTES
        )
        self._path.chmod(0o600)

    async def disconnect(self) -> None:
        """Stop listening."""
        if self._server is not None:
            self._server.close()
        for writer in list(self._chats.values()):
            writer.close()
        self._path.unlink(missing_ok=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Read the lines of a client; messages are stored in order."""
        messages: asyncio.Queue[LocalMessage] = asyncio.Queue(MAX_QUEUED_MESSAGES)
        storing = asyncio.create_task(self._store_all(messages, writer))
        storing.add_done_callback(functools.partial(_ended, writer))
        try:
            while line := await reader.readline():
                await self._parse_line(line, writer, messages)
        except (ConnectionError, ValueError) as error:
            log.info("local client disconnected: %s", error)
        finally:
            for chat in [item for item, owner in self._chats.items() if owner is writer]:
                del self._chats[chat]
            storing.cancel()
            writer.close()

    async def _store_all(
        self, messages: asyncio.Queue[LocalMessage], writer: asyncio.StreamWriter
    ) -> None:
        while True:
            await self._store(await messages.get(), writer)

    async def _parse_line(
        self, line: bytes, writer: asyncio.StreamWriter, messages: asyncio.Queue[LocalMessage]
    ) -> None:
        message = _parsed(line)
        if message is None:
            await _write(writer, {"error": "not a JSON object of valid text"})
        elif "arrived" in message:
            waiting = self._arrivals.get(str(message["arrived"]))
            if waiting is not None and not waiting.done():
                waiting.set_result(None)
        elif not _is_message(message):
            await _write(writer, {"error": "`chat`, `id` and `text` are required strings"})
        else:
            parsed = LocalMessage.parse(message)
            self._chats[parsed.chat] = writer
            await messages.put(parsed)

    async def _store(self, message: LocalMessage, writer: asyncio.StreamWriter) -> None:
        source = SessionSource(
            Platform.LOCAL,
            message.chat,
            chat_type=message.chat_type,
            user_id=message.user,
            user_name=message.user_name,
        )
        if self._receive is None:
            return
        event = MessageEvent(
            message.text, source=source, message_id=message.id, is_deletion=message.is_deletion
        )
        try:
            await self._receive(event)
        except (HermesError, OSError) as error:
            log.warning("local message not stored: %s", error)
            await _write(writer, {"not_received": message.id, "error": str(error)})
        else:
            await _write(writer, {"received": message.id})

    async def send(self, outgoing: OutgoingMessage) -> SendResult:
        """Send a text to the client of the chat; it counts as sent once acknowledged."""
        writer = self._chats.get(outgoing.chat_id)
        if writer is None:
            return SendResult(False, error="no client is connected", error_kind=ErrorKind.TRANSIENT)
        arrival: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._arrivals[outgoing.key] = arrival
        try:
            line = {"chat": outgoing.chat_id, "text": outgoing.text, "key": outgoing.key}
            await _write(writer, line)
            await asyncio.wait_for(arrival, CONFIRM_SECONDS)
        except (TimeoutError, ConnectionError) as error:
            return SendResult(
                False,
                error=f"delivery not confirmed: {error}",
                error_kind=ErrorKind.TRANSIENT,
                may_have_arrived=True,
            )
        finally:
            self._arrivals.pop(outgoing.key, None)
        return SendResult(True, message_id=outgoing.key)


def socket_path() -> Path:
    """The path of the local socket."""
    return hermes_home() / "run" / "gateway.sock"


def make(_context: AdapterContext) -> LocalAdapter:
    """Create the adapter."""
    return LocalAdapter(socket_path())


def _parsed(line: bytes) -> JsonObject | None:
    """The JSON object of a line; None if it is malformed, also by a lone surrogate."""
    try:
        message = json.loads(line)
        json.dumps(message, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        return None
    return message if isinstance(message, dict) else None


def _is_message(fields: JsonObject) -> bool:
    """Whether a line has the required texts; a deletion has no text."""
    required = ("chat", "id") if fields.get("deleted") is True else ("chat", "id", "text")
    return all(isinstance(fields.get(name), str) for name in required)


def _ended(writer: asyncio.StreamWriter, task: asyncio.Task[None]) -> None:
    """Disconnect a client whose messages cannot be stored; it sends them again."""
    error = None if task.cancelled() else task.exception()
    if error is not None:
        log.error("local client messages are no longer stored", exc_info=error)
        writer.close()


async def _write(writer: asyncio.StreamWriter, message: Mapping[str, JsonValue]) -> None:
    writer.write(json.dumps(message).encode() + b"\n")
    with contextlib.suppress(ConnectionError):
        await writer.drain()
