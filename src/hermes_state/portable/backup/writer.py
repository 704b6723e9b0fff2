"""Backups of a store that is in use: a consistent snapshot, verified before and after packing.

SQLite creates the snapshot (VACUUM INTO) in one read transaction, without remains of deleted
data. The search file is not included, because it can be rebuilt.

A run that was killed leaves its work folder, and the next run into the same folder continues
it: the snapshot is used again if the store has not changed since, and compressed parts are
used again wherever the snapshot has the same content. So a backup is never older than its
command.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from hermes_core import home_files, paths
from hermes_core.atomic_files import write_atomically
from hermes_core.errors import StoreError, StoreUnavailableError, UsageError
from hermes_core.home_files import FileCategory
from hermes_state.engine.database_factory import open_database
from hermes_state.engine.sqlite import driver
from hermes_state.engine.sqlite.driver import sqlite3
from hermes_state.engine.sqlite.errors import is_disk_full, to_store_error
from hermes_state.engine.sqlite.file_guard import SQLITE_SUFFIXES
from hermes_state.engine.sqlite.filesystem import disk_full_text
from hermes_state.engine.sqlite.reader_pool import read_only_uri
from hermes_state.files import (
    DELETE_FILE,
    DELETE_RECORDS,
    GET_FILE,
    RECORD_PREFIX,
    RULES_NAME,
    UNLOCKS_FILE,
    path_in_home,
)
from hermes_state.portable.backup.archive_format import (
    MEDIA_PREFIX,
    SECRETS_NAME,
    STORE_NAME,
    BackupManifest,
    belongs_in_backup,
)
from hermes_state.portable.backup.archive_writer import ArchiveWriter
from hermes_state.portable.backup.work_folder import work_folder
from hermes_state.portable.store_copy import StoreCopy

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes_state.engine.engine import Engine

WORK_PREFIX: Final = ".hermes-backup-"
SPOOL_PREFIX: Final = "spool/"
# SQLite calls back after so many steps; rows may be large, so there may be few steps.
PROGRESS_STEPS: Final = 1_000
REPORT_SECONDS: Final = 0.1
# Two writes may have the same file time if less time than this passes between them.
FILE_TIME_SECONDS: Final = 0.1
SELECT_LAYOUT = "SELECT CAST(value AS INTEGER) FROM hermes_layout WHERE name = 'layout'"


class BackupStoppedError(StoreError):
    """The caller stopped the backup; nothing is left of it."""


class BackupWatcher:
    """Reports progress, not more often than is readable, and asks whether to stop."""

    def __init__(
        self, progress: Callable[[str], object] | None, should_stop: Callable[[], bool] | None
    ) -> None:
        self._progress = progress or (lambda _text: None)
        self._should_stop = should_stop or (lambda: False)
        self._reported_at = 0.0

    def begin(self, text: str) -> None:
        """Report a new phase."""
        self.stop_if_asked()
        self._reported_at = time.monotonic()
        self._progress(text)

    def advance(self, text: str, done: int, total: int) -> None:
        """Report the progress of a phase."""
        now = time.monotonic()
        if now - self._reported_at >= REPORT_SECONDS:
            self._reported_at = now
            self._progress(f"{text}… {min(99, 100 * done // max(total, 1))} %")

    def is_stopped(self) -> bool:
        """Whether the caller asks to stop."""
        return self._should_stop()

    def stop_if_asked(self) -> None:
        """Raise BackupStoppedError if the caller asks to stop."""
        if self._should_stop():
            raise BackupStoppedError("The backup was stopped; nothing was written.")


def write_backup(
    engine: Engine, path: Path, *, with_secrets: bool, watcher: BackupWatcher
) -> BackupManifest:
    """Write a backup to *path*; returns its manifest."""
    if path.exists():
        raise UsageError(f"{path} already exists. Choose another name.")
    home = engine.path.parent
    try:
        with work_folder(path.parent, WORK_PREFIX, os.path.realpath(engine.path)) as work:
            snapshot = _take_snapshot(engine, work, path, watcher, with_secrets=with_secrets)
            watcher.begin("Checking the copy…")
            manifest = inspect(snapshot, watcher)
            manifest.created_at = engine.clock.now()
            manifest.with_secrets = with_secrets and (home / SECRETS_NAME).exists()
            found = _files_of(engine)
            manifest.left_out = home_files.left_out(found, with_secrets=with_secrets)
            files = {STORE_NAME: snapshot}
            files |= _other_files(engine, work, found, with_secrets=with_secrets)
            if not engine.database.is_file:
                files |= _move_files(snapshot, work)
            _pack(path, files, manifest, work, watcher)
    except OSError as error:
        if error.errno in {errno.ENOSPC, errno.EDQUOT}:
            raise StoreUnavailableError(disk_full_text(path)) from error
        raise StoreError(
            f"the backup {path} cannot be written: {error.strerror or error}."
        ) from error
    manifest.path = str(path)
    return manifest


def _pack(
    path: Path, files: dict[str, Path], manifest: BackupManifest, work: Path, watcher: BackupWatcher
) -> None:
    # Every byte is packed once and read back once.
    total_bytes = 2 * sum(source.stat().st_size for source in files.values())

    def step(done_bytes: int) -> None:
        watcher.stop_if_asked()
        watcher.advance("Packing", done_bytes, total_bytes)

    watcher.begin("Packing…")
    writer = ArchiveWriter(work, step)
    writer.write(path, files, manifest)
    manifest.reused_bytes = writer.reused_bytes


def _take_snapshot(
    engine: Engine, work: Path, target: Path, watcher: BackupWatcher, *, with_secrets: bool
) -> Path:
    """A consistent copy of the store: that of a killed run if the store is unchanged, or a new one.

    The state of the files is read before the copy begins, so that a later change is noticed.
    """
    kind = "snapshot-with-secrets" if with_secrets else "snapshot"
    snapshot, record = work / f"{kind}.db", work / f"{kind}.json"
    if not engine.database.is_file:
        _copy_database(engine, snapshot, watcher)
        return snapshot if with_secrets else _remove_records(snapshot)
    files_state = _files_state(engine.path)
    if files_state is not None and snapshot.exists() and _read_record(record) == files_state:
        return snapshot
    record.unlink(missing_ok=True)
    for suffix in SQLITE_SUFFIXES:
        snapshot.with_name(snapshot.name + suffix).unlink(missing_ok=True)
    _copy_store(engine, snapshot, target, watcher)
    if not with_secrets:
        _remove_records(snapshot)
    if files_state is not None:
        _sync(snapshot)
        write_atomically(record, json.dumps(files_state))
    return snapshot


def _remove_records(snapshot: Path) -> Path:
    """Delete the records of platforms from a copy, which contain private keys."""
    try:
        with contextlib.closing(driver.connect(str(snapshot), 10)) as connection:
            if _value(connection, "SELECT 1 FROM sqlite_master WHERE name = 'hermes_file'"):
                connection.execute("PRAGMA secure_delete = ON")
                connection.execute(DELETE_RECORDS, (len(RECORD_PREFIX), RECORD_PREFIX))
    except sqlite3.Error as error:
        raise to_store_error(error, snapshot) from error
    return snapshot


def _copy_database(engine: Engine, copy: Path, watcher: BackupWatcher) -> Path:
    """Copy the history of a database into a new file; a copy of a killed run is not used."""
    for suffix in SQLITE_SUFFIXES:
        copy.with_name(copy.name + suffix).unlink(missing_ok=True)

    def report(step: str, done: int, total: int) -> None:
        watcher.stop_if_asked()
        watcher.advance(step, done, total)

    watcher.begin("Copying…")
    target = open_database(str(copy), read_only=False)
    writer = target.open_writer(engine.clock)
    try:
        with engine.database.snapshot() as source:
            StoreCopy(source, target, writer).run(report)
    finally:
        writer.close()
        target.close()
    return copy


def _move_files(snapshot: Path, work: Path) -> dict[str, Path]:
    """Move unlocks and rules of a shared history out of the copy: they are files of the backup."""
    moved = {}
    try:
        with contextlib.closing(driver.connect(str(snapshot), 10)) as connection:
            for number, name in enumerate((UNLOCKS_FILE, RULES_NAME)):
                row = connection.execute(GET_FILE, (name,)).fetchone()
                if row is not None:
                    target = moved[path_in_home(name, work).relative_to(work).as_posix()] = (
                        work / f"moved-{number}"
                    )
                    target.write_bytes(row[0])
                    connection.execute(DELETE_FILE, (name,))
    except sqlite3.Error as error:
        raise to_store_error(error, snapshot) from error
    return moved


def _files_state(store: Path) -> list[list[int]] | None:
    """Identity, size and time of the store's files; None if they changed just now."""
    state = []
    for suffix in ("", "-wal", "-journal"):
        with contextlib.suppress(FileNotFoundError):
            status = store.with_name(store.name + suffix).stat()
            if status.st_size == 0:  # a log that a reader created
                continue
            if time.time() - status.st_mtime < FILE_TIME_SECONDS:
                return None
            state.append([status.st_ino, status.st_size, status.st_mtime_ns])
    return state


def _read_record(record: Path) -> object:
    """The recorded state of the store's files; None if it is missing or damaged."""
    try:
        return json.loads(record.read_bytes())
    except (OSError, ValueError):
        return None


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _copy_store(engine: Engine, copy: Path, target: Path, watcher: BackupWatcher) -> None:
    """Write a consistent copy of the store, readable by its owner only."""
    watcher.begin("Copying…")
    os.close(os.open(copy, os.O_CREAT | os.O_EXCL | os.O_WRONLY, paths.FILE_MODE))
    total_bytes = engine.path.stat().st_size

    def report() -> bool:
        watcher.advance("copying", copy.stat().st_size, total_bytes)
        return watcher.is_stopped()

    uri = read_only_uri(engine.path)
    try:
        with contextlib.closing(
            driver.connect(uri, engine.settings.busy_seconds, uri=True)
        ) as connection:
            connection.set_progress_handler(report, PROGRESS_STEPS)
            connection.execute("VACUUM INTO ?", (str(copy),))
    except sqlite3.Error as error:
        watcher.stop_if_asked()
        # Only the copy is written, so a full disk is the target's.
        path = target if is_disk_full(error) else engine.path
        raise to_store_error(error, path) from error


def inspect(copy: Path, watcher: BackupWatcher | None = None) -> BackupManifest:
    """Verify a copy of a store that is not in use; returns its manifest."""
    watcher = watcher or BackupWatcher(None, None)
    try:
        with contextlib.closing(driver.connect(str(copy), 10)) as connection:
            connection.set_progress_handler(watcher.is_stopped, PROGRESS_STEPS)
            warnings = _check_integrity(connection)
            return BackupManifest(
                created_at=0.0,
                schema_version=_value(connection, "SELECT max(version) FROM schema_version"),
                layout=_value(connection, SELECT_LAYOUT) if _has_own_tables(connection) else None,
                sessions=_value(connection, "SELECT count(*) FROM sessions"),
                messages=_value(connection, "SELECT count(*) FROM messages"),
                warnings=warnings,
            )
    except sqlite3.Error as error:
        watcher.stop_if_asked()
        raise to_store_error(error, copy) from error


def _check_integrity(connection: sqlite3.Connection) -> list[str]:
    """Warnings about another program's search index; any other damage raises StoreError."""
    results = [str(row[0]) for row in connection.execute("PRAGMA integrity_check(5)")]
    damages = [text for text in results if text != "ok" and "FTS5 table" not in text]
    if damages:
        raise StoreError(f"the history is damaged: {'; '.join(damages)}. Run `hermes doctor`.")
    return [text for text in results if text != "ok"]


def _has_own_tables(connection: sqlite3.Connection) -> bool:
    return bool(_value(connection, "SELECT 1 FROM sqlite_master WHERE name = 'hermes_layout'"))


def _value(connection: sqlite3.Connection, sql: str) -> Any:
    row = connection.execute(sql).fetchone()
    return None if row is None else row[0]


def _files_of(engine: Engine) -> list[tuple[str, FileCategory]]:
    """Every file of the home with its category; what no archive may contain is unknown."""
    own_journal = f"{SPOOL_PREFIX}{engine.path.name}-"
    return [
        (name, category)
        if not category.may_be_archived
        or (
            belongs_in_backup(name)
            and (not name.startswith(SPOOL_PREFIX) or name.startswith(own_journal))
        )
        else (name, FileCategory.UNKNOWN)
        for name, category in home_files.files_in(engine.path.parent)
    ]


def _other_files(
    engine: Engine, work: Path, found: list[tuple[str, FileCategory]], *, with_secrets: bool
) -> dict[str, Path]:
    """The other files of the home: copies, so that they do not change meanwhile.

    Media files never change, so they are not copied. What several machines share is in the
    snapshot, except for media that this machine has as well.
    """
    home, files = engine.path.parent, {}
    for number, (name, category) in enumerate(found):
        is_included = category.may_be_archived if with_secrets else category.is_archived
        if not is_included or name == STORE_NAME:
            continue
        if name.startswith(MEDIA_PREFIX):
            files[name] = home / name
        elif engine.database.is_file or not home_files.is_shared(name):
            with contextlib.suppress(FileNotFoundError):
                files[name] = Path(shutil.copy(home / name, work / f"other-{number}"))
    return files
