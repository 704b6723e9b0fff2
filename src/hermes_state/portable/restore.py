"""A backup put back: checked first, and never over anything that is there.

What is there is moved into a dated folder beside it. A store that another process has
open is left alone.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from hermes_core import paths
from hermes_core.atomic_files import sync_folder
from hermes_core.errors import PortableFileError, SchemaTooNewError, StoreError, StoreInUseError
from hermes_state.engine import driver, filesystem
from hermes_state.engine.driver import sqlite3
from hermes_state.engine.errors import to_store_error
from hermes_state.engine.file_guard import SQLITE_SUFFIXES
from hermes_state.portable.backup import (
    STORE,
    copy_out,
    inspect,
    open_archive,
    read_manifest,
    remove_abandoned,
)
from hermes_state.schema import own

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes_state.portable.backup import BackupManifest

    Progress = Callable[[str], object]

PROC: Final = Path("/proc")


def holders_of(store: Path, proc: Path = PROC) -> list[str]:
    """The processes that have a database open: 'hermes (process 4711)'; never this one."""
    real = os.path.realpath(store)
    wanted = {real + tail for tail in SQLITE_SUFFIXES}
    return sorted(
        f"{_name_of(process)} (process {process.name})"
        for process in proc.glob("[0-9]*")
        if process.name != str(os.getpid()) and wanted & _open_files(process)
    )


def _open_files(process: Path) -> set[str]:
    """What a process has open; nothing for one that is gone or somebody else's."""
    found = set()
    try:
        for handle in (process / "fd").iterdir():
            found.add(os.readlink(handle))  # noqa: PTH115 - a name, not a place to go
    except OSError:
        return found
    return found


def _name_of(process: Path) -> str:
    """The command, shortened; a program run by Python is named by its module or script."""
    try:
        words = (process / "cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return "?"
    named = [Path(word).name for word in words if word and not word.startswith("-")]
    is_python = bool(named) and named[0].startswith("python")
    return " ".join(named[1:4] if is_python and len(named) > 1 else named[:3]) or "?"


PREFIX: Final = ".restore-"
PROBE_SECONDS: Final = 0.5
SNAPSHOT: Final = "plugins/hermes-achievements/scan_snapshot.json"
# Everything of the present home that belongs to the history that is being replaced. What was
# earned by it stays where the backup knows of nothing earned.
HISTORY: Final = (
    *(name + tail for name in (STORE, "search.db") for tail in SQLITE_SUFFIXES),
    SNAPSHOT,
)
UNSENT = """
    UPDATE hermes_outbox SET state = 'ambiguous', process_id = NULL
    WHERE state IN ('waiting', 'sending')
"""


@dataclass
class Restored:
    """What was put where."""

    folder: Path
    manifest: BackupManifest
    files: list[str]
    moved_to: Path | None = None
    moved: list[str] = field(default_factory=list)


class Restore:
    """A backup on its way into a folder; nothing there changes before `put`."""

    def __init__(self, path: Path, folder: Path, progress: Progress | None = None) -> None:
        self._path = path
        self._folder = folder
        self._tell = progress or (lambda _text: None)
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> Restore:
        return self

    def __exit__(self, *_exception: object) -> None:
        self._stack.close()

    def check(self) -> BackupManifest:
        """Unpack beside the target and see that everything is whole."""
        with open_archive(self._path) as archive:
            self._manifest = read_manifest(archive, self._path)
            filesystem.prepare_folder(self._folder / STORE)
            _refuse_if_open(self._folder / STORE)
            remove_abandoned(self._folder, PREFIX)
            work = tempfile.TemporaryDirectory(prefix=PREFIX, dir=self._folder)
            self._work = Path(self._stack.enter_context(work))
            for name in self._manifest.files:
                self._tell(f"unpacking {name} …")
                paths.private_folder((self._work / name).parent)
                copy_out(archive, self._manifest, name, self._work / name, self._path)
        self._tell("checking the history …")
        try:
            found = inspect(self._work / STORE)
        except StoreError as error:
            raise PortableFileError(
                f"{self._path}: the history in it is damaged. {error}"
            ) from error
        if (found.layout or 0) > own.LAYOUT:
            raise SchemaTooNewError(
                f"{self._path} was written by a newer release of Hermes (layout {found.layout}, "
                f"this release knows {own.LAYOUT}). Update Hermes; nothing was changed."
            )
        return self._manifest

    def in_the_way(self) -> list[str]:
        """The files of the target that would be moved aside."""
        names = [*HISTORY, *self._manifest.files]
        names += [f"spool/{path.name}" for path in (self._folder / "spool").glob("*.jsonl")]
        return [name for name in dict.fromkeys(names) if (self._folder / name).exists()]

    def put(self) -> Restored:
        """Move what is there aside and the unpacked files into place."""
        store = self._folder / STORE
        if store.exists():
            claim(store)
        _settle_unsent(self._work / STORE)
        moved, aside = self.in_the_way(), None
        if moved:
            aside = _dated_folder(self._folder)
            for name in moved:
                self._set_aside(name, aside)
            sync_folder(aside)
        # The history comes last: with it the home is whole.
        for name in sorted(self._manifest.files, key=lambda one: one == STORE):
            paths.private_folder((self._folder / name).parent)
            (self._work / name).replace(self._folder / name)
        sync_folder(self._folder)
        return Restored(self._folder, self._manifest, list(self._manifest.files), aside, moved)

    def _set_aside(self, name: str, aside: Path) -> None:
        """Move a file; one that will be replaced keeps its place until then.

        So there is no moment without a history, at which another process would begin one.
        """
        paths.private_folder((aside / name).parent)
        with contextlib.suppress(FileNotFoundError):  # a log that closing took away
            if name in self._manifest.files:
                with contextlib.suppress(OSError):  # a file system without links
                    os.link(self._folder / name, aside / name)
                    return
            (self._folder / name).rename(aside / name)


def claim(store: Path) -> None:
    """See that nobody has a store open, and put its log into the file; StoreInUseError else.

    Leaving the write-ahead log needs the file for oneself alone, so it fails as long as
    another connection exists, of whatever program. A damaged file cannot tell; then the
    system's list of open files has to do.
    """
    locked = False
    try:
        with contextlib.closing(driver.connect(str(store), PROBE_SECONDS)) as connection:
            mode = connection.execute("PRAGMA journal_mode = DELETE").fetchone()[0]
            connection.execute("BEGIN EXCLUSIVE")
            connection.execute("COMMIT")
            locked = str(mode).lower() == "wal"
    except sqlite3.OperationalError as error:
        if "locked" not in str(error):
            raise to_store_error(error, store) from error
        locked = True
    except sqlite3.DatabaseError:
        locked = False
    _refuse_if_open(store, is_locked=locked)


def _refuse_if_open(store: Path, *, is_locked: bool = False) -> None:
    holders = holders_of(store)
    if is_locked or holders:
        who = ", ".join(holders) or "a process that this system does not name"
        raise StoreInUseError(
            f"{store} is open in another process: {who}. End it and try again; nothing was changed."
        )


def _settle_unsent(store: Path) -> None:
    """Nobody knows what became of replies that waited when the backup was made."""
    try:
        with contextlib.closing(driver.connect(str(store), 10)) as connection:
            if connection.execute(
                "SELECT 1 FROM sqlite_master WHERE name = 'hermes_outbox'"
            ).fetchone():
                connection.execute(UNSENT)
    except sqlite3.Error as error:
        raise to_store_error(error, store) from error
    handle = os.open(store, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _dated_folder(folder: Path) -> Path:
    stamp = time.strftime("%Y%m%d-%H%M%S")
    name, number = f"before-restore-{stamp}", 2
    while (folder / name).exists():
        name, number = f"before-restore-{stamp}-{number}", number + 1
    return paths.private_folder(folder / name)
