"""Checkpoints of a folder, taken as a turn takes them."""

from __future__ import annotations

import os
import subprocess
import time
from typing import TYPE_CHECKING

from hermes_agent.checkpoints.archive import CheckpointArchive
from hermes_agent.checkpoints.records import TURN, Checkpoint
from hermes_agent.checkpoints.restore import FileRestore, RestoreResult

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def archive_of() -> CheckpointArchive:
    """The checkpoints of this HERMES_HOME."""
    return CheckpointArchive.of_home()


def change_in_turn(
    folder: Path, change: Callable[[], object], session_id: str = "s1", message_id: int = 7
) -> Checkpoint | None:
    """Change a folder in a turn; returns its checkpoint, None if nothing changed."""
    archive = archive_of()
    store = archive.store(folder)
    number = archive.next_number()
    record = Checkpoint(number, TURN, str(folder), session_id, message_id, time.time(), "")
    opened = store.begin(record)
    change()
    return store.finish(opened, time.time())


def restore(
    folder: Path,
    *records: Checkpoint | None,
    force: tuple[str, ...] = (),
    only: tuple[str, ...] = (),
) -> RestoreResult:
    """Take the changes of turns back."""
    archive = archive_of()
    given = [record for record in records if record is not None]
    work = FileRestore(archive.store(folder), given)
    return work.apply(archive.next_number(), "s1", only, force)


def repository_bytes(git_folder: Path) -> dict[str, bytes]:
    """Every file of a user's repository with its content."""
    return {str(path): path.read_bytes() for path in git_folder.rglob("*") if path.is_file()}


def stored_names(folder: Path) -> set[str]:
    """The files that a snapshot of a folder has."""
    store = archive_of().store(folder)
    with store.locked() as repository:
        return {os.fsdecode(path) for path in repository.states(store.take_snapshot().tree)}


def git(folder: Path, *arguments: str) -> str:
    """Run git as the user does."""
    done = subprocess.run(
        ["git", "-C", str(folder), *arguments], check=True, capture_output=True, text=True
    )
    return done.stdout
