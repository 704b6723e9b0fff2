"""How far each channel was received, from one start to the next.

Messages are numbered by when they were written, across all channels. A channel is written
down before its first message is handed over: what is not written down was never received.
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from gateway.platforms.base import Memory

SAVE_EVERY: Final = 20  # messages of a channel that come in one go


class Cursors:
    """The last message that was received in each channel."""

    def __init__(self, memory: Memory, account: str, hour: int) -> None:
        self._memory = memory
        self._account = account
        self._hour = hour  # as many numbers as are between two messages an hour apart
        self._last: dict[str, int] = {}
        self._unsaved: dict[str, int] = {}
        self._list = asyncio.Lock()  # two channels that are new at once are both written down
        self.beginning = 0  # what came before it in a channel not known is not for us

    async def load(self, now: int) -> None:
        """Read what was kept; at the first start everything begins *now*."""
        since = await self._memory.recall(f"since:{self._account}")
        if since is None:
            since = str(now)
            await self._memory.keep(f"since:{self._account}", since)
        kept = await self._memory.recall(f"channels:{self._account}")
        for channel in json.loads(kept or "[]"):
            last = await self._memory.recall(self._name(channel))
            self._last[str(channel)] = int(last or since)
        self.beginning = max(int(since), max(self._last.values(), default=0) - self._hour)

    @property
    def channels(self) -> list[str]:
        """The channels that are known."""
        return list(self._last)

    def last(self, channel: str) -> int | None:
        """The last message that was received; None where a channel is not known."""
        return self._last.get(channel)

    async def open(self, channel: str, after: int) -> int:
        """Write a channel down, if it is new; where it begins."""
        async with self._list:
            if channel not in self._last:
                await self._memory.keep(self._name(channel), str(after))
                await self._keep_channels([*self._last, channel])
                self._last[channel] = after
            return self._last[channel]

    async def forget(self, channel: str) -> None:
        """A channel is gone."""
        async with self._list:
            if channel in self._last:
                await self._keep_channels([one for one in self._last if one != channel])
                del self._last[channel]
                self._unsaved.pop(channel, None)

    async def reached(self, channel: str, message: int) -> None:
        """A message was received, which is written down now and then, and by `save`."""
        if channel not in self._last:
            return  # it cannot be read, so there is nowhere to go on from
        self._last[channel] = max(message, self._last[channel])
        self._unsaved[channel] = self._unsaved.get(channel, 0) + 1
        if self._unsaved[channel] >= SAVE_EVERY:
            await self.save(channel)

    async def save(self, channel: str) -> None:
        """Write down how far a channel was received, where that is not done yet."""
        if self._unsaved.get(channel):
            await self._memory.keep(self._name(channel), str(self._last[channel]))
            self._unsaved[channel] = 0

    def _name(self, channel: str) -> str:
        return f"last:{self._account}:{channel}"

    async def _keep_channels(self, channels: list[str]) -> None:
        await self._memory.keep(f"channels:{self._account}", json.dumps(channels))
