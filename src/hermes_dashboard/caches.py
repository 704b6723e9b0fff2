"""Values that are expensive to find: kept for some seconds, or until their file changes."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Generic, TypeVar

from hermes_core.config.version import config_version

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

T = TypeVar("T")


class CachedValue(Generic[T]):
    """A value that is found again after a change of the configuration, or after a while.

    Of several requests at the same time, one finds it and the others wait.
    """

    def __init__(self, find: Callable[[], T], seconds: float) -> None:
        self._find = find
        self._seconds = seconds
        self._lock = threading.Lock()
        self._kept: tuple[T, object, float] | None = None

    def get(self) -> T:
        """The value."""
        with self._lock:
            version, now = config_version(), time.monotonic()
            if self._kept is not None:
                value, of_version, at = self._kept
                if of_version == version and now - at < self._seconds:
                    return value
            value = self._find()
            self._kept = (value, version, time.monotonic())
            return value


class CachedFile(Generic[T]):
    """The parsed content of a small file, read again only after a change by any process."""

    def __init__(self, path: Path, read: Callable[[bytes], T], missing: T) -> None:
        self.path = path
        self._read = read
        self._missing = missing
        self._cached: tuple[tuple[int, int, int], T] | None = None

    def value(self) -> T:
        """The current content, or *missing* if there is no file."""
        try:
            stat = self.path.stat()
            signature = (stat.st_ino, stat.st_mtime_ns, stat.st_size)
            if self._cached is None or self._cached[0] != signature:
                self._cached = (signature, self._read(self.path.read_bytes()))
        except FileNotFoundError:
            return self._missing
        return self._cached[1]
