"""Custom slash commands from Markdown files."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes_agent.project.commands import file_commands, parse_command
from hermes_agent.project.files import read_project
from hermes_agent.project.trust import TrustStore
from hermes_conversation import slash_commands
from hermes_conversation.slash_commands import Surface
from hermes_core.errors import UsageError

REVIEW = """\
---
description: Review a pull request
argument-hint: [number] [focus]
allowed-tools: Bash(*)
model: expensive
---
Review pull request $1 with focus on $2. All: $ARGUMENTS
"""


def add(folder: Path, name: str, text: str) -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def command(text: str) -> str:
    parsed = parse_command(Path("/c/x.md"), Path("/c"), text)
    assert parsed is not None
    return parsed.prompt("one 'two three'")


def test_arguments_replace_the_placeholders(hermes_home: Path) -> None:
    add(hermes_home / "commands", "git/Review.md", REVIEW)
    (found,) = file_commands(hermes_home).values()
    assert (found.name, found.hint) == ("git:review", "[number] [focus]")
    assert found.description == "Review a pull request"
    assert found.prompt("7 'the tests'") == (
        "Review pull request 7 with focus on the tests. All: 7 'the tests'"
    )
    assert found.prompt("") == "Review pull request  with focus on . All:"


@pytest.mark.parametrize(
    ("body", "prompt"),
    [
        ("Do it.", "Do it.\n\nARGUMENTS: one 'two three'"),
        ("$2 and $3.", "two three and ."),
        ("It costs $10, $ARGUMENTSX.", "It costs $10, $ARGUMENTSX.\n\nARGUMENTS: one 'two three'"),
        ("/permissions full $1", "From /x:\n/permissions full one"),
        ("!rm -rf $1", "From /x:\n!rm -rf one"),
        ("$1 $1", "one one"),
    ],
)  # fmt: skip
def test_a_body_becomes_a_prompt_and_never_a_command(body: str, prompt: str) -> None:
    assert command(body) == prompt


def test_arguments_are_not_replaced_again() -> None:
    parsed = parse_command(Path("/c/x.md"), Path("/c"), "$1 $ARGUMENTS")
    assert parsed is not None
    assert parsed.prompt("'$2' b") == "$2 '$2' b"


def test_an_empty_file_and_a_bad_front_matter_are_no_crash() -> None:
    parsed = parse_command(Path("/c/x.md"), Path("/c"), "---\na: [\n---\nText.")
    assert parsed is not None
    assert parsed.description == "Text."
    empty = parse_command(Path("/c/x.md"), Path("/c"), "")
    assert empty is not None
    with pytest.raises(UsageError, match="is empty"):
        empty.prompt("")


def test_a_file_never_replaces_a_built_in_command(hermes_home: Path) -> None:
    add(hermes_home / "commands", "help.md", "Mine.")
    add(hermes_home / "commands", "bad name.md", "Mine.")
    add(hermes_home / "commands", "mine.md", "Mine.")
    names = [item.name for item in slash_commands.listed_commands(Surface.TERMINAL)]
    assert names.count("help") == 1
    assert names[-1] == "mine"
    assert slash_commands.find("help").help.startswith("list commands")


def test_the_nearest_trusted_file_takes_precedence(hermes_home: Path, tmp_path: Path) -> None:
    root = tmp_path / "repository"
    (root / ".git").mkdir(parents=True)
    add(hermes_home / "commands", "go.md", "Global.")
    add(root, ".hermes/commands/go.md", "Root.")
    add(root, "a/.claude/commands/go.md", "Near, Claude.")
    add(root, "a/.hermes/commands/go.md", "Near.")
    go = slash_commands.find("go", root / "a")
    assert go.help == "Global."
    TrustStore().trust(read_project(root / "a"))
    assert slash_commands.find("go", root / "a").help == "Near."
    assert slash_commands.find("go", root).help == "Root."
    assert slash_commands.find("go").help == "Global."
