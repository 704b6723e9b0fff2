"""Clocks, which are passed as arguments so that tests can control the time."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """Source of the time."""

    def now(self) -> float:
        """Unix time in seconds; may jump when the clock is set."""
        ...

    def monotonic(self) -> float:
        """Seconds since boot; never decreases, shared by all processes of a boot."""
        ...


class SystemClock:
    """The clocks of the system."""

    def now(self) -> float:
        """The wall clock."""
        return time.time()

    def monotonic(self) -> float:
        """The monotonic clock."""
        return time.monotonic()


class ManualClock:
    """A clock that is advanced explicitly, for tests and replays."""

    def __init__(self, now: float = 1_750_000_000.0, monotonic: float = 1000.0) -> None:
        self._now = now
        self._monotonic = monotonic

    def now(self) -> float:
        """The wall clock."""
        return self._now

    def monotonic(self) -> float:
        """The monotonic clock."""
        return self._monotonic

    def advance(self, seconds: float) -> None:
        """Advance both clocks."""
        self._now += seconds
        self._monotonic += seconds

    def set(self, now: float) -> None:
        """Set the wall clock; the monotonic clock does not change."""
        self._now = now

    def jump(self, seconds: float) -> None:
        """Move the wall clock forwards or backwards; the monotonic clock does not change."""
        self._now += seconds
