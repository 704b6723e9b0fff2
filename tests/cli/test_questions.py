"""Questions that a turn asks on a real terminal: what counts as an answer, and what never does."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pexpect
import pytest

from hermes_agent.providers.scripted import Script
from hermes_agent.providers.scripted_server import ScriptServer
from hermes_agent.tools.base import ApprovalRequest
from hermes_cli.commands.chat.turn_printer import TerminalPrompter
from hermes_cli.output import Output
from support.plain_terminal import left, said, talk

if TYPE_CHECKING:
    from pathlib import Path


def serving(*steps: dict[str, Any]) -> ScriptServer:
    return ScriptServer(Script.parse(json.dumps({"steps": [*steps, {"say": "Done."}]})))


def terminal(command: str) -> dict[str, Any]:
    return {"calls": [{"name": "terminal", "arguments": {"command": command}}]}


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A folder that the model wants to remove."""
    found = tmp_path / "old"
    found.mkdir()
    return found


def test_an_approval_is_answered_by_a_line_or_a_command(tmp_path: Path) -> None:
    for name in ("old", "older"):
        (tmp_path / name).mkdir()
    calls = [f"{{name: terminal, arguments: {{command: rm -rf {tmp_path}/{name}}}}}"
             for name in ("old", "older")]  # fmt: skip
    steps = f"steps: [{{calls: [{calls[0]}]}}, {{calls: [{calls[1]}]}}, {{say: Done.}}]"
    with ScriptServer(Script.parse(steps)) as server:
        child = talk(server)
        child.sendline("clean up")
        child.expect("Allow")
        child.sendline("o")
        child.expect("Allow")
        child.sendline("/deny")
        child.expect("Done.")
        left(child)
    assert not (tmp_path / "old").exists()
    assert (tmp_path / "older").exists()


def test_a_question_that_waits_is_given_up_with_the_turn(tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    call = f"{{name: terminal, arguments: {{command: rm -rf {tmp_path}/old}}}}"
    with ScriptServer(Script.parse(f"steps: [{{calls: [{call}]}}, {{say: Done.}}]")) as server:
        child = talk(server)
        child.sendline("clean up")
        child.expect("Allow")
        child.sendintr()
        left(child)
    assert (tmp_path / "old").exists()


@pytest.mark.parametrize("line", ["stop", "ok wait", "absolutely not", "/status", ""])
def test_what_is_no_word_for_it_approves_nothing(old: Path, line: str) -> None:
    with serving(terminal(f"rm -rf {old}")) as server:
        child = talk(server)
        child.sendline("clean up")
        child.expect("eny: ")
        child.sendline(line)
        child.expect("messages +2" if line == "/status" else "once, session, always or deny")
        assert old.exists()
        child.sendline("No")
        child.expect("Done.")
        left(child)
    assert old.exists()


def test_a_turn_that_asks_can_be_stopped(old: Path) -> None:
    with serving(terminal(f"rm -rf {old}")) as server:
        child = talk(server)
        child.sendline("clean up")
        child.expect("eny: ")
        child.sendline("/stop")
        left(child)
        assert len(server.requests) == 1
    assert old.exists()


def test_a_turn_that_asks_can_be_told_something_before_it_is_answered(old: Path) -> None:
    with serving(terminal(f"rm -rf {old}")) as server:
        child = talk(server)
        child.sendline("clean up")
        child.expect("eny: ")
        child.sendline("/steer only this one")
        child.sendline("/approve once")
        child.expect("Done.")
        left(child)
    assert not old.exists()
    assert ("user", "only this one") in said()


def test_any_words_answer_a_question_and_commands_do_not() -> None:
    asking = {"calls": [{"name": "clarify", "arguments": {"question": "Which one?"}}]}
    with serving(asking) as server:
        child = talk(server)
        child.sendline("go")
        child.expect("Which one.\r\n> ")
        child.sendline("/approve")
        child.expect("There is nothing to answer")
        child.sendline("/status")
        child.expect("messages +2")
        child.sendline("stop at the second")
        child.expect("Done.")
        left(child)
    assert "stop at the second" in dict(said())["tool"]


def test_when_nobody_types_any_more_nothing_is_approved(old: Path) -> None:
    with serving(terminal("sleep 1.5"), terminal(f"rm -rf {old}")) as server:
        child = talk(server)
        child.sendline("clean up")
        child.expect("sleep 1.5")
        child.sendeof()
        child.expect("Done.")
        child.expect(pexpect.EOF)
        child.close()
    assert child.exitstatus == 0
    assert old.exists()


@pytest.mark.parametrize(
    ("lines", "decision"),
    [
        (["o\n"], "once"),
        (["Once \n"], "once"),
        (["S\n"], "session"),
        (["session\n"], "session"),
        (["a\n"], "always"),
        (["ALWAYS\n"], "always"),
        (["d\n"], "deny"),
        (["n\n"], "deny"),
        (["no\n"], "deny"),
        (["stop\n", "over\n", "\n", "deny\n"], "deny"),
        ([""], "deny"),
    ],
)
def test_the_words_that_decide(lines: list[str], decision: str) -> None:
    person = TerminalPrompter(Output(), is_there=True)
    person.reads = iter(lines).__next__
    assert person.approve(ApprovalRequest("s", "t", "rm x", "Removes", ("rm",))) == decision
