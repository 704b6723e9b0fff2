"""Exponential backoff: how long to wait before the next attempt."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import random


class Backoff(NamedTuple):
    """Delays that grow by *factor* with each failure in a row, up to *max_seconds*."""

    first_seconds: float
    max_seconds: float
    factor: float = 2.0

    def delay(self, failures: int) -> float:
        """Seconds to wait after the given number of failures in a row; the first is 1."""
        steps = min(max(failures, 1) - 1, 64)  # beyond that every delay has reached its maximum
        return min(self.max_seconds, self.first_seconds * self.factor**steps)

    def jittered(self, failures: int, source: random.Random) -> float:
        """The same delay, shortened by up to a half, so that clients do not retry in step."""
        return self.delay(failures) * (0.5 + source.random() / 2)
