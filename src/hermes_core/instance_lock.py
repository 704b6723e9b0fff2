"""Being the only process of a kind for a folder: a lock that ends with the process.

Those who only look whether anybody has it share it for a moment, and keep nobody out.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from typing import TYPE_CHECKING, Final

from hermes_core.paths import FILE_MODE, private_folder

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TRIES: Final = 20
PAUSE_SECONDS: Final = 0.05


@contextlib.contextmanager
def held(path: Path) -> Iterator[bool]:
    """Be the one; False when another process is."""
    private_folder(path.parent)
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, FILE_MODE)
    try:
        yield _locked_soon(handle)
    finally:
        os.close(handle)


def is_held(path: Path) -> bool:
    """Whether a living process is the one."""
    try:
        handle = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return not _lock(handle, fcntl.LOCK_SH)
    finally:
        os.close(handle)


def _locked_soon(handle: int) -> bool:
    """Take the lock, past those who only look."""
    for _ in range(TRIES):
        if _lock(handle, fcntl.LOCK_EX):
            return True
        if not _lock(handle, fcntl.LOCK_SH):
            return False  # somebody is it
        fcntl.flock(handle, fcntl.LOCK_UN)
        time.sleep(PAUSE_SECONDS)
    return False


def _lock(handle: int, kind: int) -> bool:
    try:
        fcntl.flock(handle, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
