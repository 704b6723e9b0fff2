"""What an adapter is made from in a test, and where its messages end up."""

from __future__ import annotations

import asyncio
import itertools
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from gateway.config import PlatformConfig
from gateway.platforms.base import AdapterContext, MessageEvent
from gateway.process.http_server import HttpServer
from hermes_core.backoff import Backoff
from hermes_core.errors import StoreUnavailableError
from hermes_core.media_store import MediaStore
from support.waiting import PATIENCE_SECONDS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator
    from pathlib import Path

    from gateway.platforms.base import Memory

QUICK = Backoff(0.01, 0.01)
PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 50
FULL = StoreUnavailableError("the disk is full")


async def waited(is_so: Callable[[], object], seconds: float = PATIENCE_SECONDS) -> None:
    """Wait until something is so, wherever it happens."""
    async with asyncio.timeout(seconds):
        while not is_so():  # noqa: ASYNC110 - what is waited for is elsewhere
            await asyncio.sleep(0.005)


class Inbox:
    """Takes messages; the next ones may fail, or wait at a gate."""

    def __init__(self) -> None:
        self.events: list[MessageEvent] = []
        self.gate: asyncio.Event | None = None
        self.tries = 0
        self._failures: Iterator[Exception] = iter(())

    def fail(self, times: int | None = None, error: Exception = FULL) -> None:
        """The next tries fail; without a number all of them do."""
        more = itertools.repeat(error) if times is None else itertools.repeat(error, times)
        self._failures = itertools.chain(self._failures, more)

    def recover(self) -> None:
        self._failures = iter(())

    async def __call__(self, event: MessageEvent) -> None:
        self.tries += 1
        if self.gate is not None:
            await self.gate.wait()
        error = next(self._failures, None)
        if error is not None:
            raise error
        self.events.append(event)

    @property
    def texts(self) -> list[str]:
        return [event.text for event in self.events]

    async def until(self, count: int) -> list[MessageEvent]:
        await waited(lambda: len(self.events) >= count)
        return self.events


class Notes:
    """A memory that outlives an adapter."""

    def __init__(self) -> None:
        self.kept: dict[str, str] = {}

    async def recall(self, name: str) -> str | None:
        return self.kept.get(name)

    async def keep(self, name: str, text: str) -> None:
        self.kept[name] = text


class AdapterSetup:
    """Everything an adapter is made from; a test may change any of it before."""

    def __init__(
        self,
        memory: Memory,
        folder: Path,
        secrets: dict[str, str],
        extra: dict[str, Any] | None = None,
        largest: int = 1000,
    ) -> None:
        self.inbox = Inbox()
        self.front = HttpServer("127.0.0.1", 0)
        self.secrets = secrets
        self.extra = extra or {}
        self.media = MediaStore(folder / "media", largest=largest)
        self.memory = memory

    def context(self) -> AdapterContext:
        return AdapterContext(
            PlatformConfig(enabled=True, extra=self.extra),
            lambda name: self.secrets.get(name, ""),
            self.media,
            self.memory,
            self.front,
        )

    def adapter(self) -> Any:
        raise NotImplementedError

    @asynccontextmanager
    async def connected(self, inbox: Inbox | None = None) -> AsyncIterator[Any]:
        """An adapter at work."""
        adapter = self.adapter()
        try:
            await adapter.connect(inbox or self.inbox)
            yield adapter
        finally:
            await adapter.disconnect()
            await self.front.close()


class ServerSetup(AdapterSetup):
    """A server, and an adapter for it."""

    def __init__(
        self, server: Any, make: Callable[..., Any], memory: Memory, folder: Path, **facts: Any
    ) -> None:
        super().__init__(memory, folder, **facts)
        self.server = server
        self.make = make

    def adapter(self) -> Any:
        return self.make(self.context(), backoff=QUICK)

    async def noted(self, adapter: Any) -> None:
        """Wait until it is written down how far everything was received."""
        await waited(lambda: not len(adapter._listener._queues))
