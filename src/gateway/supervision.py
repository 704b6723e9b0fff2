"""Supervised tasks, and calls of the store that are repeated until they succeed."""

from __future__ import annotations

import asyncio
import errno
import logging
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeVar

from hermes_core.backoff import Backoff
from hermes_core.errors import StatementError, StoreError, StoreUnreachableError
from hermes_core.isolate import Failure, attempt_async

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    T = TypeVar("T")


RETRIED_ERRORS: Final = (StoreError, OSError)
RETRY_SECONDS: Final = 1.0
DISK_ERRNOS: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS})


def is_store_failure(error: BaseException) -> bool:
    """Whether the store or the disk failed, as opposed to the work that was tried."""
    if isinstance(error, StoreError):
        return not isinstance(error, StatementError)
    return isinstance(error, OSError) and error.errno in DISK_ERRNOS


def _report(step: str, error: Exception) -> None:
    """Log a failure that is retried; the store itself reports a server that is lost."""
    level = logging.DEBUG if isinstance(error, StoreUnreachableError) else logging.WARNING
    log.log(level, "store unavailable during %s: %s; retrying", step, error)


async def read_or_none(read: Callable[[], T], step: str) -> T | None:
    """Read in another thread; None, after a pause, if the store fails."""
    try:
        return await asyncio.to_thread(read)
    except RETRIED_ERRORS as error:
        _report(step, error)
        await asyncio.sleep(RETRY_SECONDS)
        return None


async def write_with_retry(write: Callable[[], object], step: str) -> None:
    """Write in another thread; retry until it succeeds."""
    while True:
        try:
            await asyncio.to_thread(write)
        except RETRIED_ERRORS as error:
            _report(step, error)
            await asyncio.sleep(RETRY_SECONDS)
        else:
            return


def write_until_stopped(
    write: Callable[[], object], step: str, is_stopped: Callable[[], bool]
) -> None:
    """Write in this thread; retry until it succeeds or *is_stopped*."""
    while not is_stopped():
        try:
            write()
        except RETRIED_ERRORS as error:
            _report(step, error)
            time.sleep(RETRY_SECONDS)
        else:
            return


log = logging.getLogger(__name__)

RESTART_BACKOFF: Final = Backoff(0.5, 60.0)
STABLE_SECONDS: Final = 60.0  # a task that ran this long starts again with the first delay


@dataclass
class TaskRecord:
    """What is known about a supervised task."""

    name: str
    is_running: bool = False
    failures: int = 0  # since the start of the process
    last_error: str = ""
    failed_at: float | None = None
    is_platform: bool = False  # its problem is that of a platform

    @property
    def problem(self) -> str:
        """Why the task has stopped; empty while it runs."""
        return "" if self.is_running or not self.failures else f"{self.name}: {self.last_error}"


async def supervise(
    record: TaskRecord, run: Callable[[], Awaitable[None]], backoff: Backoff = RESTART_BACKOFF
) -> None:
    """Await *run* until it returns; after an exception it is called again."""
    failures = 0
    while True:
        record.is_running = True
        started_at = time.monotonic()
        result = await attempt_async(record.name, run())
        record.is_running = False
        if not isinstance(result, Failure):
            return
        failures = 1 if time.monotonic() - started_at >= STABLE_SECONDS else failures + 1
        record.failures += 1
        record.last_error = f"{type(result.error).__name__}: {result.error}"
        record.failed_at = time.time()
        pause = backoff.delay(failures)
        log.error("%s stopped; restarting in %g s", record.name, pause)
        await asyncio.sleep(pause)


class Supervisor:
    """The supervised tasks of a process."""

    def __init__(self, backoff: Backoff = RESTART_BACKOFF) -> None:
        self._backoff = backoff
        self.records: list[TaskRecord] = []

    def start(
        self, name: str, run: Callable[[], Awaitable[None]], *, is_platform: bool = False
    ) -> asyncio.Task[None]:
        """Start a task; it ends when *run* returns or the task is cancelled.

        Its record is the last of `records`.
        """
        record = TaskRecord(name, is_platform=is_platform)
        self.records.append(record)
        return asyncio.create_task(supervise(record, run, self._backoff), name=name)
