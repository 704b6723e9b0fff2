"""Folders and files of other agents that cannot be read: reported, and no obstacle to the rest."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from support.claude_files import ClaudeFile
from support.codex_files import CodexFile
from support.command_line import Finished, command
from support.postgres import IS_ON_POSTGRES
from support.waiting import PATIENCE_SECONDS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

IS_ROOT = os.geteuid() == 0
# Without these root is denied what a mode denies.
AS_OTHERS = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"] if IS_ROOT else []

pytestmark = [
    pytest.mark.skipif(IS_ROOT and shutil.which("setpriv") is None, reason="setpriv is not here"),
    pytest.mark.skipif(IS_ON_POSTGRES, reason="the socket of the server is denied, too"),
]


def run(home: Path, *arguments: str) -> Finished:
    finished = subprocess.run(
        [*AS_OTHERS, *command("import", *arguments)],
        capture_output=True, text=True, check=False, env={**os.environ, "HOME": str(home)},
        timeout=PATIENCE_SECONDS,
    )  # fmt: skip
    return Finished(finished.returncode, finished.stdout, finished.stderr)


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    home = tmp_path / "ada"
    ClaudeFile(home).exchange("hello", "Hi.")
    CodexFile(home).exchange("hello", "Hi.")
    denied = [home / ".local" / "share" / "opencode", home / "volume"]
    denied += [ClaudeFile(home, cwd="/secret").exchange("a", "b").path.parent]
    for folder in denied:
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0)
    yield home
    for folder in denied:
        folder.chmod(0o700)


def test_folders_that_cannot_be_read_are_reported_and_the_rest_is_imported(home: Path) -> None:
    finished = run(home, "--yes", "--json")
    reports = {each["agent"]: each for each in json.loads(finished.out)}
    assert finished.code == 1
    assert {name: each["messages"] for name, each in reports.items()} == {
        "claude-code": 2, "codex": 2, "opencode": 0,
    }  # fmt: skip
    secret = home / ".claude" / "projects" / "-secret"
    assert reports["claude-code"]["failures"] == {str(secret): "Permission denied"}
    database = home / ".local" / "share" / "opencode" / "opencode.db"
    assert reports["opencode"]["failures"] == {str(database): "Permission denied"}
    one = run(home, "codex")
    assert (one.code, one.out) == (0, "codex: imported 0 conversations with 0 messages.\n")


def test_a_file_that_cannot_be_reached_is_an_error_about_that_file(home: Path) -> None:
    path = home / "volume" / "conversations.json"
    finished = run(home, str(path))
    assert finished.err == (
        f"hermes: Cannot access {path}: Permission denied. Check the permissions.\n"
    )
    assert finished.code == 1
