"""Answers that were given: kept over restarts for those who ask again, the latest few hundred."""

from __future__ import annotations

import asyncio
import json
import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from gateway.platforms.base import Memory

MOST: Final = 500
INDEX: Final = "answers"


class Given(NamedTuple):
    """An answer."""

    token: str  # of the request
    chat_id: str
    text: str
    digest: str = ""  # of what was asked; empty when that was before a restart
    created: int = 0


class Answers:
    """A ring in the adapter's memory; the oldest makes room for the newest."""

    def __init__(self, memory: Memory, most: int = MOST) -> None:
        self._memory = memory
        self._most = most
        self._turn = asyncio.Lock()
        self._slots: list[str] | None = None  # the tokens
        self._next = 0

    async def keep(self, given: Given) -> None:
        """Keep an answer in the place of the one before to the same request, or of the oldest."""
        async with self._turn:
            slots = await self._known()
            slot = slots.index(given.token) if given.token in slots else self._next % self._most
            facts = {**given._asdict(), "created": given.created or int(time.time())}
            await self._memory.keep(f"answer:{slot}", json.dumps(facts))
            if given.token in slots:
                return
            slots[slot : slot + 1] = [given.token]
            self._next = slot + 1
            await self._memory.keep(INDEX, json.dumps({"slots": slots, "next": self._next}))

    async def find(self, token: str) -> Given | None:
        """The answer to a request, if it is known still."""
        async with self._turn:
            slots = await self._known()
            if token not in slots:
                return None
            found = _read(await self._memory.recall(f"answer:{slots.index(token)}"))
        # A place that was given away right before a crash holds another answer already.
        return Given(**found) if found.get("token") == token else None

    async def _known(self) -> list[str]:
        if self._slots is None:
            found = _read(await self._memory.recall(INDEX))
            self._slots = [str(one) for one in found.get("slots", [])][: self._most]
            self._next = int(found.get("next", 0))
        return self._slots


def _read(text: str | None) -> dict[str, Any]:
    found = json.loads(text) if text else {}
    return found if isinstance(found, dict) else {}
