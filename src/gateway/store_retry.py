"""Writing to a store that refuses for a while: a full disk, another program's lock.

What has to be written before anything else may happen is written as soon as it can be.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import time
from typing import TYPE_CHECKING, Final, TypeVar

from hermes_core.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable

    T = TypeVar("T")

log = logging.getLogger(__name__)

TROUBLE: Final = (StoreError, OSError)
PAUSE_SECONDS: Final = 1.0
DISK: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS})


def is_trouble(error: BaseException) -> bool:
    """Whether it is the store or the disk that refuses, and no fault of what was to be done."""
    return isinstance(error, StoreError) or (isinstance(error, OSError) and error.errno in DISK)


async def asked(ask: Callable[[], T], what: str) -> T | None:
    """What the store answers, from another thread; None when it cannot, after a pause."""
    try:
        return await asyncio.to_thread(ask)
    except TROUBLE as error:
        log.warning("the store does not let us %s: %s", what, error)
        await asyncio.sleep(PAUSE_SECONDS)
        return None


async def written(write: Callable[[], object], what: str) -> None:
    """Write, from another thread, however long it takes."""
    while True:
        try:
            await asyncio.to_thread(write)
        except TROUBLE as error:
            log.warning("the store does not let us %s: %s; again", what, error)
            await asyncio.sleep(PAUSE_SECONDS)
        else:
            return


def write_at_last(write: Callable[[], object], what: str, is_over: Callable[[], bool]) -> None:
    """Write, in this thread, however long it takes; until nobody waits for it any more."""
    while not is_over():
        try:
            write()
        except TROUBLE as error:
            log.warning("the store does not let us %s: %s; again", what, error)
            time.sleep(PAUSE_SECONDS)
        else:
            return
