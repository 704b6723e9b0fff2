"""Start-up is a feature: measured against the interpreter alone, in the same run."""

from __future__ import annotations

import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

ROUNDS = 12
HERMES = [sys.executable, "-I", "-c", "from hermes_cli.main import entry; entry()"]


def quickest_seconds(commands: list[list[str]]) -> list[float]:
    """The quickest of several runs of each command, taken in turns."""
    best = [float("inf")] * len(commands)
    for _ in range(ROUNDS):
        for index, command in enumerate(commands):
            began = time.perf_counter()
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            best[index] = min(best[index], time.perf_counter() - began)
    return best


@pytest.mark.parametrize(
    ("arguments", "limit"), [(["--help"], 5), (["--version"], 5), (["sessions", "list"], 10)]
)
def test_start_up_against_the_bare_interpreter(
    history: Path, arguments: list[str], limit: float
) -> None:
    assert history.exists()
    bare, ours = quickest_seconds([[sys.executable, "-c", "pass"], [*HERMES, *arguments]])
    assert ours / bare <= limit
