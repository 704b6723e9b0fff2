"""Upkeep at a pace that lets others through.

Whoever waits for SQLite's write lock looks again after 1, 2, 5, 10, 15, 20, 25 ms and then
ever later, so a process that takes the lock again at once can keep others waiting for
seconds. After a slice of work comes a breath, as long as the pause of somebody who has
waited for no longer than a slice and a breath: nobody misses it.
"""

from __future__ import annotations

import time
from typing import Final

SLICE_SECONDS: Final = 0.025
BREATH_SECONDS: Final = 0.025


class Pace:
    """Counts the work done, and pauses when it is time."""

    def __init__(self) -> None:
        self._worked_seconds = 0.0

    def note(self, seconds: float) -> None:
        """So long was just worked; returns when the next piece of work may begin."""
        self._worked_seconds += seconds
        if self._worked_seconds >= SLICE_SECONDS:
            time.sleep(BREATH_SECONDS)
            self._worked_seconds = 0.0
