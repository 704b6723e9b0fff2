"""Cursors of the DB-API.

Each holds a cursor of apsw, whose own iterator produces the rows. It is not a subclass: apsw
postpones the release of a cursor while another thread uses the connection, and then releases
the class of an instance twice, which ends in a crash.
"""

from __future__ import annotations

import contextlib
import re
from functools import lru_cache, partial
from itertools import islice, repeat
from typing import TYPE_CHECKING, Any, Final, cast
from weakref import ref

import apsw

from hermes_state.engine.sqlite.dbapi.errors import UndecodableTextError
from hermes_state.engine.sqlite.dbapi.rows import row_tracer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from hermes_state.engine.sqlite.dbapi.connection import Connection

    Columns = tuple[tuple[str, str | None], ...]
    Description = tuple[tuple[str, None, None, None, None, None, None], ...]

STATEMENT_START: Final = r"(?is)(?:\s|--[^\n]*(?:\n|$)|/\*.*?\*/)*([a-z]*)"
CHANGING_KEYWORDS: Final = frozenset({"INSERT", "UPDATE", "DELETE", "REPLACE"})
READING_KEYWORDS: Final = frozenset({"SELECT", "VALUES", "WITH"})

_new_cursor = apsw.Connection.cursor
_next = apsw.Cursor.__next__
_changes = apsw.Connection.changes
_last_insert_rowid = apsw.Connection.last_insert_rowid


@lru_cache(2048)
def keyword(sql: str) -> str:
    """The first word of a statement, in capitals."""
    words = sql.split(None, 1)
    if words and words[0].isalpha():  # no comment before it: most statements
        return words[0].upper()
    found = re.match(STATEMENT_START, sql)
    return found.group(1).upper() if found else ""


@lru_cache(2048)
def changes_rows(sql: str) -> bool:
    """Whether the statement starts with INSERT, UPDATE, DELETE or REPLACE."""
    return keyword(sql) in CHANGING_KEYWORDS


def is_query(sql: str) -> bool:
    """Whether the statement starts with SELECT, VALUES or WITH."""
    return keyword(sql) in READING_KEYWORDS


def decode_error(error: UnicodeDecodeError) -> UndecodableTextError:
    """The error for a text that is not UTF-8."""
    return UndecodableTextError(f"Could not decode to UTF-8: {error.reason}")


class Cursor:
    """A statement and its rows."""

    arraysize = 1
    rowcount = -1
    lastrowid: int | None = None
    _statement: tuple[str, Any] | None = None
    _columns: Columns | None = None
    _row_factory: Any = None

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self._rows = _new_cursor(connection)  # closed with the connection

    def execute(self, sql: str, parameters: Any = ()) -> Cursor:
        """Run a statement."""
        if changes_rows(sql):
            return self._change(self._rows.execute, sql, parameters)
        self._statement = (sql, parameters)
        self.rowcount = -1
        self._rows.execute(sql, parameters)
        return self

    def _change(self, run: Callable[..., object], sql: str, parameters: Any) -> Cursor:
        connection = self.connection
        if connection.isolation_level is not None:
            connection.begin_implicitly()
        self._statement = None
        run(sql, parameters)
        self.rowcount = _changes(connection)
        self.lastrowid = _last_insert_rowid(connection)
        return self

    def executemany(self, sql: str, rows: Iterable[Any]) -> Cursor:
        """Run a statement once for each row of parameters."""
        before = self.connection.total_changes
        self._change(self._rows.executemany, sql, rows)
        self.rowcount = self.connection.total_changes - before
        return self

    def executescript(self, script: str) -> Cursor:
        """Commit, then run all statements of a script."""
        self.connection.commit()
        for _ in self._rows.execute(script):
            pass
        return self

    def __next__(self) -> Any:
        row = self.fetchone()
        if row is None:
            raise StopIteration
        return row

    def __iter__(self) -> Iterator[Any]:
        try:
            # Not `yield from` the rows: an abandoned loop would close the cursor.
            yield from map(_next, repeat(self._rows))
        except UnicodeDecodeError as error:
            raise decode_error(error) from error

    def fetchone(self) -> Any:
        """The next row, or None."""
        try:
            return self._rows.fetchone()
        except UnicodeDecodeError as error:
            raise decode_error(error) from error

    def fetchall(self) -> list[Any]:
        """All remaining rows."""
        try:
            return self._rows.fetchall()
        except UnicodeDecodeError as error:
            raise decode_error(error) from error

    def fetchmany(self, size: int | None = None) -> list[Any]:
        """The next *size* rows."""
        return list(islice(self, self.arraysize if size is None else size))

    def close(self) -> None:
        """Release the statement, finished or not."""
        self._rows.close(force=True)

    def setinputsizes(self, _sizes: Any) -> None:
        """Part of the DB-API; does nothing."""

    def setoutputsize(self, _size: Any, _column: Any = None) -> None:
        """Part of the DB-API; does nothing."""

    @property
    def row_factory(self) -> Any:
        """The function that makes a row of the cursor and a tuple."""
        return self._row_factory or self.connection.row_factory

    @row_factory.setter
    def row_factory(self, factory: Any) -> None:
        self._row_factory = factory
        self._rows.row_trace = row_tracer(factory, self.connection.detect_types)

    @property
    def description(self) -> Description | None:
        """Names of the columns; None if the statement has no result."""
        columns = self.columns()
        return tuple((name, None, None, None, None, None, None) for name, _ in columns) or None

    def columns(self) -> Columns:
        """Names and declared types of the columns."""
        if self._columns is not None:
            return self._columns
        try:
            return self._rows.get_description()
        except apsw.ExecutionCompleteError:
            statement = self._statement
        # A PRAGMA may take effect when it is prepared, so only queries are prepared again.
        return self.describe(*statement) if statement and is_query(statement[0]) else ()

    def describe(self, sql: str, parameters: Any) -> Columns:
        """The columns of a statement, which is prepared but not run."""
        found: list[Columns] = []

        def refuse(cursor: apsw.Cursor, _sql: str, _bindings: Any) -> bool:
            found.append(cursor.get_description())
            return False

        cursor = _new_cursor(self.connection)
        cursor.exec_trace = refuse
        with contextlib.suppress(apsw.ExecTraceAbort):
            cursor.execute(sql, parameters)
        return found[0] if found else ()


class TextCursor(Cursor):
    """A cursor of a connection whose `text_factory` is not `str`.

    apsw decodes strictly, so a query is wrapped: text is read as bytes, each column with its type.
    """

    def execute(self, sql: str, parameters: Any = ()) -> Cursor:
        """Run a statement."""
        self._columns = None
        self._rows.row_trace = None
        if not is_query(sql):
            return super().execute(sql, parameters)
        self._columns = self.describe(sql, parameters)
        # No reference to the cursor, which would not be released at once, with its statement.
        self._rows.row_trace = partial(_decoded, ref(self))
        return super().execute(_as_bytes(sql, len(self._columns)), parameters)


def _decoded(reference: ref[TextCursor], _rows: apsw.Cursor, row: tuple[Any, ...]) -> Any:
    """A row of the query that `_as_bytes` made."""
    cursor = cast("TextCursor", reference())
    decode = cursor.connection.text_factory
    pairs = zip(row[::2], row[1::2], strict=True)
    values = tuple(decode(value) if kind == "text" else value for kind, value in pairs)
    factory = cursor.row_factory
    return values if factory is None else factory(cursor, values)


def _as_bytes(sql: str, width: int) -> str:
    """The query with two columns for each: the type of the value, and the value without text."""
    names = [f"c{index}" for index in range(width)]
    columns = ", ".join(
        f"typeof({name}), CASE typeof({name}) WHEN 'text' THEN CAST({name} AS BLOB) ELSE {name} END"
        for name in names
    )
    query = sql.rstrip().rstrip(";")
    return f"WITH original({', '.join(names)}) AS ({query}\n) SELECT {columns} FROM original"  # noqa: S608
