"""A socket of this machine: one JSON object on a line each way, for scripts and tests.

In: `{"chat": "…", "user": "…", "id": "…", "text": "…"}`; it is confirmed with
`{"received": "…"}` once it is safe. Out: `{"chat": "…", "text": "…", "key": "…"}`, which is
to be confirmed with `{"arrived": "…"}`. A key that comes twice is the same message. A message
that could not be kept is answered with `{"not_received": "…", "error": "…"}`: send it again.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
import logging
from typing import TYPE_CHECKING, Any, ClassVar, Final

from gateway.platforms.base import Abilities, ErrorKind, MessageEvent, OutgoingMessage, SendResult
from gateway.platforms.names import Platform
from gateway.routing.sources import SessionSource
from hermes_core.errors import HermesError
from hermes_core.paths import hermes_home, private_folder

if TYPE_CHECKING:
    from pathlib import Path

    from gateway.platforms.base import AdapterContext, Receive

log = logging.getLogger(__name__)

CONFIRM_SECONDS: Final = 10.0
LONGEST_LINE: Final = 1024 * 1024
MOST_WAITING: Final = 10_000  # messages that were read and are not kept yet


class LocalAdapter:
    """Clients on a Unix socket; each chat belongs to the client that spoke last in it."""

    abilities: ClassVar = Abilities(idempotent=True, longest_text=100_000)

    def __init__(self, path: Path, account: str = "local") -> None:
        self.account = account
        self._path = path
        self._server: asyncio.Server | None = None
        self._receive: Receive | None = None
        self._chats: dict[str, asyncio.StreamWriter] = {}
        self._arrivals: dict[str, asyncio.Future[None]] = {}

    async def connect(self, receive: Receive) -> None:
        """Listen."""
        self._receive = receive
        private_folder(self._path.parent)
        self._path.unlink(missing_ok=True)
        self._server = await asyncio.start_unix_server(
            self._serve, str(self._path), limit=LONGEST_LINE
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
        """Read what a client says; messages are kept in their order, confirmations at once."""
        messages: asyncio.Queue[dict[str, Any]] = asyncio.Queue(MOST_WAITING)
        keeping = asyncio.create_task(self._keep(messages, writer))
        keeping.add_done_callback(functools.partial(_ended, writer))
        try:
            while line := await reader.readline():
                await self._take(line, writer, messages)
        except (ConnectionError, ValueError) as error:
            log.info("a local client is gone: %s", error)
        finally:
            for chat in [one for one, known in self._chats.items() if known is writer]:
                del self._chats[chat]
            keeping.cancel()
            writer.close()

    async def _keep(
        self, messages: asyncio.Queue[dict[str, Any]], writer: asyncio.StreamWriter
    ) -> None:
        while True:
            await self._hand_over(await messages.get(), writer)

    async def _take(
        self, line: bytes, writer: asyncio.StreamWriter, messages: asyncio.Queue[dict[str, Any]]
    ) -> None:
        try:
            found = json.loads(line)
        except ValueError:
            found = None
        if not isinstance(found, dict):
            await _write(writer, {"error": "this is no JSON object"})
        elif "arrived" in found:
            waiting = self._arrivals.get(str(found["arrived"]))
            if waiting is not None and not waiting.done():
                waiting.set_result(None)
        elif not all(isinstance(found.get(name), str) for name in ("chat", "id", "text")):
            await _write(writer, {"error": "`chat`, `id` and `text` are needed, as texts"})
        else:
            self._chats[found["chat"]] = writer
            await messages.put(found)

    async def _hand_over(self, found: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        user = str(found.get("user") or found["chat"])
        source = SessionSource(
            Platform.LOCAL,
            found["chat"],
            chat_type=str(found.get("chat_type") or "dm"),
            user_id=user,
            user_name=str(found.get("user_name") or user),
        )
        if self._receive is None:
            return
        try:
            await self._receive(MessageEvent(found["text"], source=source, message_id=found["id"]))
        except (HermesError, OSError) as error:
            log.warning("a message could not be kept: %s", error)
            await _write(writer, {"not_received": found["id"], "error": str(error)})
        else:
            await _write(writer, {"received": found["id"]})

    async def send(self, outgoing: OutgoingMessage) -> SendResult:
        """Send a text to whoever spoke last in the chat; sent is what was confirmed."""
        writer = self._chats.get(outgoing.chat_id)
        if writer is None:
            return SendResult(False, error="nobody is connected", error_kind=ErrorKind.TRANSIENT)
        arrival: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._arrivals[outgoing.key] = arrival
        try:
            message = {"chat": outgoing.chat_id, "text": outgoing.text, "key": outgoing.key}
            await _write(writer, message)
            await asyncio.wait_for(arrival, CONFIRM_SECONDS)
        except (TimeoutError, ConnectionError) as error:
            return SendResult(
                False,
                error=f"it was not confirmed: {error}",
                error_kind=ErrorKind.TRANSIENT,
                may_have_arrived=True,
            )
        finally:
            self._arrivals.pop(outgoing.key, None)
        return SendResult(True, message_id=outgoing.key)


def socket_path() -> Path:
    """Where programs of this machine talk to the gateway."""
    return hermes_home() / "run" / "gateway.sock"


def make(_surroundings: AdapterContext) -> LocalAdapter:
    """The adapter of this Hermes folder."""
    return LocalAdapter(socket_path())


def _ended(writer: asyncio.StreamWriter, task: asyncio.Task[None]) -> None:
    """A client whose messages are not kept any more is hung up on, and sends them again."""
    error = None if task.cancelled() else task.exception()
    if error is not None:
        log.error("messages of a local client are not kept", exc_info=error)
        writer.close()


async def _write(writer: asyncio.StreamWriter, message: dict[str, Any]) -> None:
    writer.write(json.dumps(message).encode() + b"\n")
    with contextlib.suppress(ConnectionError):
        await writer.drain()
