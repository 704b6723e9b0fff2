"""The checkpoints of one folder: a locked repository, and which turns are running."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import threading
import time
from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_agent.checkpoints.folder_files import FolderFiles
from hermes_agent.checkpoints.records import ModeChange
from hermes_agent.checkpoints.shadow_repository import FolderSnapshot, ShadowRepository
from hermes_agent.checkpoints.temporary_files import remove_leftovers
from hermes_core.errors import CheckpointError, FolderTooLargeError
from hermes_core.isolate import attempt
from hermes_core.paths import FILE_MODE, private_folder

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from hermes_agent.checkpoints.archive import CheckpointArchive
    from hermes_agent.checkpoints.records import Checkpoint, CheckpointLimits
    from hermes_agent.permissions.file_access import FileAccess

INTERVAL_SECONDS: Final = 600.0


class CleanupResult(NamedTuple):
    """What was removed, and what is left."""

    removed: int
    kept: int
    freed_bytes: int
    bytes: int


class CheckpointCleanup:
    """Removes old checkpoints and the contents that only they used."""

    def __init__(self, archive: CheckpointArchive) -> None:
        self._archive = archive
        self._last_run = 0.0
        self._lock = threading.Lock()

    def start_if_due(self) -> None:
        """Clean up in the background, at most every ten minutes."""
        with self._lock:
            now = time.monotonic()
            if self._last_run and now - self._last_run < INTERVAL_SECONDS:
                return
            self._last_run = now
        threading.Thread(
            target=lambda: attempt("clean up checkpoints", lambda: self.run(time.time())),
            name="hermes-checkpoints",
            daemon=True,
        ).start()

    def run(self, now: float, *, keep_seconds: float | None = None) -> CleanupResult:
        """Remove what is too old or too much."""
        limits = self._archive.limits
        oldest = now - (limits.keep_seconds if keep_seconds is None else keep_seconds)
        before = after = removed = kept = 0
        stores = list(self._archive.stores())
        for store in stores:
            before += store.repository.size()
            removed += self._remove(store, [r for r in _closed(store) if r.started_at < oldest])
            after += store.repository.size() if store.exists else 0
        while after > limits.max_store_bytes:
            victims = self._oldest_half(stores)
            if not victims:
                break
            for store, records in victims:
                removed += self._remove(store, records)
            after = sum(store.repository.size() for store in stores if store.exists)
        kept = sum(len(_closed(store)) for store in stores if store.exists)
        return CleanupResult(removed, kept, max(0, before - after), after)

    def _oldest_half(
        self, stores: list[CheckpointStore]
    ) -> list[tuple[CheckpointStore, list[Checkpoint]]]:
        """The older half of all checkpoints; of one, that one."""
        found = sorted(
            ((record.started_at, place, record) for place, store in enumerate(stores)
             if store.exists for record in _closed(store)),
            key=lambda item: item[:2],
        )  # fmt: skip
        chosen = found[: (len(found) + 1) // 2]
        return [
            (store, [record for _, at, record in chosen if at == place])
            for place, store in enumerate(stores)
            if any(at == place for _, at, _ in chosen)
        ]

    def _remove(self, store: CheckpointStore, records: list[Checkpoint]) -> int:
        with store.locked() as repository:
            repository.remove([record.number for record in records])
            if repository.records():
                repository.reclaim()
                return len(records)
            # Without a checkpoint the repository holds nothing that the folder does not; the lock
            # and the numbers stay. Others that read it find it whole or not at all.
            removed = store.root / "git-removed"
            shutil.rmtree(removed, ignore_errors=True)
            with contextlib.suppress(FileNotFoundError):
                (store.root / "git").rename(removed)
            shutil.rmtree(removed, ignore_errors=True)
        return len(records)


def _closed(store: CheckpointStore) -> list[Checkpoint]:
    records = store.repository.records()
    return [record for record in records if not (record.is_open and store.is_running(record))]


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

    def covers(self, opened: OpenCheckpoint, path: Path) -> bool:
        """Whether the checkpoint of a turn has a file, or would have a new one."""
        if not path.is_relative_to(self.folder):
            return False
        name = os.fsencode(path.relative_to(self.folder))
        if name in opened.snapshot.modes:
            return True
        return not (self._files.problem(name) or self.repository.ignores(name))

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
