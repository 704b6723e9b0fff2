"""A pool of read-only connections."""

from __future__ import annotations

import contextlib
from collections import deque
from typing import TYPE_CHECKING, TypeVar

from hermes_state.engine.sqlite import filesystem, migrator
from hermes_state.engine.sqlite.driver import connect, sqlite3
from hermes_state.engine.sqlite.migrator import add_missing_columns
from hermes_state.engine.sqlite.transaction import SqliteReader

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from hermes_state.engine.columns import Columns

T = TypeVar("T")
MAX_IDLE_CONNECTIONS = 8


def read_only_uri(path: Path) -> str:
    """The URI with which SQLite opens *path* read-only.

    Reading needs a shared-memory file beside the database. Where none can be created (a full or
    read-only disk) and no other process has the database open, the file is complete and is
    read as it is.
    """
    text = str(path).replace("%", "%25").replace("?", "%3f").replace("#", "%23")
    is_complete = not any(_size(path, suffix) for suffix in ("-wal", "-shm", "-journal"))
    is_fixed = is_complete and not filesystem.can_create_files(path.parent)
    return f"file:{text}?mode=ro{'&immutable=1' if is_fixed else ''}"


def _size(path: Path, suffix: str) -> int:
    try:
        return path.with_name(path.name + suffix).stat().st_size
    except OSError:
        return 0


class ReaderPool:
    """Reuses read-only connections; each is used by one thread at a time."""

    def __init__(self, path: Path, columns: Columns, busy_seconds: float) -> None:
        self._uri = read_only_uri(path)
        self._columns = columns
        self._busy_seconds = busy_seconds
        self._idle: deque[SqliteReader] = deque()
        self._closed = False

    @contextlib.contextmanager
    def reader(self) -> Iterator[SqliteReader]:
        """Borrow a reader for a block."""
        reader = self._take()
        try:
            yield reader
        except sqlite3.Error:
            reader.connection.close()
            raise
        self._give_back(reader)

    def run(self, work: Callable[[SqliteReader], T]) -> T:
        """Borrow a reader for one short operation."""
        reader = self._take()
        try:
            result = work(reader)
        except sqlite3.Error:
            reader.connection.close()
            raise
        self._give_back(reader)
        return result

    def _take(self) -> SqliteReader:
        try:
            return self._idle.pop()
        except IndexError:
            return self._open()

    def _give_back(self, reader: SqliteReader) -> None:
        if self._closed or len(self._idle) >= MAX_IDLE_CONNECTIONS:
            reader.connection.close()
        else:
            self._idle.append(reader)

    def close(self) -> None:
        """Close every idle connection; those in use are closed when they are returned."""
        self._closed = True
        while self._idle:
            self._idle.pop().connection.close()

    def _open(self) -> SqliteReader:
        connection = connect(self._uri, self._busy_seconds, uri=True)
        migrator.add_missing_tables(connection, self._columns.tables)
        add_missing_columns(connection, self._columns)
        connection.execute("PRAGMA query_only = ON")
        return SqliteReader(connection, self._columns.completed())
