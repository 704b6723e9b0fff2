"""The messages that are being handled: since when, and when each made progress."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from hermes_agent.events import ToolFinished, ToolStarted
from hermes_agent.toolbox import STOP_SECONDS
from hermes_agent.turn_deadline import LONGEST_TOOL_SECONDS, MAX_CHECK_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes_agent.events import Event


class TurnTimes(NamedTuple):
    """How long the running turns take."""

    running: int = 0
    oldest_seconds: float = 0.0  # since the start of the longest
    silent_seconds: float = 0.0  # the longest time without progress
    hung: int = 0  # turns without progress beyond their deadline


@dataclass(slots=True)
class _Turn:
    started_at: float
    progress_at: float
    running_tools: int = 0


class RunningTurns:
    """The running turns by inbox ID; used by several threads."""

    def __init__(self, idle_seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._idle_seconds = idle_seconds  # 0 if turns have no deadline
        self._clock = clock
        self._lock = threading.Lock()
        self._turns: dict[int, _Turn] = {}

    def start(self, inbox_id: int) -> None:
        """Note the start of a turn."""
        with self._lock:
            self._turns[inbox_id] = _Turn(self._clock(), self._clock())

    def progress(self, inbox_id: int, event: Event) -> None:
        """Note progress; called by the turn's own thread."""
        turn = self._turns.get(inbox_id)
        if turn is not None:
            turn.progress_at = self._clock()
            turn.running_tools += isinstance(event, ToolStarted)
            turn.running_tools -= isinstance(event, ToolFinished)

    def end(self, inbox_id: int) -> None:
        """Note the end of a turn."""
        with self._lock:
            self._turns.pop(inbox_id, None)

    def times(self) -> TurnTimes:
        """How long the turns take now."""
        now = self._clock()
        with self._lock:
            turns = list(self._turns.values())
            hung = sum(self._is_hung(turn, now) for turn in turns)
        if not turns:
            return TurnTimes()
        return TurnTimes(
            len(turns),
            now - min(turn.started_at for turn in turns),
            max(now - turn.progress_at for turn in turns),
            hung,
        )

    def _is_hung(self, turn: _Turn, now: float) -> bool:
        """Whether a turn should have been ended by its deadline."""
        limit = self._idle_seconds + MAX_CHECK_SECONDS + STOP_SECONDS
        if turn.running_tools:
            limit += LONGEST_TOOL_SECONDS
        return self._idle_seconds > 0 and now - turn.progress_at > limit
