"""Takes the changes of turns back: which paths, in which state, and which are refused."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_agent.checkpoints.folder_files import display_path
from hermes_agent.checkpoints.records import RESTORE, Checkpoint, ModeChange
from hermes_agent.checkpoints.temporary_files import listed_names
from hermes_agent.tools import real_paths

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from hermes_agent.checkpoints.git_process import BlobReader
    from hermes_agent.checkpoints.shadow_repository import ShadowRepository, TreeFile
    from hermes_agent.checkpoints.store import CheckpointStore
    from hermes_agent.checkpoints.temporary_files import TemporaryNames

    # Why a path of a folder may not be written; empty if it may be.
    ReviewPath = Callable[[Path, Path], str]

MAX_DIFF_BYTES: Final = 500_000
CHANGED_SINCE: Final = "changed since"
NOT_SAVED: Final = "exists, and is not in any checkpoint (too large, ignored or a secret)"
BEHIND_LINK: Final = "a symbolic link or a file is in its path"
PERMISSIONS: Final = 0o777


class PathChange(NamedTuple):
    """What turns changed at a path: its state before the first and after the last."""

    path: bytes
    before: TreeFile | None
    after: TreeFile | None
    mode: ModeChange = ModeChange(None, None)
    is_mixed: bool = False  # something else changed it between the turns
    prefix: bytes = b""  # of the path for display

    @property
    def kind(self) -> str:
        """What the turns did: created, deleted or modified."""
        if self.before is None and self.after is not None:
            return "created"
        return "deleted" if self.before is not None and self.after is None else "modified"

    @property
    def name(self) -> str:
        """The path for display."""
        return display_path(self.prefix + self.path)


class PlannedPath(NamedTuple):
    """A path to restore, and why it is refused."""

    change: PathChange
    current: TreeFile | None
    problem: str = ""
    may_force: bool = False

    @property
    def name(self) -> str:
        """The path for display."""
        return self.change.name


class RestorePlan(NamedTuple):
    """What a restore would do; paths that already have their state are left out."""

    folder: Path
    numbers: tuple[int, ...]
    paths: list[PlannedPath]
    diff: str  # from the current state to the restored one

    @property
    def refused(self) -> list[PlannedPath]:
        """The paths that are not restored unless they are forced."""
        return [path for path in self.paths if path.problem]


class RestoreResult(NamedTuple):
    """What a restore did; `number` is the checkpoint that undoes it, 0 if none."""

    number: int
    restored: list[str]
    refused: list[PlannedPath]


def collect_changes(
    repository: ShadowRepository, records: Sequence[Checkpoint]
) -> dict[bytes, PathChange]:
    """The changes of closed checkpoints, oldest first, as one change per path."""
    changes: dict[bytes, PathChange] = {}
    for record in records:
        if record.is_open:
            continue
        modes = dict(record.modes)
        paths = {*repository.changed_paths(record.before, record.after), *modes}
        before, after = repository.states(record.before), repository.states(record.after)
        for path in paths:
            known = changes.get(path)
            new = PathChange(
                path,
                before.get(path),
                after.get(path),
                modes.get(path, ModeChange(None, None)),
                prefix=repository.prefix,
            )
            changes[path] = new if known is None else _joined(known, new)
    return dict(sorted(changes.items()))


def _joined(first: PathChange, second: PathChange) -> PathChange:
    return second._replace(
        before=first.before,
        mode=ModeChange(first.mode.before, second.mode.after),
        is_mixed=first.is_mixed or first.after != second.before,
    )


def diff_of(repository: ShadowRepository, records: Sequence[Checkpoint]) -> str:
    """What turns changed, as a unified diff; the repository is locked."""
    changes = collect_changes(repository, records).values()
    before = {change.path: change.before for change in changes if change.before is not None}
    after = {change.path: change.after for change in changes if change.after is not None}
    return repository.diff(before, after, MAX_DIFF_BYTES)


class FileRestore:
    """Restores the state before the first of some checkpoints of one folder."""

    def __init__(
        self,
        store: CheckpointStore,
        records: Sequence[Checkpoint],
        review: ReviewPath | None = None,
    ) -> None:
        self._review = review
        self._store = store
        self._records = records
        self._folder = store.folder
        self._workspace = Path(records[-1].folder) if records else store.folder

    def plan(self, only: Iterable[str] = ()) -> RestorePlan:
        """What a restore would do now."""
        with self._store.locked() as repository:
            return self._plan(repository, self._store.take_snapshot().tree, set(only))

    def apply(
        self, number: int, session_id: str, only: Iterable[str] = (), force: Iterable[str] = ()
    ) -> RestoreResult:
        """Restore all paths that are not refused, and the refused ones that are forced.

        A checkpoint with *number* is kept, which undoes the restore.
        """
        forced = set(force)
        with self._store.locked() as repository:
            record = self._record(number, session_id)
            opened = self._store.begin_locked(record, self._store.take_snapshot())
            try:
                plan = self._plan(repository, opened.record.before, set(only) | forced)
                chosen = [
                    item
                    for item in plan.paths
                    if not item.problem or (item.may_force and item.name in forced)
                ]
                paths = [item.change.path for item in chosen]
                with (
                    repository.contents() as contents,
                    listed_names(self._store.root, paths) as temporary,
                ):
                    failed = self._write_all(chosen, contents, temporary)
                kept = self._store.finish_locked(opened, time.time())
            finally:
                os.close(opened.handle)
        names = {item.name for item in chosen}
        refused = [item for item in plan.paths if item.name not in names]
        restored = [item.name for item in chosen if item.name not in {each.name for each in failed}]
        return RestoreResult(kept.number if kept else 0, restored, [*refused, *failed])

    def _record(self, number: int, session_id: str) -> Checkpoint:
        return Checkpoint(
            number=number,
            kind=RESTORE,
            folder=str(self._workspace),
            session_id=session_id,
            message_id=0,
            started_at=time.time(),
            before="",
            restored=tuple(record.number for record in self._records),
        )

    def _plan(self, repository: ShadowRepository, now: str, only: set[str]) -> RestorePlan:
        current = repository.states(now)
        items = [
            item
            for change in collect_changes(repository, self._records).values()
            if not only or change.name in only
            if (item := self._planned(change, current)) is not None
        ]
        items += [item for item in self._lost(repository) if not only or item.name in only]
        if self._review is not None:
            items = [self._reviewed(item, self._review) for item in items]
        before = {item.change.path: item.current for item in items if item.current is not None}
        after = {
            item.change.path: item.change.before for item in items if item.change.before is not None
        }
        diff = repository.diff(before, after, MAX_DIFF_BYTES) if items else ""
        numbers = tuple(record.number for record in self._records)
        return RestorePlan(self._folder, numbers, items, diff)

    def _lost(self, repository: ShadowRepository) -> list[PlannedPath]:
        """The edited files of which no copy is kept."""
        lost = {path: reason for record in self._records for path, reason in record.lost}
        changes = {path: PathChange(path, None, None, prefix=repository.prefix) for path in lost}
        return [PlannedPath(changes[path], None, reason) for path, reason in lost.items()]

    def _reviewed(self, item: PlannedPath, review: ReviewPath) -> PlannedPath:
        """The path, refused if it may not be written."""
        problem = review(self._folder / os.fsdecode(item.change.path), self._workspace)
        return item._replace(problem=problem, may_force=False) if problem else item

    def _planned(self, change: PathChange, current: Mapping[bytes, TreeFile]) -> PlannedPath | None:
        state = current.get(change.path)
        facts = self._facts(change.path)
        if state is None and facts is not None and not stat.S_ISDIR(facts.st_mode):
            return PlannedPath(change, None, NOT_SAVED)
        if state == change.before and self._has_mode(facts, change.mode.before):
            return None
        if state != change.after or change.is_mixed:
            return PlannedPath(change, state, CHANGED_SINCE, may_force=True)
        return PlannedPath(change, state)

    def _facts(self, path: bytes) -> os.stat_result | None:
        try:
            full = self._folder / os.fsdecode(path)
            with real_paths.open_parent(full) as parent:
                return os.stat(full.name, dir_fd=parent, follow_symlinks=False)
        except OSError:
            return None

    @staticmethod
    def _has_mode(facts: os.stat_result | None, mode: int | None) -> bool:
        if mode is None or facts is None or not stat.S_ISREG(facts.st_mode):
            return True
        return stat.S_IMODE(facts.st_mode) == mode

    # Writing

    def _write_all(
        self, chosen: list[PlannedPath], contents: BlobReader, names: TemporaryNames
    ) -> list[PlannedPath]:
        """Write the paths; those that failed, with the reason."""
        failed = []
        created = [item for item in chosen if item.change.before is None]
        others = [item for item in chosen if item.change.before is not None]
        # New files go first: one may stand where a folder has to be, and the other way round.
        for item in [*reversed(created), *others]:
            try:
                self._write(item.change, contents, names)
            except OSError as error:
                is_link = error.errno in {errno.ELOOP, errno.ENOTDIR}
                reason = BEHIND_LINK if is_link else str(error.strerror)
                failed.append(item._replace(problem=reason, may_force=False))
        return failed

    def _write(self, change: PathChange, contents: BlobReader, names: TemporaryNames) -> None:
        path = self._folder / os.fsdecode(change.path)
        if change.before is None:
            self._remove(path)
            return
        data = contents.read(change.before.blob)
        with real_paths.open_parent(path, creates=True) as parent:
            target = ReplacedFile(path.name, names.of(path.name), parent)
            if change.before.is_link:
                _replace_link(data, target)
            else:
                _replace_file(data, target, change.before, change.mode.before)

    def _remove(self, path: Path) -> None:
        """Remove a file, and the folders of the workspace that are empty after it."""
        with real_paths.open_parent(path) as parent, contextlib.suppress(FileNotFoundError):
            os.unlink(path.name, dir_fd=parent)
        for folder in path.parents:
            if folder == self._workspace or not folder.is_relative_to(self._workspace):
                return
            try:
                with real_paths.open_parent(folder) as above:
                    os.rmdir(folder.name, dir_fd=above)
            except OSError:
                return  # it holds something else


class ReplacedFile(NamedTuple):
    """A file to replace: its name, a temporary one, and the open folder of both."""

    name: str
    temporary: str
    parent: int


def _replace_link(data: bytes, target: ReplacedFile) -> None:
    os.symlink(data, os.fsencode(target.temporary), dir_fd=target.parent)
    _move(target)


def _replace_file(data: bytes, target: ReplacedFile, state: TreeFile, mode: int | None) -> None:
    name, temporary, parent = target
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    permissions = 0o777 if state.is_executable else 0o666
    handle = os.open(temporary, flags, permissions, dir_fd=parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            if mode is None:
                mode = _current_mode(name, parent, state)
            if mode is not None:
                os.fchmod(file.fileno(), mode & PERMISSIONS)
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        os.unlink(temporary, dir_fd=parent)
        raise
    _move(target)


def _current_mode(name: str, parent: int, state: TreeFile) -> int | None:
    """The permissions of the file that is replaced, with the stored right to execute."""
    try:
        facts = os.stat(name, dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(facts.st_mode):
        return None
    mode = stat.S_IMODE(facts.st_mode)
    readable = (mode & 0o444) >> 2
    return mode | readable if state.is_executable else mode & ~0o111


def _move(target: ReplacedFile) -> None:
    name, temporary, parent = target
    try:
        try:
            os.replace(temporary, name, src_dir_fd=parent, dst_dir_fd=parent)
        except IsADirectoryError:
            os.rmdir(name, dir_fd=parent)  # a folder that is not empty stays
            os.replace(temporary, name, src_dir_fd=parent, dst_dir_fd=parent)
    except OSError:
        os.unlink(temporary, dir_fd=parent)
        raise
