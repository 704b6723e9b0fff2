"""Ordered job queues: in order within a queue, concurrent between queues.

A platform has a queue per channel. A failed job is retried with backoff and blocks its queue
only. Queues are bounded: jobs that do not fit are replaced by one catch-up job, which fetches
the missed messages from the platform.
"""

from __future__ import annotations

import asyncio
import functools
import logging
from collections import deque
from typing import TYPE_CHECKING, Final

from gateway.platforms.reconnect import RECONNECT_BACKOFF, ReconnectDelay
from hermes_core.errors import HermesError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from hermes_core.backoff import Backoff

    Job = Callable[[], Awaitable[None]]

log = logging.getLogger(__name__)

MAX_QUEUED_JOBS: Final = 500  # per queue
MAX_FULL_QUEUES: Final = 20  # bounds the total


class OrderedQueues:
    """Job queues by name; an empty one uses no resources."""

    def __init__(
        self,
        label: str,
        backoff: Backoff = RECONNECT_BACKOFF,
        max_jobs: int = MAX_QUEUED_JOBS,
        request_errors: tuple[type[Exception], ...] = (),
    ) -> None:
        self._label = label
        self._backoff = backoff
        self._max_jobs = max_jobs
        # A job that fails with one of these is tried again; request errors are the library's.
        self._retried_errors: tuple[type[Exception], ...] = (
            HermesError,
            OSError,
            TimeoutError,
            *request_errors,
        )
        self._waiting: dict[str, deque[Job]] = {}
        self._workers: dict[str, asyncio.Task[None]] = {}
        self._full: set[str] = set()  # queues that end with a catch-up job
        self._count = 0

    def add(self, name: str, job: Job, catch_up: Job) -> None:
        """Append a job to a queue.

        If the queue is full, the job is dropped and *catch_up* is appended once instead.
        """
        if name in self._full:
            return
        queue = self._waiting.setdefault(name, deque())
        if len(queue) >= self._max_jobs or self._count >= self._max_jobs * MAX_FULL_QUEUES:
            log.warning(
                "%s queue is full: %s; remaining messages are fetched later", self._label, name
            )
            self._full.add(name)
            job = _CatchUp(functools.partial(self._full.discard, name), catch_up)
        queue.append(job)
        self._count += 1
        if name not in self._workers:
            self._start(name)

    def is_waiting(self, name: str) -> bool:
        """Whether a job waits behind the running one."""
        return len(self._waiting.get(name, ())) > 1

    def __len__(self) -> int:
        return self._count

    async def close(self) -> None:
        """Stop; unfinished jobs are dropped."""
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
            await self._run_with_retry(waiting[0])
            self._pop(waiting)

    def _pop(self, waiting: deque[Job]) -> None:
        waiting.popleft()
        self._count -= 1

    async def _run_with_retry(self, job: Job) -> None:
        delay = ReconnectDelay(self._backoff)
        while True:
            try:
                return await job()
            except self._retried_errors as error:
                pause = delay.next_delay()
                reason = str(error) or type(error).__name__
                log.warning(
                    "%s message not handled: %s; retrying in %g s", self._label, reason, pause
                )
                await asyncio.sleep(pause)

    def _ended(self, name: str, task: asyncio.Task[None]) -> None:
        """Log and drop a job that raised an unexpected error, and continue with the next."""
        del self._workers[name]
        waiting = self._waiting.get(name)
        if task.cancelled() or waiting is None:
            return
        error = task.exception()
        if error is not None:
            log.error("%s message is unreadable", self._label, exc_info=error)
            self._pop(waiting)
        if waiting:
            self._start(name)
        else:
            del self._waiting[name]


class _CatchUp:
    """A job that reopens its full queue before its first attempt.

    Later jobs may arrive after the fetch, so they have to be queued again.
    """

    def __init__(self, reopen: Callable[[], None], job: Job) -> None:
        self._reopen: Callable[[], None] | None = reopen
        self._job = job

    async def __call__(self) -> None:
        if self._reopen is not None:
            self._reopen()
        self._reopen = None
        await self._job()
