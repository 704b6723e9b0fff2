"""A thread-safe queue of events for the screen.

A model may stream hundreds of deltas per second; drawing each would leave no time for keys.
So queued deltas of the same kind are merged, and the screen draws one event at a time.
"""

from __future__ import annotations

import dataclasses
import threading
from collections import deque
from typing import TYPE_CHECKING, Final, NamedTuple, TypeGuard

from tui_gateway.protocol import MessageDelta, ReasoningText, ToolText

if TYPE_CHECKING:
    from tui_gateway.protocol import ClientEvent

MERGE_SECONDS: Final = 0.03


class QueuedEvent(NamedTuple):
    """An event, with the chunks of its text if it can be merged."""

    event: ClientEvent
    chunks: list[str]


class EventQueue:
    """An ordered queue; any thread puts, the UI thread takes."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._queue: deque[QueuedEvent] = deque()
        self._is_notified = False

    def put(self, event: ClientEvent) -> bool:
        """Add an event; whether the screen must be notified."""
        with self._lock:
            last = self._queue[-1] if self._queue else None
            chunks = [event.text] if is_merged(event) else []
            if chunks and last is not None and _can_merge(last.event, event):
                last.chunks.extend(chunks)
            else:
                self._queue.append(QueuedEvent(event, chunks))
            was_notified, self._is_notified = self._is_notified, True
            return not was_notified

    def take(self) -> ClientEvent | None:
        """The next event, or None; after None the next `put` notifies the screen."""
        with self._lock:
            if not self._queue:
                self._is_notified = False
                return None
            event, chunks = self._queue.popleft()
        if is_merged(event) and len(chunks) > 1:
            return dataclasses.replace(event, text="".join(chunks))
        return event

    @property
    def is_empty(self) -> bool:
        """Whether the queue is empty."""
        with self._lock:
            return not self._queue


def is_merged(event: ClientEvent) -> TypeGuard[MessageDelta | ReasoningText | ToolText]:
    """Whether adjacent events of this kind are merged."""
    return isinstance(event, MessageDelta | ReasoningText | ToolText)


def _can_merge(last: ClientEvent, event: ClientEvent) -> bool:
    if isinstance(last, ToolText) and isinstance(event, ToolText):
        return last.tool_id == event.tool_id
    return type(last) is type(event)
