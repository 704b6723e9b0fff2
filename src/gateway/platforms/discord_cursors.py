"""How far each channel of Discord was received, from one start to the next.

Ids of Discord grow with time, across all channels. A channel is written down before its
first message is handed over, so that what is not written down was never received.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from gateway.platforms.base import Memory

SAVE_EVERY: Final = 20  # messages of a channel that come in one go
OVERLAP: Final = 3_600_000 << 22  # an hour, in ids


class Cursors:
    """The last message that was received in each channel."""

    def __init__(self, memory: Memory, account: str) -> None:
        self._memory = memory
        self._account = account
        self._last: dict[int, int] = {}
        self._unsaved: dict[int, int] = {}
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
            self._last[int(channel)] = int(last or since)
        self.beginning = max(int(since), max(self._last.values(), default=0) - OVERLAP)

    @property
    def channels(self) -> list[int]:
        """The channels that are known."""
        return list(self._last)

    def last(self, channel: int) -> int | None:
        """The last message that was received; None where a channel is not known."""
        return self._last.get(channel)

    async def open(self, channel: int, after: int) -> int:
        """Write a channel down, if it is new; where it begins."""
        if channel not in self._last:
            await self._memory.keep(self._name(channel), str(after))
            await self._keep_channels([*self._last, channel])
            self._last[channel] = after
        return self._last[channel]

    async def forget(self, channel: int) -> None:
        """A channel is gone."""
        if channel in self._last:
            await self._keep_channels([one for one in self._last if one != channel])
            del self._last[channel]

    async def reached(self, channel: int, message: int, *, is_waiting: bool) -> None:
        """A message was received; while others wait behind it, that is written now and then."""
        self._last[channel] = max(message, self._last.get(channel, 0))
        self._unsaved[channel] = self._unsaved.get(channel, 0) + 1
        if not is_waiting or self._unsaved[channel] >= SAVE_EVERY:
            await self._memory.keep(self._name(channel), str(self._last[channel]))
            self._unsaved[channel] = 0

    def _name(self, channel: int) -> str:
        return f"last:{self._account}:{channel}"

    async def _keep_channels(self, channels: list[int]) -> None:
        await self._memory.keep(f"channels:{self._account}", json.dumps(channels))
