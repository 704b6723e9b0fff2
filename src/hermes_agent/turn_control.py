"""Controls of a running turn: steering input, and cancellation."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable


class Steered(NamedTuple):
    """Something said to a turn; with an identity, where it is kept elsewhere, too."""

    text: str
    uid: str | None = None


class Steering:
    """What waits, in the order in which it was said."""

    def __init__(self) -> None:
        self._waiting: list[Steered] = []
        self._lock = threading.Lock()

    def add(self, text: str, uid: str | None = None) -> None:
        """Say something."""
        with self._lock:
            self._waiting.append(Steered(text, uid))

    def texts(self) -> list[str]:
        """The texts that the turn has not read yet."""
        with self._lock:
            return [steered.text for steered in self._waiting]

    def take(self) -> list[Steered]:
        """All that waits; it is read now."""
        with self._lock:
            found, self._waiting = self._waiting, []
        return found


def in_words(steered: list[Steered]) -> str:
    """What was said, as one text."""
    return "\n\n".join(one.text for one in steered)


def identity(steered: list[Steered]) -> dict[str, Any]:
    """What the store is to know it by: the first identity, and the others as well."""
    uids = [one.uid for one in steered if one.uid]
    return {"uid": uids[0], "aliases": uids[1:]} if uids else {}


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
