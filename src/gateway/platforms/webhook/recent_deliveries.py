"""Recent deliveries whose ID is not signed: the same signature is not accepted with another ID."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from gateway.platforms.base import Memory

MAX_RECENT: Final = 1000
MEMORY_NAME: Final = "recent_deliveries"
DIGEST_CHARS: Final = 32


class SeenDelivery(NamedTuple):
    """The ID that a signature came with, and until when others are rejected."""

    delivery: str
    expires: int


class RecentDeliveries:
    """The signatures of recent deliveries, also after a restart."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._seen: dict[str, SeenDelivery] | None = None

    async def claim(self, digest: str, delivery_id: str, now: float, seconds: float) -> bool:
        """Note a delivery; False if its signature was seen with another ID."""
        seen = await self._load()
        key, delivery = digest[:DIGEST_CHARS], _digest(delivery_id)
        known = seen.get(key)
        if known is not None and known.expires > now:
            return known.delivery == delivery
        seen[key] = SeenDelivery(delivery, int(now + seconds) + 1)
        return True

    async def keep(self, now: float) -> None:
        """Store the noted deliveries."""
        seen = await self._load()
        current = [(key, item) for key, item in seen.items() if item.expires > now]
        self._seen = dict(current[-MAX_RECENT:])
        rows = [[key, *item] for key, item in self._seen.items()]
        await self._memory.keep(MEMORY_NAME, json.dumps(rows))

    def release(self, digest: str) -> None:
        """Forget a delivery that was not stored."""
        if self._seen is not None:
            self._seen.pop(digest[:DIGEST_CHARS], None)

    async def _load(self) -> dict[str, SeenDelivery]:
        if self._seen is None:
            stored = json.loads(await self._memory.recall(MEMORY_NAME) or "[]")
            loaded = {str(row[0]): SeenDelivery(str(row[1]), int(row[2])) for row in stored}
            if self._seen is None:  # not loaded by another request meanwhile
                self._seen = loaded
        return self._seen


def _digest(delivery_id: str) -> str:
    return hashlib.sha256(delivery_id.encode(errors="replace")).hexdigest()[:DIGEST_CHARS]
