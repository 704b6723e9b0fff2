"""Reading connections, and the transaction of the process's only writing connection."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, Final, TypeVar

from hermes_state.engine.database import InvalidTextError
from hermes_state.engine.sqlite.dbapi import is_query
from hermes_state.engine.transaction import Reader, Tx, insert_sql
from hermes_state.sessions.index import before_commit, catch_up

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from hermes_core.clock import Clock
    from hermes_state.engine.columns import Columns
    from hermes_state.engine.database import Row
    from hermes_state.engine.sqlite.driver import sqlite3

T = TypeVar("T")

MAX_MAPPED_BYTES: Final = 1 << 40
# The last number of a table, also if its row was deleted.
LAST_NUMBER: Final = """
    SELECT max(coalesce((SELECT max({key}) FROM {table}), 0),
               coalesce((SELECT seq FROM sqlite_sequence WHERE name = ?), 0))
"""


class SqliteReader(Reader):
    """A read-only connection."""

    connection: sqlite3.Connection

    @contextlib.contextmanager
    def replacing_invalid_text(self) -> Iterator[None]:
        """Replace invalid UTF-8 within the context instead of raising an error."""
        strict = self.connection.text_factory
        self.connection.text_factory = lambda data: data.decode(errors="replace")
        try:
            yield
        finally:
            self.connection.text_factory = strict

    def row(self, sql: str, parameters: Sequence[Any] = ()) -> Row | None:
        """The first row, or None; invalid UTF-8 that another program has written is replaced."""
        return self._readable(super().row, sql, parameters)

    def value(self, sql: str, parameters: Sequence[Any] = ()) -> Any:
        """The first column of the first row, or None; likewise."""
        return self._readable(super().value, sql, parameters)

    def rows(self, sql: str, parameters: Sequence[Any] = ()) -> list[Row]:
        """All rows; likewise."""
        return self._readable(super().rows, sql, parameters)

    def dicts(self, sql: str, parameters: Sequence[Any] = ()) -> list[dict[str, Any]]:
        """All rows as dictionaries; likewise."""
        return self._readable(super().dicts, sql, parameters)

    def _readable(
        self, read: Callable[[str, Sequence[Any]], T], sql: str, parameters: Sequence[Any]
    ) -> T:
        try:
            return read(sql, parameters)
        except InvalidTextError:
            if not is_query(sql):
                raise
        with self.replacing_invalid_text():
            return read(sql, parameters)

    def map_into_memory(self) -> None:
        """Read the file through a new memory map: a third less CPU than page by page."""
        self.connection.execute("PRAGMA mmap_size = 0")  # releases the pages of the old map
        self.connection.execute(f"PRAGMA mmap_size = {MAX_MAPPED_BYTES}")


class SqliteTx(SqliteReader, Tx):
    """Begins, commits and rolls back transactions on one connection.

    When another program has written in the meantime, its messages are indexed before the
    transaction's own work.
    """

    connection: sqlite3.Connection

    def __init__(
        self, connect: Callable[[], sqlite3.Connection], columns: Columns, clock: Clock
    ) -> None:
        super().__init__(connect(), columns, clock)
        self._connect = connect
        self._version = -1
        self.commits = 0
        self._is_lost = False
        self._covered_before = 0
        self._watermark_before = 0

    def discard_connection(self) -> None:
        """Close an unusable connection; the next transaction opens a new one."""
        self.connection.close()
        self._is_lost = True
        self._version = -1

    def _reconnect(self) -> None:
        self.connection = self._connect()
        self.execute = self.connection.execute
        self._is_lost = False

    def insert(self, sql: str, parameters: Sequence[Any], key: str) -> int:
        """Insert one row; returns its row ID."""
        return int(self.connection.execute(sql, parameters).lastrowid or 0)

    def insert_many(
        self, table: str, columns: Sequence[str], rows: Sequence[Sequence[Any]], key: str
    ) -> list[int]:
        """Insert rows under the next numbers, which no other program gives while this writes."""
        last = self.value(LAST_NUMBER.format(table=table, key=key), (table,))
        numbers = range(last + 1, last + 1 + len(rows))
        numbered = ((number, *row) for number, row in zip(numbers, rows, strict=True))
        self.many(insert_sql(table, (key, *columns)), numbered)
        return list(numbers)

    @property
    def is_open(self) -> bool:
        """Whether a transaction is under way."""
        return self.connection.in_transaction

    def begin(self) -> None:
        """Acquire the write lock, and index what other programs wrote since the last time."""
        if self._is_lost:
            self._reconnect()
        self.execute("BEGIN IMMEDIATE")
        self._covered_before = self.covered
        self._watermark_before = self.watermark
        version = self.value("PRAGMA data_version")
        if version != self._version or self.is_behind:
            self.foreign_changes += version != self._version
            self._version = version
            self.newest_uid = None
            catch_up(self)

    def commit(self) -> None:
        """Commit the transaction to disk."""
        before_commit(self)
        self.execute("COMMIT")
        self.commits += 1

    def restore_covered(self) -> None:
        """Reset `covered` and `watermark` to their values at the start of the transaction."""
        self.covered = self._covered_before
        self.watermark = min(self.watermark, self._watermark_before)

    def rollback(self) -> None:
        """Roll the transaction back."""
        self.restore_covered()
        self._version = -1
        if not self._is_lost and self.connection.in_transaction:
            self.execute("ROLLBACK")
