"""The file format of backups: a ZIP archive with a manifest, and how it is read."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import zipfile
import zlib
from dataclasses import asdict, dataclass, field
from typing import IO, TYPE_CHECKING, Final, TypedDict

from hermes_core import home_files
from hermes_core.errors import PortableFileError
from hermes_core.paths import FILE_MODE, FOLDER_MODE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

BACKUP_FORMAT: Final = "hermes-backup"
BACKUP_VERSION: Final = 2
READABLE_VERSIONS: Final = (1, 2)  # 1 has fewer files
MANIFEST_NAME: Final = "manifest.json"
STORE_NAME: Final = "state.db"
SETTINGS_NAME: Final = "config.yaml"
MEDIA_PREFIX: Final = "media/"
MEDIA_PATTERN: Final = re.compile(r"media/[0-9a-f]{2}/[0-9a-f]{64}(\.[a-z0-9]{1,8})?")
SECRETS_NAME: Final = ".env"
CHUNK_BYTES: Final = 1 << 20
MAX_MANIFEST_BYTES: Final = 16 << 20
MAX_FILE_BYTES: Final = 1 << 40
RESULT_FIELDS: Final = frozenset({"path", "reused_bytes", "left_out"})
EXECUTABLE_BIT: Final = 0o100
# What reading an archive raises if it is damaged.
DAMAGE: Final = (
    KeyError, ValueError, EOFError, NotImplementedError, zipfile.BadZipFile, zlib.error,
)  # fmt: skip


class FileFacts(TypedDict):
    """Size and checksum of a file in a backup."""

    bytes: int
    sha256: str


@dataclass
class BackupManifest:
    """Content of a backup; the last three fields are results of the run, not stored."""

    created_at: float
    schema_version: int | None
    layout: int | None
    sessions: int
    messages: int
    with_secrets: bool = False
    files: dict[str, FileFacts] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    path: str = ""
    reused_bytes: int = 0
    left_out: dict[str, list[str]] = field(default_factory=dict)  # files of the home, by reason

    @property
    def total_bytes(self) -> int:
        """The declared size of all files."""
        return sum(facts["bytes"] for facts in self.files.values())

    def to_json(self) -> str:
        """The manifest as stored in the archive."""
        facts = {name: value for name, value in asdict(self).items() if name not in RESULT_FIELDS}
        head = {"format": BACKUP_FORMAT, "version": BACKUP_VERSION}
        return json.dumps(head | facts, indent=2, sort_keys=True) + "\n"


@contextlib.contextmanager
def private_file(path: Path) -> Iterator[IO[bytes]]:
    """A new file that only its owner can read."""
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    with os.fdopen(os.open(path, flags, FILE_MODE), "w+b") as file:
        yield file


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
            f"{path} is an export, not a backup: it contains conversations only. "
            "Use `hermes sessions import`."
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
        if version in READABLE_VERSIONS:
            manifest = BackupManifest(**facts)
            _check_names(manifest)
            return manifest
    except (*DAMAGE, TypeError, AttributeError, RecursionError) as error:
        raise PortableFileError(
            f"{path} is not a Hermes backup: its manifest is missing or does not match. "
            "Nothing was changed."
        ) from error
    raise PortableFileError(
        f"{path} has format version {version}; this release supports {BACKUP_VERSION}. "
        "Update Hermes; nothing was changed."
    )


def belongs_in_backup(name: str) -> bool:
    """Whether a backup may contain a file with this name."""
    is_media = name.startswith(MEDIA_PREFIX)
    is_known = home_files.is_file_name(name) and home_files.category_of(name).may_be_archived
    return is_known and (not is_media or MEDIA_PATTERN.fullmatch(name) is not None)


def _check_names(manifest: BackupManifest) -> None:
    """Raise an error for names that do not belong to a backup, such as path traversals."""
    for name, facts in manifest.files.items():
        if not isinstance(facts, dict):
            raise TypeError(f"{name} has no facts")
        size = facts.get("bytes")
        if type(size) is not int or not 0 <= size <= MAX_FILE_BYTES:
            raise ValueError(f"{name} has no valid size")
        if not belongs_in_backup(name):
            raise ValueError(f"{name} does not belong in a backup")
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
            writing = stack.enter_context(private_file(target)) if target is not None else None
            while chunk := reading.read(CHUNK_BYTES):
                left -= len(chunk)
                if left < 0:
                    raise PortableFileError(
                        f"{path}: {name} is larger than the manifest states. Nothing was changed."
                    )
                digest.update(chunk)
                if writing is not None:
                    writing.write(chunk)
            if writing is not None:
                writing.flush()
                if archive.getinfo(name).external_attr >> 16 & EXECUTABLE_BIT:
                    os.fchmod(writing.fileno(), FOLDER_MODE)  # a script
                os.fsync(writing.fileno())
    except DAMAGE as error:
        raise PortableFileError(f"{path}: {name} is damaged. Nothing was changed.") from error
    except OSError as error:
        raise PortableFileError(f"{path}: {name} cannot be unpacked: {error}.") from error
    if digest.hexdigest() != manifest.files[name].get("sha256"):
        raise PortableFileError(
            f"{path}: the checksum of {name} does not match. Nothing was changed."
        )
