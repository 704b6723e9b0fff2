"""The store's own code on a SQLite whose file system we watch.

`install` makes `hermes_state.engine.driver.connect` open connections of apsw through a VFS that
notes every write, truncation, sync and deletion. Everything above that line is the
store's: its statements, its settings, its writer.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import apsw

from hermes_state.engine import driver

if TYPE_CHECKING:
    from collections.abc import Callable

Operation = tuple[Any, ...]
AUTOCHECKPOINT_PAGES = 40  # so that a short run has many checkpoints


class WatchedFile(apsw.VFSFile):
    """Executes statements and records them."""

    def __init__(self, name: Any, flags: list[int], log: list[Operation]) -> None:
        super().__init__("", name, flags)
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


class WatchedFileSystem(apsw.VFS):
    """The ordinary file system, watched."""

    def __init__(self, log: list[Operation]) -> None:
        self._log = log
        super().__init__("watched", "")

    def xOpen(self, name: Any, flags: list[int]) -> WatchedFile:  # noqa: N802
        return WatchedFile(name, flags, self._log)

    def xDelete(self, name: str, syncdir: bool) -> None:  # noqa: N802
        super().xDelete(name, syncdir)
        self._log.append(("delete", name.rpartition("/")[2]))


class Cursor:
    """As much of a DB-API cursor as the store uses."""

    def __init__(self, cursor: apsw.Cursor, connection: apsw.Connection) -> None:
        self.lastrowid = connection.last_insert_rowid()
        self.rowcount = connection.changes()
        self.description = _description(cursor)
        self._rows = iter(cursor.fetchall())

    def __iter__(self):
        return self._rows

    def fetchone(self) -> Any:
        return next(self._rows, None)

    def fetchall(self) -> list[Any]:
        return list(self._rows)


def _description(cursor: apsw.Cursor) -> Any:
    try:
        return cursor.get_description()
    except apsw.ExecutionCompleteError:
        return ()  # no rows


class Connection:
    """As much of a DB-API connection as the store uses."""

    def __init__(self, address: str, synchronous: str) -> None:
        flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE | apsw.SQLITE_OPEN_URI
        self._connection = apsw.Connection(address, flags=flags, vfs="watched")
        self._connection.set_busy_timeout(10_000)
        self._connection.wal_autocheckpoint(AUTOCHECKPOINT_PAGES)
        self._synchronous = synchronous

    def execute(self, sql: str, parameters: Any = ()) -> Cursor:
        if sql.startswith("PRAGMA synchronous =") and self._synchronous != "as the store":
            sql = f"PRAGMA synchronous = {self._synchronous}"
        cursor = self._connection.cursor()
        cursor.execute(sql, parameters or None)
        return Cursor(cursor, self._connection)

    def set_busy_handler(self, handler: Callable[[int], bool]) -> None:
        self._connection.set_busy_handler(handler)

    def executemany(self, sql: str, parameters: Any) -> None:
        for parameter in parameters:
            self.execute(sql, parameter)

    @property
    def in_transaction(self) -> bool:
        return self._connection.in_transaction

    def close(self) -> None:
        with contextlib.suppress(apsw.IOError):  # a read-only connection cannot take a lock
            self._connection.close()


def install(synchronous: str) -> tuple[WatchedFileSystem, list[Operation]]:
    """Watch every database this process opens from now on."""
    log: list[Operation] = []
    files = WatchedFileSystem(log)

    def connect(address: str, _busy_seconds: float, *, uri: bool = False) -> Connection:
        return Connection(address, synchronous)

    driver.connect = connect
    return files, log
