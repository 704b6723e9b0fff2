"""A program started with `nohup` or as a background job outlives the terminal."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import pytest

from support.command_line import command
from support.dashboards import wait_until
from support.waiting import PATIENCE_SECONDS

PROGRAMS = {
    "daemon": ("serve",),
    "gateway": ("gateway", "run"),
    "dashboard": ("dashboard", "--no-open", "--port", "0"),
}
IGNORING = ["sh", "-c", 'trap "" HUP INT; exec "$@"', "sh"]


def signals(pid: int, kind: str) -> set[int]:
    """The signals that a process ignores (SigIgn) or catches (SigCgt), as the kernel has them."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    mask = int(next(line for line in lines if line.startswith(f"{kind}:")).split()[1], 16)
    return {
        item for item in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM) if mask >> (item - 1) & 1
    }


@pytest.mark.parametrize("start", [[], IGNORING], ids=["plainly", "as nohup does"])
@pytest.mark.parametrize("program", PROGRAMS)
def test_signals_ignored_by_the_parent_stay_ignored(start: list[str], program: str) -> None:
    with subprocess.Popen(
        [*start, *command(*PROGRAMS[program])],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        optional = {signal.SIGHUP, signal.SIGINT}
        caught = {signal.SIGTERM} if start else {signal.SIGTERM, *optional}
        wait_until(lambda: signals(process.pid, "SigCgt") == caught)
        assert signals(process.pid, "SigIgn") == (optional if start else set())
        if start:
            process.send_signal(signal.SIGHUP)
            process.send_signal(signal.SIGINT)
        process.terminate()
        assert process.wait(timeout=PATIENCE_SECONDS) == 0
