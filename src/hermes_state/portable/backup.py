"""Backups of a store that is in use: a consistent copy, verified before and after packing.

SQLite creates the copy (VACUUM INTO) in one read transaction, without remains of deleted
data. The search file is not included, because it can be rebuilt.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import re
import shutil
import tempfile
import time
import zipfile
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

from hermes_core import paths
from hermes_core.atomic_files import sync_folder
from hermes_core.errors import PortableFileError, StoreError, UsageError
from hermes_core.paths import FILE_MODE
from hermes_state.engine import driver
from hermes_state.engine.driver import sqlite3
from hermes_state.engine.errors import to_store_error
from hermes_state.engine.reader_pool import read_only_uri

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from hermes_state.engine.engine import Engine

    Progress = Callable[[str], object]

BACKUP_FORMAT: Final = "hermes-backup"
BACKUP_VERSION: Final = 1
MANIFEST_NAME: Final = "manifest.json"
STORE_NAME: Final = "state.db"
SETTINGS_NAME: Final = "config.yaml"
MEDIA_PATTERN: Final = re.compile(r"media/[0-9a-f]{2}/[0-9a-f]{64}(\.[a-z0-9]{1,8})?")
SECRETS_NAME: Final = ".env"
SPOOL_PREFIX: Final = "spool/"
UNLOCKS_NAME: Final = "plugins/hermes-achievements/state.json"
CHUNK_BYTES: Final = 1 << 20
MAX_MANIFEST_BYTES: Final = 16 << 20
MAX_FILE_BYTES: Final = 1 << 40
ABANDONED_SECONDS: Final = 86_400
JUST_MADE_SECONDS: Final = 5
OLD_TEMPORARY: Final = re.compile(r"\..+\.zip\.[0-9]+\.tmp")


@dataclass
class BackupManifest:
    """Content of a backup."""

    created_at: float
    schema_version: int | None
    layout: int | None
    sessions: int
    messages: int
    with_secrets: bool = False
    files: dict[str, dict[str, Any]] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    path: str = ""

    @property
    def total_bytes(self) -> int:
        """The declared size of all files."""
        return sum(facts["bytes"] for facts in self.files.values())

    def to_json(self) -> str:
        """The manifest as stored in the archive."""
        facts = {name: value for name, value in asdict(self).items() if name != "path"}
        head = {"format": BACKUP_FORMAT, "version": BACKUP_VERSION}
        return json.dumps(head | facts, indent=2, sort_keys=True) + "\n"


@contextlib.contextmanager
def work_folder(folder: Path, prefix: str) -> Iterator[Path]:
    """A private folder below *folder* for one run; removes those of killed processes.

    A run holds a lock on its folder, which ends with the process.
    """
    _remove_abandoned(folder, prefix)
    with tempfile.TemporaryDirectory(prefix=prefix, dir=folder) as name:
        handle = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            with contextlib.suppress(OSError):  # a file system without locks
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield Path(name)
        finally:
            os.close(handle)


def _remove_abandoned(folder: Path, prefix: str) -> None:
    """Delete work folders that no process holds, and older releases' temporary files."""
    for path in folder.glob(f"{prefix}*"):
        if path.is_dir() and not path.is_symlink() and _is_abandoned(path):
            shutil.rmtree(path, ignore_errors=True)
    for path in folder.glob(".*.zip.*.tmp"):
        is_old_name = OLD_TEMPORARY.fullmatch(path.name) and path.is_file()
        if is_old_name and time.time() - path.stat().st_mtime > ABANDONED_SECONDS:
            path.unlink(missing_ok=True)


def _is_abandoned(path: Path) -> bool:
    """Whether no process works in *path*; without locks, whether it is old."""
    try:
        if time.time() - path.stat().st_mtime < JUST_MADE_SECONDS:
            return False  # its process may be about to lock it
        handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return time.time() - path.stat().st_mtime > ABANDONED_SECONDS
    finally:
        os.close(handle)
    return True


def write_archive(path: Path, files: dict[str, Path], manifest: BackupManifest, work: Path) -> None:
    """Write the files and the manifest to *path*, which appears only when it is complete."""
    temporary = work / "archive"
    try:
        with _private_file(temporary) as raw:
            with zipfile.ZipFile(raw, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
                for name, source in files.items():
                    manifest.files[name] = _add(archive, name, source)
                _add_text(archive, MANIFEST_NAME, manifest.to_json())
            raw.flush()
            os.fsync(raw.fileno())
        _check_written(temporary)
        _publish(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
    sync_folder(path.parent)


@contextlib.contextmanager
def _private_file(path: Path) -> Iterator[IO[bytes]]:
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    with os.fdopen(os.open(path, flags, FILE_MODE), "w+b") as file:
        yield file


def _publish(temporary: Path, path: Path) -> None:
    """Move a file to *path* without overwriting an existing file."""
    try:
        os.link(temporary, path)
    except FileExistsError:
        raise
    except OSError:  # a file system without links
        if path.exists():
            raise FileExistsError(17, "File exists", str(path)) from None
        temporary.replace(path)


def _add(archive: zipfile.ZipFile, name: str, source: Path) -> dict[str, Any]:
    digest, size = hashlib.sha256(), 0
    info = zipfile.ZipInfo.from_file(source, name)
    info.compress_type = zipfile.ZIP_DEFLATED
    info.external_attr = FILE_MODE << 16
    with source.open("rb") as reading, archive.open(info, "w", force_zip64=True) as writing:
        while chunk := reading.read(CHUNK_BYTES):
            digest.update(chunk)
            size += len(chunk)
            writing.write(chunk)
    return {"bytes": size, "sha256": digest.hexdigest()}


def _add_text(archive: zipfile.ZipFile, name: str, text: str) -> None:
    info = zipfile.ZipInfo(name)
    info.external_attr = FILE_MODE << 16
    archive.writestr(info, text)


def _check_written(path: Path) -> None:
    """Read the archive back and compare it with its manifest."""
    with open_archive(path) as archive:
        manifest = read_manifest(archive, path)
        for name in manifest.files:
            extract(archive, manifest, name, None, path)


@contextlib.contextmanager
def open_archive(path: Path) -> Iterator[zipfile.ZipFile]:
    """Open an archive for reading."""
    try:
        archive = zipfile.ZipFile(path)
    except (OSError, zipfile.BadZipFile) as error:
        raise PortableFileError(_open_error(path, error)) from error
    with archive:
        yield archive


def _open_error(path: Path, error: Exception) -> str:
    if isinstance(error, OSError):
        return f"{path} cannot be read: {error.strerror or error}."
    with path.open("rb") as file:
        beginning = file.read(200)
    if b'"hermes-export"' in beginning:
        return (
            f"{path} is an export, not a backup: it has conversations only, and a redacted one "
            "not even all of their words. Use `hermes sessions import`."
        )
    return f"{path} is not a Hermes backup, or it is truncated. Nothing was changed."


def read_manifest(archive: zipfile.ZipFile, path: Path) -> BackupManifest:
    """The manifest of an archive."""
    try:
        if archive.getinfo(MANIFEST_NAME).file_size > MAX_MANIFEST_BYTES:
            raise ValueError("the manifest is too large")
        facts = json.loads(archive.read(MANIFEST_NAME))
        if facts.pop("format") != BACKUP_FORMAT:
            raise ValueError("another format")
        version = facts.pop("version")
        if version == BACKUP_VERSION:
            manifest = BackupManifest(**facts)
            _check_names(manifest)
            return manifest
    except (
        KeyError, ValueError, TypeError, AttributeError, RecursionError, zipfile.BadZipFile,
    ) as error:  # fmt: skip
        raise PortableFileError(
            f"{path} is not a Hermes backup: its manifest is missing or does not match. "
            "Nothing was changed."
        ) from error
    raise PortableFileError(
        f"{path} has version {version} of the format; this release knows {BACKUP_VERSION}. "
        "Update Hermes; nothing was changed."
    )


def _check_names(manifest: BackupManifest) -> None:
    """Raise an error for names that do not belong to a backup, such as path traversals."""
    for name, facts in manifest.files.items():
        if not isinstance(facts, dict):
            raise TypeError(f"{name} has no facts")
        size = facts.get("bytes")
        if type(size) is not int or not 0 <= size <= MAX_FILE_BYTES:
            raise ValueError(f"{name} has no valid size")
        is_spool = name.startswith(SPOOL_PREFIX) and "/" not in name.removeprefix(SPOOL_PREFIX)
        is_known = name in {STORE_NAME, SETTINGS_NAME, SECRETS_NAME, UNLOCKS_NAME}
        is_spool = is_spool and name.endswith(".jsonl")
        if not (is_known or is_spool or MEDIA_PATTERN.fullmatch(name)):
            raise ValueError(f"{name} does not belong into a backup")
    if STORE_NAME not in manifest.files:
        raise ValueError("it contains no history")


def extract(
    archive: zipfile.ZipFile, manifest: BackupManifest, name: str, target: Path | None, path: Path
) -> None:
    """Extract a file to *target* (None: nowhere), and verify its checksum."""
    digest, left = hashlib.sha256(), manifest.files[name]["bytes"]
    try:
        with contextlib.ExitStack() as stack:
            reading = stack.enter_context(archive.open(name))
            writing = stack.enter_context(_private_file(target)) if target is not None else None
            while chunk := reading.read(CHUNK_BYTES):
                left -= len(chunk)
                if left < 0:
                    raise PortableFileError(
                        f"{path}: {name} in it is larger than its manifest says. "
                        "Nothing was changed."
                    )
                digest.update(chunk)
                if writing is not None:
                    writing.write(chunk)
            if writing is not None:
                writing.flush()
                os.fsync(writing.fileno())
    except (KeyError, zipfile.BadZipFile, EOFError, NotImplementedError, ValueError) as error:
        raise PortableFileError(f"{path}: {name} in it is damaged. Nothing was changed.") from error
    except OSError as error:
        raise PortableFileError(f"{path}: {name} cannot be unpacked: {error}.") from error
    if digest.hexdigest() != manifest.files[name].get("sha256"):
        raise PortableFileError(
            f"{path}: {name} in it does not agree with its checksum. Nothing was changed."
        )


WORK_PREFIX: Final = ".hermes-backup-"
PROGRESS_STEPS: Final = 2_000_000
SELECT_LAYOUT = "SELECT CAST(value AS INTEGER) FROM hermes_layout WHERE name = 'layout'"


def write_backup(
    engine: Engine, path: Path, *, with_secrets: bool, progress: Progress | None = None
) -> BackupManifest:
    """Write a backup to *path*; returns its manifest."""
    report_progress = progress or (lambda _text: None)
    if path.exists():
        raise UsageError(f"{path} exists already; a backup overwrites nothing. Choose a new name.")
    home = engine.path.parent
    try:
        with work_folder(path.parent, WORK_PREFIX) as work:
            copy = work / STORE_NAME
            _copy_store(engine, copy, report_progress)
            report_progress("checking the copy …")
            manifest = inspect(copy)
            manifest.created_at = engine.clock.now()
            manifest.with_secrets = with_secrets and (home / SECRETS_NAME).exists()
            files = {STORE_NAME: copy} | _other_files(
                home, work, engine.path, with_secrets=with_secrets
            )
            report_progress("packing …")
            write_archive(path, files, manifest, work)
    except OSError as error:
        raise StoreError(
            f"the backup {path} cannot be written: {error.strerror or error}."
        ) from error
    manifest.path = str(path)
    return manifest


def _copy_store(engine: Engine, copy: Path, report_progress: Progress) -> None:
    """Write a consistent copy of the store, readable by its owner only."""
    os.close(os.open(copy, os.O_CREAT | os.O_EXCL | os.O_WRONLY, paths.FILE_MODE))
    total_bytes = max(engine.path.stat().st_size, 1)

    def report() -> int:
        report_progress(f"copying … {min(99, 100 * copy.stat().st_size // total_bytes)} %")
        return 0

    uri = read_only_uri(engine.path)
    try:
        with contextlib.closing(driver.connect(uri, engine.busy_seconds, uri=True)) as connection:
            connection.set_progress_handler(report, PROGRESS_STEPS)
            connection.execute("VACUUM INTO ?", (str(copy),))
    except sqlite3.Error as error:
        raise to_store_error(error, engine.path) from error


def inspect(copy: Path) -> BackupManifest:
    """Verify a copy of a store that is not in use; returns its manifest."""
    try:
        with contextlib.closing(driver.connect(str(copy), 10)) as connection:
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


def _other_files(home: Path, work: Path, store: Path, *, with_secrets: bool) -> dict[str, Path]:
    """Copies of settings, unlocks and journals, so that they do not change meanwhile."""
    sources = {name: home / name for name in (SETTINGS_NAME, UNLOCKS_NAME)}
    if with_secrets:
        sources[SECRETS_NAME] = home / SECRETS_NAME
    for spool in sorted((home / "spool").glob(f"{store.name}-*.jsonl")):
        sources[SPOOL_PREFIX + spool.name] = spool
    copies = {}
    for number, (name, source) in enumerate(sources.items()):
        with contextlib.suppress(FileNotFoundError):
            copies[name] = Path(shutil.copyfile(source, work / f"other-{number}"))
    # Media files never change, so they are not copied.
    return copies | {
        path.relative_to(home).as_posix(): path for path in sorted((home / "media").glob("*/*"))
    }
