"""Controls of a running turn: steering input, and cancellation."""

from __future__ import annotations

import contextlib
import threading
import time
from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_agent.events import Retrying, TextDelta, ToolFinished, ToolStarted
from hermes_agent.messages import ANONYMOUS, PromptIdentity

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from hermes_agent.events import Event
    from hermes_agent.tools.prompter import ApprovalAnswer, ApprovalRequest, Prompter


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


def joint_identity(inputs: list[SteeringInput]) -> PromptIdentity:
    """The message ID of the first, with the other IDs as aliases."""
    uids = [item.uid for item in inputs if item.uid]
    return PromptIdentity(uids[0], tuple(uids[1:])) if uids else ANONYMOUS


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
