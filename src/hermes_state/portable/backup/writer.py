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
import hashlib
import json
import os
import shutil
import struct
import time
import zipfile
import zlib
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

from hermes_core import home_files, paths
from hermes_core.atomic_files import sync_folder, write_atomically
from hermes_core.errors import PortableFileError, StoreError, StoreUnavailableError, UsageError
from hermes_core.home_files import FileCategory
from hermes_core.paths import FILE_MODE, FOLDER_MODE, private_folder
from hermes_state.engine.engine import open_database
from hermes_state.engine.sqlite import driver
from hermes_state.engine.sqlite.driver import sqlite3
from hermes_state.engine.sqlite.errors import is_disk_full, open_file, to_store_error
from hermes_state.engine.sqlite.file_guard import SQLITE_SUFFIXES
from hermes_state.engine.sqlite.filesystem import disk_full_text
from hermes_state.engine.sqlite.transaction import read_only_uri
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
    CHUNK_BYTES,
    EXECUTABLE_BIT,
    MANIFEST_NAME,
    MEDIA_PREFIX,
    SECRETS_NAME,
    STORE_NAME,
    BackupManifest,
    belongs_in_backup,
    open_archive,
    private_file,
    read_manifest,
)
from hermes_state.portable.backup.work_folder import work_folder
from hermes_state.portable.store_copy import StoreCopy

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes_state.engine.engine import Engine


try:  # several times faster; there are processors without a wheel
    from isal import isal_zlib as deflate
except ImportError:
    import zlib as deflate  # type: ignore[no-redef]

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes_state.portable.backup.archive_format import FileFacts

COMPRESSION_LEVEL: Final = 1
DEFLATE_ERROR: Final[type[Exception]] = deflate.error  # type: ignore[assignment]
PART_BYTES: Final = 16 << 20
RAW_DEFLATE: Final = -zlib.MAX_WBITS
LAST_BLOCK: Final = b"\x03\x00"  # an empty block with the mark of the last one
PART_HEADER: Final = struct.Struct("<I")  # the CRC-32 of the compressed data
LOCAL_HEADER: Final = struct.Struct("<26xHH")  # ends with the lengths of name and extra field


class ArchiveWriter:
    """Writes one archive; `step` is called with the bytes done so far and may raise."""

    def __init__(self, work: Path, step: Callable[[int], object]) -> None:
        self._work = work
        self._parts = private_folder(work / "parts")
        self._step = step
        self._done_bytes = 0
        self.reused_bytes = 0

    def write(self, path: Path, files: dict[str, Path], manifest: BackupManifest) -> None:
        """Write the files and the manifest to *path*, which appears only when it is complete."""
        temporary = self._work / "archive"
        temporary.unlink(missing_ok=True)
        with private_file(temporary) as raw:
            with zipfile.ZipFile(raw, "w") as archive:
                for name, source in files.items():
                    manifest.files[name] = self._add(archive, raw, name, source)
                info = zipfile.ZipInfo(MANIFEST_NAME)
                info.external_attr = FILE_MODE << 16
                archive.writestr(info, manifest.to_json())
            raw.flush()
            os.fsync(raw.fileno())
        self._check(temporary)
        _publish(temporary, path)
        sync_folder(path.parent)

    def _add(self, archive: zipfile.ZipFile, raw: IO[bytes], name: str, source: Path) -> FileFacts:
        """Append a compressed file; returns its facts for the manifest.

        `zipfile` cannot append compressed data, so the data is written here, and `zipfile`
        writes the headers.
        """
        info = zipfile.ZipInfo.from_file(source, name)
        info.compress_type = zipfile.ZIP_DEFLATED
        is_executable = info.external_attr >> 16 & EXECUTABLE_BIT
        info.external_attr = (FOLDER_MODE if is_executable else FILE_MODE) << 16
        info.header_offset = raw.tell()
        info.file_size = info.compress_size = info.CRC = 0
        raw.write(info.FileHeader(zip64=True))
        digest = hashlib.sha256()
        with source.open("rb", buffering=0) as reading:
            while content := _read_part(reading):
                digest.update(content)
                info.CRC = deflate.crc32(content, info.CRC)
                info.file_size += len(content)
                info.compress_size += raw.write(self._compressed(content))
                self._report(len(content))
        info.compress_size += raw.write(LAST_BLOCK)
        archive.start_dir = raw.tell()
        raw.seek(info.header_offset)
        raw.write(info.FileHeader(zip64=True))
        raw.seek(archive.start_dir)
        archive.filelist.append(info)
        archive.NameToInfo[name] = info
        return {"bytes": info.file_size, "sha256": digest.hexdigest()}

    def _compressed(self, content: bytes) -> bytes:
        """The compressed content: of an earlier run, or compressed now and kept."""
        if len(content) < PART_BYTES:
            return _compress(content)
        part = self._parts / hashlib.sha256(content).hexdigest()
        kept = _read_kept(part)
        if kept is not None:
            self.reused_bytes += len(content)
            return kept
        data = _compress(content)
        part.unlink(missing_ok=True)
        with private_file(part) as file:
            file.write(PART_HEADER.pack(deflate.crc32(data)))
            file.write(data)
        return data

    def _check(self, path: Path) -> None:
        """Read the archive back and compare every file with its size and checksum."""
        with open_archive(path) as archive, path.open("rb") as raw:
            manifest = read_manifest(archive, path)
            for name, facts in manifest.files.items():
                info = archive.getinfo(name)
                size, crc = self._inflate(raw, info)
                if (size, crc) != (facts["bytes"], info.CRC):
                    raise PortableFileError(
                        f"the backup was not written correctly: {name} in it is damaged. Check "
                        "the disk, and try again."
                    )

    def _inflate(self, raw: IO[bytes], info: zipfile.ZipInfo) -> tuple[int, int]:
        """Size and CRC-32 of a file in the archive; -1 for a stream without an end."""
        raw.seek(info.header_offset)
        raw.seek(sum(LOCAL_HEADER.unpack(raw.read(LOCAL_HEADER.size))), os.SEEK_CUR)
        stream = deflate.decompressobj(RAW_DEFLATE)
        size = crc = 0
        left = info.compress_size
        try:
            while left > 0 and (data := raw.read(min(CHUNK_BYTES, left))):
                left -= len(data)
                content = stream.decompress(data)
                crc = deflate.crc32(content, crc)
                size += len(content)
                self._report(len(content))
        except DEFLATE_ERROR:
            return -1, 0
        return (size, crc) if stream.eof and not left else (-1, 0)

    def _report(self, count: int) -> None:
        self._done_bytes += count
        self._step(self._done_bytes)


def _read_part(reading: IO[bytes]) -> bytes:
    """The next part; shorter at the end of the file only."""
    pieces, left = [], PART_BYTES
    while left and (piece := reading.read(left)):
        pieces.append(piece)
        left -= len(piece)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def _compress(content: bytes) -> bytes:
    stream = deflate.compressobj(COMPRESSION_LEVEL, zlib.DEFLATED, RAW_DEFLATE)
    return stream.compress(content) + stream.flush(zlib.Z_FULL_FLUSH)


def _read_kept(part: Path) -> bytes | None:
    """A part of an earlier run; None if there is none, or a power failure damaged it."""
    try:
        data = part.read_bytes()
    except FileNotFoundError:
        return None
    header, content = data[: PART_HEADER.size], data[PART_HEADER.size :]
    is_whole = bool(content) and header == PART_HEADER.pack(deflate.crc32(content))
    return content if is_whole else None


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


WORK_PREFIX: Final = ".hermes-backup-"
SPOOL_PREFIX: Final = "spool/"
# SQLite calls back after so many steps; rows may be large, so there may be few steps.
PROGRESS_STEPS: Final = 1_000
REPORT_SECONDS: Final = 0.1
# Two writes may have the same file time if less time than this passes between them.
FILE_TIME_SECONDS: Final = 0.1
HAS_OWN_TABLES: Final = "SELECT 1 FROM sqlite_master WHERE name = 'hermes_layout'"
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
        sync_file(snapshot)
        write_atomically(record, json.dumps(files_state))
    return snapshot


def _remove_records(snapshot: Path) -> Path:
    """Delete the records of platforms from a copy, which contain private keys."""
    with open_file(snapshot) as connection:
        if _value(connection, "SELECT 1 FROM sqlite_master WHERE name = 'hermes_file'"):
            connection.execute("PRAGMA secure_delete = ON")
            connection.execute(DELETE_RECORDS, (len(RECORD_PREFIX), RECORD_PREFIX))
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
    with open_file(snapshot) as connection:
        for number, name in enumerate((UNLOCKS_FILE, RULES_NAME)):
            row = connection.execute(GET_FILE, (name,)).fetchone()
            if row is not None:
                target = moved[path_in_home(name, work).relative_to(work).as_posix()] = (
                    work / f"moved-{number}"
                )
                target.write_bytes(row[0])
                connection.execute(DELETE_FILE, (name,))
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


def sync_file(path: Path) -> None:
    """Sync a file that another library has written."""
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
        with open_file(copy) as connection:
            connection.set_progress_handler(watcher.is_stopped, PROGRESS_STEPS)
            warnings = _check_integrity(connection)
            has_own_tables = _value(connection, HAS_OWN_TABLES)
            return BackupManifest(
                created_at=0.0,
                schema_version=_value(connection, "SELECT max(version) FROM schema_version"),
                layout=_value(connection, SELECT_LAYOUT) if has_own_tables else None,
                sessions=_value(connection, "SELECT count(*) FROM sessions"),
                messages=_value(connection, "SELECT count(*) FROM messages"),
                warnings=warnings,
            )
    except StoreError:
        watcher.stop_if_asked()
        raise


def _check_integrity(connection: sqlite3.Connection) -> list[str]:
    """Warnings about another program's search index; any other damage raises StoreError."""
    results = [str(row[0]) for row in connection.execute("PRAGMA integrity_check(5)")]
    damages = [text for text in results if text != "ok" and "FTS5 table" not in text]
    if damages:
        raise StoreError(f"the history is damaged: {'; '.join(damages)}. Run `hermes doctor`.")
    return [text for text in results if text != "ok"]


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
