"""Cursors: the last received message of each channel, kept across restarts.

Message IDs increase with time across all channels. A channel is stored before its first message
is received, so a channel that is not stored was never received.
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from gateway.platforms.base import Memory

MESSAGES_PER_SAVE: Final = 20  # of one channel, while more are queued


class Cursors:
    """The last received message of each channel."""

    def __init__(self, memory: Memory, account: str, ids_per_hour: int) -> None:
        self._memory = memory
        self._account = account
        self._ids_per_hour = ids_per_hour  # the distance of two IDs an hour apart
        self._last: dict[str, int] = {}
        self._unsaved: dict[str, int] = {}
        self._channels_lock = asyncio.Lock()  # guards the stored list of channels
        self.start = 0  # older messages of an unknown channel are ignored

    async def load(self, now: int) -> None:
        """Load the cursors; the first start ignores everything before *now*."""
        since = await self._memory.recall(f"since:{self._account}")
        if since is None:
            since = str(now)
            await self._memory.keep(f"since:{self._account}", since)
        result = await self._memory.recall(f"channels:{self._account}")
        for channel in json.loads(result or "[]"):
            last = await self._memory.recall(self._name(channel))
            self._last[str(channel)] = int(last or since)
        self.start = max(int(since), max(self._last.values(), default=0) - self._ids_per_hour)

    @property
    def channels(self) -> list[str]:
        """The known channels."""
        return list(self._last)

    def last(self, channel: str) -> int | None:
        """The last received message; None for an unknown channel."""
        return self._last.get(channel)

    async def open(self, channel: str, after: int) -> int:
        """Store a channel if it is new; its cursor."""
        async with self._channels_lock:
            if channel not in self._last:
                await self._memory.keep(self._name(channel), str(after))
                await self._store_channels([*self._last, channel])
                self._last[channel] = after
            return self._last[channel]

    async def forget(self, channel: str) -> None:
        """Remove a channel."""
        async with self._channels_lock:
            if channel in self._last:
                await self._store_channels([item for item in self._last if item != channel])
                del self._last[channel]
                self._unsaved.pop(channel, None)

    async def reached(self, channel: str, message: int) -> None:
        """Advance the cursor; it is stored every few messages and by `save`."""
        if channel not in self._last:
            return  # its history is unreadable, so it has no cursor
        self._last[channel] = max(message, self._last[channel])
        self._unsaved[channel] = self._unsaved.get(channel, 0) + 1
        if self._unsaved[channel] >= MESSAGES_PER_SAVE:
            await self.save(channel)

    async def save(self, channel: str) -> None:
        """Store the cursor of a channel if it has advanced."""
        if self._unsaved.get(channel):
            await self._memory.keep(self._name(channel), str(self._last[channel]))
            self._unsaved[channel] = 0

    def _name(self, channel: str) -> str:
        return f"last:{self._account}:{channel}"

    async def _store_channels(self, channels: list[str]) -> None:
        await self._memory.keep(f"channels:{self._account}", json.dumps(channels))
