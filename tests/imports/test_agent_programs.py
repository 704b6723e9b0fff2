"""`hermes handoff` with the real programs: they list, resume and answer, and it comes back.

`make agents` installs them.
"""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING, Any

import pytest

from hermes_conversation.handoff import hand_to_agent
from hermes_import.importer import AgentImport
from hermes_import.registry import SourceRegistry
from hermes_import.writers.writer import WRITERS
from support.agent_models import AgentModel
from support.agent_programs import IS_INSTALLED, AgentPrograms, codex_server
from support.handed_conversations import SESSION, write_conversation
from support.tmux import Tmux

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from hermes_import.importer import SourceReport
    from hermes_state import SessionDB

pytestmark = pytest.mark.skipif(not IS_INSTALLED, reason="run `make agents`")

PROMPT = "And what about the animal?"
ANSWER = "The walrus has seven words."
TEXTS = (
    "How many words has README.md?", "I will count.", "7 README.md", "1|# Pelican",
    "Seven, and a pelican.", "灯塔", "the memory is full", "Noted the walrus.",
)  # fmt: skip
# What each program sends to the model of the tool calls of the conversation.
SHOWN = {
    "claude-code": ['"name": "Bash"', '"file_path": "README.md"', "Exit code 3"],
    "codex": ['"name": "exec_command"', '"name": "read_file"', "Process exited with code 3"],
    "opencode": ['"name": "bash"', "filePath", "boom"],
    "pi": ['"name": "bash"', '"name": "read"', "Command exited with code 3"],
}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "somebody"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    return folder


@pytest.fixture(params=["Übung project"])
def project(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    folder = tmp_path / str(request.param)
    folder.mkdir(parents=True)
    (folder / "README.md").write_text("# Pelican\n")
    return folder


@pytest.fixture
def model() -> Iterator[AgentModel]:
    with AgentModel(ANSWER) as server:
        yield server


@pytest.fixture
def programs(home: Path, project: Path, model: AgentModel) -> AgentPrograms:
    return AgentPrograms(home, project, model)


def hand_over(db: SessionDB, agent: str, programs: AgentPrograms) -> str:
    """Hand the conversation to a program; returns its ID there."""
    programs.command(agent)  # writes its settings, from which the writer takes the model
    handoff = hand_to_agent(db, SESSION, agent)
    if handoff.import_command:
        assert "Imported session" in programs.run(agent, *handoff.import_command[1:])
    return handoff.resume_command[-1]


def import_all(db: SessionDB, agent: str, home: Path) -> SourceReport:
    found = SourceRegistry().found_at(agent, home)
    return AgentImport(db, found.source).run(found.units())


def contents(db: SessionDB, session_id: str) -> list[str]:
    return [str(row["content"]) for row in db.get_messages(session_id)]


@pytest.mark.parametrize("agent", WRITERS)
def test_a_program_continues_the_conversation_and_it_comes_back(
    agent: str, db: SessionDB, home: Path, project: Path, programs: AgentPrograms,
    model: AgentModel,
) -> None:  # fmt: skip
    before = write_conversation(db, project)
    native_id = hand_over(db, agent, programs)
    assert import_all(db, agent, home).new == 0
    assert ANSWER in programs.ask(agent, native_id, PROMPT)
    sent = json.dumps(model.request_with(PROMPT), ensure_ascii=False)
    for text in [*TEXTS, *SHOWN[agent]]:
        assert text in sent or json.dumps(text)[1:-1] in sent, (text, sent)
    report = import_all(db, agent, home)
    assert (report.new, report.messages, report.failures) == (1, 2, {})
    [returned] = [each.session_id for each in db.imports.all()]
    *turns, prompt, answer = contents(db, returned)
    assert turns == before
    assert (prompt.strip('"'), answer) == (PROMPT, ANSWER)  # opencode keeps the quotation marks
    statistics = db.statistics.stats()
    assert (statistics.messages, statistics.tool_calls) == (12, 4)
    assert (statistics.input_tokens, statistics.output_tokens) == (11, 7)
    assert returned == f"{agent}-{native_id}"


@pytest.mark.parametrize("agent", ["claude-code", "pi"])
def test_a_fork_in_the_program_is_recognized(
    agent: str, db: SessionDB, home: Path, project: Path, programs: AgentPrograms
) -> None:
    before = write_conversation(db, project)
    native_id = hand_over(db, agent, programs)
    if agent == "pi":
        programs.run(agent, "-p", "--fork", native_id, PROMPT)
    else:
        programs.ask(agent, native_id, PROMPT, "--fork-session")
    report = import_all(db, agent, home)
    assert (report.new, report.messages) == (1, 2)
    [returned] = [each.session_id for each in db.imports.all()]
    assert contents(db, returned) == [*before, PROMPT, ANSWER]


@pytest.mark.parametrize("agent", ["claude-code", "pi"])
def test_the_session_is_the_latest_one_of_its_folder(
    agent: str, db: SessionDB, home: Path, project: Path, programs: AgentPrograms,
    model: AgentModel,
) -> None:  # fmt: skip
    write_conversation(db, project)
    hand_over(db, agent, programs)
    assert ANSWER in programs.run(agent, "-p", "--continue", PROMPT)
    assert "Noted the walrus." in json.dumps(model.request_with(PROMPT))


@pytest.mark.parametrize(
    "project", [f"{'long name 👋🏽 ' * 10}/{'sub-folder ' * 12}"], indirect=True
)
def test_claude_code_finds_the_session_of_a_folder_with_a_long_name(
    db: SessionDB, home: Path, project: Path, programs: AgentPrograms
) -> None:
    write_conversation(db, project)
    native_id = hand_over(db, "claude-code", programs)
    assert ANSWER in programs.ask("claude-code", native_id, PROMPT)


def test_codex_lists_and_shows_the_conversation(
    db: SessionDB, home: Path, project: Path, programs: AgentPrograms
) -> None:
    write_conversation(db, project)
    native_id = hand_over(db, "codex", programs)
    with codex_server(programs) as server:
        [listed] = server.call("thread/list")["data"]
        assert (listed["id"], listed["cwd"]) == (native_id, str(project))
        assert listed["preview"] == "How many words has README.md?"
    programs.ask("codex", native_id, PROMPT)
    with codex_server(programs) as server:
        thread = server.call("thread/read", threadId=native_id, includeTurns=True)["thread"]
    items: list[dict[str, Any]] = [item for turn in thread["turns"] for item in turn["items"]]
    assert [item["type"] for item in items] == [
        "userMessage", "agentMessage", "commandExecution", "mcpToolCall", "agentMessage",
        "userMessage", "commandExecution", "mcpToolCall", "agentMessage",
        "userMessage", "agentMessage",
    ]  # fmt: skip
    commands = [item for item in items if item["type"] == "commandExecution"]
    assert [item["exitCode"] for item in commands] == [0, 3]
    assert commands[0]["aggregatedOutput"] == "7 README.md\n"


SCREENS = {
    "claude-code": ["Read 1 file", "Ran 1 shell command"],
    "codex": ["Ran wc -w README.md", "7 README.md", "Called hermes.read_file", "Exited (status 3)"],
    "opencode": ["$ wc -w README.md", "7 README.md", "Read README.md", "$ exit 3"],
    "pi": ["$ wc -w README.md", "7 README.md", "read README.md", "exited with code 3"],
}


@pytest.mark.parametrize("project", ["project"], indirect=True)
@pytest.mark.parametrize("agent", WRITERS)
def test_the_screen_shows_the_tool_calls(
    agent: str, db: SessionDB, home: Path, project: Path, programs: AgentPrograms, tmp_path: Path
) -> None:
    write_conversation(db, project)
    native_id = hand_over(db, agent, programs)
    command = programs.screen_command(agent, native_id)
    with Tmux(tmp_path, 110, 70, **programs.environment) as window:
        window.type(f"cd {shlex.quote(str(project))}; {shlex.join(command)}\n")
        screen = window.wait_for("Noted the walrus.")
    for text in ["How many words has README.md?", "Seven, and a pelican.", *SCREENS[agent]]:
        assert text in screen, screen


def test_opencode_lists_the_conversation(
    db: SessionDB, home: Path, project: Path, programs: AgentPrograms
) -> None:
    write_conversation(db, project)
    native_id = hand_over(db, "opencode", programs)
    listed = programs.run("opencode", "session", "list")
    assert native_id in listed
    assert "Words of the README" in listed
