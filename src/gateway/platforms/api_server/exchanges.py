"""Requests that wait for their answers: one at a time is active in a session.

Other requests of the session wait, so each gets its own answer. Only requests that concern the
running turn are handled beside it: commands like /stop, and answers to a question of the agent.
They are answered with a note or with the turn.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from typing import TYPE_CHECKING, Final, NamedTuple, cast

from hermes_conversation.slash_commands import ChatRule, names_with
from hermes_core.json_values import list_in, number_in, object_in, text_in

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from gateway.platforms.base import Memory
    from hermes_core.json_values import JsonObject
    from hermes_state.delivery.rows import StoredFailure, StoredUsage

MAX_ANSWERS: Final = 500
INDEX_KEY: Final = "answers"


class Answer(NamedTuple):
    """The answer to a request."""

    text: str
    usage: StoredUsage | None = None  # of all model requests of the turn
    failure: StoredFailure | None = None  # why there is no answer; the text describes it
    problem: str = ""  # why the answer is not complete: a value of AnswerProblem


class StoredAnswer(NamedTuple):
    """The stored answer of a request."""

    token: str  # of the request
    chat_id: str
    text: str
    digest: str = ""  # of the request; empty if it is from before a restart
    created: int = 0
    usage: StoredUsage | None = None
    failure: StoredFailure | None = None
    problem: str = ""

    def with_facts(self, answer: Answer) -> StoredAnswer:
        """The answer with what a program wants to know about it."""
        return self._replace(usage=answer.usage, failure=answer.failure, problem=answer.problem)

    @property
    def answer(self) -> Answer:
        """The answer itself."""
        return Answer(self.text, self.usage, self.failure, self.problem)


class AnswerCache:
    """A ring buffer of answers in the adapter memory."""

    def __init__(self, memory: Memory, max_answers: int = MAX_ANSWERS) -> None:
        self._memory = memory
        self._max_answers = max_answers
        self._turn = asyncio.Lock()
        self._slots: list[str] | None = None  # the tokens
        self._next = 0

    async def keep(self, stored: StoredAnswer) -> None:
        """Store an answer; it replaces that of the same request, else the oldest."""
        async with self._turn:
            slots = await self._known()
            slot = (
                slots.index(stored.token)
                if stored.token in slots
                else self._next % self._max_answers
            )
            facts = {**stored._asdict(), "created": stored.created or int(time.time())}
            await self._memory.keep(f"answer:{slot}", json.dumps(facts))
            if stored.token in slots:
                return
            slots[slot : slot + 1] = [stored.token]
            self._next = slot + 1
            await self._memory.keep(INDEX_KEY, json.dumps({"slots": slots, "next": self._next}))

    async def find(self, token: str) -> StoredAnswer | None:
        """The stored answer of a request."""
        async with self._turn:
            slots = await self._known()
            if token not in slots:
                return None
            result = _read(await self._memory.recall(f"answer:{slots.index(token)}"))
        # After a crash the slot may already hold another answer.
        return _answer(result) if result.get("token") == token else None

    async def _known(self) -> list[str]:
        if self._slots is None:
            result = _read(await self._memory.recall(INDEX_KEY))
            self._slots = [str(item) for item in list_in(result, "slots")][: self._max_answers]
            self._next = number_in(result, "next")
        return self._slots


def _answer(fields: JsonObject) -> StoredAnswer:
    return StoredAnswer(
        token=text_in(fields, "token"),
        chat_id=text_in(fields, "chat_id"),
        text=text_in(fields, "text"),
        digest=text_in(fields, "digest"),
        created=number_in(fields, "created"),
        usage=cast("StoredUsage | None", object_in(fields, "usage") or None),
        failure=cast("StoredFailure | None", object_in(fields, "failure") or None),
        problem=text_in(fields, "problem"),
    )


def _read(text: str | None) -> JsonObject:
    data = json.loads(text) if text else {}
    return data if isinstance(data, dict) else {}


KEEP_ALIVE_SECONDS: Final = 15.0  # between keep-alive comments of a stream
RUNNING_TURN_COMMANDS: Final = names_with(ChatRule.DURING_TURN)


class StoppingError(Exception):
    """The gateway is stopping; the request is answered after its next start."""


class AnswerTimeoutError(Exception):
    """The answer is not ready in time; it is stored when it arrives."""


class Exchange:
    """A request and its answer so far; several clients may wait for it."""

    def __init__(self, token: str, chat_id: str, digest: str) -> None:
        self.token = token
        self.chat_id = chat_id
        self.digest = digest  # of the request
        self.created = int(time.time())
        self._since = time.monotonic()
        self.answer: Answer | None = None
        self.is_asking = False  # the answer is a question of the agent: the turn continues
        self.finished = asyncio.Event()
        self._is_stopping = False
        self._earlier = self._text = ""
        self._changed = asyncio.Event()

    @property
    def written(self) -> str:
        """The text so far."""
        return self._earlier + self._text

    def grow(self, earlier: str, text: str) -> None:
        """Extend the answer."""
        if self.answer is None and (earlier + text).startswith(self.written):
            self._earlier, self._text = earlier, text
            self._notify()

    def text_with(self, answer: str) -> str:
        """All text that a stream has when it ends with an answer."""
        if answer.startswith(self._text):
            return self._earlier + answer
        return f"{self.written}\n\n{answer}"

    def settle(self, answer: Answer, *, is_asking: bool = False) -> None:
        """Set the answer, or a question that has to be answered first."""
        if answer.failure is None:
            if not answer.text.startswith(self._text):  # streamed text cannot be retracted
                self._earlier = f"{self.written}\n\n"
            self._text = answer.text
        self.answer = answer
        self.is_asking = is_asking
        if not is_asking:
            self.finished.set()
        self._notify()

    def cancel(self) -> None:
        """Cancel: the gateway is stopping."""
        self._is_stopping = True
        self.finished.set()
        self._notify()

    def _notify(self) -> None:
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    async def pieces(self, seconds: float) -> AsyncIterator[str]:
        """The parts of the answer as they are written; an empty one as a keep-alive."""
        end, stored = time.monotonic() + seconds, 0
        while True:
            changed, text = self._changed, self.written
            is_over = self.answer is not None
            if len(text) > stored:
                yield text[stored:]
                stored = len(text)
            if is_over:
                return
            await self._wait(changed, end)
            if not changed.is_set():
                yield ""

    async def _wait(self, changed: asyncio.Event, end: float) -> None:
        left = end - time.monotonic()
        if self._is_stopping:
            raise StoppingError
        if left <= 0:
            raise AnswerTimeoutError
        try:
            async with asyncio.timeout(min(KEEP_ALIVE_SECONDS, left)):
                await changed.wait()
        except TimeoutError:
            return

    async def over(self, seconds: float) -> bool:
        """Wait until it is finished, at max_answers *seconds* since its start."""
        left = self._since + seconds - time.monotonic()
        try:
            async with asyncio.timeout(max(left, 0)):
                await self.finished.wait()
        except TimeoutError:
            return False
        return True

    async def answered(self, seconds: float) -> Answer:
        """The complete answer."""
        async for _piece in self.pieces(seconds):
            continue
        return self.answer or Answer("")

    async def begun(self, seconds: float) -> None:
        """Wait for the first text or the answer, at most *seconds*."""
        end = time.monotonic() + seconds
        with contextlib.suppress(AnswerTimeoutError):
            while self.answer is None and not self.written:
                await self._wait(self._changed, end)


class Exchanges:
    """The waiting requests, by token and by session."""

    def __init__(self) -> None:
        self._all: dict[str, Exchange] = {}
        self._active: dict[str, Exchange] = {}
        self._beside: dict[str, list[Exchange]] = {}
        self._is_stopping = False

    def find(self, token: str) -> Exchange | None:
        """The waiting request of a token."""
        return self._all.get(token)

    async def open(self, exchange: Exchange, command: str | None, seconds: float) -> Exchange:
        """Make a request active in its session or place it beside the active one.

        The result is the earlier exchange of the same token, if any. An active request that is not
        answered in *seconds* is dropped.
        """
        chat = exchange.chat_id
        known = self._all.setdefault(exchange.token, exchange)
        if known is not exchange:
            return known
        while not self._is_stopping and (active := self._active.get(chat)) is not None:
            if active.is_asking or command in RUNNING_TURN_COMMANDS:
                self._beside.setdefault(chat, []).append(exchange)
                return exchange
            if not await active.over(seconds):
                self.drop(active)
        if self._is_stopping:
            raise StoppingError
        self._active[chat] = exchange
        return exchange

    def drop(self, exchange: Exchange) -> None:
        """Remove a request."""
        chat = exchange.chat_id
        self._all.pop(exchange.token, None)
        if self._active.get(chat) is exchange:
            del self._active[chat]
        beside = [item for item in self._beside.pop(chat, []) if item is not exchange]
        if beside:
            self._beside[chat] = beside
        exchange.finished.set()

    def grow(self, token: str, earlier: str, text: str) -> None:
        """Extend the answer of a request."""
        exchange = self._all.get(token)
        if exchange is not None:
            exchange.grow(earlier, text)

    def answered_by(self, token: str) -> list[Exchange]:
        """The requests that an answer settles: its own, and those beside it."""
        exchange = self._all.get(token)
        if exchange is None:
            return []
        is_active = self._active.get(exchange.chat_id) is exchange
        return [exchange, *(self._beside.get(exchange.chat_id, []) if is_active else [])]

    def reached_by_note(self, chat_id: str) -> Exchange | None:
        """The request that a message without a request ID answers."""
        beside = self._beside.get(chat_id)
        return beside[0] if beside else self._active.get(chat_id)

    def settle(self, exchange: Exchange, answer: Answer, *, is_note: bool = False) -> None:
        """Settle a request; a note to the active request is a question of its turn."""
        is_asking = is_note and self._active.get(exchange.chat_id) is exchange
        exchange.settle(answer, is_asking=is_asking)
        if not is_asking:
            self.drop(exchange)

    def cancel(self) -> None:
        """Cancel all requests: the gateway is stopping."""
        self._is_stopping = True
        for item in list(self._all.values()):
            item.cancel()
            self.drop(item)
