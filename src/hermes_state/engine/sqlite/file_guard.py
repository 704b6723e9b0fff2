"""Guard against direct access to the files of an open store.

POSIX locks belong to the process: closing *any* handle on a database file drops every
lock SQLite holds on it, and another process may then delete the live write-ahead log.
Copying or hashing the file is enough. While a store is open, this guard refuses such
access inside the process, from any code: Hermes, a plugin, a library.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

from hermes_core.errors import ForeignAccessError

if TYPE_CHECKING:
    from pathlib import Path

# Suffixes of the files that SQLite maintains for a database, each with its own locks.
SQLITE_SUFFIXES = ("", "-wal", "-shm", "-journal")
# Audit events whose first argument is a path. The SQLite library of the store opens files
# in C and raises none of them; the interpreter's `sqlite3` does.
GUARDED_EVENTS = frozenset({"open", "os.remove", "os.rename", "os.truncate", "sqlite3.connect"})


class FileGuard:
    """Refuses direct access to protected database files in this process."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}
        self._names: tuple[str, ...] = ()
        self._files: frozenset[tuple[int, int]] = frozenset()
        self._installed = False
        self._is_ending = sys.is_finalizing  # then the names of this module are gone

    def protect(self, path: Path) -> None:
        """Refuse direct access to the database at *path* from now on."""
        real = os.path.realpath(path)
        self._counts[real] = self._counts.get(real, 0) + 1
        self._refresh()
        if not self._installed:
            self._installed = True
            sys.addaudithook(self._audit)

    def release(self, path: Path) -> None:
        """Stop protecting *path* when its last store is closed."""
        real = os.path.realpath(path)
        self._counts[real] = self._counts.get(real, 0) - 1
        if self._counts[real] <= 0:
            del self._counts[real]
        self._refresh()

    def _refresh(self) -> None:
        names = {
            real.rpartition(os.sep)[2] + suffix
            for real in self._counts
            for suffix in SQLITE_SUFFIXES
        }
        self._names = tuple(names)
        self._files = frozenset(filter(None, map(_file_id, self._counts)))

    def _audit(self, event: str, arguments: tuple[object, ...]) -> None:
        if not self._names or self._is_ending() or event not in GUARDED_EVENTS:
            return
        for target in arguments[: 2 if event == "os.rename" else 1]:
            if isinstance(target, (str, bytes, os.PathLike)):
                self._check(event, os.fsdecode(target))

    def _check(self, event: str, target: str) -> None:
        if self._is_protected(target):
            raise ForeignAccessError(
                f"{target} is open as a session store in this process; touching the file "
                f"directly ({event}) would drop its locks and lose data. Use the store's own "
                "methods (SessionDB), or do it from another process."
            )

    def _is_protected(self, target: str) -> bool:
        plain = _path_of_uri(target) if target.startswith("file:") else target
        if _file_id(plain) in self._files:
            return True  # also under another name (a link)
        if not plain.endswith(self._names):
            return False
        real = os.path.realpath(plain)
        return any(real == known + suffix for known in self._counts for suffix in SQLITE_SUFFIXES)


def _path_of_uri(uri: str) -> str:
    """The path in an SQLite URI, which may have options, a host and escapes."""
    path = unquote(uri.removeprefix("file:").partition("#")[0].partition("?")[0])
    return "/" + path[2:].partition("/")[2] if path.startswith("//") else path


def _file_id(path: str) -> tuple[int, int] | None:
    """Device and inode of the file at *path*; None if there is none."""
    try:
        status = os.stat(path)  # noqa: PTH116 - runs at every open() of the process
    except (OSError, ValueError):
        return None
    return status.st_dev, status.st_ino


# One per process: locks and audit hooks belong to the process.
GUARD: Final = FileGuard()
