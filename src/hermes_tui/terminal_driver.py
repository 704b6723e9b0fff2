"""The terminal itself, also when standard input or output is a pipe or a file."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from textual.drivers.linux_driver import LinuxDriver

from hermes_core.errors import UsageError

if TYPE_CHECKING:
    from textual.app import App

TERMINAL: Final = Path("/dev/tty")
NO_TERMINAL: Final = (
    "browse requires an interactive terminal; use `hermes sessions list` or "
    "`hermes sessions search`."
)


def require() -> None:
    """UsageError where there is no terminal, or one that cannot move its cursor."""
    try:
        with TERMINAL.open("rb"):
            is_there = os.environ.get("TERM", "") not in {"", "dumb"}
    except OSError:
        is_there = False
    if not is_there:
        raise UsageError(NO_TERMINAL)


class TerminalDriver(LinuxDriver):
    """Draws on and reads from the controlling terminal, so that stdout is free for the answer."""

    def __init__(self, app: App[Any], **options: Any) -> None:
        super().__init__(app, **options)
        self._output = TERMINAL.open("w", encoding="utf-8", errors="replace")
        self._file = self._output
        self._input = TERMINAL.open("rb", buffering=0)
        self.fileno = self._input.fileno()
        self.input_tty = True

    def _get_terminal_size(self) -> tuple[int, int]:
        try:
            size = os.get_terminal_size(self.fileno)
        except OSError:  # the window was closed: whatever is drawn now is seen by nobody
            return 80, 24
        return size.columns or 80, size.lines or 24

    def suspend_application_mode(self) -> None:
        """Lend the terminal to another program; it stays open, to be drawn on again."""
        self.stop_application_mode()
        super().close()

    def close(self) -> None:
        """Let go of the terminal."""
        super().close()
        self._output.close()
        self._input.close()


class ScreenDriver(TerminalDriver):
    """Lets go of a terminal also when its window was closed."""

    def resume_application_mode(self) -> None:
        """Draw again after a pause; not when there is nothing left to draw on."""
        try:
            os.get_terminal_size(self.fileno)
        except OSError:
            return
        super().resume_application_mode()

    def close(self) -> None:
        """Let go; what was not written yet goes nowhere when nobody is there."""
        try:
            super().close()
        except OSError as error:
            if error.errno != errno.EIO:
                raise
