"""`hermes import` as a real command."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from support.claude_files import ClaudeFile
from support.codex_files import CodexFile
from support.model_servers import model_argument, model_servers
from support.terminal import on_terminal, wait_for_exit

if TYPE_CHECKING:
    from pathlib import Path

    from support.command_line import Hermes


@pytest.fixture
def file(tmp_path: Path) -> ClaudeFile:
    return ClaudeFile(tmp_path / "ada").exchange("hello", "Hi.")


def test_without_an_agent_it_lists_what_is_on_this_machine(
    hermes: Hermes, file: ClaudeFile
) -> None:
    shown = hermes("import", HOME=str(file.home))
    assert shown.code == 0
    assert "claude-code" in shown.out
    assert "hermes import --yes" in shown.out
    (facts,) = json.loads(hermes("import", "--json", HOME=str(file.home)).out)
    assert (facts["agent"], facts["conversations"], facts["new"]) == ("claude-code", 1, 1)
    assert facts["places"] == [str(file.home / ".claude")]


@pytest.mark.parametrize(
    ("answer", "imported"),
    [("codex", {"codex"}), ("Y", {"codex", "claude-code"}), ("", set()), ("\x04", set())],
)
def test_on_a_terminal_agents_are_chosen(
    hermes: Hermes, file: ClaudeFile, answer: str, imported: set[str]
) -> None:
    CodexFile(file.home).exchange("hello", "Hi.")
    child = on_terminal("import", HOME=str(file.home))
    child.expect("or names of agents")
    child.send(answer if answer == "\x04" else f"{answer}\r")
    assert wait_for_exit(child) == 0
    rows = json.loads(hermes("sessions", "list", "--json").out)
    assert {row["source"] for row in rows} == imported


def test_all_that_is_found_is_imported_once(hermes: Hermes, file: ClaudeFile) -> None:
    first = hermes("import", "--yes", HOME=str(file.home))
    assert first.out == "claude-code: imported 1 conversation with 2 messages.\n"
    again = hermes("import", "--yes", HOME=str(file.home))
    assert again.out == "claude-code: imported 0 conversations with 0 messages.\n"
    assert "hello" in hermes("sessions", "list", "--source", "claude-code").out


def test_a_home_folder_of_another_machine_is_imported(hermes: Hermes, file: ClaudeFile) -> None:
    for path in (file.home, file.home / ".claude"):
        (report,) = json.loads(hermes("import", "claude-code", str(path), "--json").out)
        assert report["failures"] == {}
    assert "Hi." in hermes("sessions", "show", file.session_id).out


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["nothing"], "'nothing' is neither an agent nor a file. Agents: claude-code"),
        (["claude-code", "/nowhere"], "/nowhere does not exist."),
        (["claude-code", "{home}/empty"], "has no history of Claude Code."),
        (["--follow", "--dry-run"], "--follow imports everything on this machine"),
    ],
)
def test_what_cannot_be_imported_is_an_error_with_a_reason(
    hermes: Hermes, file: ClaudeFile, arguments: list[str], text: str
) -> None:
    (file.home / "empty").mkdir()
    finished = hermes("import", *[each.format(home=file.home) for each in arguments])
    assert finished.code == 2
    assert text in finished.err


def test_an_agent_without_a_history_is_named(hermes: Hermes, tmp_path: Path) -> None:
    home = str(tmp_path / "nobody")
    shown = hermes("import", "codex", HOME=home)
    assert shown.out.startswith("No history of Codex CLI found on this machine.\n")
    assert "hermes import codex PATH" in shown.out
    for arguments in (["codex"], ["--yes"], []):
        assert json.loads(hermes("import", "--json", *arguments, HOME=home).out) == []


def test_a_dry_run_imports_nothing(hermes: Hermes, file: ClaudeFile) -> None:
    shown = hermes("import", "--dry-run", HOME=str(file.home))
    assert shown.out == "claude-code: would import 1 conversation with 2 messages.\n"
    assert "hello" not in hermes("sessions", "list").out


def test_only_recent_conversations_of_a_project_are_imported(
    hermes: Hermes, file: ClaudeFile
) -> None:
    ClaudeFile(file.home, cwd="/home/ada/other").exchange("elsewhere", "Yes.")
    home = {"HOME": str(file.home)}
    assert "0 conversations" in hermes("import", "--yes", "--since", "2036-01-01", **home).out
    only = hermes("import", "--yes", "--project", "/home/ada/other", **home).out
    assert "imported 1 conversation" in only
    assert "1 file of other projects skipped." in only


def test_an_imported_conversation_is_continued_in_a_branch(
    hermes: Hermes, file: ClaudeFile
) -> None:
    hermes("import", "--yes", HOME=str(file.home))
    with model_servers() as serve:
        server = serve("[{say: So it goes.}]")
        arguments = ("-r", file.session_id, "-q", "go on", "--model", model_argument(server))
        assert "So it goes." in hermes("chat", *arguments).out
        texts = [message["content"] for message in server.requests[0]["messages"][1:]]
    assert texts == ["hello", "Hi.", "go on"]
    rows = json.loads(hermes("sessions", "list", "--json").out)
    own = next(row for row in rows if row["source"] == "cli")
    imported = next(row for row in rows if row["source"] == "claude-code")
    assert (own["message_count"], imported["message_count"]) == (4, 2)
    shown = hermes("sessions", "show", own["id"]).out
    assert shown.index("hello") < shown.index("Hi.") < shown.index("go on")


def test_an_export_of_hermes_agent_is_imported_by_both_commands(
    hermes: Hermes, tmp_path: Path
) -> None:
    path = tmp_path / "export.jsonl"
    message = {"id": 1, "role": "user", "content": "hello", "timestamp": 1772366401.0}
    session = {"id": "s1", "source": "cli", "started_at": 1772366400.0, "messages": [message]}
    path.write_text(json.dumps(session) + "\n")
    finished = hermes("sessions", "import", str(path))
    assert finished.out == "hermes-export: imported 1 conversation with 1 message.\n"
    assert "imported 0 conversations" in hermes("import", str(path)).out


def test_a_compacted_conversation_in_an_export_of_hermes_agent_is_one_conversation(
    hermes: Hermes, tmp_path: Path
) -> None:
    def session(name: str, text: str, **fields: object) -> str:
        message = {"id": 1, "role": "user", "content": text, "timestamp": 1772366401.0}
        about = {"id": name, "source": "cli", "started_at": 1772366400.0, "messages": [message]}
        return json.dumps(about | fields) + "\n"

    path = tmp_path / "export.jsonl"
    path.write_text(
        session("a", "the first half", ended_at=1772366405.0, end_reason="compression")
        + session("b", "the second half", parent_session_id="a", started_at=1772366405.0)
        + session("c", "of telegram", ended_at=1772366409.0, end_reason="session_reset")
    )
    assert "imported 3 conversations" in hermes("sessions", "import", str(path)).out
    shown = hermes("sessions", "show", "a").out
    assert shown.index("the first half") < shown.index("the second half")
    listed = {row["id"]: row for row in json.loads(hermes("sessions", "list", "--json").out)}
    assert (listed["b"]["ended_at"], listed["b"]["end_reason"]) == (None, None)
    assert (listed["c"]["ended_at"], listed["c"]["end_reason"]) == (1772366409.0, "session_reset")


@pytest.mark.parametrize("folder", ["work", "other/../work", "link"])
@pytest.mark.parametrize("cwd", ["work", "link/deep"])
def test_a_project_is_found_by_any_of_its_paths(
    hermes: Hermes, tmp_path: Path, folder: str, cwd: str
) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "link").symlink_to("work")
    file = ClaudeFile(tmp_path / "ada", cwd=str(tmp_path / cwd)).exchange("hello", "Hi.")
    project = str(tmp_path / folder)
    finished = hermes("import", "claude-code", str(file.home), "--project", project)
    assert "imported 1 conversation with" in finished.out


def test_a_project_that_is_a_loop_of_links_has_no_conversations(
    hermes: Hermes, file: ClaudeFile, tmp_path: Path
) -> None:
    (tmp_path / "loop").symlink_to("loop")
    project = str(tmp_path / "loop")
    finished = hermes("import", "claude-code", str(file.home), "--project", project)
    assert (finished.code, finished.err) == (0, "")
    assert "1 file of other projects skipped" in finished.out
