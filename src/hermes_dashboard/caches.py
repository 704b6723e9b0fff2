"""Values that are expensive to find: kept for some seconds, or until their file changes."""

from __future__ import annotations

import os
import threading
import time
from typing import TYPE_CHECKING, Generic, TypeVar

from hermes_core import paths

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

T = TypeVar("T")
FileVersion = tuple[int, int, int]
MISSING: FileVersion = (0, 0, 0)


def file_version(path: Path) -> FileVersion:
    """The time, size and inode of a file; zeros if it does not exist or cannot be read."""
    try:
        status = os.stat(path)  # noqa: PTH116 - called for every request
    except OSError:
        return MISSING
    return status.st_mtime_ns, status.st_size, status.st_ino


def config_version() -> tuple[FileVersion, FileVersion]:
    """The versions of config.yaml and .env."""
    return file_version(paths.config_path()), file_version(paths.env_path())


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


class LatestValue(Generic[T]):
    """The value of the latest key, found again when the key changes."""

    def __init__(self) -> None:
        self._kept: tuple[object, T] | None = None

    def get(self, key: object, find: Callable[[], T]) -> T:
        """The value of *key*."""
        kept = self._kept
        if kept is None or kept[0] != key:
            kept = self._kept = (key, find())
        return kept[1]


class CachedFile(Generic[T]):
    """The parsed content of a small file, read again only after a change by any process."""

    def __init__(self, path: Path, read: Callable[[bytes], T], missing: T) -> None:
        self.path = path
        self._read = read
        self._missing = missing
        self._cached: tuple[FileVersion, T] | None = None

    def value(self) -> T:
        """The current content, or *missing* if there is no file."""
        try:
            version = file_version(self.path)
            if self._cached is None or self._cached[0] != version:
                self._cached = (version, self._read(self.path.read_bytes()))
        except FileNotFoundError:
            return self._missing
        return self._cached[1]
