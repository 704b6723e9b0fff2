"""Work folders of backups and restores: locked while in use, reused or removed after a kill.

A work folder lies beside the target, so that the result can be moved into place. The lock
ends with the process. A backup that finds the folder of a killed one of the same store takes
it over with the snapshot and the compressed parts in it; all others that no process holds are
removed.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from hermes_core.atomic_files import write_atomically

if TYPE_CHECKING:
    from collections.abc import Iterator

OWNER_NAME: Final = "owner.json"
ABANDONED_SECONDS: Final = 86_400
OLD_TEMPORARY: Final = re.compile(r"\..+\.zip\.[0-9]+\.tmp")


@contextlib.contextmanager
def work_folder(folder: Path, prefix: str, owner: str | None = None) -> Iterator[Path]:
    """A private folder below *folder*, removed at the end.

    The folder of a killed process is taken over if it has the same *owner*, and removed
    otherwise.
    """
    _remove_old_temporaries(folder)
    work, handle = _take_over(folder, prefix, owner) or _create(folder, prefix, owner)
    try:
        yield work
    finally:
        _remove(work)
        os.close(handle)


def _take_over(folder: Path, prefix: str, owner: str | None) -> tuple[Path, int] | None:
    """The first folder of a killed process with this owner; removes the other ones."""
    taken = None
    for path in sorted(folder.glob(f"{prefix}*")):
        handle = _lock_abandoned(path)
        if handle is None:
            continue
        if taken is None and owner is not None and _owner_of(path) == owner:
            taken = path, handle
        else:
            _remove(path)
            os.close(handle)
    return taken


def _lock_abandoned(path: Path) -> int | None:
    """A locked handle on *path* if no process works in it."""
    try:
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
        handle = os.open(path, flags)
    except OSError:
        return None
    is_abandoned = False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        is_abandoned = _is_at(path, handle)
    except BlockingIOError:
        is_abandoned = False
    except OSError:  # a file system without locks
        is_abandoned = time.time() - os.fstat(handle).st_mtime > ABANDONED_SECONDS
    if is_abandoned:
        return handle
    os.close(handle)
    return None


def _create(folder: Path, prefix: str, owner: str | None) -> tuple[Path, int]:
    """Create a folder and lock it; another process may lock or remove it before this one."""
    while True:
        path = folder / tempfile.mkdtemp(prefix=prefix, dir=folder)
        try:
            handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except FileNotFoundError:
            continue
        if _lock_new(path, handle):
            break
        os.close(handle)
    if owner is not None:
        try:
            write_atomically(path / OWNER_NAME, json.dumps({"owner": owner}))
        except OSError:
            _remove(path)
            os.close(handle)
            raise
    return path, handle


def _lock_new(path: Path, handle: int) -> bool:
    """Lock a folder that was just created; false if another process was first."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        return True
    return _is_at(path, handle)


def _remove(work: Path) -> None:
    """Delete a folder as far as possible, by complete names.

    `shutil.rmtree` passes bare names with a handle of the folder, and the guard of open stores
    takes such a `state.db` for the one in the current folder.
    """
    for folder, folders, files in os.walk(work, topdown=False):
        for name in files:
            with contextlib.suppress(OSError):
                Path(folder, name).unlink()
        for name in folders:
            with contextlib.suppress(OSError):
                Path(folder, name).rmdir()
    with contextlib.suppress(OSError):
        work.rmdir()


def _is_at(path: Path, handle: int) -> bool:
    """Whether *handle* is the folder that *path* names now."""
    try:
        return os.path.samestat(path.stat(), os.fstat(handle))
    except FileNotFoundError:
        return False


def _owner_of(work: Path) -> str | None:
    """The owner of a folder; None if the record is missing or damaged."""
    try:
        owner = json.loads((work / OWNER_NAME).read_bytes())["owner"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return owner if isinstance(owner, str) else None


def _remove_old_temporaries(folder: Path) -> None:
    """Delete temporary files of older releases."""
    for path in folder.glob(".*.zip.*.tmp"):
        is_old_name = OLD_TEMPORARY.fullmatch(path.name) and path.is_file()
        if is_old_name and time.time() - path.stat().st_mtime > ABANDONED_SECONDS:
            path.unlink(missing_ok=True)
