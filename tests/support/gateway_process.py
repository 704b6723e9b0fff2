"""The gateway as a separate process."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from gateway import status
from support.command_line import GATEWAY_MODULES, start_program
from support.waiting import PATIENCE_SECONDS

if TYPE_CHECKING:
    from support.command_line import Process


class GatewayProcess:
    """A gateway process that can be killed and restarted.

    *platform* names a platform whose library takes long to import.
    """

    def __init__(self, platform: str = "") -> None:
        self.kills = 0
        self._process: Process | None = None
        adapter = (f"gateway.platforms.{platform}.adapter",) if platform else ()
        self._modules = (*GATEWAY_MODULES, *adapter)

    def start(self, **variables: str) -> None:
        with Path(os.devnull).open("wb") as null:
            self._process = start_program(
                "gateway.process.main",
                streams=(null.fileno(), 2),
                preloaded=self._modules,
                **variables,
            )

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def is_up(self) -> bool:
        runtime_status = status.read_runtime_status() or {}
        is_ours = self._process is not None and runtime_status.get("pid") == self._process.pid
        return is_ours and runtime_status.get("gateway_state") in {"running", "degraded"}

    def kill(self) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait(timeout=PATIENCE_SECONDS)
        self.kills += 1

    def send_signal(self, number: int) -> None:
        """Send a signal to the process."""
        os.kill(self.pid, number)

    def stop(self) -> int:
        assert self._process is not None
        self._process.terminate()
        return self._process.wait(timeout=PATIENCE_SECONDS)

    def wait(self) -> int:
        """Wait for the process to exit on its own; return the exit code."""
        assert self._process is not None
        return self._process.wait(timeout=PATIENCE_SECONDS)

    def cleanup(self) -> None:
        """Kill the process if it is still running."""
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait(timeout=PATIENCE_SECONDS)
