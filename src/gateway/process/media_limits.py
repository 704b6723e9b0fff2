"""Limits of the media folder: files are deleted when they are old, or when it is too large.

A message whose picture was deleted stays; the model and the pages say that it is gone.
"""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from hermes_core.config.file import Settings

SENT_SECONDS: Final = 7 * 86400.0  # copies for sending
MIN_AGE_SECONDS: Final = 86400.0  # of files that are deleted to make room
TARGET_SHARE: Final = 0.9  # of the limit
CHECK_SECONDS: Final = 3600.0
SENT_FOLDER: Final = "sent"


class MediaLimits(NamedTuple):
    """The limits; 0 means none."""

    max_bytes: int
    keep_seconds: float

    @classmethod
    def of(cls, settings: Settings) -> MediaLimits:
        """The limits of the settings."""
        return cls(
            settings.get_int("media.max_mb") * 1024**2, settings.get_int("media.keep_days") * 86400
        )


class MediaFile(NamedTuple):
    """A file in the folder."""

    modified_at: float
    size: int
    path: Path


class MediaPruning:
    """Deletes files from time to time."""

    def __init__(
        self, folder: Path, limits: MediaLimits, clock: Callable[[], float] = time.time
    ) -> None:
        self._folder = folder
        self._limits = limits
        self._clock = clock
        self._next_at = 0.0

    def run_if_due(self) -> int:
        """Delete files once an hour; how many."""
        now = self._clock()
        if self._next_at - CHECK_SECONDS <= now < self._next_at:
            return 0
        self._next_at = now + CHECK_SECONDS
        return prune(self._folder, self._limits, now)


def prune(folder: Path, limits: MediaLimits, now: float) -> int:
    """Delete what exceeds the limits, the oldest files first; how many."""
    sent = _files(folder, f"{SENT_FOLDER}/*/*")
    expired = [file for file in sent if now - file.modified_at > SENT_SECONDS]
    stored = sorted(_files(folder, "??/*"))
    if limits.keep_seconds:
        expired += [file for file in stored if now - file.modified_at > limits.keep_seconds]
    kept = [file for file in stored if file not in set(expired)]
    excess = sum(file.size for file in kept) - limits.max_bytes if limits.max_bytes else 0
    if excess > 0:
        expired += _oldest(kept, excess + limits.max_bytes * (1 - TARGET_SHARE), now)
    for file in expired:
        file.path.unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # other files are in it
            file.path.parent.rmdir()
    return len(expired)


def _oldest(files: list[MediaFile], size: float, now: float) -> Iterator[MediaFile]:
    """The oldest files that have this size together; no new ones."""
    for file in files:
        if size <= 0 or now - file.modified_at < MIN_AGE_SECONDS:
            return
        size -= file.size
        yield file


def _files(folder: Path, pattern: str) -> Iterator[MediaFile]:
    for path in folder.glob(pattern):
        with contextlib.suppress(FileNotFoundError):
            facts = path.stat()
            yield MediaFile(facts.st_mtime, facts.st_size, path)
