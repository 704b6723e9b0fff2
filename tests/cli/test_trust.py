"""`hermes trust`, and the question at the start of a chat, as real processes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pexpect
import pytest

from hermes_agent.providers.scripted import ModelScript
from hermes_core.paths import TRUST_FILE
from support.model_servers import model_argument
from support.plain_terminal import EDITOR, quit_chat, stored_messages
from support.scripted_server import ScriptServer
from support.terminal import spawn
from support.waiting import PATIENCE_SECONDS

if TYPE_CHECKING:
    from pathlib import Path

    from support.command_line import Hermes

SERVERS = {"mcpServers": {"db": {"command": "npx", "args": ["-y", "db-server"]}}}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "project"
    (folder / ".git").mkdir(parents=True)
    (folder / ".mcp.json").write_text(json.dumps(SERVERS))
    (folder / ".hermes" / "commands").mkdir(parents=True)
    (folder / ".hermes" / "commands" / "greet.md").write_text("Say hello to $1.")
    monkeypatch.chdir(folder)
    return folder


def test_trust_is_shown_given_listed_and_revoked(
    hermes: Hermes, project: Path, hermes_home: Path
) -> None:
    shown = hermes("trust", "--show")
    assert shown.code == 0
    assert "MCP server db runs: npx -y db-server" in shown.out
    refused = hermes("trust")  # nobody can be asked
    assert refused.code == 2
    assert "--yes" in refused.err
    assert not (hermes_home / TRUST_FILE).exists()
    given = json.loads(hermes("trust", "--yes", "--json").out)
    assert given["trusted"] == [".mcp.json", ".hermes/commands/greet.md"]
    assert given["pending"] == []
    (listed,) = json.loads(hermes("trust", "--list", "--json").out)
    assert listed["folder"] == str(project)
    (project / ".mcp.json").write_text("{}")
    (pending,) = json.loads(hermes("trust", "--show", "--json").out)["pending"]
    assert (pending["file"], pending["state"]) == (".mcp.json", "changed")
    assert hermes("trust", "--revoke").code == 0
    assert json.loads(hermes("trust", "--list", "--json").out) == []
    assert hermes("trust", "no-such-folder").code == 2


def test_a_question_on_the_command_line_never_trusts_and_names_the_command(
    hermes: Hermes, project: Path, hermes_home: Path
) -> None:
    with ScriptServer(ModelScript.parse("steps: [{say: Hello.}]")) as server:
        asked = hermes("chat", "-q", "hi", "--model", model_argument(server))
    assert asked.out.strip() == "Hello."
    assert f"hermes trust {project}" in asked.err.replace("\n", " ")
    assert not (hermes_home / TRUST_FILE).exists()


@pytest.mark.usefixtures("project")
def test_a_question_may_be_a_command_of_a_trusted_file(hermes: Hermes) -> None:
    with ScriptServer(ModelScript.parse("steps: []")) as server:
        model = ("--model", model_argument(server))
        assert hermes("-p", "/greet Ada", *model).out == "You said: /greet Ada\n"
        hermes("trust", "--yes")
        assert hermes("-p", "/greet Ada", *model).out == "You said: Say hello to Ada.\n"
        assert hermes("-p", "/etc is what?", *model).out == "You said: /etc is what?\n"


@pytest.mark.usefixtures("project")
def test_a_chat_asks_at_its_start_and_then_has_the_command(hermes_home: Path) -> None:
    with ScriptServer(ModelScript.parse("steps: [{say: Done.}]")) as server:
        child = spawn(
            *("chat", "--model", model_argument(server)),
            environment={"TERM": "xterm-256color"},
            timeout=PATIENCE_SECONDS,
            dimensions=(40, 100),
        )
        child.expect("MCP server db runs: npx -y db-server")
        child.expect("Trust these files")
        child.sendline("y")
        child.expect("/help")
        child.expect(EDITOR)
        child.sendline("/greet Ada")
        child.expect("Done.")
        quit_chat(child)
    assert (hermes_home / TRUST_FILE).exists()
    assert stored_messages()[0] == ("user", "Say hello to Ada.")


@pytest.mark.usefixtures("project")
def test_the_terminal_ui_asks_in_a_dialog_and_a_no_is_remembered(hermes_home: Path) -> None:
    with ScriptServer(ModelScript.parse("steps: [{say: Done.}]")) as server:
        for is_first in (True, False):
            child = spawn(
                *("tui", "--no-daemon", "--model", model_argument(server)),
                environment={"TERM": "xterm-256color"},
                timeout=PATIENCE_SECONDS,
                dimensions=(40, 100),
            )
            child.expect(r"\x1b\[\?1049h")
            if is_first:
                child.expect("Trust these files")
                child.expect("runs: npx -y db-server")
                child.expect("Esc: ask again later")  # keys are accepted
                child.send("n")
                child.expect("stay ignored")
            else:
                child.expect("F1 keys")
                child.send("hello\r")  # a dialog would take the keys
                assert child.expect(["Trust these files", "Done"]) == 1
            child.sendcontrol("d")
            child.expect(pexpect.EOF)
            child.close()
    folder = json.loads((hermes_home / TRUST_FILE).read_text())["folders"].popitem()[1]
    assert folder["files"] == {}
    assert len(folder["declined"]) == 2
