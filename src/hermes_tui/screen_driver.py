"""The terminal, which may be gone before the screen is."""

from __future__ import annotations

import errno

from hermes_cli.picker.terminal import TerminalDriver


class ScreenDriver(TerminalDriver):
    """Lets go of a terminal also when its window was closed."""

    def close(self) -> None:
        """Let go; what was not written yet goes nowhere when nobody is there."""
        try:
            super().close()
        except OSError as error:
            if error.errno != errno.EIO:
                raise
