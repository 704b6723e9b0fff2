"""A bot on a Matrix server, a user who writes to it, and the recorded inbox."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from gateway.platforms.matrix.adapter import MatrixAdapter, make
from support.adapters import AdapterSetup, RecordingInbox

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from gateway.platforms.base import AdapterContext
    from support.adapters import DictMemory
    from support.synapse import MatrixUser

MAX_MEDIA_BYTES = 1_000_000


class MatrixSetup(NamedTuple):
    """A bot, a user, and the context of an adapter."""

    bot: MatrixUser
    ann: MatrixUser
    context: AdapterContext
    notes: DictMemory

    def create_room(self, *others: MatrixUser, **fields: Any) -> str:
        """Create a room that the bot has joined before the adapter starts."""
        room = self.ann.create_room(self.bot.user_id, *(user.user_id for user in others), **fields)
        for user in (self.bot, *others):
            user.join(room)
        return room


def context_of(
    url: str, token: str, folder: Path, notes: DictMemory, **extra: Any
) -> AdapterContext:
    secrets = {"MATRIX_HOMESERVER": url, "MATRIX_ACCESS_TOKEN": token}
    extra = {"sync_seconds": 5, **extra}
    return AdapterSetup(notes, folder, secrets, extra, max_bytes=MAX_MEDIA_BYTES).context()


@asynccontextmanager
async def connected(
    setup: MatrixSetup, inbox: RecordingInbox | None = None
) -> AsyncIterator[tuple[MatrixAdapter, RecordingInbox]]:
    adapter, inbox = make(setup.context), inbox or RecordingInbox()
    try:
        await adapter.connect(inbox)
        yield adapter, inbox
    finally:
        await adapter.disconnect()
