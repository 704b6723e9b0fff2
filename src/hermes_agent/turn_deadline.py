"""Deadlines of a turn: one without progress, and one in total.

Events are progress. While a tool runs, its own time limit applies first; the time in which a
person is asked does not count.
"""

from __future__ import annotations

import contextlib
import threading
import time
from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_agent.events import Retrying, TextDelta, ToolFinished, ToolStarted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from hermes_agent.events import Event
    from hermes_agent.tools.prompter import ApprovalAnswer, ApprovalRequest, Prompter
    from hermes_agent.turn_control import Cancel

CHECKS_PER_LIMIT: Final = 10
MAX_CHECK_SECONDS: Final = 15.0
LONGEST_TOOL_SECONDS: Final = 3600.0  # what a tool may ask for


class TurnLimits(NamedTuple):
    """The limits of a turn in seconds; 0 means none."""

    idle_seconds: float = 900.0
    total_seconds: float = 14400.0


DEFAULT_LIMITS: Final = TurnLimits()


class TurnDeadline:
    """Requests the cancellation of a turn that takes too long."""

    def __init__(
        self,
        limits: TurnLimits,
        cancel: Cancel,
        later: Callable[[float, Callable[[], object]], object],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._limits = limits
        self._cancel = cancel
        self._later = later
        self._clock = clock
        self._lock = threading.Lock()
        self._started_at = self._progress_at = self._checked_at = clock()
        self._running_tools = 0
        self._open_questions = 0
        self._is_over = False
        self.reason = ""  # why the turn was cancelled

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Watch the turn while the body runs."""
        self._schedule()
        try:
            yield
        finally:
            self._is_over = True

    def note(self, event: Event) -> None:
        """Note progress."""
        if isinstance(event, TextDelta):  # the most frequent one
            self._progress_at = self._clock()
            return
        with self._lock:
            self._progress_at = self._clock()
            if isinstance(event, Retrying):  # the pause that follows was announced
                self._progress_at += event.seconds
            elif isinstance(event, ToolStarted):
                self._running_tools += 1
            elif isinstance(event, ToolFinished):
                self._running_tools -= 1

    @contextlib.contextmanager
    def asking(self) -> Iterator[None]:
        """The time in the body is that of the person who is asked."""
        with self._lock:
            self._open_questions += 1
        try:
            yield
        finally:
            with self._lock:
                self._open_questions -= 1
                self._progress_at = self._clock()

    def _schedule(self) -> None:
        limits = [seconds for seconds in self._limits if seconds]
        if limits:
            self._later(min(MAX_CHECK_SECONDS, min(limits) / CHECKS_PER_LIMIT), self._check)

    def _check(self) -> None:
        if self._is_over:
            return
        reason = self._expiry()
        if reason:
            self.reason = reason
            self._cancel.request(reason)
        else:
            self._schedule()

    def _expiry(self) -> str:
        """Why the turn has to end; empty while it may continue."""
        now = self._clock()
        with self._lock:
            if self._open_questions:  # the time since the last check does not count
                self._started_at += now - self._checked_at
                self._progress_at = now
            self._checked_at = now
            idle, total = self._limits
            silent = now - self._progress_at
            if self._running_tools:
                silent -= LONGEST_TOOL_SECONDS
        if idle and silent > idle:
            return f"no progress for {idle:g} s (setting agent.idle_seconds)"
        if total and now - self._started_at > total:
            return f"the turn took longer than {total:g} s (setting agent.turn_seconds)"
        return ""


class WaitingPrompter:
    """A prompter whose questions do not count as a lack of progress."""

    def __init__(self, prompter: Prompter, deadline: TurnDeadline) -> None:
        self._prompter = prompter
        self._deadline = deadline

    def approve(self, request: ApprovalRequest) -> ApprovalAnswer:
        """Ask whether something may be done."""
        with self._deadline.asking():
            return self._prompter.approve(request)

    def clarify(self, question: str, choices: list[str]) -> str:
        """Ask a question of the model."""
        with self._deadline.asking():
            return self._prompter.clarify(question, choices)
