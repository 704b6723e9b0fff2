"""Help: complete, documented, with examples, and fast."""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hermes_cli import parser
from hermes_core import __version__

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.command_line import Hermes

REFERENCE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "cli.md"
HEAVY = {
    "asyncio", "dataclasses", "inspect", "json", "logging", "pathlib", "apsw", "ruamel",
    "shutil", "sqlite3", "subprocess", "rich",
}  # fmt: skip


def walk(
    node: argparse.ArgumentParser, name: str = ""
) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """Every command and action with its own parser."""
    yield name, node
    for action in node._actions:
        if isinstance(action, argparse._SubParsersAction):
            for child_name, child in action.choices.items():
                yield from walk(child, f"{name} {child_name}".strip())


def all_parsers() -> dict[str, argparse.ArgumentParser]:
    return {
        name: node
        for command in parser.COMMANDS
        for name, node in walk(parser.build_parser(command.name))
        if name == "" or name.split()[0] == command.name
    }


PARSERS = all_parsers()


@pytest.mark.parametrize("name", PARSERS)
def test_help_carries_examples(name: str) -> None:
    text = PARSERS[name].format_help()
    assert "examples:" in text
    assert f"hermes {name}".strip() in text.split("examples:")[1]


def section(name: str) -> str:
    """The part of the reference about one command."""
    heading = f"`hermes {name}".strip()
    parts = re.split(r"^#+ ", REFERENCE.read_text("utf-8"), flags=re.MULTILINE)
    matches = [
        part for part in parts if re.match(re.escape(heading) + r"(?: [A-Z.…\[-].*)?`\n", part)
    ]
    assert len(matches) == 1, f"docs/reference/cli.md needs one heading {heading}`"
    return matches[0]


@pytest.mark.parametrize("name", PARSERS)
def test_every_command_and_option_is_documented(name: str) -> None:
    text = section(name)
    for action in PARSERS[name]._actions:
        for option in action.option_strings:
            if option not in {"-h", "--help"}:
                assert f"`{option}" in text, f"{name}: {option}"


def test_the_reference_names_no_command_that_is_not_there() -> None:
    text = REFERENCE.read_text("utf-8")
    headings = re.findall(r"^#+ `hermes ([a-z-]+(?: [a-z-]+)?)", text, re.MULTILINE)
    assert set(headings) <= set(PARSERS)


def test_help_imports_nothing_heavy() -> None:
    script = (
        "import sys, atexit\n"
        "atexit.register(lambda: print(*sys.modules, file=sys.stderr))\n"
        "sys.argv[1:] = ['--help']\n"
        "from hermes_cli.main import entry\n"
        "entry()\n"
    )
    result = subprocess.run(
        [sys.executable, "-I", "-c", script], capture_output=True, check=True, text=True
    )
    modules = {name.partition(".")[0] for name in result.stderr.split()}
    assert "argparse" in modules
    assert not modules & HEAVY
    assert "hermes_cli.commands" not in result.stderr


def test_listing_imports_nothing_heavy(history: Path) -> None:
    script = (
        "import sys, atexit\n"
        "atexit.register(lambda: print(*sys.modules, file=sys.stderr))\n"
        "sys.argv[1:] = ['sessions', 'list']\n"
        "from hermes_cli.main import entry\n"
        "entry()\n"
    )
    result = subprocess.run(
        [sys.executable, "-I", "-c", script], capture_output=True, check=True, text=True
    )
    modules = {name.partition(".")[0] for name in result.stderr.split()}
    assert "apsw" in modules
    assert not modules & {"ruamel", "asyncio", "hypothesis", "importlib_metadata", "email"}


def test_help_before_an_action_lists_all_actions(hermes: Hermes) -> None:
    assert hermes("models", "--help", "use").out == hermes("models", "--help").out


def test_the_value_of_an_option_is_not_taken_for_the_action(hermes: Hermes) -> None:
    result = hermes("dashboard", "--host", "password", "confirm", "--help")
    assert (result.code, result.err) == (0, "")
    assert "dashboard confirm" in result.out


def test_version(hermes: Hermes) -> None:
    result = hermes("--version")
    assert (result.code, result.out, result.err) == (0, f"hermes {__version__}\n", "")
