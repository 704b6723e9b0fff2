"""Retries around store calls, for a store that is locked or on a full disk for a while."""

from __future__ import annotations

import asyncio
import errno
import logging
import time
from typing import TYPE_CHECKING, Final, TypeVar

from hermes_core.errors import StatementError, StoreError, StoreUnreachableError

if TYPE_CHECKING:
    from collections.abc import Callable

    T = TypeVar("T")

log = logging.getLogger(__name__)

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
