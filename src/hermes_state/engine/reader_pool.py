"""Connections for reading: as many as are needed at once, none of them able to write."""

from __future__ import annotations

import contextlib
from collections import deque
from typing import TYPE_CHECKING, TypeVar

from hermes_state.engine.driver import connect, sqlite3
from hermes_state.engine.transaction import Reader

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from hermes_state.engine.columns import Columns

T = TypeVar("T")
MAX_IDLE = 8


def read_only_uri(path: Path) -> str:
    """The address under which SQLite opens *path* without the right to write."""
    text = str(path).replace("%", "%25").replace("?", "%3f").replace("#", "%23")
    return f"file:{text}?mode=ro"


class ReaderPool:
    """Read-only connections, reused; each is used by one thread at a time."""

    def __init__(self, path: Path, columns: Columns, busy_seconds: float) -> None:
        self._uri = read_only_uri(path)
        self._columns = columns
        self._busy_seconds = busy_seconds
        self._idle: deque[Reader] = deque()
        self._closed = False

    @contextlib.contextmanager
    def reader(self) -> Iterator[Reader]:
        """A reader for one short piece of work."""
        try:
            reader = self._idle.pop()
        except IndexError:
            reader = self._open()
        try:
            yield reader
        except sqlite3.Error:
            reader.connection.close()
            raise
        if self._closed or len(self._idle) >= MAX_IDLE:
            reader.connection.close()
        else:
            self._idle.append(reader)

    def close(self) -> None:
        """Let go of every connection; readers still at work close when they finish."""
        self._closed = True
        while self._idle:
            self._idle.pop().connection.close()

    def _open(self) -> Reader:
        connection = connect(self._uri, self._busy_seconds, uri=True)
        connection.execute("PRAGMA query_only = ON")
        return Reader(connection, self._columns)
