"""Turns take one checkpoint before their first change, and tell the user when they cannot."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from hermes_agent.checkpoints.restore import FileRestore
from hermes_agent.events import Notice
from hermes_cli.commands.system import doctor
from hermes_core.config.file import ConfigFile
from hermes_state import SessionDB
from support.agent_conversation import open_conversation, tool_call_step
from support.checkpoints import archive_of

if TYPE_CHECKING:
    from pathlib import Path

    from hermes_agent.checkpoints.records import Checkpoint


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "project"
    path.mkdir()
    (path / "a.txt").write_text("one\n")
    return path


def records(folder: Path) -> list[Checkpoint]:
    store = archive_of().store(folder)
    return store.repository.records() if store.exists else []


def write(path: str) -> dict[str, Any]:
    return tool_call_step("write_file", {"path": path, "content": "new"})


def notices(folder: Path, *steps: dict[str, Any]) -> list[str]:
    with open_conversation(folder, *steps, reply="once") as conversation:
        events = list(conversation.bundle.agent.turn("go"))
    return [event.text for event in events if isinstance(event, Notice)]


def test_a_turn_with_several_changes_has_one_checkpoint(folder: Path) -> None:
    patch = {"path": "a.txt", "old_string": "one", "new_string": "two"}
    steps = write("b.txt"), tool_call_step("patch", patch), write("c.txt")
    with open_conversation(folder, *steps) as conversation:
        conversation.results()
        agent = conversation.bundle.agent
    with SessionDB() as db:
        prompts = db.edits.prompt_ids(agent.session_id)
    (record,) = records(folder)
    assert (record.files, record.session_id) == (3, agent.session_id)
    assert {record.message_id} == prompts


def test_commands_that_only_read_take_none(folder: Path) -> None:
    steps = (
        tool_call_step("terminal", {"command": "ls -la | cat; grep -r one ."}),
        tool_call_step("read_file", {"path": "a.txt"}),
    )
    with open_conversation(folder, *steps, reply="once") as conversation:
        conversation.results()
    assert not archive_of().store(folder).exists


def test_a_command_that_writes_takes_one(folder: Path) -> None:
    step = tool_call_step("terminal", {"command": "rm a.txt; mkdir d; echo x > d/y"})
    with open_conversation(folder, step, reply="once") as conversation:
        conversation.results()
    (record,) = records(folder)
    assert record.files == 2


def test_changes_of_sub_agents_belong_to_the_turn(folder: Path) -> None:
    task = tool_call_step("delegate_task", {"tasks": [{"goal": "write"}]})
    with open_conversation(folder, task, write("by-sub-agent")) as conversation:
        conversation.results()
        session_id = conversation.bundle.agent.session_id
    (record,) = records(folder)
    assert (record.session_id, record.files) == (session_id, 1)


def test_a_denied_call_takes_none(folder: Path, tmp_path: Path) -> None:
    with open_conversation(folder, write(str(tmp_path / "elsewhere"))) as conversation:
        conversation.results()
    assert not archive_of().store(folder).exists


def test_the_user_is_told_once_why_a_folder_is_not_kept(folder: Path, tmp_path: Path) -> None:
    home = tmp_path / "user"
    (first,) = notices(home, write("x"))
    assert "No checkpoints of the home folder are kept" in first
    assert "Start Hermes in a project folder" in first
    assert notices(home, write("y")) == []
    ConfigFile.of_home().set("checkpoints.max_files", "1")
    (folder / "b").write_text("1")
    (text,) = notices(folder, write("c"), write("d"))
    assert "more than 1 files" in text
    assert "checkpoints.max_files" in text
    assert notices(folder, write("e")) == []
    assert (folder / "e").read_text() == "new"


def test_a_turn_that_makes_the_folder_too_large_can_be_taken_back_but_for_new_files(
    folder: Path,
) -> None:
    ConfigFile.of_home().set("checkpoints.max_files", "3")
    command = "echo two > a.txt; touch b c d e"
    notices(folder, tool_call_step("terminal", {"command": command}))
    (record,) = records(folder)
    result = FileRestore(archive_of().store(folder), [record]).apply(99, "s1")
    assert (result.restored, result.refused) == (["a.txt"], [])
    assert (folder / "a.txt").read_text() == "one\n"
    assert (folder / "e").exists()


def test_without_free_space_no_checkpoint_is_taken(folder: Path) -> None:
    ConfigFile.of_home().set("checkpoints.min_free_mb", "10000000")
    (text,) = notices(folder, write("x"))
    assert "checkpoints.min_free_mb" in text
    assert (folder / "x").exists()


def test_a_failure_is_told_and_the_tool_runs(folder: Path, hermes_home: Path) -> None:
    (hermes_home / "checkpoints").write_text("in the way")
    (text,) = notices(folder, write("x"))
    assert text.startswith("No checkpoint was kept")
    assert (folder / "x").exists()


@pytest.mark.parametrize("reason", ["setting", "git"])
def test_switched_off_or_without_git_nothing_is_kept(
    folder: Path, hermes_home: Path, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if reason == "setting":
        ConfigFile.of_home().set("checkpoints.enabled", "false")
    else:
        monkeypatch.setattr("hermes_core.system_programs.SYSTEM_FOLDERS", ())
        monkeypatch.setenv("PATH", "")
        (line,) = doctor.check_checkpoints()
        assert (line.status, "git" in line.detail, "apt install git" in line.advice) == (
            "warning",
            True,
            True,
        )
    assert notices(folder, write("x")) == []
    assert not (hermes_home / "checkpoints").exists()
    assert json.dumps((folder / "x").read_text()) == '"new"'
