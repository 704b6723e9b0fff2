"""Memory of the terminal UI's server: with one conversation open, and for each further one."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from figures import Figure

if TYPE_CHECKING:
    from surroundings import Surroundings

FURTHER: Final = 20
IDLE: Final = [sys.executable, "-c", "print(flush=True); input()"]
SERVER: Final = [sys.executable, "-m", "tui_gateway.entry"]
NOWHERE: Final = "http://127.0.0.1:9/v1#m"  # nobody is asked anything


def measure(around: Surroundings) -> list[Figure]:
    """Every figure of this benchmark; shared pages are counted by share (PSS)."""
    with around.home():
        bare = _idle()
        none, one, many = _server(around)
    return [
        Figure("server without a session", none, "MB", bare),
        Figure("server with one idle session", one, "MB", bare),
        Figure("each further session", (many - one) / FURTHER, "MB"),
    ]


def megabytes(pid: int) -> float:
    """The memory of a process; of what it shares, its share."""
    text = Path(f"/proc/{pid}/smaps_rollup").read_text("ascii")
    found = re.search(r"^Pss:\s+(\d+) kB", text, re.MULTILINE)
    assert found is not None
    return int(found[1]) / 1024


def _idle() -> float:
    with _started(IDLE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        found = megabytes(process.pid)
        process.kill()
    return found


def _server(around: Surroundings) -> tuple[float, float, float]:
    """Megabytes with no session, with one, and with all of them."""
    with around.folder() as folder, _started(SERVER) as process:
        _call(process, "commands.catalog")
        none = megabytes(process.pid)
        _create(process, folder)
        one = megabytes(process.pid)
        for _ in range(FURTHER):
            _create(process, folder)
        many = megabytes(process.pid)
        process.kill()
    return none, one, many


def _started(command: list[str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )


def _create(process: subprocess.Popen[bytes], folder: Path) -> None:
    _call(process, "session.create", model=NOWHERE, cwd=str(folder))


def _call(process: subprocess.Popen[bytes], method: str, **params: Any) -> None:
    """Ask, and wait for the answer."""
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
