"""Starts, stops and restarts the gateway for the dashboard, by the commands of a terminal."""

from __future__ import annotations

import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Final

from hermes_core import paths
from hermes_core.errors import UsageError

if TYPE_CHECKING:
    from hermes_dashboard.context import GatewayAction

IS_CHANGING: Final = "The gateway is being started or stopped. Try again when that is done."


class GatewayControl:
    """Runs one `hermes gateway` command at a time.

    A command in a process of its own: the gateway must not be a child of the dashboard.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def __call__(self, action: GatewayAction) -> str:
        """Run the command to its end; its output, or UsageError with the reason."""
        if not self._lock.acquire(blocking=False):
            raise UsageError(IS_CHANGING)
        try:
            done = subprocess.run(
                [sys.executable, "-P", "-m", "hermes_cli", "gateway", action],
                env=paths.environment() | {"NO_COLOR": "1"},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                check=False,
            )
        finally:
            self._lock.release()
        if done.returncode:
            raise UsageError((done.stderr or done.stdout).strip() or f"Exit code {done.returncode}")
        return " ".join((done.stdout + done.stderr).split())
