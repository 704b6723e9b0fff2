"""Checks whether a folder can hold the database."""

from __future__ import annotations

import os
from pathlib import Path

from hermes_core import paths
from hermes_core.errors import NetworkFileSystemError, StoreUnavailableError

# File systems whose locks do not work between machines, or at all.
UNSAFE_FILE_SYSTEMS = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ncpfs", "fuse.sshfs", "fuse.rclone",
     "fuse.s3fs", "fuse.gcsfuse", "davfs", "fuse.davfs2", "ceph", "glusterfs", "fuse.glusterfs"}
)  # fmt: skip

MIN_FREE_BYTES = 64 * 1024  # SQLite needs that much beside a database, even to read it


def file_system_of(folder: Path, mounts: str | None = None) -> str:
    """Type of the file system that holds *folder*; 'unknown' if the system has no mount table."""
    if mounts is None:
        table = Path("/proc/self/mounts")
        if not table.exists():
            return "unknown"
        mounts = table.read_text(encoding="utf-8", errors="replace")
    real = os.path.realpath(folder)
    best, kind = "", "unknown"
    for line in mounts.splitlines():
        fields = line.split(" ")
        if len(fields) < 3:
            continue
        mount_point = fields[1].replace("\\040", " ").rstrip("/")
        inside = real == mount_point or real.startswith(mount_point + "/")
        if inside and len(mount_point) >= len(best):
            best, kind = mount_point, fields[2]
    return kind


def check_file_system(folder: Path, mounts: str | None = None) -> None:
    """Raise NetworkFileSystemError for a file system with unreliable locks."""
    kind = file_system_of(folder, mounts)
    if kind in UNSAFE_FILE_SYSTEMS:
        raise NetworkFileSystemError(
            f"{folder} is on a {kind} file system, whose locks cannot protect a database. "
            "Put HERMES_HOME on a local disk."
        )


def prepare_folder(path: Path) -> None:
    """Make sure that a database can be created and written at *path*."""
    folder = path.parent
    try:
        paths.private_folder(folder)
    except OSError as error:
        raise StoreUnavailableError(
            f"cannot create {folder}: {error.strerror}. Choose another place with HERMES_HOME."
        ) from error
    check_file_system(folder)
    if not folder.is_dir():
        raise StoreUnavailableError(f"{folder} is not a folder; HERMES_HOME must name one.")
    if is_full(folder):
        raise StoreUnavailableError(disk_full_text(path))
    refused = [
        target
        for target in (folder, path)
        if target.exists() and (not os.access(target, os.W_OK) or _mounted_read_only(target))
    ]
    if refused:
        raise StoreUnavailableError(
            f"{refused[0]} is read-only; history cannot be written there. "
            "Fix the permissions, or choose another place with HERMES_HOME."
        )


def disk_full_text(path: Path) -> str:
    """The message for a full disk."""
    return f"The disk that holds {path} is full. Free some space; nothing was changed."


def is_full(folder: Path) -> bool:
    """Whether the disk that holds *folder* has no room for another small file."""
    try:
        facts = os.statvfs(folder)
    except OSError:
        return False
    free = facts.f_bfree if os.geteuid() == 0 else facts.f_bavail
    has_files = facts.f_files == 0 or facts.f_ffree > 0  # some file systems do not count them
    return free * facts.f_frsize < MIN_FREE_BYTES or not has_files


def can_create_files(folder: Path) -> bool:
    """Whether a small file can be created in *folder*."""
    if not folder.exists():
        return True
    is_writable = os.access(folder, os.W_OK) and not _mounted_read_only(folder)
    return is_writable and not is_full(folder)


def _mounted_read_only(path: Path) -> bool:
    return bool(os.statvfs(path).f_flag & os.ST_RDONLY)
