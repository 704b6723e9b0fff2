"""Stopping a turn from outside: asked for once, seen everywhere, waited on by nobody."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class Cancel:
    """A request to stop. Whoever works looks at it; whoever waits registers a call."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self._lock = threading.Lock()
        self._calls: list[Callable[[], object]] = []
        self.reason = ""

    def request(self, reason: str = "interrupted") -> None:
        """Ask for a stop; what is registered is called once, in the asking thread."""
        with self._lock:
            if self._event.is_set():
                return
            self.reason = reason
            self._event.set()
            calls, self._calls = self._calls, []
        for call in calls:
            call()

    @property
    def is_requested(self) -> bool:
        """Whether somebody has asked for a stop."""
        return self._event.is_set()

    def wait(self, seconds: float) -> bool:
        """Sleep, unless or until a stop is asked for; whether one was."""
        return self._event.wait(seconds)

    def on_request(self, call: Callable[[], object]) -> Callable[[], None]:
        """Call *call* when a stop is asked for; the answer takes that back."""
        with self._lock:
            if not self._event.is_set():
                self._calls.append(call)
                return lambda: self._forget(call)
        call()
        return lambda: None

    def _forget(self, call: Callable[[], object]) -> None:
        with self._lock:
            if call in self._calls:
                self._calls.remove(call)
