"""Memory of the terminal UI's server: with one open session, and for each further one."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from figures import Figure

if TYPE_CHECKING:
    from surroundings import BenchmarkContext

FURTHER_SESSIONS: Final = 20
IDLE_COMMAND: Final = [sys.executable, "-c", "print(flush=True); input()"]
SERVER_COMMAND: Final = [sys.executable, "-m", "tui_gateway.entry"]
UNUSED_MODEL: Final = "http://127.0.0.1:9/v1#m"  # no request is sent


def measure(context: BenchmarkContext) -> list[Figure]:
    """All figures of this benchmark, as proportional set size (PSS)."""
    with context.home():
        bare = _idle_megabytes()
        none, item, many = _server_megabytes(context)
    # Another process that maps the same pages makes the set smaller.
    further = max(0.0, many - item) / FURTHER_SESSIONS
    return [
        Figure("server without a session", none, "MB", bare),
        Figure("server with one idle session", item, "MB", bare),
        Figure("each further session", further, "MB"),
    ]


def megabytes(pid: int) -> float:
    """Proportional set size of a process."""
    text = Path(f"/proc/{pid}/smaps_rollup").read_text("ascii")
    match = re.search(r"^Pss:\s+(\d+) kB", text, re.MULTILINE)
    assert match is not None
    return int(match[1]) / 1024


def _idle_megabytes() -> float:
    with _start(IDLE_COMMAND) as process:
        assert process.stdout is not None
        process.stdout.readline()
        used = megabytes(process.pid)
        process.kill()
    return used


def _server_megabytes(context: BenchmarkContext) -> tuple[float, float, float]:
    """Megabytes without a session, with one, and with all."""
    with context.folder() as folder, _start(SERVER_COMMAND) as process:
        _call(process, "commands.catalog")
        none = megabytes(process.pid)
        _create(process, folder)
        item = megabytes(process.pid)
        for _ in range(FURTHER_SESSIONS):
            _create(process, folder)
        many = megabytes(process.pid)
        process.kill()
    return none, item, many


def _start(command: list[str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )


def _create(process: subprocess.Popen[bytes], folder: Path) -> None:
    _call(process, "session.create", model=UNUSED_MODEL, cwd=str(folder))


def _call(process: subprocess.Popen[bytes], method: str, **params: Any) -> None:
    """Send a request and wait for the response."""
    assert process.stdin is not None
    assert process.stdout is not None
    request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    process.stdin.write(json.dumps(request).encode() + b"\n")
    process.stdin.flush()
    for line in process.stdout:
        frame = json.loads(line)
        if frame.get("id") == 1:
            assert "result" in frame, frame
            return
    raise AssertionError(f"the server ended before it answered {method}")
