"""A backup of the store while others write: one consistent copy, checked, packed, checked again.

The copy is made by SQLite itself (VACUUM INTO), in one reading transaction; it holds no
remains of what was deleted. The search file is left out: it is made anew from the rest.
"""

from __future__ import annotations

import contextlib
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

FORMAT: Final = "hermes-backup"
VERSION: Final = 1
MANIFEST: Final = "manifest.json"
STORE: Final = "state.db"
SETTINGS: Final = "config.yaml"
MEDIA: Final = re.compile(r"media/[0-9a-f]{2}/[0-9a-f]{64}(\.[a-z0-9]{1,8})?")
SECRETS: Final = ".env"
SPOOL: Final = "spool/"
UNLOCKS: Final = "plugins/hermes-achievements/state.json"
CHUNK_BYTES: Final = 1 << 20
MAX_MANIFEST: Final = 16 << 20
ABANDONED_SECONDS: Final = 86_400


@dataclass
class BackupManifest:
    """What a backup contains."""

    created_at: float
    schema_version: int | None
    layout: int | None
    sessions: int
    messages: int
    with_secrets: bool = False
    files: dict[str, dict[str, Any]] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    path: str = ""

    def to_json(self) -> str:
        """The manifest as it lies in the archive."""
        facts = {name: value for name, value in asdict(self).items() if name != "path"}
        head = {"format": FORMAT, "version": VERSION}
        return json.dumps(head | facts, indent=2, sort_keys=True) + "\n"


def remove_abandoned(folder: Path, prefix: str) -> None:
    """Remove work that was begun a day ago or more and never ended: its process was killed."""
    for path in folder.glob(f"{prefix}*"):
        if path.is_dir() and time.time() - path.stat().st_mtime > ABANDONED_SECONDS:
            shutil.rmtree(path, ignore_errors=True)


def write_archive(path: Path, files: dict[str, Path], manifest: BackupManifest) -> None:
    """Write the files and the manifest to *path*, which appears when it is whole."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with _private(temporary) as raw:
            with zipfile.ZipFile(raw, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
                for name, source in files.items():
                    manifest.files[name] = _add(archive, name, source)
                _put_text(archive, MANIFEST, manifest.to_json())
            raw.flush()
            os.fsync(raw.fileno())
        _check_written(temporary)
        _publish(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
    sync_folder(path.parent)


@contextlib.contextmanager
def _private(path: Path) -> Iterator[IO[bytes]]:
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    with os.fdopen(os.open(path, flags, FILE_MODE), "w+b") as file:
        yield file


def _publish(temporary: Path, path: Path) -> None:
    """Give a file its name, without taking it from another one."""
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
        while piece := reading.read(CHUNK_BYTES):
            digest.update(piece)
            size += len(piece)
            writing.write(piece)
    return {"bytes": size, "sha256": digest.hexdigest()}


def _put_text(archive: zipfile.ZipFile, name: str, text: str) -> None:
    info = zipfile.ZipInfo(name)
    info.external_attr = FILE_MODE << 16
    archive.writestr(info, text)


def _check_written(path: Path) -> None:
    """Read the archive back and compare it with its manifest."""
    with open_archive(path) as archive:
        manifest = read_manifest(archive, path)
        for name in manifest.files:
            copy_out(archive, manifest, name, None, path)


@contextlib.contextmanager
def open_archive(path: Path) -> Iterator[zipfile.ZipFile]:
    """The archive, open for reading."""
    try:
        archive = zipfile.ZipFile(path)
    except (OSError, zipfile.BadZipFile) as error:
        raise PortableFileError(_why_not(path, error)) from error
    with archive:
        yield archive


def _why_not(path: Path, error: Exception) -> str:
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
    """What the archive says it contains."""
    try:
        if archive.getinfo(MANIFEST).file_size > MAX_MANIFEST:
            raise ValueError("the manifest is too large")
        facts = json.loads(archive.read(MANIFEST))
        if facts.pop("format") != FORMAT:
            raise ValueError("another format")
        version = facts.pop("version")
        if version == VERSION:
            manifest = BackupManifest(**facts)
            _check_names(manifest)
            return manifest
    except (KeyError, ValueError, TypeError, AttributeError, zipfile.BadZipFile) as error:
        raise PortableFileError(
            f"{path} is not a Hermes backup: its manifest is missing or does not match. "
            "Nothing was changed."
        ) from error
    raise PortableFileError(
        f"{path} has version {version} of the format; this release knows {VERSION}. "
        "Update Hermes; nothing was changed."
    )


def _check_names(manifest: BackupManifest) -> None:
    """Only files that belong into a home, none with a way out of it."""
    for name, facts in manifest.files.items():
        if not isinstance(facts, dict):
            raise TypeError(f"{name} has no facts")
        is_spool = name.startswith(SPOOL) and "/" not in name.removeprefix(SPOOL)
        is_known = name in {STORE, SETTINGS, SECRETS, UNLOCKS}
        is_spool = is_spool and name.endswith(".jsonl")
        if not (is_known or is_spool or MEDIA.fullmatch(name)):
            raise ValueError(f"{name} does not belong into a backup")
    if STORE not in manifest.files:
        raise ValueError("it contains no history")


def copy_out(
    archive: zipfile.ZipFile, manifest: BackupManifest, name: str, target: Path | None, path: Path
) -> None:
    """Unpack one file to *target* (None: nowhere), and compare its checksum."""
    digest = hashlib.sha256()
    try:
        with contextlib.ExitStack() as stack:
            reading = stack.enter_context(archive.open(name))
            writing = stack.enter_context(_private(target)) if target is not None else None
            while piece := reading.read(CHUNK_BYTES):
                digest.update(piece)
                if writing is not None:
                    writing.write(piece)
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


PREFIX: Final = ".hermes-backup-"
STEPS_BETWEEN_REPORTS: Final = 2_000_000
LAYOUT = "SELECT CAST(value AS INTEGER) FROM hermes_layout WHERE name = 'layout'"


def make(
    engine: Engine, path: Path, *, with_secrets: bool, progress: Progress | None = None
) -> BackupManifest:
    """Write a backup to *path*; what it contains."""
    tell = progress or (lambda _text: None)
    if path.exists():
        raise UsageError(f"{path} exists already; a backup overwrites nothing. Choose a new name.")
    home = engine.path.parent
    try:
        remove_abandoned(path.parent, PREFIX)
        with tempfile.TemporaryDirectory(prefix=PREFIX, dir=path.parent) as folder:
            work = Path(folder)
            copy = work / STORE
            _copy(engine, copy, tell)
            tell("checking the copy …")
            manifest = inspect(copy)
            manifest.created_at = engine.clock.now()
            manifest.with_secrets = with_secrets and (home / SECRETS).exists()
            files = {STORE: copy} | _others(home, work, engine.path, with_secrets=with_secrets)
            tell("packing …")
            write_archive(path, files, manifest)
    except OSError as error:
        raise StoreError(f"the backup {path} cannot be written: {error}.") from error
    manifest.path = str(path)
    return manifest


def _copy(engine: Engine, copy: Path, tell: Progress) -> None:
    """One consistent copy, readable by the owner alone."""
    os.close(os.open(copy, os.O_CREAT | os.O_EXCL | os.O_WRONLY, paths.FILE_MODE))
    whole = max(engine.path.stat().st_size, 1)

    def report() -> int:
        tell(f"copying … {min(99, 100 * copy.stat().st_size // whole)} %")
        return 0

    uri = read_only_uri(engine.path)
    try:
        with contextlib.closing(driver.connect(uri, engine.busy_seconds, uri=True)) as connection:
            connection.set_progress_handler(report, STEPS_BETWEEN_REPORTS)
            connection.execute("VACUUM INTO ?", (str(copy),))
    except sqlite3.Error as error:
        raise to_store_error(error, engine.path) from error


def inspect(copy: Path) -> BackupManifest:
    """Check a copy of a store that nobody has open; what is in it."""
    try:
        with contextlib.closing(driver.connect(str(copy), 10)) as connection:
            warnings = _problems(connection)
            return BackupManifest(
                created_at=0.0,
                schema_version=_value(connection, "SELECT max(version) FROM schema_version"),
                layout=_value(connection, LAYOUT) if _has_own_tables(connection) else None,
                sessions=_value(connection, "SELECT count(*) FROM sessions"),
                messages=_value(connection, "SELECT count(*) FROM messages"),
                warnings=warnings,
            )
    except sqlite3.Error as error:
        raise to_store_error(error, copy) from error


def _problems(connection: sqlite3.Connection) -> list[str]:
    """Damage to another program's search index is worth a remark; any other is an error."""
    found = [str(row[0]) for row in connection.execute("PRAGMA integrity_check(5)")]
    bad = [text for text in found if text != "ok" and "FTS5 table" not in text]
    if bad:
        raise StoreError(f"the history is damaged: {'; '.join(bad)}. Run `hermes doctor`.")
    return [text for text in found if text != "ok"]


def _has_own_tables(connection: sqlite3.Connection) -> bool:
    return bool(_value(connection, "SELECT 1 FROM sqlite_master WHERE name = 'hermes_layout'"))


def _value(connection: sqlite3.Connection, sql: str) -> Any:
    row = connection.execute(sql).fetchone()
    return None if row is None else row[0]


def _others(home: Path, work: Path, store: Path, *, with_secrets: bool) -> dict[str, Path]:
    """Settings, unlocks and what waits in the journal, copied aside so that they hold still."""
    wanted = {name: home / name for name in (SETTINGS, UNLOCKS)}
    if with_secrets:
        wanted[SECRETS] = home / SECRETS
    for spool in sorted((home / "spool").glob(f"{store.name}-*.jsonl")):
        wanted[SPOOL + spool.name] = spool
    found = {}
    for number, (name, source) in enumerate(wanted.items()):
        with contextlib.suppress(FileNotFoundError):
            found[name] = Path(shutil.copyfile(source, work / f"other-{number}"))
    # Files that came with messages never change: they need not be copied aside.
    return found | {
        one.relative_to(home).as_posix(): one for one in sorted((home / "media").glob("*/*"))
    }
