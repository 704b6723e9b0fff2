"""A file lock that allows one instance of a process, released when the process ends.

A check whether the lock is held acquires it as shared for a moment, which does not prevent
another process from acquiring it.
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

MAX_LOCK_ATTEMPTS: Final = 20
RETRY_SECONDS: Final = 0.05


@contextlib.contextmanager
def hold_lock(path: Path) -> Iterator[bool]:
    """Try to acquire the lock for the context; yields whether it succeeded."""
    private_folder(path.parent)
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, FILE_MODE)
    try:
        yield _lock_exclusively(handle)
    finally:
        os.close(handle)


def is_lock_held(path: Path) -> bool:
    """Whether a running process holds the lock."""
    try:
        handle = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return not _try_lock(handle, fcntl.LOCK_SH)
    finally:
        os.close(handle)


def _lock_exclusively(handle: int) -> bool:
    """Acquire the lock exclusively, retrying while only checks hold it."""
    for _ in range(MAX_LOCK_ATTEMPTS):
        if _try_lock(handle, fcntl.LOCK_EX):
            return True
        if not _try_lock(handle, fcntl.LOCK_SH):
            return False  # held exclusively
        fcntl.flock(handle, fcntl.LOCK_UN)
        time.sleep(RETRY_SECONDS)
    return False


def _try_lock(handle: int, kind: int) -> bool:
    try:
        fcntl.flock(handle, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
