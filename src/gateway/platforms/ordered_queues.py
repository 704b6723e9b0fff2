"""Work that is done in order within a line, and side by side in different lines.

A platform has a line for each of its channels. What fails is tried again, with backoff, and
whatever stands behind it waits; other channels go on. A line has an end: what comes when it is
full is not kept in memory, and has to be fetched from the platform when its turn has come.
"""

from __future__ import annotations

import asyncio
import functools
import logging
from collections import deque
from typing import TYPE_CHECKING, Final

from aiohttp import ClientError

from gateway.platforms.reconnect import RECONNECT, ReconnectDelay
from hermes_core.errors import HermesError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from hermes_core.backoff import Backoff

    Job = Callable[[], Awaitable[None]]

log = logging.getLogger(__name__)

MOST_WAITING: Final = 500  # in a line
MOST_IN_ALL: Final = 20  # lines that may be full


class Lines:
    """Lines of work; one that is empty costs nothing."""

    def __init__(self, label: str, backoff: Backoff = RECONNECT, most: int = MOST_WAITING) -> None:
        self._label = label
        self._backoff = backoff
        self._most = most
        self._waiting: dict[str, deque[Job]] = {}
        self._workers: dict[str, asyncio.Task[None]] = {}
        self._full: set[str] = set()  # lines that end with catching up
        self._count = 0

    def add(self, name: str, job: Job, catch_up: Job) -> None:
        """Do something behind everything else in a line.

        What a full line does not take is left out, and *catch_up* is done at its end: once,
        in the place of all that was left out.
        """
        if name in self._full:
            return
        line = self._waiting.setdefault(name, deque())
        if len(line) >= self._most or self._count >= self._most * MOST_IN_ALL:
            log.warning("%s: too much waits in %s; the rest is fetched later", self._label, name)
            self._full.add(name)
            job = _CatchUp(functools.partial(self._full.discard, name), catch_up)
        line.append(job)
        self._count += 1
        if name not in self._workers:
            self._start(name)

    def is_waiting(self, name: str) -> bool:
        """Whether something stands behind what is being done in a line."""
        return len(self._waiting.get(name, ())) > 1

    def __len__(self) -> int:
        return self._count

    async def close(self) -> None:
        """Stop; what was not finished is dropped."""
        workers = list(self._workers.values())
        self._waiting.clear()
        self._full.clear()
        self._count = 0
        for task in workers:
            task.cancel()
        if workers:
            await asyncio.wait(workers)

    def _start(self, name: str) -> None:
        task = asyncio.create_task(self._work(self._waiting[name]))
        self._workers[name] = task
        task.add_done_callback(functools.partial(self._ended, name))

    async def _work(self, waiting: deque[Job]) -> None:
        while waiting:
            await self._done(waiting[0])
            self._remove_first(waiting)

    def _remove_first(self, waiting: deque[Job]) -> None:
        waiting.popleft()
        self._count -= 1

    async def _done(self, job: Job) -> None:
        delay = ReconnectDelay(self._backoff)
        while True:
            try:
                return await job()
            except (ClientError, HermesError, OSError, TimeoutError) as error:
                pause = delay.next_delay()
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
            self._remove_first(waiting)
        if waiting:
            self._start(name)
        else:
            del self._waiting[name]


class _CatchUp:
    """A job; before its first try the line takes again what may come too late to be fetched."""

    def __init__(self, take_again: Callable[[], None], job: Job) -> None:
        self._take_again: Callable[[], None] | None = take_again
        self._job = job

    async def __call__(self) -> None:
        if self._take_again is not None:
            self._take_again()
        self._take_again = None
        await self._job()
