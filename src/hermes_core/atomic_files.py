"""Atomic file writes: a file has either the old or the new content, never a part.

A temporary file is written next to the target and synced, renamed to the target, and the
folder is synced. A temporary file left by a killed process is deleted by a later write to
the same target.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from typing import TYPE_CHECKING

from hermes_core.paths import FILE_MODE, private_folder

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_ABANDONED_SECONDS = 3600


def write_atomically(path: Path, content: bytes | str, *, is_synced: bool = True) -> None:
    """Replace *path* by *content*, readable by the owner only, and sync it to disk.

    Without *is_synced*, a power loss may leave an older content or none. For a symbolic link,
    its target is replaced.
    """
    target = path.resolve() if path.is_symlink() else path
    folder = private_folder(target.parent)
    data = content.encode() if isinstance(content, str) else content
    temporary = folder / f".{target.name}.{os.getpid()}-{os.urandom(4).hex()}.tmp"
    try:
        written_at = _write(temporary, data, is_synced=is_synced)
        temporary.replace(target)
    except BaseException as error:
        with contextlib.suppress(OSError):  # the first error is the one to report
            temporary.unlink(missing_ok=True)
        if isinstance(error, OSError):
            error.filename, error.filename2 = str(target), None  # not the temporary name
        raise
    if is_synced:
        sync_folder(folder)
    _remove_abandoned(target, written_at)


def create_atomically(path: Path, content: bytes) -> None:
    """Create *path*, readable by the owner only, complete at once and never instead of another.

    FileExistsError if it exists.
    """
    folder = private_folder(path.parent)
    temporary = folder / f".{path.name}.{os.getpid()}-{os.urandom(4).hex()}.tmp"
    try:
        _write(temporary, content, is_synced=True)
        os.link(temporary, path)  # unlike a rename, it fails if the name is taken
    except OSError as error:
        error.filename, error.filename2 = str(path), None  # not the temporary name
        raise
    finally:
        with contextlib.suppress(OSError):  # the first error is the one to report
            temporary.unlink(missing_ok=True)
    sync_folder(folder)


@contextlib.contextmanager
def folder_locked(folder: Path) -> Iterator[None]:
    """Lock a folder against other processes, for a read-modify-write cycle."""
    handle = os.open(private_folder(folder), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _write(temporary: Path, data: bytes, *, is_synced: bool) -> float:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    with os.fdopen(os.open(temporary, flags, FILE_MODE), "wb") as file:
        file.write(data)
        file.flush()
        if is_synced:
            os.fsync(file.fileno())
        return os.fstat(file.fileno()).st_mtime


def sync_folder(folder: Path) -> None:
    """Sync *folder*, so that renames in it survive a power failure."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _remove_abandoned(target: Path, written_at: float) -> None:
    """Delete old temporary files, judged by file times; PIDs are not comparable across hosts."""
    start = f".{target.name}."
    with os.scandir(target.parent) as entries:
        for entry in entries:
            if not (entry.name.startswith(start) and entry.name.endswith(".tmp")):
                continue
            with contextlib.suppress(FileNotFoundError):
                if entry.stat().st_mtime < written_at - _ABANDONED_SECONDS:
                    (target.parent / entry.name).unlink()
