"""Connections as work functions use them: `Reader` for reading, `Tx` for a transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from hermes_core.clock import Clock
    from hermes_state.engine.columns import Columns
    from hermes_state.engine.driver import sqlite3

Row = tuple[Any, ...]
T = TypeVar("T")


class Reader:
    """A connection for reading; `columns` describes the opened file."""

    def __init__(self, connection: sqlite3.Connection, columns: Columns) -> None:
        self.connection = connection
        self.execute = connection.execute
        self.columns = columns
        self._prepared: dict[object, Any] = {}

    def prepared(self, build: Callable[[Columns], T]) -> T:
        """A statement that depends on the file's columns, built once per connection."""
        statement: T | None = self._prepared.get(build)
        if statement is None:
            statement = self._prepared[build] = build(self.columns)
        return statement

    def row(self, sql: str, parameters: Sequence[Any] = ()) -> Row | None:
        """The first row, or None."""
        row: Row | None = self.execute(sql, parameters).fetchone()
        return row

    def value(self, sql: str, parameters: Sequence[Any] = ()) -> Any:
        """The first column of the first row, or None."""
        row = self.execute(sql, parameters).fetchone()
        return None if row is None else row[0]

    def rows(self, sql: str, parameters: Sequence[Any] = ()) -> list[Row]:
        """All rows."""
        return self.execute(sql, parameters).fetchall()

    def dicts(self, sql: str, parameters: Sequence[Any] = ()) -> list[dict[str, Any]]:
        """All rows as dictionaries."""
        cursor = self.execute(sql, parameters)
        names = [column[0] for column in cursor.description]
        return [dict(zip(names, row, strict=True)) for row in cursor]


class Tx(Reader):
    """The writing connection inside one transaction.

    `covered` is the highest message id known to be in the session index, `watermark` the
    value stored in the file. When another program has written in the meantime, `catch_up`
    indexes its messages before the transaction's own work; `is_behind` means that some of
    them are not indexed yet.

    `newest_uid` is the highest message identity below `uid_limit`, or None if unknown;
    after a rollback it may be too high, which costs a lookup and nothing else.
    """

    def __init__(
        self,
        connect: Callable[[], sqlite3.Connection],
        columns: Columns,
        clock: Clock,
        catch_up: Callable[[Tx], None],
        before_commit: Callable[[Tx], None],
    ) -> None:
        super().__init__(connect(), columns)
        self.clock = clock
        self.covered = 0
        self.watermark = 0
        self.is_behind = False
        self.newest_uid: bytes | None = None
        self.uid_limit = b""
        self._connect = connect
        self._catch_up = catch_up
        self._before_commit = before_commit
        self._version = -1
        self.commits = 0
        self.foreign_changes = 0  # how often other connections changed the file
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
            self._catch_up(self)

    def commit(self) -> None:
        """Commit the transaction to disk."""
        self._before_commit(self)
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

    def run(self, sql: str, parameters: Sequence[Any] = ()) -> None:
        """Execute a statement and discard its result."""
        self.execute(sql, parameters)

    def many(self, sql: str, parameters: Iterable[Sequence[Any]]) -> None:
        """Execute a statement once for each set of parameters."""
        self.connection.executemany(sql, parameters)
