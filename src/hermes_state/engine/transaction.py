"""What a piece of work may do with a connection: read, or write inside a transaction."""

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
    """A connection for reading; `columns` says what the opened file has."""

    def __init__(self, connection: sqlite3.Connection, columns: Columns) -> None:
        self.connection = connection
        self.execute = connection.execute
        self.columns = columns
        self._prepared: dict[object, Any] = {}

    def prepared(self, make: Callable[[Columns], T]) -> T:
        """A statement that depends on the file's columns, made once."""
        found: T | None = self._prepared.get(make)
        if found is None:
            found = self._prepared[make] = make(self.columns)
        return found

    def row(self, sql: str, parameters: Sequence[Any] = ()) -> Row | None:
        """The first row, or None."""
        found: Row | None = self.execute(sql, parameters).fetchone()
        return found

    def value(self, sql: str, parameters: Sequence[Any] = ()) -> Any:
        """The first column of the first row, or None."""
        found = self.execute(sql, parameters).fetchone()
        return None if found is None else found[0]

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

    `covered` is the highest message id known to be in the session index, `marked` what
    the file says of it. When another program has written in the meantime, `catch_up`
    looks at what it wrote, before any work of ours begins; `is_behind` says that it has
    not seen all of it yet.

    `newest_uid` is the highest message identity below `uid_limit`, or None while that is
    not known; after a rollback it may be too high, which costs a look-up and nothing else.
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
        self.marked = 0
        self.is_behind = False
        self.newest_uid: bytes | None = None
        self.uid_limit = b""
        self._connect = connect
        self._catch_up = catch_up
        self._before_commit = before_commit
        self._version = -1
        self._is_lost = False
        self._covered_before = 0
        self._marked_before = 0

    def give_up_connection(self) -> None:
        """The connection is beyond use: the next transaction begins with a new one."""
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
        """Take the write lock, and look at what others wrote since we last had it."""
        if self._is_lost:
            self._reconnect()
        self.execute("BEGIN IMMEDIATE")
        self._covered_before = self.covered
        self._marked_before = self.marked
        version = self.value("PRAGMA data_version")
        if version != self._version or self.is_behind:
            self._version = version
            self.newest_uid = None
            self._catch_up(self)

    def commit(self) -> None:
        """Put everything on disk."""
        self._before_commit(self)
        self.execute("COMMIT")

    def forget_covered(self) -> None:
        """Rows were taken back: look again at what is covered."""
        self.covered = self._covered_before
        self.marked = min(self.marked, self._marked_before)

    def rollback(self) -> None:
        """Take everything back."""
        self.forget_covered()
        self._version = -1
        if not self._is_lost and self.connection.in_transaction:
            self.execute("ROLLBACK")

    def run(self, sql: str, parameters: Sequence[Any] = ()) -> None:
        """Run a statement whose result nobody needs."""
        self.execute(sql, parameters)

    def many(self, sql: str, parameters: Iterable[Sequence[Any]]) -> None:
        """Run one statement for each set of parameters."""
        self.connection.executemany(sql, parameters)
