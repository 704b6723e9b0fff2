"""The checkpoints of one folder: a locked repository, and which turns are running."""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_agent.checkpoints.folder_files import FolderFiles
from hermes_agent.checkpoints.records import ModeChange
from hermes_agent.checkpoints.shadow_repository import FolderSnapshot, ShadowRepository
from hermes_agent.checkpoints.temporary_files import remove_leftovers
from hermes_core.errors import CheckpointError, FolderTooLargeError
from hermes_core.paths import FILE_MODE, private_folder

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from hermes_agent.checkpoints.limits import CheckpointLimits
    from hermes_agent.checkpoints.records import Checkpoint
    from hermes_agent.permissions.file_access import FileAccess

LOCK_SECONDS: Final = 60.0
RETRY_SECONDS: Final = 0.01
BUSY: Final = "Checkpoints of {folder} are in use by another process. Try again."


class OpenCheckpoint(NamedTuple):
    """A checkpoint whose turn runs in this process, its first snapshot, and its lock."""

    record: Checkpoint
    snapshot: FolderSnapshot
    handle: int


class CheckpointStore:
    """The checkpoints of a folder."""

    def __init__(
        self,
        program: str,
        root: Path,
        folder: Path,
        limits: CheckpointLimits,
        access: FileAccess,
    ) -> None:
        self.folder = folder
        self.root = root
        self._limits = limits
        self._files = FolderFiles(folder, limits, access)
        self.repository = ShadowRepository(program, root / "git", folder)

    @property
    def exists(self) -> bool:
        """Whether checkpoints of the folder were ever kept."""
        return self.repository.exists

    @contextlib.contextmanager
    def locked(self) -> Iterator[ShadowRepository]:
        """The repository, for this thread alone; released when the process ends."""
        private_folder(self.root / "open")
        handle = _open(self.root / "lock")
        try:
            _wait_for_lock(handle, BUSY.format(folder=self.folder))
            self._write_folder()
            self.repository.prepare(self._limits.excludes)
            remove_leftovers(self.root, self.folder)
            yield self.repository
        finally:
            os.close(handle)

    def _write_folder(self) -> None:
        """Write which folder this is about, once and in one step: others read it without a lock."""
        path = self.root / "folder"
        if not path.exists():
            new = self.root / "folder.new"
            new.write_bytes(os.fsencode(self.folder))
            new.replace(path)

    # A turn or a restore

    def begin(self, record: Checkpoint) -> OpenCheckpoint:
        """Store the state before a change; *record* has no trees yet."""
        with self.locked():
            return self.begin_locked(record, self.repository.take_snapshot(self._files))

    def begin_locked(self, record: Checkpoint, snapshot: FolderSnapshot) -> OpenCheckpoint:
        """Begin with a state that was stored while the store is locked."""
        is_shared = self._close_interrupted(snapshot)
        record = record._replace(before=snapshot.tree, is_shared=is_shared)
        handle = _open(self._marker(record.number))
        _try_lock(handle)
        self.repository.write(record)
        return OpenCheckpoint(record, snapshot, handle)

    def finish(self, opened: OpenCheckpoint, now: float) -> Checkpoint | None:
        """Store the state after the change; None if nothing changed."""
        try:
            with self.locked():
                return self.finish_locked(opened, now)
        finally:
            os.close(opened.handle)

    def finish_locked(self, opened: OpenCheckpoint, now: float) -> Checkpoint | None:
        """Finish while the store is locked; the caller closes the handle."""
        snapshot = self.take_snapshot()
        is_shared = opened.record.is_shared or self._is_another_open(opened.record.number)
        record = self._closed(
            opened.record._replace(is_shared=is_shared), opened.snapshot, snapshot, now
        )
        if record.files:
            self.repository.write(record)
        else:
            self.repository.remove([record.number])
        self._marker(record.number).unlink(missing_ok=True)
        return record if record.files else None

    def take_snapshot(self) -> FolderSnapshot:
        """Store the state of the folder, while the store is locked.

        In a folder that has become too large, new files are left out.
        """
        try:
            return self.repository.take_snapshot(self._files)
        except FolderTooLargeError:
            return self.repository.take_snapshot(self._files, only_known=True)

    def _closed(
        self, record: Checkpoint, before: FolderSnapshot, after: FolderSnapshot, now: float
    ) -> Checkpoint:
        paths = self.repository.changed_paths(record.before, after.tree)
        modes = dict(_mode_changes(before.modes, after.modes, paths))
        return record._replace(
            after=after.tree,
            ended_at=now,
            files=len({*paths, *modes}),
            modes=tuple(modes.items()),
        )

    # Turns that were killed

    def close_interrupted(self) -> None:
        """Give checkpoints of turns that were killed an end: the state of the folder now."""
        if not self.folder.is_dir() or not any(not is_locked(path) for path in self._markers()):
            return
        with self.locked():
            records = self.repository.records()
            if any(record.is_open and not self.is_running(record) for record in records):
                self._close_interrupted(self.take_snapshot(), records)

    def _close_interrupted(
        self, snapshot: FolderSnapshot, records: list[Checkpoint] | None = None
    ) -> bool:
        """Close killed turns; whether another one is running."""
        if records is None:
            if not any(self._markers()):  # no turn is open: the usual case, without a process
                return False
            records = self.repository.records()
        is_another = False
        for record in records:
            if not record.is_open:
                continue
            if self.is_running(record):
                is_another = True
                continue
            closed = self._closed(record, FolderSnapshot(record.before, {}), snapshot, time.time())
            if closed.files:
                self.repository.write(closed._replace(is_interrupted=True))
            else:
                self.repository.remove([record.number])
            self._marker(record.number).unlink(missing_ok=True)
        return is_another

    def is_running(self, record: Checkpoint) -> bool:
        """Whether the turn of an open checkpoint is running."""
        return is_locked(self._marker(record.number))

    def _is_another_open(self, number: int) -> bool:
        return any(path.name != f"{number:09}" for path in self._markers())

    def _markers(self) -> Iterable[Path]:
        return list((self.root / "open").glob("*"))

    def _marker(self, number: int) -> Path:
        return self.root / "open" / f"{number:09}"


def _mode_changes(
    before: Mapping[bytes, int], after: Mapping[bytes, int], paths: Iterable[bytes]
) -> Iterator[tuple[bytes, ModeChange]]:
    """Permissions of the changed files, and of those whose permissions alone changed."""
    changed = set(paths)
    if before:
        changed |= {path for path, mode in after.items() if before.get(path, mode) != mode}
    for path in changed:
        yield path, ModeChange(before.get(path), after.get(path))


def is_locked(path: Path) -> bool:
    """Whether a running process holds the lock of a file."""
    try:
        handle = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        return not _try_lock(handle)
    finally:
        os.close(handle)


def _open(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, FILE_MODE)


def _try_lock(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _wait_for_lock(handle: int, message: str) -> None:
    deadline = time.monotonic() + LOCK_SECONDS
    while not _try_lock(handle):
        if time.monotonic() > deadline:
            raise CheckpointError(message)
        time.sleep(RETRY_SECONDS)
