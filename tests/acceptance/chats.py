"""A chat platform for campaigns: it delivers messages until they are confirmed."""

from __future__ import annotations

import asyncio
import json
import time
from typing import TYPE_CHECKING, Any

from acceptance.campaign import size
from hermes_state import SessionDB

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

AGAIN_SECONDS = 2.0  # after which a message that was not confirmed is delivered again
CHATS = size(10, 100)  # so that a conversation stays of a usual length


class Platform:
    """Delivers messages until they are confirmed, as chat platforms do."""

    def __init__(self, path: Path, count: int) -> None:
        self._path = path
        self.waiting: dict[int, list[str]] = {
            chat: [f"c{chat}-m{number}" for number in range(count // CHATS)]
            for chat in range(CHATS)
        }
        self.sent: dict[int, list[str]] = {chat: list(item) for chat, item in self.waiting.items()}
        self.arrived: dict[str, str] = {}
        self.doubled = 0
        self.texts: dict[str, str] = {}  # what a message says, where that is not its id

    @property
    def is_delivered(self) -> bool:
        return not any(self.waiting.values())

    async def connect_until(self, is_over: Callable[[], bool]) -> None:
        """Be there, again and again, until something is so."""
        while not is_over():
            try:
                reader, writer = await asyncio.open_unix_connection(str(self._path))
            except OSError:
                await asyncio.sleep(0.05)
                continue
            reading = asyncio.create_task(self._read(reader, writer))
            try:
                await self._deliver(writer, reading, is_over)
            except OSError:
                pass  # killed: what was not confirmed is delivered again
            finally:
                reading.cancel()
                writer.close()

    async def _deliver(
        self,
        writer: asyncio.StreamWriter,
        reading: asyncio.Task[None],
        is_over: Callable[[], bool],
    ) -> None:
        for chat in range(CHATS):  # so that it is known who is where
            await self._say(writer, chat, f"c{chat}-m0")
        said: dict[str, float] = {}
        while not reading.done() and not is_over():
            now = time.monotonic()
            for chat, texts in self.waiting.items():
                if texts and now - said.get(texts[0], 0.0) > AGAIN_SECONDS:
                    said[texts[0]] = now
                    await self._say(writer, chat, texts[0])
            await asyncio.sleep(0.02)

    async def _say(self, writer: asyncio.StreamWriter, chat: int, text: str) -> None:
        says = self.texts.get(text, text)
        message = {"chat": f"chat{chat}", "id": text, "text": says}
        writer.write(json.dumps(message).encode() + b"\n")
        await writer.drain()

    async def _read(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            data: dict[str, Any] = json.loads(line)
            if "received" in data:
                self._confirm(data["received"])
            elif "key" in data:
                self.doubled += data["key"] in self.arrived
                self.arrived[data["key"]] = data["text"]
                writer.write(json.dumps({"arrived": data["key"]}).encode() + b"\n")

    def _confirm(self, text: str) -> None:
        chat = int(text[1 : text.index("-")])
        if self.waiting[chat] and self.waiting[chat][0] == text:
            self.waiting[chat].pop(0)


def unsettled() -> int:
    with SessionDB(is_recovering=False) as db:
        sql = "SELECT count(*) FROM hermes_{} WHERE state NOT IN ('done', 'sent')"
        return sum(
            db.engine.read(lambda reader, name=name: reader.value(sql.format(name)))
            for name in ("inbox", "outbox")
        )
