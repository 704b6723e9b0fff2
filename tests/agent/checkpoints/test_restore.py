"""Taking changes back: only what turns changed, never over the work of others."""

from __future__ import annotations

import os
import resource
import signal
import stat
import time
from typing import TYPE_CHECKING

import pytest

from hermes_agent.checkpoints.records import TURN, Checkpoint, CheckpointLimits
from hermes_agent.checkpoints.restore import (
    BEHIND_LINK,
    CHANGED_SINCE,
    NOT_SAVED,
    diff_of,
)
from hermes_agent.checkpoints.store import CheckpointCleanup
from hermes_core.errors import UsageError
from support.checkpoints import archive_of, change_in_turn, restore

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "project"
    path.mkdir()
    return path


def tree(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Every file with its permissions and content; of a link its target."""
    found = {}
    for path in folder.rglob("*"):
        name, mode = str(path.relative_to(folder)), stat.S_IMODE(path.lstat().st_mode)
        if path.is_symlink():
            found[name] = (0, os.fsencode(path.readlink()))
        elif path.is_file():
            found[name] = (mode, path.read_bytes())
        else:
            found[name] = (mode, b"")
    return found


def fill(folder: Path) -> None:
    (folder / "kept").write_text("kept")
    (folder / "changed").write_text("before")
    (folder / "deleted").write_text("deleted")
    (folder / "deleted").chmod(0o600)
    (folder / "private").write_text("private")
    (folder / "private").chmod(0o640)
    (folder / "run.sh").write_text("#!/bin/sh\n")
    (folder / "run.sh").chmod(0o755)
    (folder / "link").symlink_to("kept")
    (folder / "was-file").write_text("file")
    (folder / "was-folder").mkdir()
    (folder / "was-folder" / "inner").write_text("inner")
    (folder / os.fsdecode(b"bad\xff\nname")).write_text("odd")


def change_everything(folder: Path) -> None:
    (folder / "changed").write_text("after")
    (folder / "deleted").unlink()
    (folder / "private").chmod(0o644)
    (folder / "run.sh").chmod(0o644)
    (folder / "link").unlink()
    (folder / "link").write_text("a file now")
    (folder / "was-file").unlink()
    (folder / "was-file").mkdir()
    (folder / "was-file" / "inner").write_text("1")
    (folder / "was-folder" / "inner").unlink()
    (folder / "was-folder").rmdir()
    (folder / "was-folder").write_text("1")
    (folder / os.fsdecode(b"bad\xff\nname")).unlink()
    (folder / "new").mkdir()
    (folder / "new" / "deep").mkdir()
    (folder / "new" / "deep" / "file").write_text("new")


def test_everything_a_turn_did_is_taken_back_and_brought_back(folder: Path) -> None:
    fill(folder)
    before = tree(folder)
    record = change_in_turn(folder, lambda: change_everything(folder))
    after = tree(folder)
    result = restore(folder, record)
    assert result.refused == []
    assert tree(folder) == before
    assert not (folder / "new").exists()
    _, taken = archive_of().find(result.number)
    assert taken.restored == (record.number if record else 0,)
    assert restore(folder, taken).refused == []  # a restore can be undone
    assert tree(folder) == after


def test_files_that_the_turn_did_not_change_stay(folder: Path) -> None:
    (folder / "a").write_text("1")
    record = change_in_turn(folder, lambda: (folder / "a").write_text("2"))
    (folder / "mine").write_text("mine")
    assert restore(folder, record).restored == ["a"]
    assert (folder / "mine").read_text() == "mine"
    assert (folder / "a").read_text() == "1"


def test_paths_changed_since_are_refused_and_can_be_forced_one_by_one(folder: Path) -> None:
    for name in ("a", "b", "c"):
        (folder / name).write_text("1")

    def change() -> None:
        for name in ("a", "b", "c"):
            (folder / name).write_text("2")

    record = change_in_turn(folder, change)
    (folder / "a").write_text("mine")
    (folder / "b").unlink()
    result = restore(folder, record)
    assert result.restored == ["c"]
    assert [(item.name, item.problem) for item in result.refused] == [
        ("a", CHANGED_SINCE),
        ("b", CHANGED_SINCE),
    ]
    assert (folder / "a").read_text() == "mine"
    assert restore(folder, record, force=("b",)).restored == ["b"]
    assert (folder / "a").read_text() == "mine"
    forced = restore(folder, record, force=("a",))
    assert (folder / "a").read_text() == "1"
    restore(folder, archive_of().find(forced.number)[1])
    assert (folder / "a").read_text() == "mine"  # what was forced away is not lost


def test_only_chosen_paths_are_restored(folder: Path) -> None:
    record = change_in_turn(
        folder, lambda: [(folder / name).write_text("1") for name in ("a", "b")]
    )
    assert restore(folder, record, only=("b",)).restored == ["b"]
    assert sorted(path.name for path in folder.iterdir()) == ["a"]


def test_several_turns_are_taken_back_to_before_the_first(folder: Path) -> None:
    (folder / "a").write_text("0")
    first = change_in_turn(folder, lambda: (folder / "a").write_text("1"))
    second = change_in_turn(folder, lambda: (folder / "b").write_text("2"))
    third = change_in_turn(folder, lambda: (folder / "a").write_text("3"))
    assert restore(folder, first, second, third).restored == ["a", "b"]
    assert tree(folder) == {"a": (0o644, b"0")}


def test_an_edit_of_the_user_between_two_turns_is_not_overwritten(folder: Path) -> None:
    (folder / "a").write_text("0")
    first = change_in_turn(folder, lambda: (folder / "a").write_text("1"))
    (folder / "a").write_text("mine")
    second = change_in_turn(folder, lambda: (folder / "a").write_text("2"))
    assert [item.problem for item in restore(folder, first, second).refused] == [CHANGED_SINCE]
    assert (folder / "a").read_text() == "2"


def test_a_link_in_the_path_never_leads_outside(folder: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "x").write_text("precious")
    (folder / "dir").mkdir()
    (folder / "dir" / "x").write_text("1")
    record = change_in_turn(folder, lambda: (folder / "dir" / "x").write_text("2"))
    (folder / "dir" / "x").unlink()
    (folder / "dir").rmdir()
    (folder / "dir").symlink_to(outside)
    result = restore(folder, record, force=("dir/x",))
    assert [item.problem for item in result.refused] == [BEHIND_LINK]
    assert (outside / "x").read_text() == "precious"
    created = change_in_turn(folder, lambda: (folder / "dir").unlink() or (folder / "dir").mkdir())
    assert created is not None
    result = restore(folder, created)
    assert (folder / "dir").is_symlink()
    assert (outside / "x").read_text() == "precious"


def test_a_file_that_is_in_no_checkpoint_is_never_overwritten(folder: Path) -> None:
    (folder / "grown").write_text("small")
    record = change_in_turn(folder, lambda: (folder / "grown").write_bytes(b"x" * 5_000_001))
    result = restore(folder, record, force=("grown",))
    assert [(item.problem, item.may_force) for item in result.refused] == [(NOT_SAVED, False)]
    assert (folder / "grown").stat().st_size == 5_000_001


def test_a_restore_that_cannot_write_leaves_files_whole(folder: Path) -> None:
    (folder / "a").write_text("x" * 100_000)
    record = change_in_turn(folder, lambda: (folder / "a").write_text("2"))
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))
            result = restore(folder, record)
            is_refused = [item.problem for item in result.refused] == ["File too large"]
            code = 0 if is_refused and [each.name for each in folder.iterdir()] == ["a"] else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert (folder / "a").read_text() == "2"


def test_the_diff_of_turns_has_one_entry_per_file(folder: Path) -> None:
    (folder / "a").write_text("0\n")
    first = change_in_turn(folder, lambda: (folder / "a").write_text("1\n"))
    second = change_in_turn(folder, lambda: (folder / "a").write_text("2\n"))
    assert first is not None
    assert second is not None
    with archive_of().store(folder).locked() as repository:
        text = diff_of(repository, [first, second])
    assert "-0\n+2\n" in text
    assert "1" not in [line[1:] for line in text.splitlines()]


# Processes that are killed


def killed(folder: Path, act: Callable[[], object]) -> None:
    pid = os.fork()
    if pid == 0:
        try:
            act()
        finally:
            os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(pid, 0)


def begin(folder: Path) -> None:
    archive = archive_of()
    number = archive.next_number()
    archive.store(folder).begin(Checkpoint(number, TURN, str(folder), "s1", 7, time.time(), ""))


def test_a_turn_that_is_killed_can_be_taken_back(folder: Path) -> None:
    (folder / "a").write_text("1")
    killed(folder, lambda: (begin(folder), (folder / "a").write_text("2")))
    store = archive_of().store(folder)
    assert [record.is_open for record in store.repository.records()] == [True]
    store.close_interrupted()
    (record,) = store.repository.records()
    assert (record.is_interrupted, record.files) == (True, 1)
    assert restore(folder, record).restored == ["a"]
    assert (folder / "a").read_text() == "1"


def test_the_next_turn_ends_one_that_was_killed(folder: Path) -> None:
    (folder / "a").write_text("1")
    killed(folder, lambda: (begin(folder), (folder / "a").write_text("2")))
    change_in_turn(folder, lambda: (folder / "b").write_text("3"))
    first, second = archive_of().store(folder).repository.records()
    assert (first.is_interrupted, first.files, second.files) == (True, 1, 1)
    assert not second.is_shared


def test_leftovers_of_a_killed_git_do_not_matter(folder: Path) -> None:
    (folder / "a").write_text("1")
    change_in_turn(folder, lambda: (folder / "a").write_text("2"))
    store = archive_of().store(folder)
    git_folder = store.root / "git"
    (git_folder / "index.lock").write_bytes(b"")
    (git_folder / "objects" / "pack").mkdir(exist_ok=True)
    (git_folder / "objects" / "pack" / "tmp_pack_x").write_bytes(b"x" * 1000)
    (git_folder / "objects" / "tmp_obj_y").write_bytes(b"x")
    (git_folder / "index").write_bytes(b"DIRC damaged")
    record = change_in_turn(folder, lambda: (folder / "a").write_text("3"))
    assert record is not None
    assert record.files == 1
    with store.locked() as repository:
        repository.reclaim()
    assert list(git_folder.rglob("tmp_*")) == []
    assert restore(folder, record).restored == ["a"]


@pytest.mark.parametrize("content", [b"", b"/", b"/etc"])
def test_a_store_that_names_another_folder_is_ignored(folder: Path, content: bytes) -> None:
    record = change_in_turn(folder, lambda: (folder / "a").write_text("2"))
    store = archive_of().store(folder)
    (store.root / "folder").write_bytes(content)
    assert list(archive_of().stores()) == []
    assert store.repository.records() == [record]


def test_two_turns_at_the_same_time_are_marked(folder: Path) -> None:
    store = archive_of().store(folder)
    opened = store.begin(Checkpoint(1000, TURN, str(folder), "s1", 7, time.time(), ""))
    second = change_in_turn(folder, lambda: (folder / "a").write_text("2"), "s2")
    first = store.finish(opened, time.time())
    assert first is not None
    assert second is not None
    assert (first.is_shared or second.is_shared, second.is_shared) == (True, True)


# Space


def test_old_checkpoints_and_their_contents_are_removed(folder: Path) -> None:
    (folder / "a").write_bytes(os.urandom(200_000))
    old = change_in_turn(folder, lambda: (folder / "a").write_bytes(os.urandom(200_000)))
    new = change_in_turn(folder, lambda: (folder / "a").write_text("small"))
    archive = archive_of()
    assert old is not None
    assert new is not None
    with archive.store(folder).locked() as repository:
        repository.remove([old.number])
        before = repository.size()
        repository.reclaim()
        assert repository.size() < before - 150_000
        assert repository.records() == [new]
    done = CheckpointCleanup(archive).run(time.time() + 15 * 86_400)
    assert (done.removed, done.kept, done.bytes) == (1, 0, 0)
    with pytest.raises(UsageError):
        archive.find(new.number)
    assert change_in_turn(folder, lambda: (folder / "a").write_text("again")) is not None


def test_the_oldest_checkpoints_go_when_space_is_short(folder: Path) -> None:
    for _ in range(6):
        change_in_turn(folder, lambda: (folder / "a").write_bytes(os.urandom(100_000)))
    archive = archive_of()
    archive.limits = CheckpointLimits(max_store_bytes=400_000)
    done = CheckpointCleanup(archive).run(time.time())
    assert 0 < done.kept < 6
    assert done.bytes <= 400_000
    numbers = [record.number for record in archive.store(folder).repository.records()]
    assert numbers == sorted(numbers)[-len(numbers) :]
    assert max(numbers) == 6
