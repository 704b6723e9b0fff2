"""Copies of files that the agent edits itself and that the checkpoint of its folder does not have.

These are ignored files, files outside of the working folder, and those of folders that are not
kept. All are in one store, whose folder is the root of the file system; its checkpoints are
about their own paths only.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from hermes_agent.checkpoints.folder_files import NamedFiles
from hermes_agent.checkpoints.records import TURN, Checkpoint, ModeChange
from hermes_agent.checkpoints.shadow_repository import FolderSnapshot
from hermes_agent.checkpoints.store import CheckpointStore
from hermes_agent.tools.files import MAX_EDIT_BYTES

if TYPE_CHECKING:
    from hermes_agent.checkpoints.records import CheckpointLimits
    from hermes_agent.checkpoints.store import OpenCheckpoint
    from hermes_agent.permissions.file_access import FileAccess

ROOT: Final = Path("/")


class EditedFiles(CheckpointStore):
    """The store of these files."""

    def __init__(
        self, program: str, root: Path, limits: CheckpointLimits, access: FileAccess
    ) -> None:
        limits = limits._replace(max_file_bytes=MAX_EDIT_BYTES)
        super().__init__(program, root, ROOT, limits, access)
        self._files = self._named = NamedFiles(ROOT, limits, access)

    def begin(self, record: Checkpoint) -> OpenCheckpoint:
        """Begin the checkpoint of a turn, which has no files yet."""
        with self.locked() as repository:
            self._close_interrupted(self.take_snapshot())
            return self.begin_locked(record, FolderSnapshot(repository.tree_of({}), {}))

    def keep(self, opened: OpenCheckpoint, path: bytes) -> OpenCheckpoint:
        """Keep a file as it is now, before the first edit of it in a turn."""
        record = opened.record
        if path in record.paths or path in dict(record.lost):
            return opened
        with self.locked() as repository:
            problem = self._named.problem(path)
            if problem:
                record = record._replace(lost=(*record.lost, (path, problem)))
            else:
                self._named.names = [path]
                snapshot = repository.take_snapshot(self._files)
                states = repository.states(record.before)
                if (state := repository.states(snapshot.tree).get(path)) is not None:
                    states[path] = state
                mode = ModeChange(snapshot.modes.get(path), None)
                record = record._replace(
                    before=repository.tree_of(states),
                    paths=(*record.paths, path),
                    modes=(*record.modes, (path, mode)),
                )
            repository.write(record)
        return opened._replace(record=record)

    def take_snapshot(self) -> FolderSnapshot:
        """Store the state of all files that a checkpoint is about."""
        records = self.repository.records()
        self._named.names = sorted({path for record in records for path in record.paths})
        return super().take_snapshot()

    def _closed(
        self, record: Checkpoint, before: FolderSnapshot, after: FolderSnapshot, now: float
    ) -> Checkpoint:
        if record.kind != TURN:
            closed = super()._closed(record, before, after, now)
            changed = self.repository.changed_paths(closed.before, closed.after)
            return closed._replace(paths=tuple({*changed, *dict(closed.modes)}), is_shared=False)
        states, own = self.repository.states(after.tree), set(record.paths)
        tree = self.repository.tree_of({path: states[path] for path in own & states.keys()})
        modes = {path: after.modes[path] for path in own & after.modes.keys()}
        known = {path: mode.before for path, mode in record.modes if mode.before is not None}
        before = FolderSnapshot(record.before, known)
        closed = super()._closed(record, before, FolderSnapshot(tree, modes), now)
        return closed._replace(files=closed.files + len(record.lost), is_shared=False)
