"""The terminal, which may be gone before the screen is."""

from __future__ import annotations

import errno
import os

from hermes_tui.terminal_driver import TerminalDriver


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
