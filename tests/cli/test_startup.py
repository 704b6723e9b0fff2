"""Start-up time, relative to the interpreter alone in the same run."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

ROUNDS = 12
HERMES = [sys.executable, "-I", "-c", "from hermes_cli.main import entry; entry()"]


def least_cpu_seconds(commands: list[list[str]]) -> list[float]:
    """The least work of several runs of each command, measured alternately.

    Work and not time, because other tests run beside this one.
    """
    best = [float("inf")] * len(commands)
    for _ in range(ROUNDS):
        for index, command in enumerate(commands):
            with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
                _, status, used = os.wait4(process.pid, 0)
                process.returncode = os.waitstatus_to_exitcode(status)
            assert process.returncode == 0
            best[index] = min(best[index], used.ru_utime + used.ru_stime)
    return best


@pytest.mark.parametrize(
    ("arguments", "limit"), [(["--help"], 5), (["--version"], 5), (["sessions", "list"], 12)]
)
def test_start_up_against_the_bare_interpreter(
    history: Path, arguments: list[str], limit: float
) -> None:
    assert history.exists()
    bare, ours = least_cpu_seconds([[sys.executable, "-c", "pass"], [*HERMES, *arguments]])
    assert ours / bare <= limit
