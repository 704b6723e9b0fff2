"""How much of the program a short command loads; `make bench` measures its CPU time."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from rich.cells import cell_len

from hermes_cli.parser import build_parser
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
    ("arguments", "limit"), [(["--help"], 50), (["--version"], 50), (["sessions", "list"], 155)]
)
def test_a_short_command_loads_few_modules(history: Path, arguments: list[str], limit: int) -> None:
    assert history.exists()
    assert loaded_modules(HERMES, *arguments) - loaded_modules("pass") <= limit


def test_a_command_collects_garbage_rarely_and_not_at_its_end() -> None:
    script = (
        "import atexit, gc\n"
        "gc.disable()\n"
        "results = lambda: (gc.isenabled(), gc.get_threshold()[0], gc.get_freeze_count())\n"
        "atexit.register(lambda: print(*map(int, results())))\n"
        "from hermes_cli.main import entry; entry()\n"
    )
    finished = subprocess.run(
        [sys.executable, "-I", "-c", script, "--version"],
        capture_output=True, text=True, check=True, timeout=PATIENCE_SECONDS,
    )  # fmt: skip
    is_enabled, new_objects, kept_objects = map(int, finished.stdout.splitlines()[-1].split())
    assert is_enabled
    assert new_objects > 700
    assert kept_objects > 0


def test_the_words_of_the_help_are_not_looked_up_in_translations(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def look_up(*_arguments: object, **_options: object) -> None:
        raise AssertionError("looked for a translation")

    monkeypatch.setattr("gettext.find", look_up)
    text = build_parser("sessions").format_help()
    assert "conversations" in text
    assert "None" not in text  # the description of a group that has none


@pytest.mark.parametrize(
    ("action", "is_alone"), [("list", True), ("", False), ("lst", False), ("--all", False)]
)
def test_the_parser_of_the_called_action_is_built_alone(action: str, *, is_alone: bool) -> None:
    parser = build_parser("sessions", is_alone=True, action=action)
    with pytest.raises(SystemExit) as ended:
        parser.parse_args(["sessions", "show", "--help"])
    assert bool(ended.value.code) is is_alone


def test_a_command_without_actions_takes_any_word() -> None:
    parsed = build_parser("chat", is_alone=True, action="hello").parse_args(["chat", "-q", "hello"])
    assert parsed.question == "hello"


def test_the_width_of_common_text_needs_no_table_of_wide_characters() -> None:
    script = (
        "import sys; from hermes_core.terminal_text import width\n"
        "assert width('“Zoë” — or…') == 11\n"
        "assert width('日本語のテスト, 한국어 (这张图片)') == 33\n"
        "assert 'rich' not in sys.modules\n"
        "assert width('\U0001f600') == 2\n"
    )
    subprocess.run([sys.executable, "-I", "-c", script], check=True, timeout=PATIENCE_SECONDS)


def test_a_command_without_log_entries_does_not_load_the_library_for_them(history: Path) -> None:
    assert history.exists()
    script = (
        "import atexit, sys\n"
        "atexit.register(lambda: print('logging' in sys.modules))\n"
        "from hermes_cli.main import entry; entry()\n"
    )
    finished = subprocess.run(
        [sys.executable, "-I", "-c", script, "sessions", "list"],
        capture_output=True, text=True, check=True, timeout=PATIENCE_SECONDS,
    )  # fmt: skip
    assert finished.stdout.splitlines()[-1] == "False"


@pytest.mark.parametrize(("ranges", "cells"), [(NARROW_RANGES, 1), (WIDE_RANGES, 2)])
def test_the_width_of_common_characters_is_that_of_the_table(
    ranges: tuple[tuple[str, str], ...], cells: int
) -> None:
    for first, last in ranges:
        characters = [chr(code) for code in range(max(ord(first), 0xA1), ord(last) + 1)]
        assert {cell_len(character) for character in characters if character != "\xad"} == {cells}
