"""Hints name the command as it was typed; other text stays as it is."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from hermes_core.command_name import with_command_name

SOURCES = Path(__file__).parents[2] / "src"


@pytest.fixture(autouse=True)
def typed_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HERMES_COMMAND", "./hermes")


def test_commands_are_named_as_they_were_typed() -> None:
    commands = "Test it: hermes models test (hermes setup), `hermes`, `X=1 hermes import`."
    typed = "Test it: ./hermes models test (./hermes setup), `./hermes`, `X=1 ./hermes import`."
    assert with_command_name(commands) == typed
    assert with_command_name(typed) == typed
    ask = "isn't a command: hermes -p 'x'; the user's: hermes setup"
    assert with_command_name(ask) == ask.replace(": hermes", ": ./hermes")
    shell = 'show "$(hermes sessions browse)"'
    assert with_command_name(shell) == 'show "$(./hermes sessions browse)"'


@pytest.mark.parametrize(
    "text",
    [
        "hermes: the folder /home/hermes is missing; plugin hermes dice, user: hermes",
        "Found hermes-agent: hermes-agent",
        "No session with ID or title 'Note: hermes setup'.",
        "No session with ID or title 'run `hermes setup`'.",
        'No session with ID or title "it\'s: hermes setup".',
        "No session with ID or title 'it\\'s \"x\": hermes setup'.",
        "No session with ID or title 'it's mine: hermes setup'.",
        "HTTP 404: hermes is not a model of this server (hermes was removed)",
    ],
)
def test_names_and_quoted_texts_stay(text: str) -> None:
    assert with_command_name(text) == text


def test_every_hint_of_the_program_is_found() -> None:
    hints = [text for path in SOURCES.rglob("*.py") for text in _hints(path)]
    assert len(hints) > 20
    assert [hint for hint in hints if with_command_name(hint) == hint] == []


def _hints(path: Path) -> list[str]:
    texts = (
        node.value
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    )
    return [hint for text in texts for hint in re.findall(r"(?:: |(?<!\$)\()hermes [-a-z]+", text)]
