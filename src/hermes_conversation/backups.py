"""Backups in the Hermes folder: listed, written and verified in the background."""

from __future__ import annotations

import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from hermes_core import paths
from hermes_core.errors import HermesError
from hermes_core.isolate import Failure, attempt

if TYPE_CHECKING:
    from hermes_state.portable.backup.archive_format import BackupManifest
    from hermes_state.store import SessionDB

FOLDER: Final = "backups"
BackupAction = Literal["write", "verify"]


class StoredBackup(NamedTuple):
    """A backup file; one that cannot be read has a problem and no manifest."""

    path: Path
    size: int
    manifest: BackupManifest | None
    problem: str = ""


class BackupTask(NamedTuple):
    """The backup that is written or verified, or was the last."""

    action: BackupAction
    name: str
    progress: str = ""
    error: str = ""
    ended_at: float | None = None


def list_backups(folder: Path) -> list[StoredBackup]:
    """The backups of a folder, the latest first."""
    if not folder.is_dir():
        return []
    found = [_read(path) for path in folder.glob("*.zip") if path.is_file()]
    return sorted(found, key=lambda each: -each.path.stat().st_mtime)


def _read(path: Path) -> StoredBackup:
    from hermes_state.portable.backup.archive_format import (  # noqa: PLC0415 - rarely used
        open_archive,
        read_manifest,
    )

    size = path.stat().st_size
    try:
        with open_archive(path) as archive:
            return StoredBackup(path, size, read_manifest(archive, path))
    except HermesError as error:
        return StoredBackup(path, size, None, str(error))


class BackgroundBackup:
    """Writes and verifies backups of a dashboard: one at a time, in a thread."""

    def __init__(self, db: SessionDB, folder: Path) -> None:
        self._db = db
        self._folder = folder
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self.task: BackupTask | None = None

    @property
    def is_running(self) -> bool:
        """Whether a backup is being written or verified."""
        return self._thread is not None and self._thread.is_alive()

    def write(self) -> bool:
        """Start a backup without secrets; False if something is running."""
        paths.private_folder(self._folder)
        name = f"hermes-backup-{time.strftime('%Y%m%d-%H%M%S')}.zip"
        return self._start("write", name)

    def verify(self, name: str) -> bool:
        """Start verifying a backup completely; False if something is running."""
        return self._start("verify", name)

    def wait(self) -> None:
        """Wait for the end."""
        if self._thread is not None:
            self._thread.join()

    def _start(self, action: BackupAction, name: str) -> bool:
        with self._lock:
            if self.is_running:
                return False
            self.task = task = BackupTask(action, name)
            self._thread = threading.Thread(
                target=self._run, args=(task,), name="hermes-backup", daemon=True
            )
            self._thread.start()
            return True

    def _run(self, task: BackupTask) -> None:
        work = self._write if task.action == "write" else self._verify
        result = attempt(f"{task.action} {task.name}", lambda: work(self._folder / task.name))
        error = str(result.error) if isinstance(result, Failure) else ""
        self.task = task._replace(error=error, ended_at=time.time())

    def _write(self, path: Path) -> None:
        self._db.portable.backup_to(path, progress=self._note)

    def _verify(self, path: Path) -> None:
        """Extract everything into a folder of its own and check it, as a restore does."""
        from hermes_state.portable.restore import Restore  # noqa: PLC0415 - rarely used

        with (
            tempfile.TemporaryDirectory(dir=self._folder, prefix=".verify-") as folder,
            Restore(path, Path(folder), self._note) as restore,
        ):
            restore.check()

    def _note(self, text: str) -> None:
        if self.task is not None:
            self.task = self.task._replace(progress=text)
