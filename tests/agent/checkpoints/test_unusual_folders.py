"""Checkpoints of folders that are not plain: read-only, linked worktrees, submodules, odd names."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hermes_agent.checkpoints.restore import CHANGED_SINCE, FileRestore
from support.checkpoints import archive_of, change_in_turn, git, repository_bytes, restore

if TYPE_CHECKING:
    from collections.abc import Callable

NOBODY = 65534
COMMIT = ("-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "-qm", "first")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "project"
    path.mkdir()
    return path


def make_repository(folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    git(folder, "init", "-q")
    (folder / "a.txt").write_text("1\n")
    git(folder, "add", "-A")
    git(folder, *COMMIT)


def change_and_take_back(folder: Path, path: Path) -> None:
    """Change a file in a turn, delete another, create a third; then take it all back."""
    before = path.read_bytes()
    created = path.with_name("created")
    record = change_in_turn(folder, lambda: (path.write_text("2\n"), created.write_text("3")))
    assert record is not None
    assert record.files == 2
    assert restore(folder, record).refused == []
    assert path.read_bytes() == before
    assert not created.exists()


def as_nobody(root: Path, home: Path, work: Callable[[], bool]) -> None:
    """Run a check as a user who is bound by permissions."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            os.environ["HERMES_HOME"] = str(home)
            os.environ["HOME"] = str(root)
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            code = 0 if work() else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


@pytest.mark.skipif(os.getuid() != 0, reason="needs to be root to become another user")
def test_a_folder_that_became_read_only_is_reported_and_untouched() -> None:
    with tempfile.TemporaryDirectory() as name:  # where the other user may look
        root = Path(name)
        root.chmod(0o755)
        folder, home = root / "project", root / "home"
        for path in (folder, home):
            path.mkdir()
            os.chown(path, NOBODY, NOBODY)

        def work() -> bool:
            (folder / "a").write_text("1")
            record = change_in_turn(folder, lambda: (folder / "a").write_text("2"))
            folder.chmod(0o555)
            assert change_in_turn(folder, lambda: None) is None  # it can be read
            refused = restore(folder, record).refused
            assert [(item.name, item.problem) for item in refused] == [("a", "Permission denied")]
            assert [path.name for path in folder.iterdir()] == ["a"]
            folder.chmod(0o755)
            return restore(folder, record).restored == ["a"]

        as_nobody(root, home, work)
        assert (folder / "a").read_text() == "1"


def test_a_repository_with_alternates(folder: Path, tmp_path: Path) -> None:
    original = tmp_path / "original"
    make_repository(original)
    folder.rmdir()
    git(tmp_path, "clone", "-q", "--shared", str(original), str(folder))
    assert (folder / ".git" / "objects" / "info" / "alternates").exists()
    before = repository_bytes(folder / ".git") | repository_bytes(original / ".git")
    change_and_take_back(folder, folder / "a.txt")
    assert repository_bytes(folder / ".git") | repository_bytes(original / ".git") == before
    store = archive_of().store(folder).root / "git"
    assert not (store / "objects" / "info" / "alternates").exists()


def test_a_linked_worktree(folder: Path, tmp_path: Path) -> None:
    main = tmp_path / "main"
    make_repository(main)
    folder.rmdir()
    git(main, "worktree", "add", "-q", str(folder))
    before = repository_bytes(main / ".git"), (folder / ".git").read_bytes()
    change_and_take_back(folder, folder / "a.txt")
    assert (repository_bytes(main / ".git"), (folder / ".git").read_bytes()) == before
    assert git(folder, "status", "--porcelain") == ""


def test_a_submodule(folder: Path, tmp_path: Path) -> None:
    make_repository(tmp_path / "library")
    make_repository(folder)
    git(folder, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add",
        str(tmp_path / "library"), "vendor/library")  # fmt: skip
    git(folder, *COMMIT)
    before = repository_bytes(folder / ".git")
    change_and_take_back(folder, folder / "vendor" / "library" / "a.txt")
    change_and_take_back(folder, folder / "a.txt")
    assert repository_bytes(folder / ".git") == before
    assert git(folder, "status", "--porcelain") == ""


def test_an_edit_of_the_user_after_the_preview_is_not_overwritten(folder: Path) -> None:
    (folder / "a").write_text("1")
    record = change_in_turn(folder, lambda: (folder / "a").write_text("2"))
    assert record is not None
    archive = archive_of()
    work = FileRestore(archive.store(folder), [record])
    assert work.plan().refused == []
    (folder / "a").write_text("mine")
    result = work.apply(archive.next_number(), "s1")
    assert [item.problem for item in result.refused] == [CHANGED_SINCE]
    assert (folder / "a").read_text() == "mine"


def test_links_that_point_outside(folder: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_text("precious")
    (folder / "plain").write_text("1")
    (folder / "link").symlink_to(outside / "file")

    def change() -> None:
        (folder / "plain").unlink()
        (folder / "plain").symlink_to(outside / "file")
        (folder / "link").unlink()
        (folder / "link").write_text("a file")
        (folder / "new").symlink_to(outside)

    record = change_in_turn(folder, change)
    assert restore(folder, record).refused == []
    assert ((folder / "plain").read_text(), (folder / "plain").is_symlink()) == ("1", False)
    assert (folder / "link").readlink() == outside / "file"
    assert not (folder / "new").is_symlink()
    assert [path.read_text() for path in outside.iterdir()] == ["precious"]


@pytest.mark.parametrize("name", [b"new\nline", b"bad\xff", b"tab\t\"quote'\\", b"\x1b[31m", b" "])
def test_odd_names_are_taken_back_and_forced(folder: Path, name: bytes) -> None:
    path = folder / os.fsdecode(name)
    path.write_text("1")
    record = change_in_turn(folder, lambda: path.write_text("2"))
    path.write_text("mine")
    (refused,) = restore(folder, record).refused
    assert refused.problem == CHANGED_SINCE
    assert refused.name.isprintable()
    assert restore(folder, record, force=(refused.name,)).restored == [refused.name]
    assert path.read_text() == "1"
    removed = change_in_turn(folder, path.unlink)
    assert restore(folder, removed, only=(refused.name,)).restored == [refused.name]
    assert path.read_text() == "1"


def test_files_with_new_times_are_compared_once(folder: Path) -> None:
    for number in range(60):
        (folder / str(number)).write_text(str(number))
    assert change_in_turn(folder, lambda: None) is None
    index = archive_of().store(folder).root / "git" / "index"
    known = index.read_bytes()
    assert change_in_turn(folder, lambda: None) is None
    assert index.read_bytes() == known  # nothing has changed, so nothing is written

    def touch() -> None:
        for path in folder.iterdir():
            os.utime(path, (1, 1))

    assert change_in_turn(folder, touch) is None
    refreshed = index.read_bytes()
    assert refreshed != known
    assert change_in_turn(folder, lambda: None) is None
    assert index.read_bytes() == refreshed
