"""Lines typed on a plain terminal while a turn runs."""

from __future__ import annotations

import os
import queue
import selectors
import sys
import threading
from typing import TYPE_CHECKING, Final

from hermes_conversation import slash_commands
from hermes_conversation.pending_input import PendingInput
from hermes_conversation.slash_commands import Surface
from hermes_core.errors import HermesError

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import Self

    from hermes_cli.output import CommandOutput
    from hermes_conversation.conversation import Conversation
    from hermes_conversation.pending_input import BusyMode

READ_BYTES: Final = 4096


class KeyboardReader:
    """Context manager that reads lines in a thread.

    A line answers the open question, unless it starts with a slash; other lines are passed to
    *take*. An unfinished line stays in the terminal for the next reader.
    """

    def __init__(self, take: Callable[[str], object], on_end: Callable[[], object]) -> None:
        self._take = take
        self._on_end = on_end
        self._answers: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._waiting = 0
        self._is_closed = False  # no further answers
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._wake = (-1, -1)

    def __enter__(self) -> Self:
        self._is_closed = False
        self._wake = os.pipe()
        self._thread = threading.Thread(target=self._read, name="hermes-keyboard", daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        os.write(self._wake[1], b".")
        if self._thread is not None:
            self._thread.join()
        for handle in self._wake:
            os.close(handle)
        self._thread = None

    def ask(self) -> str:
        """Wait for the next line, with its newline; empty at the end of input."""
        with self._lock:
            if self._is_closed:
                return ""
            self._waiting += 1
        return self._answers.get()

    def answer(self, text: str) -> bool:
        """Answer the open question as if typed; return whether there was one."""
        with self._lock:
            if not self._waiting:
                return False
            self._waiting -= 1
        self._answers.put(f"{text}\n")
        return True

    def _read(self) -> None:
        rest = b""
        with selectors.DefaultSelector() as selector:
            selector.register(sys.stdin.fileno(), selectors.EVENT_READ)
            selector.register(self._wake[0], selectors.EVENT_READ)
            while True:
                ready = {key.fd for key, _ in selector.select()}
                if self._wake[0] in ready:
                    return
                data = os.read(sys.stdin.fileno(), READ_BYTES)
                if not data:
                    self._end()
                    return
                *lines, rest = (rest + data).split(b"\n")
                for line in lines:
                    self._dispatch(line.decode(errors="replace").rstrip())

    def _dispatch(self, line: str) -> None:
        is_command = line.startswith("/")
        if (is_command or not self.answer(line)) and line:
            self._take(line)

    def _end(self) -> None:
        """Handle the end of input."""
        self.give_up()
        self._on_end()

    def give_up(self) -> None:
        """End every open and later question without an answer."""
        with self._lock:
            self._is_closed = True
            unanswered, self._waiting = self._waiting, 0
        for _ in range(unanswered):
            self._answers.put("")


TURN_IS_RUNNING: Final = "A turn is running. Wait for it, or /stop it."
MODE_NOTES: Final[dict[str, str]] = {
    "steer": "· sent to the running turn",
    "queue": "· queued until the turn ends",
    "interrupt": "",
}


class BusyInput:
    """Handles lines that are typed while a turn runs; called by the keyboard's thread."""

    def __init__(self, conversation: Conversation, out: CommandOutput, mode: BusyMode) -> None:
        self._conversation = conversation
        self._out = out
        self._mode = mode
        self.pending = PendingInput(conversation)
        self.answer: Callable[[str], bool] = lambda _text: False  # answers an open question
        self.give_up: Callable[[], object] = lambda: None  # ends every open question
        self.leave: Callable[[], object] = lambda: None  # ends the program after the turn

    def take(self, line: str) -> None:
        """Handle a typed line: a command, or input for the conversation."""
        if line.startswith("/"):
            try:
                self._command(line)
            except HermesError as error:
                self._out.error(str(error))
        else:
            self._submit(line, self._mode)

    def _submit(self, text: str, mode: BusyMode) -> None:
        self.pending.submit(text, mode)
        if MODE_NOTES[mode]:
            self._out.note(MODE_NOTES[mode])

    def _command(self, line: str) -> None:
        command = slash_commands.find(
            line[1:].partition(" ")[0].lower(), slash_commands.project_folder(self._conversation)
        )
        if not command.while_busy:
            self._out.note(TURN_IS_RUNNING)
            return
        outcome = slash_commands.run(self._conversation, line, Surface.TERMINAL)
        if outcome.text:
            self._out.note(outcome.text)
        if outcome.answer and not self.answer(outcome.answer):
            self._out.note("No question to answer.")
        if outcome.leave:
            self.leave()
        if outcome.stop or outcome.leave:
            self.pending.interrupt()
            self.give_up()
        if outcome.steer:
            self._submit(outcome.steer, "steer")
        if outcome.queue:
            self._submit(outcome.queue, "queue")
