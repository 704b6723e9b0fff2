"""Errors that real programs print here: each is recognized the second time, and not mistaken."""

from __future__ import annotations

import json
import os
import subprocess
from typing import TYPE_CHECKING, Final

import pytest

from hermes_agent.messages import ToolCall
from hermes_conversation.history_scope import ConversationHistory
from hermes_conversation.known_fixes import HistoryHints
from hermes_state import SessionDB

if TYPE_CHECKING:
    from pathlib import Path

# Preparation; the command that fails; what then works, the last time the command itself; a command
# of the same program that fails for another reason.
CASES: Final = {
    "not executable": (
        "echo true > run.sh", "./run.sh", ["chmod +x run.sh", "./run.sh"], "sh ./no.sh"
    ),
    "folder omitted": ("mkdir a", "cp a b", ["cp -r a b"], "cp missing b"),
    "folder not removed": ("mkdir a", "rm a", ["rm -r a"], "rm missing"),
    "no parents": ("true", "mkdir a/b", ["mkdir -p a/b"], "mkdir /proc/x"),
    "no branch": (
        "git init -q . && git -c user.name=a -c user.email=a@b.c commit -q --allow-empty -m x",
        "git checkout topic", ["git checkout -b topic"], "git checkout --orphan",
    ),
    "no repository": ("true", "git log", ["git init -q .", "git -c user.name=a -c user.email=a@b.c"
                      " commit -q --allow-empty -m x", "git log"], "git -C missing log"),
    "no upstream": (
        "git init -q . && git init -q --bare up && git remote add origin up && git -c user.name=a"
        " -c user.email=a@b.c commit -q --allow-empty -m x && git checkout -q -b topic",
        "git push", ["git push --set-upstream origin topic"], "git push nowhere topic",
    ),
    "no module": (
        "echo 'import spoon' > app.py", "python3 app.py", ["touch spoon.py", "python3 app.py"],
        "python3 other.py",
    ),
    "no data file": (
        "echo \"open('data.csv')\" > app.py", "python3 app.py",
        ["touch data.csv", "python3 app.py"],
        "python3 -c 'import fork'",
    ),
    "no make rule": (
        "printf 'all: part\\n\\ttrue\\n' > Makefile", "make all", ["touch part", "make all"],
        "make nothing",
    ),
    "no json": (
        "echo '{' > a.json", "python3 -m json.tool a.json", ["cp /dev/null b.json", "sh fix.sh",
        "python3 -m json.tool a.json"], "python3 -m json.tool b.json",
    ),
    "unpacked nowhere": (
        "tar -cf a.tar /dev/null", "tar -xf a.tar -C out", ["mkdir out", "tar -xf a.tar -C out"],
        "tar -xf missing.tar -C out",
    ),
    "unset variable": (
        "echo ': ${TARGET:?is not set}' > go.sh", "sh go.sh", ["TARGET=x sh go.sh"], "sh gone.sh",
    ),
}  # fmt: skip


def run(folder: Path, command: str) -> dict[str, object]:
    above = str(folder.parent)
    environment = {
        **os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CEILING_DIRECTORIES": above
    }  # fmt: skip
    done = subprocess.run(
        ["bash", "-c", command], cwd=folder, env=environment, text=True, check=False,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    return {"output": done.stdout, "exit_code": done.returncode, "error": None}


def note(db: SessionDB, number: int, command: str, result: dict[str, object]) -> None:
    function = {"name": "terminal", "arguments": json.dumps({"command": command})}
    call = {"id": f"c{number}", "type": "function", "function": function}
    db.append_message("old", "assistant", "", tool_calls=[call])
    text = json.dumps(result)
    db.append_message("old", "tool", text, tool_call_id=f"c{number}", tool_name="terminal")


@pytest.mark.parametrize("name", CASES)
def test_an_error_of_a_real_program(tmp_path: Path, name: str) -> None:
    prepare, command, steps, other = CASES[name]
    (tmp_path / "one").mkdir()
    folder = tmp_path / "one" / "work"
    folder.mkdir()
    assert run(folder, prepare)["exit_code"] == 0
    (folder / "fix.sh").write_text("echo '{}' > a.json\n")
    with SessionDB(tmp_path / "state.db") as db:
        db.create_session("old", "cli", cwd=str(folder))
        for number, each in enumerate([command, "ls", *steps]):
            result = run(folder, each)
            assert (result["exit_code"] != 0) == (number == 0), result
            note(db, number, each, result)
        db.calls.fill()
        (tmp_path / "one").rename(tmp_path / "before")  # the same folder again, in its first state
        folder.mkdir(parents=True)
        run(folder, prepare)
        hints = {}
        for asked in (command, other):
            result = run(folder, asked)
            assert result["exit_code"] != 0
            call = ToolCall("c", "terminal", json.dumps({"command": asked}))
            history = HistoryHints(db, ConversationHistory(db))
            hints[asked] = history.about("new", folder, call, json.dumps(result))
    assert any(f"`{step}`" in hints[command] for step in steps)
    assert hints[other] == ""
