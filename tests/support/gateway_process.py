"""The gateway as a separate process."""

from __future__ import annotations

import os
import subprocess
import sys

from gateway import status
from support.waiting import PATIENCE_SECONDS


class GatewayProcess:
    """A gateway process that can be killed and restarted."""

    def __init__(self) -> None:
        self.kills = 0
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, **variables: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "gateway.process.main"],
            stdout=subprocess.DEVNULL,
            env={**os.environ, **variables},
        )

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def is_up(self) -> bool:
        runtime_status = status.read_runtime_status() or {}
        is_ours = self._process is not None and runtime_status.get("pid") == self._process.pid
        return is_ours and runtime_status.get("gateway_state") in {"running", "degraded"}

    def kill(self) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait(timeout=PATIENCE_SECONDS)
        self.kills += 1

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
