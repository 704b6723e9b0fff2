"""Time as an argument: whoever needs the time is given a clock."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """Where the time comes from."""

    def now(self) -> float:
        """Unix seconds; may jump when somebody sets the clock."""
        ...

    def monotonic(self) -> float:
        """Seconds since boot; never goes backwards, shared by all processes of one boot."""
        ...


class SystemClock:
    """The machine's own clocks."""

    def now(self) -> float:
        """The wall clock."""
        return time.time()

    def monotonic(self) -> float:
        """The clock that counts from boot."""
        return time.monotonic()


class ManualClock:
    """A clock that moves when told to: for tests and replays."""

    def __init__(self, now: float = 1_750_000_000.0, monotonic: float = 1000.0) -> None:
        self._now = now
        self._monotonic = monotonic

    def now(self) -> float:
        """The wall clock, as told."""
        return self._now

    def monotonic(self) -> float:
        """The clock that never goes back, as told."""
        return self._monotonic

    def advance(self, seconds: float) -> None:
        """Let time pass on both clocks."""
        self._now += seconds
        self._monotonic += seconds

    def set(self, now: float) -> None:
        """Set the wall clock to a moment; real time does not pass."""
        self._now = now

    def jump(self, seconds: float) -> None:
        """Set the wall clock forwards or backwards; real time does not pass."""
        self._now += seconds
