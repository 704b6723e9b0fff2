"""Files that the agent changed, taken back from `hermes chat` and `hermes checkpoints`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from hermes_agent.providers.scripted import ModelScript
from support.checkpoints import change_in_turn, git
from support.plain_terminal import EDITOR, quit_chat, start_chat, stored_messages
from support.scripted_server import ScriptServer

if TYPE_CHECKING:
    from pathlib import Path

    from support.command_line import Hermes

STEPS = """steps:
- {calls: [{name: write_file, arguments: {path: a.txt, content: "one\\n"}}]}
- {say: Written once.}
- {calls: [{name: terminal, arguments: {command: "echo two > a.txt; rm b.txt; echo n > new"}}]}
- {say: Written twice.}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "project"
    path.mkdir()
    (path / "b.txt").write_text("kept\n")
    git(path, "init", "-q")
    git(path, "add", "b.txt")
    monkeypatch.chdir(path)
    return path


def names(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.iterdir() if path.is_file()}


def test_undo_takes_messages_back_and_files_where_asked(folder: Path) -> None:
    index = (folder / ".git" / "index").stat().st_mtime_ns
    with ScriptServer(ModelScript.parse(STEPS)) as server:
        child = start_chat(server, "--mode", "full")
        child.expect(EDITOR)
        child.sendline("first")
        child.expect("Written once.")
        child.expect(EDITOR)
        child.sendline("second")
        child.expect("Written twice.")
        child.expect(EDITOR)
        assert names(folder) == {"a.txt": "two\n", "new": "n\n"}
        child.sendline("/undo")
        child.expect("Undid 4 messages")
        child.expect("3 changed files stay; /checkpoints restore 2")
        child.expect(EDITOR)
        child.sendline("/redo")  # replaces the old prompt in the input
        child.expect("Restored 4 messages")
        child.expect(EDITOR)
        child.sendline("/undo both")
        child.expect("Restored 3 files")
        child.expect("Undid 4 messages")
        child.expect(EDITOR)
        assert names(folder) == {"a.txt": "one\n", "b.txt": "kept\n"}
        child.sendline("/redo")
        child.expect("Restored 4 messages")
        child.expect(EDITOR)
        (folder / "a.txt").write_text("mine\n")
        child.sendline("/undo 2 files")
        child.expect(r"Not restored: a.txt \(changed since")
        child.expect(EDITOR)
        child.sendline("/diff")
        child.expect("diff --git")
        quit_chat(child)
    assert names(folder) == {"a.txt": "mine\n", "b.txt": "kept\n"}
    assert [text for role, text in stored_messages() if role == "user"] == ["first", "second"]
    assert (folder / ".git" / "index").stat().st_mtime_ns == index
    assert git(folder, "status", "--porcelain") == "A  b.txt\n?? a.txt\n"


def test_undo_takes_back_edits_of_ignored_and_outside_files(folder: Path, tmp_path: Path) -> None:
    (folder / ".gitignore").write_text("*.cfg\n")
    outside, ignored = tmp_path / "o.txt", folder / "local.cfg"
    for path in (outside, ignored, folder / ".env"):
        path.write_text("one")
    calls = [
        {"name": "patch", "arguments": {"path": str(path), "old_string": "one", "new_string": "2"}}
        for path in (ignored, outside, ".env", "b.txt")
    ]
    calls[-1]["arguments"] |= {"old_string": "kept"}  # type: ignore[operator]
    steps = json.dumps({"steps": [{"calls": calls}, {"say": "Written."}]})
    with ScriptServer(ModelScript.parse(steps)) as server:
        child = start_chat(server, "--mode", "full")
        child.expect(EDITOR)
        child.sendline("first")
        child.expect("Written.")
        child.expect(EDITOR)
        assert ignored.read_text() == outside.read_text() == "2"
        child.sendline("/undo both")
        child.expect("Restored 3 files")
        child.expect(r"Not restored: \S+/.env \(may hold credentials")
        quit_chat(child)
    assert ignored.read_text() == outside.read_text() == "one"
    assert (folder / "b.txt").read_text() == "kept\n"


def test_checkpoints_are_listed_shown_and_restored(hermes: Hermes, folder: Path) -> None:
    record = change_in_turn(folder, lambda: (folder / "b.txt").write_text("changed\n"))
    assert record is not None
    listed = json.loads(hermes("checkpoints", "list", "--json").out)["checkpoints"]
    assert [(item["number"], item["files"]) for item in listed] == [(record.number, 1)]
    number = str(record.number)
    assert number in hermes("checkpoints", "list").out
    assert "-kept\n+changed\n" in hermes("checkpoints", "diff", number).out
    refused = hermes("checkpoints", "restore", number)
    assert refused.code == 2
    assert "--yes" in refused.err
    planned = json.loads(hermes("checkpoints", "restore", number, "--dry-run", "--json").out)
    assert [item["path"] for item in planned["files"]] == ["b.txt"]
    assert (folder / "b.txt").read_text() == "changed\n"
    (folder / "b.txt").write_text("mine\n")
    kept = hermes("checkpoints", "restore", number, "--yes", "--json")
    assert kept.code == 1
    assert json.loads(kept.out)["refused"][0]["problem"] == "changed since"
    done = hermes("checkpoints", "restore", number, "--force", "b.txt", "--yes", "--json")
    assert json.loads(done.out)["restored"] == ["b.txt"]
    assert (folder / "b.txt").read_text() == "kept\n"
    (undo,) = json.loads(done.out)["undo"]
    restored = hermes("checkpoints", "restore", str(undo), "--yes")
    command = f"`hermes checkpoints restore {undo + 1}`"
    assert f"{command} undoes this." in restored.out + restored.err
    assert (folder / "b.txt").read_text() == "mine\n"
    missing = hermes("checkpoints", "diff", "999")
    assert (missing.code, "No checkpoint 999" in missing.err) == (2, True)
    cleaned = json.loads(hermes("checkpoints", "clean", "--days", "0", "--yes", "--json").out)
    assert cleaned["kept"] == 0
    assert cleaned["removed"] == 3
    assert "No checkpoints of this folder" in hermes("checkpoints", "list").out
