"""A client of the gateway's local socket."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

from support.waiting import PATIENCE_SECONDS

if TYPE_CHECKING:
    from pathlib import Path


class LocalChatClient:
    """Sends messages, confirms the replies, and records them."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._task: asyncio.Task[None] | None = None
        self.received: dict[str, asyncio.Event] = {}
        self.replies: list[dict[str, Any]] = []
        self._changed = asyncio.Event()

    async def __aenter__(self) -> LocalChatClient:
        self._reader, self._writer = await asyncio.open_unix_connection(str(self._path))
        self._task = asyncio.create_task(self._read())
        return self

    async def __aexit__(self, *_error: object) -> None:
        assert self._writer is not None
        assert self._task is not None
        self._task.cancel()
        self._writer.close()

    async def _read(self) -> None:
        assert self._reader is not None
        while line := await self._reader.readline():
            message = json.loads(line)
            if "received" in message:
                self.received.setdefault(message["received"], asyncio.Event()).set()
            elif "key" in message:
                self.replies.append(message)
                await self.write({"arrived": message["key"]})
            self._changed.set()

    async def write(self, message: dict[str, Any]) -> None:
        assert self._writer is not None
        self._writer.write(json.dumps(message).encode() + b"\n")
        await self._writer.drain()

    async def send(self, text: str, message_id: str, chat: str = "c1") -> None:
        """Send a message and wait for its confirmation."""
        await self.write({"chat": chat, "id": message_id, "text": text})
        event = self.received.setdefault(message_id, asyncio.Event())
        await asyncio.wait_for(event.wait(), PATIENCE_SECONDS)

    async def wait_for(self, count: int) -> list[str]:
        """Wait until *count* replies have arrived; return their texts."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while len(self.replies) < count:
                self._changed.clear()
                await self._changed.wait()
        return self.texts

    @property
    def texts(self) -> list[str]:
        """The texts of the replies so far."""
        return [str(reply["text"]) for reply in self.replies]
