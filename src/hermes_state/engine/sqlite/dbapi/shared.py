"""Connections that several threads use at the same time: each call waits for its turn.

The standard library behaves so with `check_same_thread=False`; apsw alone refuses the second call.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from hermes_state.engine.sqlite.dbapi.connection import Connection
from hermes_state.engine.sqlite.dbapi.cursor import Cursor, TextCursor

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from hermes_state.engine.sqlite.dbapi.connection import FileName


class SharedCursor(Cursor):
    """A cursor whose calls hold the lock of its connection."""

    connection: SharedConnection

    def execute(self, sql: str, parameters: Any = ()) -> Cursor:
        with self.connection.lock:
            return super().execute(sql, parameters)

    def executemany(self, sql: str, rows: Iterable[Any]) -> Cursor:
        with self.connection.lock:
            return super().executemany(sql, rows)

    def executescript(self, script: str) -> Cursor:
        with self.connection.lock:
            return super().executescript(script)

    def __iter__(self) -> Iterator[Any]:
        while (row := self.fetchone()) is not None:
            yield row

    def fetchone(self) -> Any:
        with self.connection.lock:
            return super().fetchone()

    def fetchall(self) -> list[Any]:
        with self.connection.lock:
            return super().fetchall()

    def close(self) -> None:
        with self.connection.lock:
            super().close()


class SharedTextCursor(SharedCursor, TextCursor):
    """The same with another `text_factory`."""


class SharedConnection(Connection):
    """A connection whose calls wait for each other; `interrupt` does not."""

    cursor_classes = (SharedCursor, SharedTextCursor)

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self.lock = threading.RLock()
        super().__init__(*arguments, **options)

    def cursor(self, factory: Any = None) -> Any:
        with self.lock:
            return super().cursor(factory)

    def execute(self, sql: str, parameters: Any = ()) -> Cursor:
        with self.lock:
            return super().execute(sql, parameters)

    def commit(self) -> None:
        with self.lock:
            super().commit()

    def rollback(self) -> None:
        with self.lock:
            super().rollback()

    def close(self, force: bool = False) -> None:
        with self.lock:
            super().close(force)

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is under way."""
        with self.lock:
            return not self.getautocommit()

    @property
    def total_changes(self) -> int:
        """Rows changed since the connection was opened."""
        with self.lock:
            return super().total_changes


def connect(
    database: FileName,
    timeout: float = 5.0,
    detect_types: int = 0,
    isolation_level: str | None = "",
    check_same_thread: bool = True,
    factory: Any = None,
    cached_statements: int = 128,
    uri: bool = False,
    **options: Any,
) -> Any:
    """Open a database, with the arguments of the standard library."""
    if factory is None:
        factory = Connection if check_same_thread else SharedConnection
    return factory(
        database, timeout, detect_types, isolation_level, check_same_thread, factory,
        cached_statements, uri, **options,
    )  # fmt: skip
