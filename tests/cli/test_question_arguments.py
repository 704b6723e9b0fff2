"""Ways to ask a question that people know from other agents, and hints for near misses."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from hermes_cli.parser import OTHER_NAMES
from support.command_line import command
from support.model_servers import configured_models
from support.waiting import PATIENCE_SECONDS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.command_line import Hermes


@pytest.fixture
def server(hermes_home: Path) -> Iterator[Any]:
    del hermes_home
    with configured_models() as start:
        yield start("[{say: Fine.}, {say: Fine.}]")


def asked(server: Any) -> str:
    return str(server.requests[-1]["messages"][-1]["content"])


def piped(text: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(*arguments),
        input=text,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_SECONDS,
    )


@pytest.mark.parametrize(
    "arguments",
    [
        ["what is this folder?"],
        ["-p", "what is this folder?"],
        ["--print", "what is this folder?"],
        ["-q", "what is this folder?"],
        ["--output-format", "json", "-p", "what is this folder?"],
        ["--source", "script", "-p", "what is this folder?", "--output-format", "json"],
        ["chat", "what is this folder?"],
        ["chat", "what", "is", "this", "folder?"],
    ],
    ids=" ".join,
)
def test_a_question_is_asked(hermes: Hermes, server: Any, arguments: list[str]) -> None:
    finished = hermes(*arguments)
    assert (finished.code, finished.err) == (0, "")
    assert "Fine." in finished.out
    assert asked(server) == "what is this folder?"


@pytest.mark.parametrize(
    ("arguments", "question"),
    [
        ([], "from a pipe"),
        (["-p"], "from a pipe"),
        (["-q", "-"], "from a pipe"),
        (["-p", "-", "--output-format", "text"], "from a pipe"),
        (["chat", "-q", "-"], "from a pipe"),
        (["review this"], "review this\n\nfrom a pipe"),
        (["chat", "-q", "review this"], "review this\n\nfrom a pipe"),
        (["chat", "-q", "review this", "-"], "review this\n\nfrom a pipe"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_piped_text_is_the_question_or_belongs_to_it(
    server: Any, arguments: list[str], question: str
) -> None:
    finished = piped("from a pipe\n", *arguments)
    assert (finished.returncode, finished.stdout.strip()) == (0, "Fine."), finished.stderr
    assert asked(server) == question


def test_without_a_question_an_overview_is_printed(hermes: Hermes) -> None:
    assert "conversations" in hermes().out


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["sesions"], "did you mean 'sessions'?"),
        (["session", "list"], "did you mean 'sessions'?"),
        (["sessions", "lst"], "did you mean 'list'?"),
        (["gatway", "status"], "did you mean 'gateway'?"),
        (["export"], "did you mean 'sessions export'?"),
        (["upgrade"], "did you mean 'update'?"),
        (["xyzzy"], "To ask the agent: hermes -p 'xyzzy'"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_near_miss_names_the_right_command(
    hermes: Hermes, arguments: list[str], hint: str
) -> None:
    finished = hermes(*arguments)
    assert finished.code == 2
    assert hint in finished.err
    assert "choose from" not in finished.err
    assert len(finished.err) < 400


@pytest.mark.parametrize("meant", sorted(set(OTHER_NAMES.values())))
def test_the_names_that_hints_give_exist(hermes: Hermes, meant: str) -> None:
    assert hermes(*meant.split(), "--help").code == 0
