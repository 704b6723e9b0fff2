"""A bot on a Matrix server, a person who writes to it, and what came in."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from gateway.config import PlatformConfig
from gateway.front import Front
from gateway.media import MediaStore
from gateway.platforms.base import Surroundings
from gateway.platforms.matrix import MatrixAdapter, make
from hermes_core.errors import StoreUnavailableError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from gateway.platforms.base import MessageEvent
    from support.synapse import Person


class Notes:
    """A memory that outlives an adapter."""

    def __init__(self) -> None:
        self.kept: dict[str, str] = {}

    async def recall(self, name: str) -> str | None:
        return self.kept.get(name)

    async def keep(self, name: str, text: str) -> None:
        self.kept[name] = text


class Received:
    """What came in; it can be told to fail."""

    def __init__(self) -> None:
        self.events: list[MessageEvent] = []
        self.failures = 0
        self.tries = 0

    async def __call__(self, event: MessageEvent) -> None:
        self.tries += 1
        if self.failures:
            self.failures -= 1
            raise StoreUnavailableError("the disk is full")
        self.events.append(event)

    @property
    def texts(self) -> list[str]:
        return [one.text for one in self.events]

    async def until(self, count: int) -> list[MessageEvent]:
        await until(lambda: len(self.events) >= count)
        return self.events


class World(NamedTuple):
    """A bot, a person, and what an adapter is made from."""

    bot: Person
    ann: Person
    surroundings: Surroundings
    notes: Notes

    def room(self, *others: Person, **facts: Any) -> str:
        """A room with the bot in it, which has been there before the adapter started."""
        room = self.ann.room(self.bot.user_id, *(one.user_id for one in others), **facts)
        for one in (self.bot, *others):
            one.join(room)
        return room


async def until(is_so: Callable[[], object]) -> None:
    async with asyncio.timeout(60):
        while not is_so():  # noqa: ASYNC110
            await asyncio.sleep(0.02)


def surroundings_of(url: str, token: str, folder: Path, notes: Notes, **extra: Any) -> Surroundings:
    secrets = {"MATRIX_HOMESERVER": url, "MATRIX_ACCESS_TOKEN": token}
    return Surroundings(
        PlatformConfig(extra={"sync_seconds": 5, **extra}),
        lambda name: secrets.get(name, ""),
        MediaStore(folder / "media"),
        notes,
        Front("127.0.0.1", 0),
    )


@asynccontextmanager
async def connected(
    world: World, received: Received | None = None
) -> AsyncIterator[tuple[MatrixAdapter, Received]]:
    adapter, received = make(world.surroundings), received or Received()
    try:
        await adapter.connect(received)
        yield adapter, received
    finally:
        await adapter.disconnect()
