"""The messages that are being handled: since when, and when each made progress."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable


class TurnTimes(NamedTuple):
    """How long the running turns take."""

    running: int = 0
    oldest_seconds: float = 0.0  # since the start of the longest
    silent_seconds: float = 0.0  # the longest time without progress
    hung: int = 0  # turns without progress beyond their deadline


class RunningTurns:
    """The running turns by inbox ID; used by several threads."""

    def __init__(
        self, hung_after_seconds: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._hung_after_seconds = hung_after_seconds  # 0 if turns have no deadline
        self._clock = clock
        self._lock = threading.Lock()
        self._times: dict[int, tuple[float, float]] = {}  # of the start and of the last progress

    def start(self, inbox_id: int) -> None:
        """Note the start of a turn."""
        with self._lock:
            self._times[inbox_id] = (self._clock(), self._clock())

    def progress(self, inbox_id: int) -> None:
        """Note progress."""
        with self._lock:
            if inbox_id in self._times:
                started_at, _ = self._times[inbox_id]
                self._times[inbox_id] = (started_at, self._clock())

    def end(self, inbox_id: int) -> None:
        """Note the end of a turn."""
        with self._lock:
            self._times.pop(inbox_id, None)

    def times(self) -> TurnTimes:
        """How long the turns take now."""
        now = self._clock()
        with self._lock:
            times = list(self._times.values())
        if not times:
            return TurnTimes()
        silences = [now - progress_at for _, progress_at in times]
        limit = self._hung_after_seconds
        hung = sum(silence > limit for silence in silences) if limit else 0
        return TurnTimes(
            len(times), now - min(started for started, _ in times), max(silences), hung
        )
