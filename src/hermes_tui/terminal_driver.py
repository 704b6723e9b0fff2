"""Drivers for the controlling terminal, even if standard input or output is redirected."""

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
    """Raise UsageError without a terminal that can move its cursor."""
    try:
        with TERMINAL.open("rb"):
            is_usable = os.environ.get("TERM", "") not in {"", "dumb"}
    except OSError:
        is_usable = False
    if not is_usable:
        raise UsageError(NO_TERMINAL)


class TerminalDriver(LinuxDriver):
    """Uses the controlling terminal, so that stdout is free for the result."""

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
        except OSError:  # the window was closed; the size does not matter
            return 80, 24
        return size.columns or 80, size.lines or 24

    def suspend_application_mode(self) -> None:
        """Release the terminal to another program; the files stay open."""
        self.stop_application_mode()
        super().close()

    def close(self) -> None:
        """Close the terminal."""
        super().close()
        self._output.close()
        self._input.close()


class ScreenDriver(TerminalDriver):
    """Tolerates a terminal window that was closed."""

    def resume_application_mode(self) -> None:
        """Resume drawing, unless the terminal is gone."""
        try:
            os.get_terminal_size(self.fileno)
        except OSError:
            return
        super().resume_application_mode()

    def close(self) -> None:
        """Close; unwritten output is lost if the terminal is gone."""
        try:
            super().close()
        except OSError as error:
            if error.errno != errno.EIO:
                raise
