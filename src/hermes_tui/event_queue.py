"""What happens, on its way from the thread in which it happens to the screen.

A model says hundreds of words in a second, and a screen that takes each by itself has no time for
keys. So the words that wait are one event, and the screen takes one event at a time.
"""

from __future__ import annotations

import threading
from collections import deque
from typing import Any, Final, NamedTuple

GATHER_SECONDS: Final = 0.03
GATHERED: Final = frozenset({"message.delta", "reasoning.delta", "tool.output"})


class QueuedEvent(NamedTuple):
    """An event; the pieces of its text, if it has one that may grow."""

    kind: str
    payload: dict[str, Any]
    pieces: list[str]


class EventQueue:
    """A queue that keeps the order; any thread puts in, the screen's takes out."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: deque[QueuedEvent] = deque()
        self._is_told = False

    def put(self, kind: str, payload: dict[str, Any]) -> bool:
        """Something happened; whether the screen has to be told that there is something."""
        with self._lock:
            last = self._waiting[-1] if self._waiting else None
            if last is not None and _goes_on(last, kind, payload):
                last.pieces.append(payload["text"])
            else:
                pieces = [payload["text"]] if kind in GATHERED else []
                self._waiting.append(QueuedEvent(kind, payload, pieces))
            was_told, self._is_told = self._is_told, True
            return not was_told

    def take(self) -> tuple[str, dict[str, Any]] | None:
        """What is next; None when there is nothing, and then the screen has to be told again."""
        with self._lock:
            if not self._waiting:
                self._is_told = False
                return None
            kind, payload, pieces = self._waiting.popleft()
        return kind, {**payload, "text": "".join(pieces)} if pieces else payload

    @property
    def is_empty(self) -> bool:
        """Whether nothing waits."""
        with self._lock:
            return not self._waiting


def _goes_on(last: QueuedEvent, kind: str, payload: dict[str, Any]) -> bool:
    return (
        kind in GATHERED
        and last.kind == kind
        and last.payload.get("tool_id") == payload.get("tool_id")
    )
