"""How often a password may be guessed."""

from __future__ import annotations

import threading
from collections import deque
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from hermes_core.clock import Clock

WINDOW_SECONDS: Final = 60.0
MOST: Final = 5  # failures of one address in the window
MOST_TOGETHER: Final = 50  # of all addresses
EVERYBODY: Final = ""


class Rates:
    """Failures in the last minute, by address. A try counts as one until it has succeeded."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._tries: dict[str, deque[float]] = {}
        self._lock = threading.Lock()

    def begin(self, address: str) -> float:
        """Note a try; 0, or how many seconds to wait before one is allowed."""
        with self._lock:
            now = self._clock.monotonic()
            self._forget(now)
            for name, most in ((address, MOST), (EVERYBODY, MOST_TOGETHER)):
                tries = self._tries.get(name, deque())
                if len(tries) >= most:
                    return max(tries[0] + WINDOW_SECONDS - now, 1.0)
            for name in (address, EVERYBODY):
                self._tries.setdefault(name, deque()).append(now)
            return 0.0

    def succeed(self, address: str) -> None:
        """The try was right: nothing is held against the address any more."""
        with self._lock:
            forgiven = len(self._tries.pop(address, ()))
            together = self._tries.get(EVERYBODY, deque())
            for _ in range(min(forgiven, len(together))):
                together.pop()

    def _forget(self, now: float) -> None:
        for name in list(self._tries):
            tries = self._tries[name]
            while tries and tries[0] <= now - WINDOW_SECONDS:
                tries.popleft()
            if not tries:
                del self._tries[name]
