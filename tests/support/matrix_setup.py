"""A bot on a Matrix server, a person who writes to it, and what came in."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from gateway.platforms.matrix.adapter import MatrixAdapter, make
from support.adapters import AdapterSetup, Inbox

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from gateway.platforms.base import AdapterContext
    from support.adapters import Notes
    from support.synapse import Person

LARGEST = 1_000_000


class MatrixSetup(NamedTuple):
    """A bot, a person, and what an adapter is made from."""

    bot: Person
    ann: Person
    context: AdapterContext
    notes: Notes

    def room(self, *others: Person, **facts: Any) -> str:
        """A room with the bot in it, which has been there before the adapter started."""
        room = self.ann.room(self.bot.user_id, *(item.user_id for item in others), **facts)
        for item in (self.bot, *others):
            item.join(room)
        return room


def context_of(url: str, token: str, folder: Path, notes: Notes, **extra: Any) -> AdapterContext:
    secrets = {"MATRIX_HOMESERVER": url, "MATRIX_ACCESS_TOKEN": token}
    extra = {"sync_seconds": 5, **extra}
    return AdapterSetup(notes, folder, secrets, extra, largest=LARGEST).context()


@asynccontextmanager
async def connected(
    setup: MatrixSetup, received: Inbox | None = None
) -> AsyncIterator[tuple[MatrixAdapter, Inbox]]:
    adapter, received = make(setup.context), received or Inbox()
    try:
        await adapter.connect(received)
        yield adapter, received
    finally:
        await adapter.disconnect()
