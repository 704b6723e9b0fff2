"""What a person says on a plain terminal while a turn runs: to it, after it, or about it."""

from __future__ import annotations

import threading
from collections import deque
from typing import TYPE_CHECKING, Final

from hermes_conversation import slash_commands
from hermes_core.errors import HermesError

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes_cli.output import Output
    from hermes_conversation.conversation import Desk

BUSY: Final = "A turn is running; wait for it, or /stop it."


class Meanwhile:
    """Lines that come while the agent works; used by the keyboard's thread and by the turn's."""

    def __init__(self, desk: Desk, out: Output, busy_input: str) -> None:
        self._desk = desk
        self._out = out
        self._busy_input = busy_input
        self._later: deque[str] = deque()
        self._lock = threading.Lock()
        self.answer: Callable[[str], bool] = lambda _text: False  # whoever waits for one
        self.give_up: Callable[[], object] = lambda: None  # so that nobody waits any more

    def take(self, line: str) -> None:
        """A line was typed."""
        if line.startswith("/"):
            try:
                self._command(line)
            except HermesError as error:
                self._out.error(str(error))
        elif self._busy_input == "steer":
            self._desk.agent.steer(line)
            self._out.note("· it will read that after its next tool, or at the end")
        else:
            self._queue(line)
            if self._busy_input == "interrupt":
                self._desk.agent.interrupt()

    def _command(self, line: str) -> None:
        command = slash_commands.find(line[1:].partition(" ")[0].lower())
        if not command.while_busy:
            self._out.note(BUSY)
            return
        outcome = slash_commands.run(self._desk, line)
        if outcome.text:
            self._out.note(outcome.text)
        if outcome.answer and not self.answer(outcome.answer):
            self._out.note("Nothing is being asked.")
        if outcome.stop or outcome.leave:
            self._desk.agent.interrupt()
            self.give_up()
        if outcome.steer:
            self._desk.agent.steer(outcome.steer)
        if outcome.queue or outcome.leave:
            self._queue(outcome.queue or line)

    def _queue(self, line: str) -> None:
        with self._lock:
            self._later.append(line)
        if not line.startswith("/"):
            self._out.note("· said when this is over")

    def next(self) -> str:
        """What is said now that the turn is over; empty when nothing waits."""
        steering = self._desk.agent.take_steering()
        with self._lock:
            if steering:
                return steering
            return self._later.popleft() if self._later else ""

    def take_back(self) -> str:
        """The turn was stopped: what was meant for it goes back to the input."""
        steering = self._desk.agent.take_steering()
        with self._lock:
            keeps = self._busy_input == "interrupt" or any(one[:1] == "/" for one in self._later)
            if keeps:
                return steering
            texts = [steering, *self._later] if steering else list(self._later)
            self._later.clear()
        return "\n\n".join(texts)
