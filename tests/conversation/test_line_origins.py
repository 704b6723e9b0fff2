"""The conversation that wrote a line is named, and a person's line is never claimed."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from conversation import line_campaign
from hermes_conversation import git_history, line_origins
from hermes_core.errors import UsageError
from hermes_state import SessionDB


def test_agents_lines_are_named_and_no_line_of_a_person_is_claimed(tmp_path: Path) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    with SessionDB() as db:
        outcome = line_campaign.run(folder.resolve(), db, seed=4)
    assert outcome.person_lines > 50
    assert outcome.claimed == 0
    assert outcome.share >= line_campaign.MIN_SHARE


def test_git_that_does_not_end_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    (tmp_path / "app.py").write_text("line = 1\n")
    os.mkfifo(tmp_path / "fifo")
    with (tmp_path / ".git/config").open("a") as file:
        file.write(f"[include]\n\tpath = {tmp_path}/fifo\n")
    monkeypatch.setattr(git_history, "SECONDS", 0.2)
    with SessionDB() as db, pytest.raises(UsageError, match="git needs more than"):
        line_origins.origins_of(db, tmp_path / "app.py")


def test_only_regular_files_are_read() -> None:
    with pytest.raises(UsageError, match="is not a file"):
        line_origins.read_lines(Path("/dev/zero"))
