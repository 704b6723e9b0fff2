"""Reconnect delays of a platform: backoff that a stable connection resets."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from hermes_core.backoff import Backoff

if TYPE_CHECKING:
    from collections.abc import Callable

RECONNECT_BACKOFF: Final = Backoff(0.5, 60.0)
STABLE_SECONDS: Final = 30.0  # a connection that ends sooner counts as a failure
REFUSED_DELAY_FACTOR: Final = 5  # times the maximum delay, after the platform rejected the account


class ReconnectDelay:
    """Counts consecutive failures of one connection."""

    def __init__(
        self, backoff: Backoff = RECONNECT_BACKOFF, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._backoff = backoff
        self._clock = clock
        self._failures = 0
        self._connected_at: float | None = None

    def reset(self) -> None:
        """Start again with the first delay, after a success."""
        self._failures = 0

    @property
    def failures(self) -> int:
        """How many attempts in a row have failed."""
        return self._failures

    def connected(self) -> None:
        """Note a new connection; it counts as a success only once it is stable."""
        self._connected_at = self._clock()

    @property
    def is_stable(self) -> bool:
        """Whether the latest connection has lasted long enough."""
        start = self._connected_at
        return start is not None and self._clock() - start >= STABLE_SECONDS

    def next_delay(self, *, is_refused: bool = False) -> float:
        """Seconds to wait after one more failure."""
        if self.is_stable:
            self._failures = 0
        self._connected_at = None
        self._failures += 1
        if is_refused:
            return self._backoff.max_seconds * REFUSED_DELAY_FACTOR
        return self._backoff.delay(self._failures)
