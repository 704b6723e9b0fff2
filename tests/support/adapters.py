"""The dependencies of an adapter under test, and an inbox that records its messages."""

from __future__ import annotations

import itertools
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from gateway.config import PlatformConfig
from gateway.platforms.base import AdapterContext, MessageEvent
from gateway.process.http_server import HttpServer
from hermes_core.backoff import Backoff
from hermes_core.errors import StoreUnavailableError
from hermes_core.media_store import MediaStore
from support.waiting import async_wait_until

if TYPE_CHECKING:
    import asyncio
    from collections.abc import AsyncIterator, Callable, Iterator, Mapping
    from pathlib import Path

    from gateway.platforms.base import ApiKey, Memory
    from hermes_state.delivery.api_requests import ApiRequestRepository

QUICK_BACKOFF = Backoff(0.01, 0.01)
PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 50
DISK_FULL = StoreUnavailableError("the disk is full")


class RecordingInbox:
    """Records messages; the next ones may fail, or wait at a gate."""

    def __init__(self) -> None:
        self.events: list[MessageEvent] = []
        self.gate: asyncio.Event | None = None
        self.attempts = 0
        self._failures: Iterator[Exception] = iter(())

    def fail(self, times: int | None = None, error: Exception = DISK_FULL) -> None:
        """Let the next attempts fail; without a number all of them."""
        errors = itertools.repeat(error) if times is None else itertools.repeat(error, times)
        self._failures = itertools.chain(self._failures, errors)

    def recover(self) -> None:
        self._failures = iter(())

    async def __call__(self, event: MessageEvent) -> None:
        self.attempts += 1
        if self.gate is not None:
            await self.gate.wait()
        error = next(self._failures, None)
        if error is not None:
            raise error
        self.events.append(event)

    @property
    def texts(self) -> list[str]:
        return [event.text for event in self.events]

    async def wait_for(self, count: int) -> list[MessageEvent]:
        await async_wait_until(lambda: len(self.events) >= count)
        return self.events


class DictMemory:
    """A memory that survives a restart of the adapter."""

    def __init__(self) -> None:
        self.values: dict[str, str] = {}

    async def recall(self, name: str) -> str | None:
        return self.values.get(name)

    async def keep(self, name: str, text: str) -> None:
        self.values[name] = text


class DictRecords:
    """Records that survive a restart of the adapter."""

    def __init__(self) -> None:
        self.values: dict[str, bytes] = {}

    def load(self, prefix: str) -> dict[str, bytes]:
        return {
            name.removeprefix(prefix): content
            for name, content in self.values.items()
            if name.startswith(prefix)
        }

    def change(
        self,
        prefix: str,
        changes: Mapping[str, bytes | None],
        guard: tuple[str, bytes] | None = None,
    ) -> bool:
        if guard is not None and self.values.get(prefix + guard[0]) != guard[1]:
            return False
        for name, content in changes.items():
            self.values.pop(prefix + name, None)
            if content is not None:
                self.values[prefix + name] = content
        return True


class AdapterSetup:
    """The dependencies of an adapter; a test may change them before it connects."""

    def __init__(
        self,
        memory: Memory,
        folder: Path,
        secrets: dict[str, str],
        extra: dict[str, Any] | None = None,
        max_bytes: int = 1000,
    ) -> None:
        self.inbox = RecordingInbox()
        self.http_server = HttpServer("127.0.0.1", 0)
        self.secrets = secrets
        self.extra = extra or {}
        self.media = MediaStore(folder / "media", max_bytes=max_bytes)
        self.memory = memory
        self.find_api_key: Callable[[str], ApiKey | None] = lambda _key: None
        self.records = DictRecords()
        self.owners: set[str] = set()
        self.is_accepted: Callable[[MessageEvent], bool] = lambda _event: True
        self.api_requests: ApiRequestRepository | None = None
        self.quarantined: list[tuple[str, str]] = []  # update IDs and errors

    async def quarantine(self, update_id: str, _content: object, error: str) -> None:
        self.quarantined.append((update_id, error))

    def context(self) -> AdapterContext:
        return AdapterContext(
            PlatformConfig(enabled=True, extra=self.extra),
            lambda name: self.secrets.get(name, ""),
            self.media,
            self.memory,
            self.http_server,
            self.find_api_key,
            self.quarantine,
            records=self.records,
            is_owner=self.owners.__contains__,
            is_accepted=self.is_accepted,
            api_requests=self.api_requests,
        )

    def adapter(self) -> Any:
        raise NotImplementedError

    @asynccontextmanager
    async def connected(self, inbox: RecordingInbox | None = None) -> AsyncIterator[Any]:
        """A connected adapter."""
        adapter = self.adapter()
        try:
            await adapter.connect(inbox or self.inbox)
            yield adapter
        finally:
            await adapter.disconnect()
            await self.http_server.close()


class ServerSetup(AdapterSetup):
    """A platform server, and an adapter for it."""

    def __init__(
        self, server: Any, factory: Callable[..., Any], memory: Memory, folder: Path, **options: Any
    ) -> None:
        super().__init__(memory, folder, **options)
        self.server = server
        self.factory = factory

    def adapter(self) -> Any:
        return self.factory(self.context(), backoff=QUICK_BACKOFF)

    async def wait_for_offset(self, adapter: Any) -> None:
        """Wait until the position of the last received message is stored."""
        await async_wait_until(lambda: not len(adapter._listener._queues))
