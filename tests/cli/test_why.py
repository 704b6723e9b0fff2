"""`hermes why` names the conversation that wrote a line."""

from __future__ import annotations

import json
import os
import re
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from hermes_state import SessionDB
from support.model_servers import model_argument, model_servers

if TYPE_CHECKING:
    from pathlib import Path

    from support.command_line import Hermes

BEFORE = 'def person():\n    return "written by hand"\n'
ADDED = "\n\ndef cached(key):\n    value = STORE.get(key)\n    return value\n"
CALLS = [
    {"name": "read_file", "arguments": {"path": "app.py"}},
    {
        "name": "patch",
        "arguments": {
            "path": "app.py",
            "old_string": '    return "written by hand"\n',
            "new_string": f'    return "written by hand"\n{ADDED}',
        },
    },
]


def git(folder: Path, *arguments: str) -> None:
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    settings = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
    subprocess.run(["git", *settings, *arguments], cwd=folder, env=environment, check=True)


@pytest.fixture
def project(tmp_path: Path, hermes: Hermes, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with a file of a person, to which an agent adds a function."""
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    (folder / "app.py").write_text(BEFORE)
    git(folder, "init", "-q")
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "by hand")
    with model_servers() as start:
        steps = [*({"calls": [call]} for call in CALLS), {"say": "Done."}]
        server = start(json.dumps(steps))
        done = hermes("chat", "-q", "Cache the keys", "--model", model_argument(server))
    assert done.code == 0, done.err
    assert (folder / "app.py").read_text() == BEFORE + ADDED
    return folder


def ranges(hermes: Hermes, place: str) -> list[dict[str, Any]]:
    result = hermes("why", place, "--json")
    assert result.code == 0, result.err
    return list(json.loads(result.out)["ranges"])


@pytest.mark.parametrize("is_committed", [False, True])
def test_a_line_leads_to_its_prompt(hermes: Hermes, project: Path, *, is_committed: bool) -> None:
    if is_committed:
        git(project, "commit", "-q", "-a", "-m", "cache")
    text = hermes("why", "app.py:6").out
    assert "value = STORE.get(key)" in text
    assert "Prompt: Cache the keys" in text
    command = re.search(r"hermes (sessions show \S+ --around \d+)", text)
    assert command is not None
    assert "patch" in hermes(*command[1].split()).out
    found = ranges(hermes, "app.py")
    assert [each["written_by"] for each in found] == ["person", "agent"]
    assert [each["last"] for each in found] == [2, 7]
    assert found[1]["conversation"]["agent"] == "cli"


def test_a_line_that_a_person_changed_is_theirs(hermes: Hermes, project: Path) -> None:
    file = project / "app.py"
    file.write_text(file.read_text().replace("return value", "return value or None"))
    by = {each["first"]: each["written_by"] for each in ranges(hermes, "app.py")}
    assert by[7] == "unknown"
    file.write_text(file.read_text().replace("    value =", "\tvalue  ="))
    assert ranges(hermes, "app.py:6")[0]["written_by"] == "agent"


def test_no_setting_of_a_repository_names_a_program(hermes: Hermes, project: Path) -> None:
    mark = project / "ran"
    script = project / "evil"
    script.write_text(f"#!/bin/sh\ntouch {mark}\ncat\n")
    script.chmod(0o755)
    (project / ".gitattributes").write_text("*.py diff=evil filter=evil\n")
    git(project, "add", ".gitattributes")
    git(project, "commit", "-q", "-m", "attributes")
    for name in ("diff.evil.textconv", "diff.evil.command", "filter.evil.clean", "core.fsmonitor",
                 "filter.evil.smudge", "core.pager", "core.sshCommand", "gpg.program"):  # fmt: skip
        with (project / ".git/config").open("a") as file:
            section, _, key = name.rpartition(".")
            parts = section.split(".")
            head = f'[{parts[0]} "{parts[1]}"]' if len(parts) > 1 else f"[{parts[0]}]"
            file.write(f"{head}\n\t{key} = {script}\n")
    assert ranges(hermes, "app.py:1")[0]["commit"]["author"] == "Ada"
    assert not mark.exists()


def test_lines_of_imported_agents_are_found(
    hermes: Hermes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    (folder / "notes.md").write_text("# Notes about lighthouses\nThe tower is forty metres high.\n")
    written = {"file_path": str(folder / "notes.md"), "content": (folder / "notes.md").read_text()}
    call = {"id": "c1", "type": "function",
            "function": {"name": "Write", "arguments": json.dumps(written)}}  # fmt: skip
    with SessionDB() as db:
        db.create_session("s1", "claude-code", cwd=str(folder))
        db.append_message("s1", "user", "Write notes")
        db.append_message("s1", "assistant", "", tool_calls=[call])
        db.append_message("s1", "tool", "File created successfully", tool_call_id="c1")
    result = hermes("why", "notes.md:2")
    assert result.out.count("claude-code, ") == 1
    assert "Without git" in result.err


def test_errors_name_the_problem(hermes: Hermes, project: Path) -> None:
    (project / "data.bin").write_bytes(b"\0\1\2")
    for place, text in {
        "app.py:99": "has 7 lines", "nothing.py": "is not a file", "data.bin": "not a text",
        "app.py:0": "has 7 lines", ".": "is not a file",
    }.items():  # fmt: skip
        result = hermes("why", place)
        assert (result.code, text in result.err) == (2, True), result


def test_what_a_commit_says_is_not_taken_for_another_commit(hermes: Hermes, project: Path) -> None:
    git(project, "commit", "-q", "-a", "-m", "cache\x01lookups", "--author", "Eve\x02 <e@e.e>")
    (found,) = ranges(hermes, "app.py:1")
    assert found["commit"]["summary"] == "by hand"
    (found,) = ranges(hermes, "app.py:6")
    assert (found["written_by"], found["commit"]["summary"]) == ("agent", "cache\x01lookups")


@pytest.mark.parametrize("name", ["-x.py", "a\nb.py", 'quo"ted\t.py', "--contents=x.py"])
def test_files_with_odd_names_have_a_history(hermes: Hermes, project: Path, name: str) -> None:
    git(project, "commit", "-q", "-a", "-m", "cache")
    (project / "app.py").rename(project / name)
    git(project, "add", "-A")
    git(project, "commit", "-q", "-m", "rename")
    (project / name).write_text((project / name).read_text() + "\nand = 'a line of a person'\n")
    git(project, "commit", "-q", "-a", "-m", "more")
    assert ranges(hermes, f"./{name}:1")[0]["commit"]["summary"] == "by hand"
    assert ranges(hermes, f"./{name}:9")[0]["commit"]["summary"] == "more"


@pytest.mark.parametrize("character", ["\f", "\u2028", "\x85", "\x1c"])
def test_only_line_feeds_end_a_line(hermes: Hermes, project: Path, character: str) -> None:
    text = f"one = 'one{character}two'\nthree = 'the second line'\n"
    (project / "odd.py").write_text(text)
    git(project, "add", "odd.py")
    git(project, "commit", "-q", "-m", "odd")
    (found,) = ranges(hermes, "odd.py:2")
    assert (found["lines"], found["commit"]["summary"]) == (["three = 'the second line'"], "odd")


def test_places_that_no_system_accepts_are_errors(hermes: Hermes, project: Path) -> None:
    (project / "loop").symlink_to("loop")
    for place in ("x" * 5000, f"app.py:{'9' * 5000}", "~nobody-of-this-name/x", "loop", "loop:3"):
        result = hermes("why", place)
        assert (result.code, result.err.count("\n")) == (2, 1), result.err
        assert "Traceback" not in result.err
