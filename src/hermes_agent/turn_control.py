"""Controls of a running turn: steering input, and cancellation."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, NamedTuple, TypedDict

if TYPE_CHECKING:
    from collections.abc import Callable


class SteeringInput(NamedTuple):
    """Input for a running turn; *uid* is set if it is stored elsewhere too."""

    text: str
    uid: str | None = None


class Steering:
    """A queue of steering input."""

    def __init__(self) -> None:
        self._pending: list[SteeringInput] = []
        self._known_uids: set[str] = set()
        self._lock = threading.Lock()

    def add(self, text: str, uid: str | None = None) -> None:
        """Queue an input, unless one with its uid was queued before."""
        with self._lock:
            if uid is not None:
                if uid in self._known_uids:
                    return
                self._known_uids.add(uid)
            self._pending.append(SteeringInput(text, uid))

    def texts(self) -> list[str]:
        """The texts that the turn has not read yet."""
        with self._lock:
            return [steered.text for steered in self._pending]

    def discard(self, uid: str) -> None:
        """Remove an input that the turn has not read."""
        with self._lock:
            self._pending = [steered for steered in self._pending if steered.uid != uid]

    def pop_all(self) -> list[SteeringInput]:
        """Remove and return all input."""
        with self._lock:
            pending, self._pending = self._pending, []
        return pending


def join_texts(inputs: list[SteeringInput]) -> str:
    """The inputs as one text."""
    return "\n\n".join(item.text for item in inputs)


class StoredIdentity(TypedDict, total=False):
    """The identity of a message, and those of messages merged into it."""

    uid: str
    aliases: list[str]


def stored_identity(inputs: list[SteeringInput]) -> StoredIdentity:
    """The message ID for the store, with the other IDs as aliases."""
    uids = [item.uid for item in inputs if item.uid]
    return {"uid": uids[0], "aliases": uids[1:]} if uids else {}


class Cancel:
    """A cancellation request: polled by workers, with callbacks for waiting code."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self._lock = threading.Lock()
        self._callbacks: list[Callable[[], object]] = []
        self.reason = ""

    def request(self, reason: str = "interrupted") -> None:
        """Request the cancellation; callbacks run once, in the requesting thread."""
        with self._lock:
            if self._event.is_set():
                return
            self.reason = reason
            self._event.set()
            callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback()

    @property
    def is_requested(self) -> bool:
        """Whether cancellation was requested."""
        return self._event.is_set()

    def wait(self, seconds: float) -> bool:
        """Sleep until cancellation or the timeout; whether it was requested."""
        return self._event.wait(seconds)

    def on_request(self, callback: Callable[[], object]) -> Callable[[], None]:
        """Call *callback* on cancellation; returns a function to unregister it."""
        with self._lock:
            if not self._event.is_set():
                self._callbacks.append(callback)
                return lambda: self._unregister(callback)
        callback()
        return lambda: None

    def _unregister(self, callback: Callable[[], object]) -> None:
        with self._lock:
            if callback in self._callbacks:
                self._callbacks.remove(callback)
