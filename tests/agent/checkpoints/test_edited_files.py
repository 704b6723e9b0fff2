"""The agent's own edits can be undone wherever the files are, or are named if they cannot."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING, Any

import pytest

from hermes_agent.checkpoints.archive import CheckpointArchive
from hermes_agent.checkpoints.store import CheckpointCleanup
from hermes_agent.events import Notice
from hermes_conversation.file_history import CheckpointSelection, select_records
from support.agent_conversation import open_conversation, tool_call_step
from support.checkpoints import archive_of

if TYPE_CHECKING:
    from pathlib import Path

    from hermes_agent.checkpoints.records import Checkpoint
    from hermes_conversation.file_history import FileOutcome


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "project"
    path.mkdir()
    (path / ".gitignore").write_text("*.cfg\nlogs/\n")
    return path


@pytest.fixture
def other(tmp_path: Path) -> Path:
    path = tmp_path / "other"
    path.mkdir()
    return path


def patch(path: object, old: str = "one", new: str = "two") -> dict[str, Any]:
    arguments = {"path": str(path), "old_string": old, "new_string": new}
    return tool_call_step("patch", arguments)


def write(path: object, content: str = "new") -> dict[str, Any]:
    return tool_call_step("write_file", {"path": str(path), "content": content})


def turn(folder: Path, *steps: dict[str, Any]) -> list[str]:
    """A turn; returns its notices."""
    with open_conversation(folder, *steps, reply="once") as conversation:
        events = list(conversation.bundle.agent.turn("go"))
    return [event.text for event in events if isinstance(event, Notice)]


def records(folder: Path | None = None) -> list[Checkpoint]:
    found = select_records(archive_of(), lambda _record: True, folder)
    return sorted((r for each in found for r in each.records), key=lambda r: r.number)


def undo(*numbers: int, force: tuple[str, ...] = ()) -> FileOutcome:
    archive = archive_of()
    found = list(select_records(archive, lambda record: record.number in numbers))
    return CheckpointSelection(archive, found).restore("s1", (), force)


def test_ignored_and_outside_files_are_restored(folder: Path, other: Path) -> None:
    ignored, outside, plain = folder / "local.cfg", other / "o.txt", folder / "a.txt"
    for path in (ignored, outside, plain):
        path.write_text("one")
    ignored.chmod(0o600)
    turn(folder, patch(ignored), patch(outside), patch(outside, "two", "3"), patch(plain))
    assert outside.read_text() == "3"
    found = records(folder)
    assert [record.files for record in found] == [1, 2]
    outcome = undo(*(record.number for record in found))
    assert sorted(outcome.restored) == sorted(["a.txt", str(ignored), str(outside)])
    assert not outcome.refused
    assert [path.read_text() for path in (ignored, outside, plain)] == ["one"] * 3
    assert stat.S_IMODE(ignored.stat().st_mode) == 0o600
    undo(*outcome.undo_numbers)
    assert [path.read_text() for path in (ignored, outside, plain)] == ["two", "3", "two"]


def test_new_ignored_and_outside_files_are_removed(folder: Path, other: Path) -> None:
    turn(folder, write("logs/deep/x"), write(other / "new/y"), write("kept"))
    undo(*(record.number for record in records(folder)))
    assert not (folder / "logs").exists()
    assert not (folder / "kept").exists()
    assert list(other.rglob("*")) == [other / "new"]  # folders of others are left alone


def test_a_file_that_changed_since_is_refused_unless_it_is_forced(
    folder: Path, other: Path
) -> None:
    path = other / "o.txt"
    path.write_text("one")
    turn(folder, patch(path))
    path.write_text("mine")
    (record,) = records(folder)
    outcome = undo(record.number)
    assert [(item.name, item.problem) for item in outcome.refused] == [(str(path), "changed since")]
    assert path.read_text() == "mine"
    undo(record.number, force=(str(path),))
    assert path.read_text() == "one"


def test_a_file_with_credentials_is_named_and_not_copied(
    folder: Path, hermes_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hermes_agent.tools.files.MAX_EDIT_BYTES", 50_000_000)
    (folder / ".env").write_text("one SECRET")
    large = folder / "large.cfg"
    large.write_bytes(b"one " + b"x" * 20_000_001)
    turn(folder, patch(".env"), patch("large.cfg"))
    (record,) = records(folder)
    outcome = undo(record.number)
    assert outcome.restored == []
    assert {item.name: item.problem for item in outcome.refused} == {
        str(folder / ".env"): "may hold credentials or belongs to Hermes, so no copy is kept",
        str(large): "too large, so no copy is kept",
    }
    assert (folder / ".env").read_text() == "two SECRET"
    store = archive_of().edited_files()
    with store.locked() as repository:
        assert repository.states(record.before) == repository.states(record.after) == {}


def test_edits_in_a_folder_that_is_not_kept_are_restored(tmp_path: Path) -> None:
    home = tmp_path / "user"
    (home / "a.txt").write_text("one")
    (notice,) = turn(home, patch("a.txt"))
    assert "Only files that the agent edits itself can be restored" in notice
    (record,) = records(home)
    undo(record.number)
    assert (home / "a.txt").read_text() == "one"


def test_a_file_that_others_edit_does_not_belong_to_the_turn(folder: Path, other: Path) -> None:
    first, second = other / "1", other / "2"
    for path in (first, second):
        path.write_text("one")
    turn(folder, patch(first))
    turn(folder, patch(second))
    first.write_text("mine")
    changed = [record.paths for record in records(folder)]
    assert changed == [(os.fsencode(first)[1:],), (os.fsencode(second)[1:],)]


def test_a_file_that_a_command_of_the_turn_creates_is_removed_once(folder: Path) -> None:
    turn(folder, tool_call_step("terminal", {"command": "echo one > x"}), patch("x"))
    (record,) = records(folder)
    undo(record.number)
    assert not (folder / "x").exists()


def test_edits_of_a_killed_turn_are_restored(folder: Path, other: Path) -> None:
    path = other / "o.txt"
    path.write_text("one")
    pid = os.fork()
    if pid == 0:
        try:
            with open_conversation(folder, patch(path), write("b")) as conversation:
                conversation.prompter.reply = "once"
                for event in conversation.bundle.agent.turn("go"):
                    if path.read_text() == "two":
                        os.kill(os.getpid(), 9)
                    del event
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -9
    (record,) = records(folder)
    assert record.is_interrupted
    undo(record.number)
    assert path.read_text() == "one"


def test_a_repository_that_a_cleanup_has_just_removed_has_no_records(folder: Path) -> None:
    turn(folder, write("x"))
    store = archive_of().store(folder)
    assert len(store.repository.records()) == 1
    (store.root / "git").rename(store.root / "git-removed")
    assert store.repository.records() == []


def test_copies_are_private_and_cleaned_with_the_checkpoints(
    folder: Path, other: Path, hermes_home: Path
) -> None:
    (other / "o.txt").write_text("one")
    turn(folder, patch(other / "o.txt"))
    root = archive_of().edited_files().root
    for path in (hermes_home / "checkpoints", root, root / "git"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o700
    CheckpointCleanup(CheckpointArchive.of_home()).run(0.0, keep_seconds=-1e12)
    assert records() == []
    assert not (root / "git").exists()
