"""`hermes handoff`, and sessions of other agents by `hermes sessions export`."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from hermes_import.writers.writer import WRITERS
from hermes_state import SessionDB
from support.handed_conversations import SECRET, SESSION, write_conversation
from support.sample_history import OSLO

if TYPE_CHECKING:
    from support.command_line import Hermes


@pytest.fixture
def conversation(hermes_home: Path, tmp_path: Path) -> Path:
    """A conversation in a folder, which is returned."""
    with SessionDB() as db:
        write_conversation(db, tmp_path)
    return tmp_path


@pytest.mark.parametrize("agent", WRITERS)
def test_the_command_prints_how_the_conversation_continues(
    agent: str, hermes: Hermes, conversation: Path
) -> None:
    result = hermes("handoff", agent, PATH="/nowhere")
    assert (result.code, result.err) == (0, "")
    wrote, resume, install = result.out.splitlines()
    path = Path(wrote.partition(": ")[2])
    assert path.is_file()
    commands = shlex.split(resume.partition(": ")[2])
    assert commands[:3] == ["cd", str(conversation), "&&"]
    assert path.stem[-12:] in commands[-1].replace("ses_", "")
    assert "is not on your PATH. Install it first: npm install -g " in install
    again = hermes("handoff", agent, SESSION)
    assert (again.code, again.out) == (2, "")
    assert f"{path} exists: this conversation was handed off already" in again.err
    assert commands[-1] in again.err


def test_json_and_redaction(hermes: Hermes, conversation: Path) -> None:
    result = hermes("handoff", "codex", "Words of the README", "--redact", "--json")
    facts: dict[str, Any] = json.loads(result.out)
    path = Path(facts["file"])
    assert SECRET not in path.read_text("utf-8")
    assert facts == {
        "session": SESSION, "target": "codex", "file": str(path), "folder": str(conversation),
        "native_id": path.stem[-36:], "import": [], "resume": ["codex", "resume", path.stem[-36:]],
        "installed": facts["installed"], "redacted": True,
    }  # fmt: skip
    noted = hermes("handoff", "pi", "--redact")
    assert "Review the file before sharing it" in noted.err


def test_errors_name_the_next_step(hermes: Hermes, conversation: Path) -> None:
    unknown = hermes("handoff", "emacs")
    assert unknown.code == 2
    assert "Unknown target 'emacs'. Agents: claude-code, codex, opencode, pi." in unknown.err
    assert "hermes gateway add" in unknown.err
    missing = hermes("handoff", "telegram")
    assert "Run `hermes gateway add telegram`" in missing.err
    platform = hermes("handoff", "telegram", "last", "--redact")
    assert "--redact and --import are for agents" in platform.err
    with SessionDB() as db:
        db.create_session("empty", "cli")
    empty = hermes("handoff", "codex", "empty")
    assert (empty.code, empty.out) == (2, "")
    assert "empty has no messages to hand off" in empty.err
    no_such = hermes("handoff", "codex", "nowhere")
    assert no_such.code == 2
    assert "nowhere" in no_such.err


def test_a_title_that_is_not_unicode_is_not_found(hermes: Hermes, conversation: Path) -> None:
    result = hermes("handoff", "codex", "caf\udce9")
    assert (result.code, "No session with ID or title" in result.err) == (2, True), result.err


def test_a_folder_that_cannot_be_written_is_named(hermes: Hermes, conversation: Path) -> None:
    (conversation / "file").write_text("")
    result = hermes("handoff", "pi", PI_CODING_AGENT_DIR=str(conversation / "file"))
    assert result.code == 2
    assert f"Cannot write {conversation / 'file'}" in result.err


def test_the_import_command_runs_only_on_request(hermes: Hermes, conversation: Path) -> None:
    programs = Path.home() / ".local" / "bin"
    programs.mkdir(parents=True)
    program = programs / "opencode"
    program.write_text('#!/bin/sh\necho "$PWD $*" >> "$HOME/calls"\n[ -s "$2" ]\n')
    program.chmod(0o755)
    assert "opencode import " in hermes("handoff", "opencode").out
    assert not (Path.home() / "calls").exists()
    with SessionDB() as db:
        db.append_message(SESSION, "user", "One more.")
    result = hermes("handoff", "opencode", "--import")
    assert result.code == 0, result.err
    assert "opencode import" not in result.out
    path = result.out.partition("opencode: ")[2].splitlines()[0]
    assert (Path.home() / "calls").read_text() == f"{conversation} import {path}\n"
    program.write_text("#!/bin/sh\necho no database >&2\nexit 1\n")
    with SessionDB() as db:
        db.append_message(SESSION, "user", "Yet another.")
    failed = hermes("handoff", "opencode", "--import")
    assert failed.code == 2
    assert "failed: no database" in failed.err


def test_exports_are_the_same_files(hermes: Hermes, conversation: Path) -> None:
    for agent in WRITERS:
        handed = json.loads(hermes("handoff", agent, "--json").out)
        content = Path(handed["file"]).read_text("utf-8")
        words = ("sessions", "export", "--session", SESSION, "--format", agent)
        assert hermes(*words).out == content
        folder = f"{conversation / agent}/"
        facts = json.loads(hermes(*words, folder, "--json").out)
        [written] = map(Path, facts["files"])
        assert (facts["format"], facts["sessions"]) == (agent, 1)
        assert written.name == Path(handed["file"]).name
        assert written.read_text("utf-8") == content
        refused = hermes(*words, folder)
        assert "already exists; use --force" in refused.err


def test_a_file_holds_one_session(hermes: Hermes, history: Path, tmp_path: Path) -> None:
    refused = hermes("sessions", "export", str(tmp_path / "all.jsonl"), "--format", "pi")
    assert refused.code == 2
    assert "A file holds one session of pi. Name a folder (OUT/)" in refused.err
    result = hermes("sessions", "export", f"{tmp_path / 'all'}/", "--format", "pi")
    assert "2 conversations exported" in result.out
    texts = [path.read_text("utf-8") for path in (tmp_path / "all").iterdir()]
    assert len(texts) == 2
    assert any("How warm is Oslo?" in text for text in texts)
    one = hermes("sessions", "export", "--session", OSLO, "--format", "claude-code", "--redact")
    assert "How warm is Oslo?" in one.out
