"""`hermes sessions export` and `import`, as real processes."""

from __future__ import annotations

import json
import os
import random
import stat
import subprocess
import time
from typing import TYPE_CHECKING

import pytest

from hermes_state import SessionDB
from support.command_line import command
from support.sample_history import CHAT, OSLO

if TYPE_CHECKING:
    from pathlib import Path

    from support.command_line import Hermes

SECRET = "sk-ant-api03-abcdefghij0123456789"


@pytest.fixture
def target_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in."""
    folder = tmp_path / "there"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def test_a_history_moves_to_another_home(
    hermes: Hermes, history: Path, target_folder: Path, tmp_path: Path
) -> None:
    result = hermes("sessions", "export", "all.jsonl", "--all", "--trash")
    assert (result.code, result.err) == (0, "")
    assert "2 conversations exported" in result.out
    assert stat.S_IMODE((target_folder / "all.jsonl").stat().st_mode) == 0o600
    home = {"HERMES_HOME": str(tmp_path / "new-home")}
    rehearsed = hermes("sessions", "import", "all.jsonl", "--dry-run", **home)
    assert "Would import 2 conversations with 5 messages" in rehearsed.out
    assert not (tmp_path / "new-home").exists()
    result = hermes("sessions", "import", "all.jsonl", "--json", **home)
    assert json.loads(result.out)["imported"] == 2
    again = hermes("sessions", "export", "-", "--all", "--trash", **home)
    assert again.out == (target_folder / "all.jsonl").read_text()
    once_more = hermes("sessions", "import", "all.jsonl", **home)
    assert "Skipped 2 conversations with existing IDs" in once_more.out
    refused = hermes("sessions", "import", "all.jsonl", "--on-conflict", "fail", **home)
    assert refused.code == 2
    assert "2 of 2 sessions are here already" in refused.err


def test_standard_input_and_output(hermes: Hermes, history: Path, tmp_path: Path) -> None:
    exported = hermes("sessions", "export", "--source", "cli")
    records = map(json.loads, exported.out.splitlines())
    assert [each.get("session", {}).get("id") for each in records] == [None, OSLO, None]
    result = subprocess.run(
        command("sessions", "import", "-"),
        input=exported.out.encode(),
        capture_output=True,
        check=True,
        env={**os.environ, "HERMES_HOME": str(tmp_path / "new")},
    )
    assert b"Imported 1 conversation with 4 messages" in result.stdout


def test_nothing_is_overwritten(hermes: Hermes, history: Path, target_folder: Path) -> None:
    (target_folder / "mine.md").write_text("precious")
    refused = hermes("sessions", "export", "mine.md")
    assert refused.code == 2
    assert "--force" in refused.err
    assert (target_folder / "mine.md").read_text() == "precious"
    assert hermes("sessions", "export", "mine.md", "--force").code == 0
    assert (target_folder / "mine.md").read_text().startswith("# ")
    assert [path.name for path in target_folder.iterdir()] == ["mine.md"]


def test_pages_by_name_or_in_a_folder(hermes: Hermes, history: Path, target_folder: Path) -> None:
    assert hermes("sessions", "export", "one.html", "--session", "Weather").code == 0
    page = (target_folder / "one.html").read_text()
    assert page.startswith("<!doctype html>")
    assert "21 degrees." in page
    result = hermes("sessions", "export", "pages/", "--format", "md", "--json")
    assert json.loads(result.out)["sessions"] == 2
    assert sorted(path.name for path in (target_folder / "pages").iterdir()) == [
        f"{OSLO}.md",
        f"{CHAT}.md",
    ]
    to_pipe = hermes("sessions", "export", "--session", "last", "--format", "md", LC_ALL="C")
    assert "世界" in to_pipe.out


def test_secrets_are_left_out_on_request(
    hermes: Hermes, history: Path, target_folder: Path
) -> None:
    with SessionDB() as db:
        db.append_message(CHAT, "user", f"my key is {SECRET}")
    full_export = hermes("sessions", "export", "--session", CHAT)
    assert SECRET in full_export.out
    result = hermes("sessions", "export", "safe.jsonl", "--session", CHAT, "--redact")
    assert "not a backup" in result.err
    text = (target_folder / "safe.jsonl").read_text()
    assert SECRET not in text
    assert json.loads(text.splitlines()[0])["redacted"] is True
    refused = hermes("restore", "safe.jsonl")
    assert refused.code == 2
    assert "is an export, not a backup" in refused.err
    taken = hermes("sessions", "import", "safe.jsonl", "--on-conflict", "rename")
    assert "was redacted" in taken.err


def test_a_bad_file_is_refused_with_its_line(
    hermes: Hermes, history: Path, target_folder: Path, tmp_path: Path
) -> None:
    hermes("sessions", "export", "all.jsonl")
    text = (target_folder / "all.jsonl").read_text()
    (target_folder / "bad.jsonl").write_text(text.replace("21 degrees", "22 degrees"))
    refused = hermes("sessions", "import", "bad.jsonl", HERMES_HOME=str(tmp_path / "new"))
    assert refused.code == 2
    assert "bad.jsonl, line 4: checksum mismatch" in refused.err
    assert not (tmp_path / "new").exists()
    assert hermes("sessions", "import", "missing.jsonl").code == 2
    assert "line 1: not a Hermes export" in hermes("sessions", "import", __file__).err


def test_unsupported_parameters_are_rejected(hermes: Hermes, history: Path) -> None:
    assert "--lineage requires --session" in hermes("sessions", "export", "--lineage").err
    assert "requires OUT" in hermes("sessions", "export", "--json").err
    assert "No matching conversations" in hermes("sessions", "export", "--source", "nowhere").err


@pytest.mark.parametrize("out", ["none.jsonl", "none.md", "pages/", "-"])
def test_nothing_is_written_if_no_conversation_matches(
    hermes: Hermes, history: Path, target_folder: Path, out: str
) -> None:
    result = hermes("sessions", "export", out, "--source", "nowhere")
    assert result.code == 1
    assert result.err == "No matching conversations.\n"
    assert result.out == ""
    assert list(target_folder.iterdir()) == []


def test_without_a_history_there_is_nothing_to_export(hermes: Hermes) -> None:
    assert hermes("sessions", "export").code == 2
    assert hermes("backup").code == 2


def long_history(sessions: int, messages: int) -> None:
    with SessionDB() as db:
        for number in range(sessions):
            session = db.create_session(f"s{number:03}", "cli", started_at=float(number))
            rows = [{"role": "user", "content": f"{number}.{row}"} for row in range(messages)]
            db.append_messages_batch(session, rows)
            db.edits.undo(session)


def sessions_in(home: Path) -> int:
    if not (home / "state.db").exists():
        return 0
    with SessionDB(home / "state.db", is_recovering=False) as db:
        return db.session_count()


def test_kill_9_leaves_every_session_complete_or_absent(
    hermes: Hermes, hermes_home: Path, target_folder: Path, tmp_path: Path
) -> None:
    long_history(sessions=120, messages=150)
    hermes("sessions", "export", "all.jsonl", "--all")
    want = {
        record["session"]["id"]: line
        for line in (target_folder / "all.jsonl").read_text().splitlines()[1:-1]
        for record in [json.loads(line)]
    }
    target = tmp_path / "target"
    environment = {**os.environ, "HERMES_HOME": str(target)}
    session_numbers: set[int] = set()
    for _ in range(6):
        with subprocess.Popen(
            command("sessions", "import", "all.jsonl"),
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        ) as process:
            before = sessions_in(target)
            while sessions_in(target) <= before and process.poll() is None:
                time.sleep(0.02)
            time.sleep(random.uniform(0.0, 0.2))
            process.kill()
        if not (target / "state.db").exists():
            continue
        with SessionDB(target / "state.db") as db:
            have = db.portable.sessions_to_export()
            data = b"".join(db.portable.iter_export_file(have)).decode()
        for session_id, line in zip(have, data.splitlines()[1:-1], strict=True):
            assert line == want[session_id]
        session_numbers.add(len(have))
    assert hermes("sessions", "import", "all.jsonl", HERMES_HOME=str(target)).code == 0
    full_export = hermes("sessions", "export", "--all", HERMES_HOME=str(target))
    assert full_export.out == (target_folder / "all.jsonl").read_text()
    assert len(session_numbers) > 1  # at least one kill hit a running export
