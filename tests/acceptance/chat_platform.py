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

REDELIVERY_SECONDS = 2.0  # after which an unconfirmed message is delivered again
CHAT_COUNT = size(10, 100)  # enough to keep each conversation at a usual length


class ChatPlatform:
    """Delivers messages until they are confirmed, as chat platforms do."""

    def __init__(self, path: Path, count: int) -> None:
        self._path = path
        self.waiting: dict[int, list[str]] = {
            chat: [f"c{chat}-m{number}" for number in range(count // CHAT_COUNT)]
            for chat in range(CHAT_COUNT)
        }
        self.sent: dict[int, list[str]] = {
            chat: list(texts) for chat, texts in self.waiting.items()
        }
        self.replies: dict[str, str] = {}
        self.doubled = 0
        self.texts: dict[str, str] = {}  # the text of a message, where it differs from its ID

    @property
    def is_delivered(self) -> bool:
        return not any(self.waiting.values())

    async def connect_until(self, is_over: Callable[[], bool]) -> None:
        """Connect, and reconnect after failures, until a condition holds."""
        while not is_over():
            try:
                reader, writer = await asyncio.open_unix_connection(str(self._path))
            except OSError:
                await asyncio.sleep(0.05)
                continue
            reader_task = asyncio.create_task(self._read(reader, writer))
            try:
                await self._deliver(writer, reader_task, is_over)
            except OSError:
                pass  # killed: unconfirmed messages are delivered again
            finally:
                reader_task.cancel()
                writer.close()

    async def _deliver(
        self,
        writer: asyncio.StreamWriter,
        reader_task: asyncio.Task[None],
        is_over: Callable[[], bool],
    ) -> None:
        for chat in range(CHAT_COUNT):  # register the chats with this connection
            await self._send(writer, chat, f"c{chat}-m0")
        sent_at: dict[str, float] = {}
        while not reader_task.done() and not is_over():
            now = time.monotonic()
            for chat, texts in self.waiting.items():
                if texts and now - sent_at.get(texts[0], 0.0) > REDELIVERY_SECONDS:
                    sent_at[texts[0]] = now
                    await self._send(writer, chat, texts[0])
            await asyncio.sleep(0.02)

    async def _send(self, writer: asyncio.StreamWriter, chat: int, text: str) -> None:
        content = self.texts.get(text, text)
        message = {"chat": f"chat{chat}", "id": text, "text": content}
        writer.write(json.dumps(message).encode() + b"\n")
        await writer.drain()

    async def _read(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            data: dict[str, Any] = json.loads(line)
            if "received" in data:
                self._confirm(data["received"])
            elif "key" in data:
                self.doubled += data["key"] in self.replies
                self.replies[data["key"]] = data["text"]
                writer.write(json.dumps({"arrived": data["key"]}).encode() + b"\n")

    def _confirm(self, text: str) -> None:
        chat = int(text[1 : text.index("-")])
        if self.waiting[chat] and self.waiting[chat][0] == text:
            self.waiting[chat].pop(0)


def count_unsettled() -> int:
    with SessionDB(is_recovering=False) as db:
        sql = "SELECT count(*) FROM hermes_{} WHERE state NOT IN ('done', 'sent')"
        return sum(
            db.engine.read(lambda reader, name=name: reader.value(sql.format(name)))
            for name in ("inbox", "outbox")
        )
