"""Work that is done in order within a line, and side by side in different lines.

A platform has a line for each of its channels. What fails is tried again, with pauses, and
whatever stands behind it waits; other channels go on.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict, deque
from typing import TYPE_CHECKING, Final

from aiohttp import ClientError

from hermes_core.errors import HermesError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Hashable

    Job = Callable[[], Awaitable[None]]

log = logging.getLogger(__name__)

PAUSES: Final = (0.5, 1.0, 2.0, 5.0, 15.0, 30.0, 60.0)
REMEMBERED: Final = 5000


class Lines:
    """Lines of work; one that is empty costs nothing."""

    def __init__(self, label: str, pauses: tuple[float, ...] = PAUSES) -> None:
        self._label = label
        self._pauses = pauses
        self._waiting: dict[str, deque[Job]] = {}
        self._workers: dict[str, asyncio.Task[None]] = {}

    def add(self, name: str, job: Job) -> None:
        """Do something behind everything else in a line."""
        self._waiting.setdefault(name, deque()).append(job)
        if name not in self._workers:
            self._start(name)

    def is_waiting(self, name: str) -> bool:
        """Whether something stands behind what is being done in a line."""
        return len(self._waiting.get(name, ())) > 1

    async def close(self) -> None:
        """Stop; what was not finished is dropped."""
        workers = list(self._workers.values())
        self._waiting.clear()
        for task in workers:
            task.cancel()
        if workers:
            await asyncio.wait(workers)

    def _start(self, name: str) -> None:
        task = asyncio.create_task(self._work(name))
        self._workers[name] = task
        task.add_done_callback(lambda ended: self._ended(name, ended))

    async def _work(self, name: str) -> None:
        waiting = self._waiting[name]
        while waiting:
            await self._done(waiting[0])
            waiting.popleft()

    async def _done(self, job: Job) -> None:
        failures = 0
        while True:
            try:
                return await job()
            except (ClientError, HermesError, OSError, TimeoutError) as error:
                pause = self._pauses[min(failures, len(self._pauses) - 1)]
                failures += 1
                reason = str(error) or type(error).__name__
                log.warning("%s: %s; the same again in %g s", self._label, reason, pause)
                await asyncio.sleep(pause)

    def _ended(self, name: str, task: asyncio.Task[None]) -> None:
        """A job that is broken is said and left out; it does not hold up a line for ever."""
        del self._workers[name]
        waiting = self._waiting.get(name)
        if task.cancelled() or waiting is None:
            return
        error = task.exception()
        if error is not None:
            log.error("%s: a message could not be read", self._label, exc_info=error)
            waiting.popleft()
        if waiting:
            self._start(name)
        else:
            del self._waiting[name]


class Recent:
    """The last few things that were done."""

    def __init__(self, limit: int = REMEMBERED) -> None:
        self._limit = limit
        self._known: OrderedDict[Hashable, str] = OrderedDict()

    def __contains__(self, thing: Hashable) -> bool:
        return thing in self._known

    def add(self, thing: Hashable, note: str = "") -> None:
        """Remember; the oldest is forgotten for it."""
        self._known[thing] = note
        self._known.move_to_end(thing)
        while len(self._known) > self._limit:
            self._known.popitem(last=False)

    def note_of(self, thing: Hashable) -> str | None:
        """What was noted about a thing."""
        return self._known.get(thing)
