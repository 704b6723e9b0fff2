"""The store on a file system that records what SQLite does to the disk.

`install` makes a recording VFS the default of SQLite, so the store's own connections use it: every
write, truncation, sync and deletion is noted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import apsw

from hermes_state.engine.sqlite import driver

if TYPE_CHECKING:
    from hermes_state.engine.sqlite.driver import sqlite3

Operation = tuple[Any, ...]
ORDINARY_FILES = "unix"  # the name of SQLite's own VFS
AUTOCHECKPOINT_PAGES = 40  # so that a short run has many checkpoints


class RecordedFile(apsw.VFSFile):
    """A file whose changes are recorded."""

    def __init__(self, name: Any, flags: list[int], log: list[Operation]) -> None:
        super().__init__(ORDINARY_FILES, name, flags)
        path = name.filename() if isinstance(name, apsw.URIFilename) else name
        self._name = path.rpartition("/")[2]
        self._log = log

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802 - SQLite's name
        super().xWrite(data, offset)
        self._log.append(("write", self._name, offset, bytes(data)))

    def xTruncate(self, size: int) -> None:  # noqa: N802
        super().xTruncate(size)
        self._log.append(("truncate", self._name, size))

    def xSync(self, flags: int) -> None:  # noqa: N802
        super().xSync(flags)
        self._log.append(("sync", self._name))


class RecordedFileSystem(apsw.VFS):
    """The ordinary file system, recorded."""

    def __init__(self, log: list[Operation]) -> None:
        self._log = log
        super().__init__("recorded", ORDINARY_FILES, makedefault=True)

    def xOpen(self, name: Any, flags: list[int]) -> RecordedFile:  # noqa: N802
        return RecordedFile(name, flags, self._log)

    def xDelete(self, name: str, syncdir: bool) -> None:  # noqa: N802
        super().xDelete(name, syncdir)
        self._log.append(("delete", name.rpartition("/")[2]))


def install(synchronous: str) -> tuple[RecordedFileSystem, list[Operation]]:
    """Record every database that this process opens from now on."""
    log: list[Operation] = []
    files = RecordedFileSystem(log)
    open_connection = driver.connect

    def connect(address: str, busy_seconds: float, *, uri: bool = False) -> sqlite3.Connection:
        connection: Any = open_connection(address, busy_seconds, uri=uri)
        connection.wal_autocheckpoint(AUTOCHECKPOINT_PAGES)
        if synchronous != "as the store":
            execute = connection.execute
            connection.execute = lambda sql, parameters=(): execute(
                f"PRAGMA synchronous = {synchronous}"
                if sql.startswith("PRAGMA synchronous =")
                else sql,
                parameters,
            )
        return connection

    driver.connect = connect
    return files, log
