"""What an adapter of Telegram is made from in a test, and where its messages end up."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from gateway.config import PlatformConfig
from gateway.equipping import StoredMemory
from gateway.front import Front
from gateway.platforms.base import MessageEvent, Surroundings
from gateway.platforms.telegram import TelegramAdapter
from hermes_core.media import MediaStore
from support.telegram_server import TOKEN, TelegramServer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from hermes_state import SessionDB

SECRET = "a-secret_of-the-webhook"
GROUP = -100500
PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 50
QUICK = (0.01,)


class Inbox:
    """Takes messages; the next ones may fail, as when the disk is full."""

    def __init__(self) -> None:
        self.events: list[MessageEvent] = []
        self.failures: list[Exception] = []
        self.gate: asyncio.Event | None = None
        self.waiting = 0  # at the gate

    async def __call__(self, event: MessageEvent) -> None:
        if self.gate is not None:
            self.waiting += 1
            await self.gate.wait()
        if self.failures:
            raise self.failures.pop(0)
        self.events.append(event)

    @property
    def texts(self) -> list[str]:
        return [one.text for one in self.events]

    async def until(self, count: int) -> list[MessageEvent]:
        await waited(lambda: len(self.events) >= count)
        return self.events


async def waited(is_so: Callable[[], object]) -> None:
    async with asyncio.timeout(20):
        while not is_so():  # noqa: ASYNC110 - what is waited for is in the server
            await asyncio.sleep(0.005)


class Room:
    """A server, and everything an adapter is made from."""

    def __init__(self, server: TelegramServer, db: SessionDB, folder: Path) -> None:
        self.server = server
        self.inbox = Inbox()
        self.front = Front("127.0.0.1", 0)
        self.secrets = {"TELEGRAM_BOT_TOKEN": TOKEN, "TELEGRAM_WEBHOOK_SECRET": SECRET}
        self.extra: dict[str, Any] = {"base_url": server.base_url, "poll_seconds": 1}
        self.media = MediaStore(folder / "media", largest=1000)
        self._db = db

    def surroundings(self) -> Surroundings:
        return Surroundings(
            PlatformConfig(enabled=True, extra=self.extra),
            lambda name: self.secrets.get(name, ""),
            self.media,
            StoredMemory(self._db, "telegram"),
            self.front,
        )

    def adapter(self) -> TelegramAdapter:
        return TelegramAdapter(self.surroundings(), pauses=QUICK)

    @asynccontextmanager
    async def connected(self) -> AsyncIterator[TelegramAdapter]:
        adapter = self.adapter()
        await adapter.connect(self.inbox)
        try:
            yield adapter
        finally:
            await adapter.disconnect()
            await self.front.close()
