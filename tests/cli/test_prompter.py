"""Questions of a turn on a real terminal: which lines answer them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pexpect
import pytest

from hermes_agent.providers.scripted import ModelScript
from hermes_agent.tools.prompter import ApprovalRequest
from hermes_cli.commands.chat.terminal_prompter import TerminalPrompter
from hermes_cli.output import CommandOutput
from support.plain_terminal import EDITOR, quit_chat, start_chat, stored_messages
from support.scripted_server import ScriptServer

if TYPE_CHECKING:
    from pathlib import Path


def model_server(*steps: dict[str, Any]) -> ScriptServer:
    return ScriptServer(ModelScript.parse(json.dumps({"steps": [*steps, {"say": "Done."}]})))


def terminal(command: str) -> dict[str, Any]:
    return {"calls": [{"name": "terminal", "arguments": {"command": command}}]}


@pytest.fixture
def old_folder(tmp_path: Path) -> Path:
    """A folder that the model wants to remove."""
    path = tmp_path / "old"
    path.mkdir()
    return path


def test_each_approval_is_answered_by_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("old", "older"):
        (tmp_path / name).mkdir()
    calls = [f"{{name: terminal, arguments: {{command: rm -rf {name}}}}}"
             for name in ("old", "older")]  # fmt: skip
    steps = f"steps: [{{calls: [{calls[0]}]}}, {{calls: [{calls[1]}]}}, {{say: Done.}}]"
    with ScriptServer(ModelScript.parse(steps)) as server:
        child = start_chat(server)
        child.sendline("clean up")
        child.expect("Allow")
        child.sendline("o")
        child.expect("Allow")
        child.sendline("deny")
        child.expect("Done.")
        quit_chat(child)
    assert not (tmp_path / "old").exists()
    assert (tmp_path / "older").exists()


def test_an_open_question_ends_with_the_turn(tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    call = f"{{name: terminal, arguments: {{command: rm -rf {tmp_path}/old}}}}"
    with ScriptServer(ModelScript.parse(f"steps: [{{calls: [{call}]}}, {{say: Done.}}]")) as server:
        child = start_chat(server)
        child.sendline("clean up")
        child.expect("Allow")
        child.sendintr()
        quit_chat(child)
    assert (tmp_path / "old").exists()


@pytest.mark.parametrize("line", ["stop", "ok wait", "absolutely not", "/status", ""])
def test_an_invalid_answer_approves_nothing(old_folder: Path, line: str) -> None:
    with model_server(terminal(f"rm -rf {old_folder}")) as server:
        child = start_chat(server)
        child.sendline("clean up")
        child.expect("REASON\\): ")
        child.sendline(line)
        child.expect("once, session, always or deny")
        assert old_folder.exists()
        child.sendline("No")
        child.expect("Done.")
        quit_chat(child)
    assert old_folder.exists()


def test_a_line_answers_a_question() -> None:
    prompt_task = {"calls": [{"name": "clarify", "arguments": {"question": "Which one?"}}]}
    with model_server(prompt_task) as server:
        child = start_chat(server)
        child.sendline("go")
        child.expect("Which one.\r\n> ")
        child.sendline("stop at the second")
        child.expect("Done.")
        quit_chat(child)
    assert "stop at the second" in dict(stored_messages())["tool"]


def test_the_end_of_input_approves_nothing(old_folder: Path) -> None:
    with model_server(terminal(f"rm -rf {old_folder}")) as server:
        child = start_chat(server)
        child.sendline("clean up")
        child.expect("REASON\\): ")
        child.sendeof()
        child.expect("Done.")
        child.expect(EDITOR)
        child.sendeof()
        child.expect(pexpect.EOF)
        child.close()
    assert child.exitstatus == 0
    assert old_folder.exists()


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
        (["d use make clean\n"], "deny use make clean"),
        (["a run: rm *\n"], "always run: rm *"),
        (["a everything please\n", "s network\n"], "session network"),
    ],
)
def test_accepted_decisions(lines: list[str], decision: str) -> None:
    prompter = TerminalPrompter(CommandOutput(), is_interactive=True)
    prompter.read_line = iter(lines).__next__
    answer = prompter.approve(ApprovalRequest("s", "t", "rm x", "Removes", ("rm",)))
    assert str(answer) == decision


@pytest.mark.parametrize("may_always", [True, False])
def test_always_is_named_only_where_it_is_offered(
    capsys: pytest.CaptureFixture[str], *, may_always: bool
) -> None:
    prompter = TerminalPrompter(CommandOutput(), is_interactive=True)
    prompter.read_line = iter(["what\n", "d\n"]).__next__
    request = ApprovalRequest("s", "t", "rm x", "Removes", ("rm",))
    prompter.approve(request._replace(may_always=may_always))
    shown = capsys.readouterr()
    text = shown.out + shown.err
    assert ("[a]lways" in text) is may_always
    assert ("session, always or deny" in text) is may_always
