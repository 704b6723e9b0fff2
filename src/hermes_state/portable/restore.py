"""Restores a backup: verifies it first, and never overwrites existing files.

Existing files are moved to a dated folder. A store that is open in another process is not
replaced.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import shutil
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from hermes_core import human_format, paths
from hermes_core.atomic_files import sync_folder
from hermes_core.config.env_file import EnvFile
from hermes_core.config.file import ConfigFile
from hermes_core.config.settings import SETTINGS
from hermes_core.errors import (
    ConfigError,
    PortableFileError,
    SchemaTooNewError,
    StoreError,
    StoreInUseError,
)
from hermes_core.home_files import FileCategory, category_of
from hermes_state import files
from hermes_state.engine.database import DriverError
from hermes_state.engine.sqlite import driver, filesystem
from hermes_state.engine.sqlite.driver import sqlite3
from hermes_state.engine.sqlite.errors import open_file, to_store_error
from hermes_state.engine.sqlite.file_guard import SQLITE_SUFFIXES
from hermes_state.engine.sqlite.transaction import read_only_uri
from hermes_state.portable.backup.archive_format import (
    SECRETS_NAME,
    SETTINGS_NAME,
    STORE_NAME,
    extract,
    open_archive,
    read_manifest,
)
from hermes_state.portable.backup.work_folder import work_folder
from hermes_state.portable.backup.writer import inspect, sync_file
from hermes_state.schema.migrations import MIGRATIONS, layout_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from hermes_state.portable.backup.archive_format import BackupManifest

    Progress = Callable[[str], object]

PROC_FOLDER: Final = Path("/proc")
MAX_NAME: Final = 60


def holders_of(store: Path, proc: Path = PROC_FOLDER) -> list[str]:
    """Other processes that have a database open, such as 'hermes (process 4711)'."""
    real = os.path.realpath(store)
    names = {real + suffix for suffix in SQLITE_SUFFIXES}
    return sorted(
        f"{_name_of(process)} (process {process.name})"
        for process in proc.glob("[0-9]*")
        if process.name != str(os.getpid()) and names & _open_files(process)
    )


def _open_files(process: Path) -> set[str]:
    """Files that a process has open; empty if the process has ended or is not accessible."""
    names = set()
    try:
        for handle in (process / "fd").iterdir():
            names.add(os.readlink(handle))  # noqa: PTH115 - the name is not opened
    except OSError:
        return names
    return names


def _name_of(process: Path) -> str:
    """The command line up to its options; Python programs are named by their module or script."""
    try:
        text = (process / "cmdline").read_bytes().decode(errors="replace")
    except OSError:
        return "?"
    words = text.removesuffix("\0").split("\0")
    if Path(words[0]).name.startswith("python"):
        words = list(itertools.dropwhile(_is_option, words[1:])) or words
    program = "hermes" if "hermes_cli" in words[0] else Path(words[0]).name
    arguments = itertools.takewhile(lambda word: word and not _is_option(word), words[1:])
    return " ".join([program, *arguments])[:MAX_NAME] or "?"


def _is_option(word: str) -> bool:
    return word.startswith("-")


WORK_PREFIX: Final = ".restore-"
SET_ASIDE_SUFFIX: Final = ".from-backup"
LOCK_PROBE_SECONDS: Final = 0.5
SNAPSHOT_NAME: Final = "plugins/hermes-achievements/scan_snapshot.json"
# Files that belong to the replaced history. Unlocked achievements are kept if the backup has
# none.
HISTORY_FILES: Final = (
    *(name + suffix for name in (STORE_NAME, "search.db") for suffix in SQLITE_SUFFIXES),
    SNAPSHOT_NAME,
)
MARK_AMBIGUOUS = """
    UPDATE hermes_outbox SET state = 'ambiguous', process_id = NULL
    WHERE state IN ('waiting', 'sending')
"""


@dataclass
class RestoreReport:
    """Result of a restore."""

    folder: Path
    manifest: BackupManifest
    files: list[str]
    moved_to: Path | None = None
    moved: list[str] = field(default_factory=list)


class Restore:
    """The restore of a backup into a folder, which is not changed before `put`."""

    def __init__(self, path: Path, folder: Path, progress: Progress | None = None) -> None:
        self._path = path
        self._folder = folder
        self._report_progress = progress or (lambda _text: None)
        self.accepts_settings = False
        self.grants: list[str] = []
        self._new_users: list[User] = []
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> Restore:
        return self

    def __exit__(self, *_exception: object) -> None:
        self._stack.close()

    def check(self) -> BackupManifest:
        """Extract the backup next to the target and verify it."""
        with open_archive(self._path) as archive:
            self._manifest = read_manifest(archive, self._path)
            filesystem.prepare_folder(self._folder / STORE_NAME)
            refuse_if_open(self._folder / STORE_NAME)
            self._work = self._stack.enter_context(work_folder(self._folder, WORK_PREFIX))
            _check_free_space(self._manifest, self._folder, self._path)
            for name in self._manifest.files:
                self._report_progress(f"Unpacking {name}…")
                paths.private_folder((self._work / name).parent)
                extract(archive, self._manifest, name, self._work / name, self._path)
        self._report_progress("Checking the history…")
        try:
            manifest = inspect(self._work / STORE_NAME)
        except StoreError as error:
            raise PortableFileError(
                f"{self._path}: the history in it is damaged. {error}"
            ) from error
        known = layout_of(MIGRATIONS)
        if (manifest.layout or 0) > known:
            raise SchemaTooNewError(
                f"{self._path} was written by a newer release of Hermes (layout {manifest.layout}, "
                f"this release knows {known}). Update Hermes; nothing was changed."
            )
        self._find_grants()
        return self._manifest

    def _find_grants(self) -> None:
        """Collect what the backup would grant, one line each."""
        self._new_users = new_users(self._work, self._folder)
        self.grants = granted_settings(self._work, self._folder)
        self.grants += granted_files(self._manifest.files, self._work, self._folder)
        self.grants += [
            f"access to chats on {platform}: user {user_id} ({name})"
            for platform, user_id, name in self._new_users
        ]

    def target_of(self, name: str) -> str:
        """Where a file of the backup goes; what is not accepted goes beside the present."""
        is_set_aside = is_granting(name) and bool(self.grants) and not self.accepts_settings
        top, slash, rest = name.partition("/")
        return f"{top}{SET_ASIDE_SUFFIX}{slash}{rest}" if is_set_aside else name

    def in_the_way(self) -> list[str]:
        """Files of the target that will be moved to the dated folder."""
        names = [*HISTORY_FILES, *map(self.target_of, self._manifest.files)]
        names += [f"spool/{path.name}" for path in (self._folder / "spool").glob("*.jsonl")]
        return [name for name in dict.fromkeys(names) if (self._folder / name).exists()]

    def put(self) -> RestoreReport:
        """Move existing files to the dated folder and the extracted files into place."""
        store = self._folder / STORE_NAME
        if store.exists():
            ensure_unused(store)
        if not self.accepts_settings:
            remove_users(self._work / STORE_NAME, self._new_users)
        _mark_unsent_ambiguous(self._work / STORE_NAME)
        self._keep_records(store)
        moved, dated_folder = self.in_the_way(), None
        if moved:
            dated_folder = _dated_folder(self._folder)
            for name in moved:
                self._move_to_dated_folder(name, dated_folder)
            sync_folder(dated_folder)
        # The store comes last: it completes the restore.
        for name in sorted(self._manifest.files, key=lambda name: name == STORE_NAME):
            target = self._folder / self.target_of(name)
            paths.private_folder(target.parent)
            if name == STORE_NAME:
                _unpack_shared_files(self._work / STORE_NAME, self._folder)
            (self._work / name).replace(target)
        sync_folder(self._folder)
        names = [self.target_of(name) for name in self._manifest.files]
        return RestoreReport(self._folder, self._manifest, names, dated_folder, moved)

    def _keep_records(self, store: Path) -> None:
        """Continue with the present encryption keys of platforms, if there are any."""
        try:
            rows = _present_records(store) if store.exists() else []
        except DriverError as error:  # it may be damaged
            self._report_progress(f"encryption keys of the current history not kept: {error}")
            return
        if rows:
            _replace_records(self._work / STORE_NAME, rows)

    def _move_to_dated_folder(self, name: str, dated_folder: Path) -> None:
        """Move a file to the dated folder; a file that will be replaced is linked instead.

        So a store exists at any time, and another process does not create a new one.
        """
        paths.private_folder((dated_folder / name).parent)
        with contextlib.suppress(FileNotFoundError):  # a log that was deleted on close
            if name in map(self.target_of, self._manifest.files):
                with contextlib.suppress(OSError):  # a file system without links
                    os.link(self._folder / name, dated_folder / name)
                    return
            (self._folder / name).rename(dated_folder / name)


def _check_free_space(manifest: BackupManifest, folder: Path, path: Path) -> None:
    """Refuse a backup that does not fit, before anything is unpacked."""
    total = manifest.total_bytes
    free = shutil.disk_usage(folder).free
    if total > free:
        raise PortableFileError(
            f"{path} needs {human_format.size(total)} unpacked, and {folder} has "
            f"{human_format.size(free)} left. Nothing was changed."
        )


def ensure_unused(store: Path) -> None:
    """Raise StoreInUseError if a store is open elsewhere; checkpoint its log into the file.

    Leaving WAL mode needs exclusive access, so it fails as long as any other connection
    exists. For a damaged file only the system's list of open files is checked.
    """
    locked = False
    try:
        with contextlib.closing(driver.connect(str(store), LOCK_PROBE_SECONDS)) as connection:
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
    refuse_if_open(store, is_locked=locked)


def refuse_if_open(store: Path, *, is_locked: bool = False) -> None:
    """Raise StoreInUseError if a process has the file open."""
    holders = holders_of(store)
    if is_locked or holders:
        names = ", ".join(holders) or "an unknown process"
        raise StoreInUseError(
            f"{store} is open in another process: {names}. Stop it and try again; "
            "nothing was changed."
        )


def _mark_unsent_ambiguous(store: Path) -> None:
    """Mark unsent replies as ambiguous: they may have been sent after the backup."""
    with open_file(store) as connection:
        if connection.execute(
            "SELECT 1 FROM sqlite_master WHERE name = 'hermes_outbox'"
        ).fetchone():
            connection.execute(MARK_AMBIGUOUS)
    sync_file(store)


def _unpack_shared_files(store: Path, folder: Path) -> None:
    """Write the media and the memory of a database that nodes shared to the folder."""
    with open_file(store) as connection:
        if _has_files(connection):
            files.unpack(connection.execute, folder)


def _present_records(store: Path) -> list[tuple[str, bytes, float]]:
    """The records of platforms, with their times."""
    with contextlib.closing(driver.connect(read_only_uri(store), 10, uri=True)) as connection:
        if not _has_files(connection):
            return []
        prefix = (len(files.RECORD_PREFIX), files.RECORD_PREFIX)
        return list(connection.execute(files.GET_RECORD_ROWS, prefix))


def _replace_records(store: Path, rows: list[tuple[str, bytes, float]]) -> None:
    """Replace the records of platforms: encryption keys of a backup are outdated."""
    with open_file(store) as connection:
        if _has_files(connection):
            connection.execute("BEGIN")
            prefix = (len(files.RECORD_PREFIX), files.RECORD_PREFIX)
            connection.execute(files.DELETE_RECORDS, prefix)
            connection.executemany(files.ADD_FILE, rows)
            connection.execute("COMMIT")


def _has_files(connection: sqlite3.Connection) -> bool:
    found = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'hermes_file'")
    return found.fetchone() is not None


def _dated_folder(folder: Path) -> Path:
    stamp = time.strftime("%Y%m%d-%H%M%S")
    name, number = f"before-restore-{stamp}", 2
    while (folder / name).exists():
        name, number = f"before-restore-{stamp}-{number}", number + 1
    return paths.private_folder(folder / name)


SETTINGS_FILES: Final = (SETTINGS_NAME, SECRETS_NAME)
# Sections with keys of the user that only affect the display or when a chat starts again.
HARMLESS_BLOCKS: Final = frozenset({"reset_by_platform", "reset_by_type", "streaming"})
EMPTY: Final = "(empty)"
HIDDEN: Final = "a new value (hidden)"
SELECT_USERS: Final = "SELECT platform, user_id, user_name FROM hermes_allowed"
DELETE_USER: Final = "DELETE FROM hermes_allowed WHERE platform = ? AND user_id = ?"

User = tuple[str, str, str]


def granted_settings(work: Path, folder: Path) -> list[str]:
    """One line for each setting of the extracted backup that grants something new."""
    new, old = _config(work), _config(folder)
    lines = []
    if (work / SETTINGS_NAME).exists():
        lines += [*_changed_settings(new, old), *_changed_blocks(new, old)]
    if (work / SECRETS_NAME).exists():
        lines += _changed_secrets(work, folder)
    return lines


def is_granting(name: str) -> bool:
    """Whether a file may grant something."""
    return category_of(name) in {FileCategory.GRANTING, FileCategory.SECRET}


def granted_files(names: Iterable[str], work: Path, folder: Path) -> list[str]:
    """One line for each file or folder besides the settings that grants something new."""
    changes: dict[str, set[str]] = {}
    for name in names:
        if name in SETTINGS_FILES or not is_granting(name):
            continue
        present = folder / name
        if not present.exists():
            changes.setdefault(_part(name), set()).add("new")
        elif not present.is_file() or present.read_bytes() != (work / name).read_bytes():
            changes.setdefault(_part(name), set()).add("changed")
    return [f"{part}: {' and '.join(sorted(kinds))} files" for part, kinds in changes.items()]


def _part(name: str) -> str:
    """The plugin, skill or command that a file belongs to."""
    return "/".join(name.split("/")[:2])


def new_users(work: Path, folder: Path) -> list[User]:
    """Users with access to chats according to the backup, but not now."""
    present = {user[:2] for user in _users(folder / STORE_NAME)}
    return [user for user in _users(work / STORE_NAME) if user[:2] not in present]


def remove_users(store: Path, users: list[User]) -> None:
    """Remove the access of *users* from an extracted store."""
    if not users:
        return
    with open_file(store) as connection:
        connection.executemany(DELETE_USER, [user[:2] for user in users])
        connection.commit()


def _config(folder: Path) -> ConfigFile:
    return ConfigFile(folder / SETTINGS_NAME, folder / SECRETS_NAME, environ={})


def _changed_settings(new: ConfigFile, old: ConfigFile) -> list[str]:
    lines = []
    for setting in SETTINGS:
        if setting.only_by_hand and not setting.secret:
            before, after = _text(old, setting.name), _text(new, setting.name)
            if before != after:
                lines.append(f"{setting.name}: {before} -> {after}")
    return lines


def _text(config: ConfigFile, name: str) -> str:
    try:
        return config.entry(name).text or EMPTY
    except ConfigError:
        return "(invalid)"


def _changed_blocks(new: ConfigFile, old: ConfigFile) -> list[str]:
    """Sections whose keys the user chooses: MCP servers, platforms, and unknown ones."""
    known = {setting.section for setting in SETTINGS} | HARMLESS_BLOCKS
    before, after = _sections(old), _sections(new)
    return [
        f"{name}: {_json(before.get(name))} -> {_json(value)}"
        for name, value in after.items()
        if name not in known and value and value != before.get(name)
    ]


def _sections(config: ConfigFile) -> dict[str, object]:
    try:
        return config.sections()
    except ConfigError:
        return {"(the file)": "cannot be read"}


def _json(value: object) -> str:
    return EMPTY if not value else json.dumps(value, ensure_ascii=False, default=str)


def _changed_secrets(work: Path, folder: Path) -> list[str]:
    """Credentials of platforms and other variables; the keys of model providers grant nothing."""
    new, old = EnvFile(work / SECRETS_NAME).values(), EnvFile(folder / SECRETS_NAME).values()
    names = {setting.variable: setting.name for setting in SETTINGS if setting.secret}
    harmless = {
        setting.variable for setting in SETTINGS if setting.secret and not setting.only_by_hand
    }
    return [
        f"{names.get(variable, variable)}: {'set' if old.get(variable) else 'not set'} -> {HIDDEN}"
        for variable, value in new.items()
        if value and variable not in harmless and value != old.get(variable)
    ]


def _users(store: Path) -> list[User]:
    if not store.exists():
        return []
    try:
        with contextlib.closing(driver.connect(read_only_uri(store), 10, uri=True)) as connection:
            return [tuple(map(str, row)) for row in connection.execute(SELECT_USERS)]  # type: ignore[misc]
    except sqlite3.Error:
        return []  # without our tables, or damaged: no user has access
