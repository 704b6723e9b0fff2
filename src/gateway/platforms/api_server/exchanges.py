"""Requests that wait for their answers: one at a time has the floor in a session.

Whatever else is said in a session meanwhile waits, so that each request gets an answer of its
own. Only what concerns the turn that runs goes beside it: commands like /stop, and answers to
what the agent has asked. It is answered with a note, or with the turn.
"""

from __future__ import annotations

import asyncio
import json
import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from gateway.platforms.base import Memory

MAX_ANSWERS: Final = 500
INDEX_KEY: Final = "answers"


class StoredAnswer(NamedTuple):
    """An answer."""

    token: str  # of the request
    chat_id: str
    text: str
    digest: str = ""  # of what was asked; empty when that was before a restart
    created: int = 0


class AnswerCache:
    """A ring in the adapter's memory; the oldest makes room for the newest."""

    def __init__(self, memory: Memory, most: int = MAX_ANSWERS) -> None:
        self._memory = memory
        self._most = most
        self._turn = asyncio.Lock()
        self._slots: list[str] | None = None  # the tokens
        self._next = 0

    async def keep(self, given: StoredAnswer) -> None:
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
            await self._memory.keep(INDEX_KEY, json.dumps({"slots": slots, "next": self._next}))

    async def find(self, token: str) -> StoredAnswer | None:
        """The answer to a request, if it is known still."""
        async with self._turn:
            slots = await self._known()
            if token not in slots:
                return None
            found = _read(await self._memory.recall(f"answer:{slots.index(token)}"))
        # A place that was given away right before a crash holds another answer already.
        return StoredAnswer(**found) if found.get("token") == token else None

    async def _known(self) -> list[str]:
        if self._slots is None:
            found = _read(await self._memory.recall(INDEX_KEY))
            self._slots = [str(one) for one in found.get("slots", [])][: self._most]
            self._next = int(found.get("next", 0))
        return self._slots


def _read(text: str | None) -> dict[str, Any]:
    found = json.loads(text) if text else {}
    return found if isinstance(found, dict) else {}


KEEP_ALIVE_SECONDS: Final = 15.0  # how long a stream stays silent before it shows that it lives
RUNNING_TURN_COMMANDS: Final = frozenset({"approve", "deny", "stop", "steer", "status", "usage"})


class StoppingError(Exception):
    """The gateway leaves; what was asked is kept and answered after its next start."""


class AnswerTimeoutError(Exception):
    """The answer takes longer than a request may wait; it is kept when it comes."""


class Exchange:
    """A request, and what there is of its answer; any number of clients may wait for it."""

    def __init__(self, token: str, chat_id: str, digest: str) -> None:
        self.token = token
        self.chat_id = chat_id
        self.digest = digest  # of what was asked
        self.created = int(time.time())
        self._since = time.monotonic()
        self.answer: str | None = None
        self.is_asking = False  # the answer is a question of the agent's: the turn goes on
        self.finished = asyncio.Event()
        self._is_left = False
        self._earlier = self._text = ""
        self._pulse = asyncio.Event()

    @property
    def written(self) -> str:
        """Everything that was written so far."""
        return self._earlier + self._text

    def grow(self, earlier: str, text: str) -> None:
        """More of the answer."""
        if self.answer is None and (earlier + text).startswith(self.written):
            self._earlier, self._text = earlier, text
            self._beat()

    def settle(self, text: str, *, is_asking: bool = False) -> None:
        """The answer is there, or a question that has to be answered first."""
        if not text.startswith(self._text):  # what was streamed cannot be taken back
            self._earlier = f"{self.written}\n\n"
        self._text = self.answer = text
        self.is_asking = is_asking
        if not is_asking:
            self.finished.set()
        self._beat()

    def leave(self) -> None:
        """Nobody will answer here."""
        self._is_left = True
        self.finished.set()
        self._beat()

    def _beat(self) -> None:
        pulse, self._pulse = self._pulse, asyncio.Event()
        pulse.set()

    async def pieces(self, seconds: float) -> AsyncIterator[str]:
        """The answer piece by piece as it is written; an empty one when nothing was for long."""
        end, given = time.monotonic() + seconds, 0
        while True:
            pulse, text = self._pulse, self.written
            is_over = self.answer is not None
            if len(text) > given:
                yield text[given:]
                given = len(text)
            if is_over:
                return
            await self._wait(pulse, end)
            if not pulse.is_set():
                yield ""

    async def _wait(self, pulse: asyncio.Event, end: float) -> None:
        left = end - time.monotonic()
        if self._is_left:
            raise StoppingError
        if left <= 0:
            raise AnswerTimeoutError
        try:
            await asyncio.wait_for(pulse.wait(), min(KEEP_ALIVE_SECONDS, left))
        except TimeoutError:
            return

    async def over(self, seconds: float) -> bool:
        """Wait until it is finished, but not longer than *seconds* since it was begun."""
        left = self._since + seconds - time.monotonic()
        try:
            await asyncio.wait_for(self.finished.wait(), max(left, 0))
        except TimeoutError:
            return False
        return True

    async def answered(self, seconds: float) -> str:
        """The answer, when it is whole."""
        async for _piece in self.pieces(seconds):
            continue
        return self.answer or ""


class Exchanges:
    """Those that wait, by their tokens and by their sessions."""

    def __init__(self) -> None:
        self._all: dict[str, Exchange] = {}
        self._floor: dict[str, Exchange] = {}
        self._beside: dict[str, list[Exchange]] = {}
        self._is_left = False

    def find(self, token: str) -> Exchange | None:
        """One that is under way."""
        return self._all.get(token)

    async def open(self, exchange: Exchange, command: str | None, seconds: float) -> Exchange:
        """Take the floor of a session, or a place beside who has it; the one under way if it is.

        One that is not answered in *seconds* loses the floor.
        """
        chat = exchange.chat_id
        known = self._all.setdefault(exchange.token, exchange)
        if known is not exchange:
            return known
        while not self._is_left and (floor := self._floor.get(chat)) is not None:
            if floor.is_asking or command in RUNNING_TURN_COMMANDS:
                self._beside.setdefault(chat, []).append(exchange)
                return exchange
            if not await floor.over(seconds):
                self.drop(floor)
        if self._is_left:
            raise StoppingError
        self._floor[chat] = exchange
        return exchange

    def drop(self, exchange: Exchange) -> None:
        """Nothing more is expected of one."""
        chat = exchange.chat_id
        self._all.pop(exchange.token, None)
        if self._floor.get(chat) is exchange:
            del self._floor[chat]
        beside = [one for one in self._beside.pop(chat, []) if one is not exchange]
        if beside:
            self._beside[chat] = beside
        exchange.finished.set()

    def grow(self, token: str, earlier: str, text: str) -> None:
        """More of an answer is written."""
        exchange = self._all.get(token)
        if exchange is not None:
            exchange.grow(earlier, text)

    def answered_by(self, token: str) -> list[Exchange]:
        """Those that the answer to a request answers: itself, and what stands beside it."""
        exchange = self._all.get(token)
        if exchange is None:
            return []
        has_the_floor = self._floor.get(exchange.chat_id) is exchange
        return [exchange, *(self._beside.get(exchange.chat_id, []) if has_the_floor else [])]

    def reached_by_note(self, chat_id: str) -> Exchange | None:
        """Whom something reaches that is said in a session and answers nobody by name."""
        beside = self._beside.get(chat_id)
        return beside[0] if beside else self._floor.get(chat_id)

    def settle(self, exchange: Exchange, text: str, *, is_note: bool = False) -> None:
        """A request is answered; a note to who has the floor is a question of its turn."""
        is_asking = is_note and self._floor.get(exchange.chat_id) is exchange
        exchange.settle(text, is_asking=is_asking)
        if not is_asking:
            self.drop(exchange)

    def leave(self) -> None:
        """The gateway leaves: nobody waits any longer."""
        self._is_left = True
        for one in list(self._all.values()):
            one.leave()
            self.drop(one)
