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
from hermes_cli.original_commands import may_be_original
from hermes_core import __version__

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.command_line import Hermes

ROOT = Path(__file__).resolve().parents[2]
REFERENCE = ROOT / "docs" / "reference" / "cli.md"
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
# Commands of a plugin, a new one, an error; `hermes -p` is `hermes chat -q`.
EXAMPLES = {"name", "greet", "search", "--bad", "-p"}
# `hermes` alone takes the options of `hermes tui` and `hermes chat`.
TUI_OPTIONS = {
    option for name in ("tui", "chat") for option in PARSERS[name]._option_string_actions
}


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


def hint_problem(words: list[str]) -> str | None:
    """What is wrong with the command of a hint; None for one that exists."""
    if may_be_original(words) or words[0] in EXAMPLES:
        return None
    name = ""
    for word in words:
        has_actions = any(each.startswith(f"{name} ".lstrip()) for each in PARSERS if each != name)
        if word.startswith("-"):
            option = word.partition("=")[0]
            known = {*PARSERS[name]._option_string_actions, *TUI_OPTIONS}
            return None if option in known else f"no option {option}"
        if f"{name} {word}".strip() in PARSERS:
            name = f"{name} {word}".strip()
        elif has_actions and re.fullmatch("[a-z-]+", word):
            return f"no command {word}"
        else:
            return None
    return None


def hints() -> Iterator[tuple[str, str]]:
    """The file and the text of each command in backticks."""
    files = [*(ROOT / "src").rglob("*.py"), *(ROOT / "web/src").rglob("*.ts"), *ROOT.glob("*.md")]
    for path in [*files, *(ROOT / "docs").rglob("*.md"), *(ROOT / "plugins").rglob("*.py")]:
        text = re.sub(r'"\s*\n\s*f?"', "", path.read_text("utf-8"))
        for found in re.findall(r"\\?`(?:\./)?hermes ([^`\\]+)\\?`", text):
            yield str(path.relative_to(ROOT)), found


def test_hints_name_commands_and_options_that_exist() -> None:
    checked = 0
    wrong = []
    for file, hint in hints():
        checked += 1
        if problem := hint_problem(hint.split()):
            wrong.append(f"{file}: `hermes {hint}`: {problem}")
    assert checked > 500
    assert not wrong, "\n".join(sorted(set(wrong)))


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
