"""A thread-safe queue of events for the screen.

A model may stream hundreds of deltas per second; drawing each would leave no time for keys.
So queued deltas of the same kind are merged, and the screen draws one event at a time.
"""

from __future__ import annotations

import threading
from collections import deque
from typing import Any, Final, NamedTuple

MERGE_SECONDS: Final = 0.03
MERGED_KINDS: Final = frozenset({"message.delta", "reasoning.delta", "tool.output"})


class QueuedEvent(NamedTuple):
    """An event, with the chunks of its text if it can be merged."""

    kind: str
    payload: dict[str, Any]
    chunks: list[str]


class EventQueue:
    """An ordered queue; any thread puts, the UI thread takes."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._queue: deque[QueuedEvent] = deque()
        self._is_notified = False

    def put(self, kind: str, payload: dict[str, Any]) -> bool:
        """Add an event; whether the screen must be notified."""
        with self._lock:
            last = self._queue[-1] if self._queue else None
            if last is not None and _can_merge(last, kind, payload):
                last.chunks.append(payload["text"])
            else:
                chunks = [payload["text"]] if kind in MERGED_KINDS else []
                self._queue.append(QueuedEvent(kind, payload, chunks))
            was_notified, self._is_notified = self._is_notified, True
            return not was_notified

    def take(self) -> tuple[str, dict[str, Any]] | None:
        """The next event, or None; after None the next `put` notifies the screen."""
        with self._lock:
            if not self._queue:
                self._is_notified = False
                return None
            kind, payload, chunks = self._queue.popleft()
        return kind, {**payload, "text": "".join(chunks)} if chunks else payload

    @property
    def is_empty(self) -> bool:
        """Whether the queue is empty."""
        with self._lock:
            return not self._queue


def _can_merge(last: QueuedEvent, kind: str, payload: dict[str, Any]) -> bool:
    return (
        kind in MERGED_KINDS
        and last.kind == kind
        and last.payload.get("tool_id") == payload.get("tool_id")
    )
