"""How much of the program a short command loads; `make bench` measures its CPU time."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from rich.cells import cell_len

from hermes_core.terminal_text import NARROW_RANGES, WIDE_RANGES
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
    ("arguments", "limit"), [(["--help"], 50), (["--version"], 50), (["sessions", "list"], 165)]
)
def test_a_short_command_loads_few_modules(history: Path, arguments: list[str], limit: int) -> None:
    assert history.exists()
    assert loaded_modules(HERMES, *arguments) - loaded_modules("pass") <= limit


def test_the_width_of_common_text_needs_no_table_of_wide_characters() -> None:
    script = (
        "import sys; from hermes_core.terminal_text import width\n"
        "assert width('“Zoë” — or…') == 11\n"
        "assert width('日本語のテスト, 한국어 (这张图片)') == 33\n"
        "assert 'rich' not in sys.modules\n"
        "assert width('\U0001f600') == 2\n"
    )
    subprocess.run([sys.executable, "-I", "-c", script], check=True, timeout=PATIENCE_SECONDS)


@pytest.mark.parametrize(("ranges", "cells"), [(NARROW_RANGES, 1), (WIDE_RANGES, 2)])
def test_the_width_of_common_characters_is_that_of_the_table(
    ranges: tuple[tuple[str, str], ...], cells: int
) -> None:
    for first, last in ranges:
        characters = [chr(code) for code in range(max(ord(first), 0xA1), ord(last) + 1)]
        assert {cell_len(character) for character in characters if character != "\xad"} == {cells}
