"""kill -9 during snapshots and restores: files are whole, and changes can still be taken back."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from typing import TYPE_CHECKING

import pytest

from hermes_agent.checkpoints.records import TURN
from support.checkpoints import archive_of, change_in_turn, git, repository_bytes, restore
from support.processes import is_group_running
from support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from hermes_agent.checkpoints.records import Checkpoint

FILES = 24
ROUNDS = 60 if os.environ.get("HERMES_CAMPAIGN") == "full" else 8
MAX_SECONDS = 0.12
BEFORE, AFTER = b"1" * 30_000, b"2" * 30_000


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "project"
    path.mkdir()
    git(path, "init", "-q")
    for number in range(FILES):
        (path / f"{number}.txt").write_bytes(BEFORE)
    (path / ".gitignore").write_text("*.tmp\n")
    git(path, "add", "-A")
    return path


def change(folder: Path) -> None:
    for number in range(FILES):
        (folder / f"{number}.txt").write_bytes(AFTER)


def killed_after(seconds: float, act: Callable[[], object]) -> None:
    """Do something in a process that is killed, with the programs that it runs, after a while."""
    pid = os.fork()
    if pid == 0:
        try:
            os.setpgid(0, 0)
            act()
        finally:
            os._exit(0)
    time.sleep(seconds)  # the moment of the kill, not a wait for something
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        os.kill(pid, signal.SIGKILL)  # before it had a group, or after its end
    os.waitpid(pid, 0)
    wait_until(lambda: not is_group_running(pid))  # a program about to start holds its locks


def contents(folder: Path) -> set[bytes]:
    return {path.read_bytes() for path in folder.glob("*.txt")}


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def check_store(folder: Path) -> None:
    store = archive_of().store(folder).root / "git"
    arguments = ["git", f"--git-dir={store}", "fsck", "--strict", "--no-dangling"]
    subprocess.run(arguments, check=True, capture_output=True)


def turns(folder: Path) -> list[Checkpoint]:
    store = archive_of().store(folder)
    store.close_interrupted()
    return [record for record in store.repository.records() if record.kind == TURN]


def test_turns_that_are_killed_anywhere_can_be_taken_back(folder: Path) -> None:
    chance, users, shown = random.Random(19), repository_bytes(folder / ".git"), names(folder)
    for _ in range(ROUNDS):
        work = lambda: change_in_turn(folder, lambda: change(folder))  # noqa: E731 - as an argument
        killed_after(chance.random() * MAX_SECONDS, work)
        if contents(folder) == {BEFORE}:
            continue  # it was killed before the change
        restored = restore(folder, turns(folder)[-1])
        assert restored.refused == []
        assert contents(folder) == {BEFORE}
    check_store(folder)
    assert names(folder) == shown
    assert repository_bytes(folder / ".git") == users


def test_restores_that_are_killed_anywhere_are_repeated(folder: Path) -> None:
    chance, users, shown = random.Random(7), repository_bytes(folder / ".git"), names(folder)
    for _ in range(ROUNDS):
        record = change_in_turn(folder, lambda: change(folder))
        assert record is not None
        work = lambda given=record: restore(folder, given)  # noqa: E731 - as an argument
        killed_after(chance.random() * MAX_SECONDS, work)
        assert contents(folder) <= {BEFORE, AFTER}  # every file is whole
        assert restore(folder, record).refused == []
        assert contents(folder) == {BEFORE}
        assert names(folder) == shown  # no temporary file is left
    check_store(folder)
    assert repository_bytes(folder / ".git") == users
