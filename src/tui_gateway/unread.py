"""What a person says while a turn runs, until somebody has read it.

Steering goes to the agent, which reads it behind the next tool result. What it has not read
when the turn is over, and what was meant for later, is said then, in its order.
"""

from __future__ import annotations

import threading
from collections import deque


class Unread:
    """Words that wait; used by the turn's thread and by those of requests."""

    def __init__(self) -> None:
        self._later: deque[str] = deque()
        self._instead = ""
        self._is_held = False
        self._lock = threading.Lock()

    def add(self, text: str) -> None:
        """To be said when the turn is over."""
        with self._lock:
            self._later.append(text)

    def hold(self, instead: str = "") -> None:
        """The turn is being stopped: nothing is said after it but what is to be said *instead*."""
        with self._lock:
            self._is_held = True
            self._instead = instead

    def after(self, steering: str, *, is_well: bool) -> tuple[str, str]:
        """After a turn: what is said next, and what goes back to the person instead.

        *steering* is what the agent was given and did not read.
        """
        with self._lock:
            waiting = [steering] if steering else []
            if is_well and not self._is_held:
                if not waiting and self._later:
                    waiting = [self._later.popleft()]
                return "\n\n".join(waiting), ""
            waiting += self._later
            self._later.clear()
            following, self._instead, self._is_held = self._instead, "", False
            return following, "\n\n".join(waiting)
