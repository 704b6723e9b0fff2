"""How much of the program a short command loads; `make bench` measures its CPU time."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from support.waiting import PATIENCE_SECONDS

if TYPE_CHECKING:
    from pathlib import Path

HERMES = "from hermes_cli.main import entry; entry()"


def loaded_modules(code: str, *arguments: str) -> int:
    """The number of modules that a new interpreter imports."""
    finished = subprocess.run(
        [sys.executable, "-I", "-X", "importtime", "-c", code, *arguments],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=True,
        timeout=PATIENCE_SECONDS,
    )  # fmt: skip
    return finished.stderr.count("import time:")


@pytest.mark.parametrize(
    ("arguments", "limit"), [(["--help"], 50), (["--version"], 50), (["sessions", "list"], 225)]
)
def test_a_short_command_loads_few_modules(history: Path, arguments: list[str], limit: int) -> None:
    assert history.exists()
    assert loaded_modules(HERMES, *arguments) - loaded_modules("pass") <= limit
