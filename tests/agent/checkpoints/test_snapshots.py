"""Snapshots of folders with the real git: what is stored, what is not, and what is untouched."""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hermes_agent.checkpoints.archive import CheckpointArchive, checkpoints_path
from hermes_agent.checkpoints.records import (
    TURN,
    Checkpoint,
    CheckpointLimits,
    is_secret_name,
    refusal_of_folder,
)
from hermes_core.errors import FolderTooLargeError
from support.checkpoints import archive_of, change_in_turn, git, stored_names

if TYPE_CHECKING:
    from collections.abc import Callable

NOBODY = 65534


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "project"
    path.mkdir()
    return path


def test_a_turn_that_changes_nothing_leaves_no_checkpoint(folder: Path) -> None:
    (folder / "a.txt").write_text("1")
    assert change_in_turn(folder, lambda: None) is None
    assert archive_of().store(folder).repository.records() == []


def test_a_checkpoint_names_what_its_turn_changed(folder: Path) -> None:
    (folder / "a.txt").write_text("1")
    record = change_in_turn(folder, lambda: (folder / "b.txt").write_text("2"))
    assert record is not None
    assert (record.files, record.session_id, record.message_id) == (1, "s1", 7)
    repository = archive_of().store(folder).repository
    assert repository.changed_paths(record.before, record.after) == [b"b.txt"]
    assert repository.records() == [record]


def make_repository(folder: Path) -> None:
    """A repository with hooks, filters and settings that a snapshot must not use."""
    git(folder, "init", "-q")
    alarm = folder.parent / "alarm"
    hooks = folder / ".git" / "hooks"
    hooks.mkdir(exist_ok=True)
    for name in ("post-index-change", "pre-commit", "post-commit", "reference-transaction"):
        (hooks / name).write_text(f"#!/bin/sh\ntouch {alarm}\n")
        (hooks / name).chmod(0o755)
    git(folder, "config", "filter.alarm.clean", f"touch {alarm}; cat")
    git(folder, "config", "core.fsmonitor", f"touch {alarm}")
    git(folder, "config", "core.autocrlf", "input")
    (folder / ".gitattributes").write_text("* filter=alarm text=auto ident\n")
    (folder / "a.txt").write_bytes(b"one\r\ntwo $Id$\r\n")


def test_the_users_repository_is_not_touched(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_repository(folder)
    git(folder, "add", "a.txt", "-f")
    status = ("--no-optional-locks", "-c", "core.fsmonitor=false", "status", "--porcelain")
    shown, head = git(folder, *status), (folder / ".git" / "HEAD").read_text()
    (folder.parent / "alarm").unlink(missing_ok=True)
    hooks = sorted((folder / ".git" / "hooks").iterdir())
    before = {
        path: (path.stat().st_mtime_ns, path.read_bytes())
        for path in (folder / ".git").rglob("*")
        if path.is_file()
    }
    monkeypatch.setenv("GIT_DIR", str(folder / ".git"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(folder / ".git" / "index"))
    monkeypatch.setenv("GIT_OBJECT_DIRECTORY", str(folder / ".git" / "objects"))
    record = change_in_turn(folder, lambda: (folder / "new").write_text("x"))
    assert record is not None
    after = {
        path: (path.stat().st_mtime_ns, path.read_bytes())
        for path in (folder / ".git").rglob("*")
        if path.is_file()
    }
    assert after == before
    assert sorted((folder / ".git" / "hooks").iterdir()) == hooks
    assert not (folder.parent / "alarm").exists()
    monkeypatch.delenv("GIT_DIR")
    monkeypatch.delenv("GIT_INDEX_FILE")
    monkeypatch.delenv("GIT_OBJECT_DIRECTORY")
    assert git(folder, *status) == f"{shown}?? new\n"
    assert (folder / ".git" / "HEAD").read_text() == head


def test_contents_are_stored_byte_for_byte(folder: Path) -> None:
    make_repository(folder)
    record = change_in_turn(folder, (folder / "a.txt").unlink)
    assert record is not None
    repository = archive_of().store(folder).repository
    state = repository.states(record.before)[b"a.txt"]
    with repository.contents() as contents:
        assert contents.read(state.blob) == b"one\r\ntwo $Id$\r\n"


def test_files_of_worktrees_and_nested_repositories_are_stored(folder: Path) -> None:
    git(folder, "init", "-q")
    inner = folder / "vendor" / "inner"
    inner.mkdir(parents=True)
    git(inner, "init", "-q")
    (inner / "code").write_text("1")
    (inner / ".gitignore").write_text("ignored\n")
    (inner / "ignored").write_text("1")
    (inner / "deeper").mkdir()
    git(inner / "deeper", "init", "-q")
    (inner / "deeper" / "file").write_text("1")
    (folder / "linked").mkdir()
    (folder / "linked" / ".git").write_text("gitdir: /nowhere/at/all\n")
    (folder / "linked" / "file").write_text("1")
    names = stored_names(folder)
    assert {"vendor/inner/code", "vendor/inner/deeper/file", "linked/file"} <= names
    assert "vendor/inner/ignored" not in names
    assert not any(".git" in name.split("/") for name in names)
    (inner / "second").write_text("2")  # a file that comes when the repository is known
    assert "vendor/inner/second" in stored_names(folder)


def test_odd_names_and_kinds_of_files(folder: Path) -> None:
    names = [
        b"new\nline",
        b"bad\xff",
        b"tab\there",
        b"git~1",
        b"-rf",
        b"a b",
        b":(top)x",
        b"\xc3\xa9",
    ]
    for name in names:
        (folder / os.fsdecode(name)).write_bytes(name)
    (folder / "loop").symlink_to(folder)
    (folder / "outside").symlink_to("/etc/passwd")
    (folder / "dangling").symlink_to("nowhere")
    (folder / ".gitmodules").symlink_to("nowhere")
    os.mkfifo(folder / "pipe")
    stored = {os.fsencode(name) for name in stored_names(folder)}
    assert stored == {*names, b"loop", b"outside", b"dangling"}


def test_a_file_becomes_a_folder_and_back_and_names_change_case(folder: Path) -> None:
    (folder / "thing").write_text("1")
    (folder / "Name").write_text("1")
    assert stored_names(folder) == {"thing", "Name"}
    (folder / "thing").unlink()
    (folder / "thing").mkdir()
    (folder / "thing" / "inner").write_text("1")
    (folder / "Name").rename(folder / "name")
    assert stored_names(folder) == {"thing/inner", "name"}
    (folder / "thing" / "inner").unlink()
    (folder / "thing").rmdir()
    (folder / "thing").symlink_to("/etc")
    assert stored_names(folder) == {"thing", "name"}


def test_what_is_large_ignored_or_secret_is_not_stored(folder: Path) -> None:
    (folder / "big").write_bytes(b"x" * 5_000_001)
    (folder / "node_modules" / "p").mkdir(parents=True)
    (folder / "node_modules" / "p" / "index.js").write_text("1")
    (folder / "data").mkdir()
    (folder / "data" / "x").write_text("1")
    # A folder cannot make its secrets part of a checkpoint.
    (folder / ".gitignore").write_text("data/\n!.env\n!*.pem\n")
    for name in (".env", ".env.local", "prod.env", "key.pem", "id_rsa", ".netrc", "tls.key"):
        (folder / name).write_text("secret")
    (folder / ".env.example").write_text("NAME=")
    (folder / "environment.py").write_text("1")
    assert stored_names(folder) == {".gitignore", ".env.example", "environment.py"}


def test_another_name_of_a_hidden_file_is_not_stored(
    folder: Path, hermes_home: Path, tmp_path: Path
) -> None:
    (hermes_home / ".env").write_text("KEY=1")
    os.link(hermes_home / ".env", folder / "harmless.txt")
    (tmp_path / "user" / ".ssh").mkdir()
    (tmp_path / "user" / ".ssh" / "config").write_text("Host x")
    os.link(tmp_path / "user" / ".ssh" / "config", folder / "other.txt")
    (folder / "one").write_text("1")
    os.link(folder / "one", folder / "two")
    assert stored_names(folder) == {"one", "two"}


@pytest.mark.skipif(os.getuid() != 0, reason="needs to be root to become another user")
def test_unreadable_files_and_folders_do_not_stop_a_snapshot(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with tempfile.TemporaryDirectory() as name:  # where the other user may look
        root = Path(name)
        folder, home = root / "project", root / "home"
        (folder / "shut").mkdir(parents=True)
        home.mkdir()
        monkeypatch.setenv("HERMES_HOME", str(home))
        for path in ("a", "closed", "shut/x"):
            (folder / path).write_text("1")
        os.chown(root, NOBODY, NOBODY)
        os.chown(home, NOBODY, NOBODY)
        (folder / "closed").chmod(0)
        (folder / "shut").chmod(0)
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                os.setuid(NOBODY)
                code = 0 if stored_names(folder) == {"a"} else 2
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def limited(**limits: int) -> CheckpointArchive:
    archive = archive_of()
    archive.limits = CheckpointLimits(**limits)  # type: ignore[arg-type]
    return archive


@pytest.mark.parametrize(
    ("limits", "setting"),
    [({"max_files": 3}, "checkpoints.max_files"), ({"max_folder_bytes": 3}, "max_folder_mb")],
)
def test_a_folder_beyond_a_limit_is_refused_with_advice(
    folder: Path, limits: dict[str, int], setting: str
) -> None:
    for number in range(4):
        (folder / str(number)).write_text("1")
    store = limited(**limits).store(folder)
    with pytest.raises(FolderTooLargeError, match=setting):
        store.begin(Checkpoint(1, TURN, str(folder), "s1", 7, time.time(), ""))
    assert store.repository.records() == []


def test_home_and_root_are_never_taken(tmp_path: Path) -> None:
    home = tmp_path / "user"
    for refused in (home, tmp_path, Path("/")):
        assert "Start Hermes in a project folder" in refusal_of_folder(refused, home)
    assert refusal_of_folder(home / "project", home) == ""


def test_the_store_is_private(folder: Path) -> None:
    (folder / "a").write_text("1")
    change_in_turn(folder, lambda: (folder / "a").write_text("2"))
    for path in (
        checkpoints_path(),
        *checkpoints_path().glob("*/"),
        *checkpoints_path().glob("*/git"),
    ):
        if path.is_dir():
            assert path.stat().st_mode & 0o077 == 0, path


@pytest.mark.parametrize(
    ("name", "is_secret"),
    [
        (b".env", True),
        (b"deploy/.env.production", True),
        (b".ssh/config", True),
        (b"server.KEY", True),
        (b".env.sample", False),
        (b"env.py", False),
        (b"src/keyboard.c", False),
        (b"monkey", False),
        (b".npmrc", True),
        (b"bad\xff.pem", True),
    ],
)
def test_names_of_secrets(name: bytes, is_secret: bool) -> None:
    assert is_secret_name(name) is is_secret


def test_two_processes_take_checkpoints_of_one_folder(folder: Path) -> None:
    (folder / "a").write_text("1")

    def worker(name: str) -> Callable[[], object]:
        return lambda: (folder / name).write_text(name)

    children = []
    for name in ("one", "two", "three", "four"):
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                for number in range(3):
                    change_in_turn(folder, worker(f"{name}{number}"))
                code = 0
            finally:
                os._exit(code)
        children.append(pid)
    assert [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children] == [0] * 4
    records = archive_of().store(folder).repository.records()
    assert len({record.number for record in records}) == len(records) >= 3
    assert not any(record.is_open for record in records)
    last = archive_of().store(folder).repository.states(records[-1].after)
    assert len(last) >= 4
    subprocess.run(
        ["git", f"--git-dir={archive_of().store(folder).root / 'git'}", "fsck", "--strict"],
        check=True,
        capture_output=True,
    )
