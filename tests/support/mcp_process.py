"""The paths of the MCP servers for tests, and a check whether a process has ended."""

from __future__ import annotations

import time
from pathlib import Path

PROGRAM = str(Path(__file__).with_name("small_mcp_server.py"))
LIBRARY_PROGRAM = str(Path(__file__).with_name("mcp_server.py"))  # also over HTTP


def is_over(pid: int, seconds: float = 10) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return True
        if state in "ZX":
            return True
        time.sleep(0.02)
    return False
