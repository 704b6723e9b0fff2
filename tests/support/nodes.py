"""Machines that share a history in PostgreSQL: each a gateway with a home and a name of its own."""

from __future__ import annotations

import json
import shutil
import signal
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from support.gateway_process import GatewayProcess

if TYPE_CHECKING:
    from collections.abc import Mapping


class Node:
    """A machine with a gateway."""

    def __init__(self, name: str, home: Path, platform: str = "") -> None:
        self.name = name
        # The path of a socket is limited to about 100 characters.
        self.home = Path(tempfile.mkdtemp(prefix="hermes-node-", dir="/tmp"))
        (self.home / "config.yaml").write_bytes((home / "config.yaml").read_bytes())
        self.gateway = GatewayProcess(platform)

    @property
    def socket(self) -> Path:
        return self.home / "run" / "gateway.sock"

    def start(self, variables: Mapping[str, str] | None = None) -> None:
        self.gateway.start(
            HERMES_HOME=str(self.home), HERMES_NODE_NAME=self.name, **(variables or {})
        )

    def status(self) -> dict[str, Any]:
        try:
            status = json.loads((self.home / "gateway_state.json").read_text("utf-8"))
        except (OSError, ValueError):
            return {}
        return status if status.get("pid") == self.gateway.pid else {}

    def is_up(self) -> bool:
        return self.status().get("gateway_state") in {"running", "degraded"}

    def state_of(self, platform: str) -> str:
        """The state of a platform on this machine; empty if the gateway is not up."""
        if not self.is_up():
            return ""
        return str(self.status().get("platforms", {}).get(platform, {}).get("state", ""))

    def is_connected(self, platform: str = "local") -> bool:
        return self.state_of(platform) == "connected"

    def freeze(self) -> None:
        self.gateway.send_signal(signal.SIGSTOP)

    def wake(self) -> None:
        self.gateway.send_signal(signal.SIGCONT)

    def remove(self) -> None:
        self.gateway.cleanup()
        shutil.rmtree(self.home)
