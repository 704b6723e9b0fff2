"""All checkpoints of a HERMES_HOME: one store per folder, numbers that are unique."""

from __future__ import annotations

import fcntl
import hashlib
import logging
import os
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Final

from hermes_agent.checkpoints.edited_files import ROOT, EditedFiles
from hermes_agent.checkpoints.folder_files import real_folder
from hermes_agent.checkpoints.git_process import find_git
from hermes_agent.checkpoints.records import CheckpointLimits
from hermes_agent.checkpoints.store import CheckpointStore
from hermes_agent.permissions.file_access import FileAccess
from hermes_core.config.file import ConfigFile
from hermes_core.errors import CheckpointError, UsageError
from hermes_core.paths import FILE_MODE, hermes_home, private_folder

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hermes_agent.checkpoints.records import Checkpoint

log = logging.getLogger(__name__)

FOLDER_NAME: Final = "checkpoints"
NO_GIT: Final = "Checkpoints need git, which is not installed: file changes cannot be undone."
LOW_SPACE: Final = (
    "No checkpoint was kept: less than {limit:,} MB are free on the disk with {home}. Free some "
    "space, or lower the setting checkpoints.min_free_mb."
)


def checkpoints_path() -> Path:
    """The folder of all checkpoints."""
    return hermes_home() / FOLDER_NAME


def store_name(folder: Path) -> str:
    """The name of the store of a real folder."""
    digest = hashlib.sha256(os.fsencode(folder)).hexdigest()[:16]
    readable = re.sub(r"[^A-Za-z0-9]+", "-", folder.name).strip("-")[:40] or "root"
    return f"{readable}-{digest}"


class CheckpointArchive:
    """The stores of all folders."""

    def __init__(self, root: Path, limits: CheckpointLimits, program: str) -> None:
        self.root = root
        self.limits = limits
        self._program = program
        self._access = FileAccess(hermes_home(), Path.home())

    @classmethod
    def of_home(cls) -> CheckpointArchive:
        """The archive of this HERMES_HOME; raises CheckpointError without git."""
        program = find_git()
        if program is None:
            raise CheckpointError(NO_GIT)
        limits = CheckpointLimits.of(ConfigFile.of_home().settings())
        return cls(checkpoints_path(), limits, program)

    def store(self, folder: Path) -> CheckpointStore:
        """The store of a folder, which may not exist yet."""
        real = real_folder(folder)
        return self._store(self.root / store_name(real), real)

    def edited_files(self) -> EditedFiles:
        """The store of single files that no checkpoint of a folder has."""
        return EditedFiles(self._program, self.root / store_name(ROOT), self.limits, self._access)

    def _store(self, root: Path, folder: Path) -> CheckpointStore:
        if folder == ROOT:
            return self.edited_files()
        return CheckpointStore(self._program, root, folder, self.limits, self._access)

    def stores(self) -> Iterator[CheckpointStore]:
        """The stores that exist."""
        for path in sorted(self.root.glob("*/folder")):
            try:
                folder = Path(os.fsdecode(path.read_bytes()))
            except OSError:
                continue
            if path.parent.name != store_name(folder):
                log.warning("checkpoints ignored: %s names another folder", path)
                continue
            store = self._store(path.parent, folder)
            if store.exists:
                yield store

    def lack_of_space(self) -> str:
        """Why nothing is kept now; empty if there is enough space."""
        free = shutil.disk_usage(private_folder(self.root)).free
        if free < self.limits.min_free_bytes:
            limit = self.limits.min_free_bytes // 1_000_000
            return LOW_SPACE.format(limit=limit, home=hermes_home())
        return ""

    def next_number(self) -> int:
        """A number that no other checkpoint has."""
        path = private_folder(self.root) / "last-number"
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, FILE_MODE)
        with os.fdopen(handle, "r+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            text = file.read()
            number = (int(text) if text.isdigit() else self._highest()) + 1
            file.seek(0)
            file.write(b"%d" % number)  # never shorter than before
            file.flush()
        return number

    def _highest(self) -> int:
        """The highest number in use, if the file of the last one is empty or damaged."""
        return max(
            (record.number for store in self.stores() for record in store.repository.records()),
            default=0,
        )

    def find(self, number: int) -> tuple[CheckpointStore, Checkpoint]:
        """A checkpoint by its number."""
        for store in self.stores():
            for record in store.repository.records():
                if record.number == number:
                    return store, record
        raise UsageError(f"No checkpoint {number}. `hermes checkpoints list --all` shows all.")

    def is_first_notice(self, text: str) -> bool:
        """Whether a notice was not shown before; it is from now on."""
        digest = hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()[:16]
        path = private_folder(self.root / "notices") / digest
        if path.exists():
            return False
        path.touch(mode=FILE_MODE)
        return True
