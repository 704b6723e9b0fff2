"""The interface of the standard library's `sqlite3`, on the SQLite that apsw contains.

The store, plugins and libraries of a process use this module as `sqlite3` (see `driver`).
It has connections, cursors, rows, errors and adapters. It has no converters of columns, dumps,
aggregate functions, blobs opened in parts and limits, and `autocommit=False` is refused.
`execute` accepts several statements, and the result of a query that is read only in part keeps
its read lock until the cursor is released.

A cursor holds a cursor of apsw and is not a subclass: apsw postpones the release of a cursor
while another thread uses the connection, and then releases the class of an instance twice, which
ends in a crash.
"""

from __future__ import annotations

import contextlib
import datetime
import os
import re
import threading
from functools import lru_cache, wraps
from itertools import islice
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Concatenate, Final, Literal, ParamSpec, Self, TypeVar
from urllib.parse import quote

import apsw

from hermes_state.engine import database as engine

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    FileName = str | bytes | os.PathLike[str] | os.PathLike[bytes]
    Columns = tuple[tuple[str, str | None], ...]
    Description = tuple[tuple[str, None, None, None, None, None, None], ...]

P = ParamSpec("P")
T = TypeVar("T")
Held = TypeVar("Held", bound="Connection | Cursor")

apilevel: Final = "2.0"
paramstyle: Final = "qmark"
threadsafety: Final = 3
sqlite_version: Final = apsw.sqlite_lib_version()
sqlite_version_info: Final = tuple(map(int, sqlite_version.split(".")))
LEGACY_TRANSACTION_CONTROL: Final = -1
PARSE_DECLTYPES: Final = 1
PARSE_COLNAMES: Final = 2

Binary = memoryview
complete_statement = apsw.complete

globals().update({name: value for name, value in vars(apsw).items() if name.startswith("SQLITE_")})

OPEN_FLAGS: Final = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE
STATEMENT_START: Final = r"(?is)(?:\s|--[^\n]*(?:\n|$)|/\*.*?\*/)*([a-z]*)"
CHANGING_KEYWORDS: Final = frozenset({"INSERT", "UPDATE", "DELETE", "REPLACE"})
READING_KEYWORDS: Final = frozenset({"SELECT", "VALUES", "WITH"})


class Warning(Exception):  # noqa: A001, N818 - the name in the DB-API
    """An important warning; never raised, as in the standard library."""


class Error(engine.DriverError):
    """The base of all errors."""

    sqlite_errorcode: int
    sqlite_errorname: str


class InterfaceError(Error):
    """The library was used in a wrong way."""


class DatabaseError(Error):
    """The database reported an error."""


class DataError(DatabaseError):
    """A value is too large."""


class IntegrityError(DatabaseError, engine.ConstraintError):
    """A constraint failed, or a value has the wrong type."""


class InternalError(DatabaseError):
    """SQLite found an inconsistency in itself."""


class NotSupportedError(DatabaseError):
    """A method is not available."""


class OperationalError(DatabaseError):
    """The statement or the environment is at fault: syntax, locks, disk."""


class UndecodableTextError(OperationalError, engine.InvalidTextError):
    """A text is not UTF-8; another program has written it."""


class ProgrammingError(DatabaseError):
    """The connection is closed, or the number of parameters is wrong."""


# As in the standard library (Modules/_sqlite/util.c); every other result is an OperationalError.
KINDS: Final[dict[int, type[Error]]] = {
    apsw.SQLITE_INTERNAL: InternalError, apsw.SQLITE_NOTFOUND: InternalError,
    apsw.SQLITE_CORRUPT: DatabaseError, apsw.SQLITE_NOTADB: DatabaseError,
    apsw.SQLITE_AUTH: DatabaseError, apsw.SQLITE_FORMAT: DatabaseError,
    apsw.SQLITE_NOLFS: DatabaseError, apsw.SQLITE_TOOBIG: DataError,
    apsw.SQLITE_CONSTRAINT: IntegrityError, apsw.SQLITE_MISMATCH: IntegrityError,
    apsw.SQLITE_MISUSE: InterfaceError, apsw.SQLITE_RANGE: InterfaceError,
}  # fmt: skip


LIBRARY_ERRORS: Final = (apsw.Error, UnicodeDecodeError)


def to_error(error: Any) -> Error:
    """The error of the DB-API for one of apsw; without a result of SQLite, the caller is wrong."""
    if isinstance(error, UnicodeDecodeError):
        return UndecodableTextError(f"Could not decode to UTF-8: {error.reason}")
    if not hasattr(error, "result"):
        return ProgrammingError(str(error))
    found = KINDS.get(error.result, OperationalError)(str(error))
    found.sqlite_errorcode = error.extendedresult
    extended = apsw.mapping_extended_result_codes.get(error.extendedresult)
    found.sqlite_errorname = str(extended or apsw.mapping_result_codes[error.result])
    return found


def in_turn(method: Callable[Concatenate[Held, P], T]) -> Callable[Concatenate[Held, P], T]:
    """Let threads that share the connection wait for each other; raise errors of the DB-API."""

    @wraps(method)
    def call(self: Held, /, *arguments: P.args, **options: P.kwargs) -> T:
        try:
            with self.lock:
                return method(self, *arguments, **options)
        except LIBRARY_ERRORS as error:
            raise to_error(error) from error

    return call


class Row(tuple[Any, ...]):
    """A row whose values are read by index or by column name, ignoring case."""

    names: tuple[str, ...]

    def __new__(cls, cursor: Any, values: tuple[Any, ...]) -> Self:
        row = super().__new__(cls, values)
        row.names = tuple(column[0] for column in cursor.description)
        return row

    def keys(self) -> list[str]:
        """The column names."""
        return list(self.names)

    def __getitem__(self, key: Any) -> Any:
        if not isinstance(key, str):
            return super().__getitem__(key)
        for name, value in zip(self.names, self, strict=True):
            if name.lower() == key.lower():
                return value
        raise IndexError("No item with that key")


@lru_cache(2048)
def keyword(sql: str) -> str:
    """The first word of a statement, in capitals."""
    words = sql.split(None, 1)
    if words and words[0].isalpha():  # no comment before it: most statements
        return words[0].upper()
    found = re.match(STATEMENT_START, sql)
    return found.group(1).upper() if found else ""


def is_query(sql: str) -> bool:
    """Whether the statement starts with SELECT, VALUES or WITH."""
    return keyword(sql) in READING_KEYWORDS


class Cursor:
    """A statement and its rows."""

    arraysize = 1
    rowcount = -1
    lastrowid: int | None = None
    _statement: tuple[str, Any] | None = None
    _columns: Columns | None = None  # of a query that is read as bytes
    _row_factory: Any = None

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.lock = connection.lock
        self._rows = apsw.Connection.cursor(connection)  # closed with the connection

    @in_turn
    def execute(self, sql: str, parameters: Any = ()) -> Self:
        """Run a statement."""
        return self.run(sql, parameters)

    def run(self, sql: str, parameters: Any = ()) -> Self:
        """The same within a call of the connection."""
        if keyword(sql) in CHANGING_KEYWORDS:
            return self._change(self._rows.execute, sql, parameters)
        self._statement = (sql, parameters)
        self.rowcount = -1
        if self._columns is not None:
            self._columns = None
            self._rows.row_trace = self._row_factory
        if self.connection.text_factory is not str and is_query(sql):
            sql = self._read_as_bytes(sql, parameters)
        self._rows.execute(sql, parameters)
        return self

    def _change(self, run: Callable[..., object], sql: str, parameters: Any) -> Self:
        connection = self.connection
        if connection.isolation_level is not None and connection.getautocommit():
            self._rows.execute(f"BEGIN {connection.isolation_level}")
        self._statement = None
        run(sql, parameters)
        self.rowcount = connection.changes()
        self.lastrowid = connection.last_insert_rowid()
        return self

    @in_turn
    def executemany(self, sql: str, rows: Iterable[Any]) -> Self:
        """Run a statement once for each row of parameters."""
        before = self.connection.total_changes
        self._change(self._rows.executemany, sql, rows)
        self.rowcount = self.connection.total_changes - before
        return self

    @in_turn
    def executescript(self, script: str) -> Self:
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
        try:  # as `in_turn` does, with less for each row
            while True:
                with self.lock:
                    row = self._rows.fetchone()
                if row is None:
                    return
                yield row
        except LIBRARY_ERRORS as error:
            raise to_error(error) from error

    def fetchone(self) -> Any:
        """The next row, or None."""
        try:
            with self.lock:
                return self._rows.fetchone()
        except LIBRARY_ERRORS as error:
            raise to_error(error) from error

    @in_turn
    def fetchall(self) -> list[Any]:
        """All remaining rows."""
        return self._rows.fetchall()

    def fetchmany(self, size: int | None = None) -> list[Any]:
        """The next *size* rows."""
        return list(islice(self, self.arraysize if size is None else size))

    @in_turn
    def close(self) -> None:
        """Release the statement, finished or not."""
        self._rows.close(force=True)

    @property
    def row_factory(self) -> Any:
        """The function that makes a row of the cursor and a tuple."""
        return self._row_factory or self.connection.row_factory

    @row_factory.setter
    def row_factory(self, factory: Any) -> None:
        self._row_factory = self._rows.row_trace = factory

    @property
    def description(self) -> Description | None:
        """Names of the columns; None if the statement has no result."""
        return _description(self._find_columns()) or None

    @in_turn
    def _find_columns(self) -> Columns:
        if self._columns is not None:
            return self._columns
        try:
            return self._rows.get_description()
        except apsw.ExecutionCompleteError:
            statement = self._statement
        # A PRAGMA may take effect when it is prepared, so only queries are prepared again.
        return self._prepare(*statement) if statement and is_query(statement[0]) else ()

    def _prepare(self, sql: str, parameters: Any) -> Columns:
        """The columns of a statement that is not run."""
        found: list[Columns] = []

        def refuse(cursor: apsw.Cursor, _sql: str, _bindings: Any) -> bool:
            found.append(cursor.get_description())
            return False

        cursor = apsw.Connection.cursor(self.connection)
        cursor.exec_trace = refuse
        with contextlib.suppress(apsw.ExecTraceAbort):
            cursor.execute(sql, parameters)
        return found[0] if found else ()

    def _read_as_bytes(self, sql: str, parameters: Any) -> str:
        """The query for another `text_factory`: apsw alone decodes strictly.

        For each column it has the type of the value, and the value with text as bytes.
        """
        self._columns = self._prepare(sql, parameters)
        decode, factory = self.connection.text_factory, self.row_factory
        described = SimpleNamespace(description=_description(self._columns))

        # No reference to the cursor, which would not be released at once, with its statement.
        def decoded(_rows: apsw.Cursor, row: tuple[Any, ...]) -> Any:
            pairs = zip(row[::2], row[1::2], strict=True)
            values = tuple(decode(value) if kind == "text" else value for kind, value in pairs)
            return values if factory is None else factory(described, values)

        self._rows.row_trace = decoded
        names = [f"c{index}" for index in range(len(self._columns))]
        columns = ", ".join(
            f"typeof({name}), CASE typeof({name}) WHEN 'text' THEN CAST({name} AS BLOB)"
            f" ELSE {name} END"
            for name in names
        )
        query = sql.rstrip().rstrip(";")
        return f"WITH original({', '.join(names)}) AS ({query}\n) SELECT {columns} FROM original"  # noqa: S608


class Connection(apsw.Connection):
    """An open database; threads that use it at the same time wait for each other."""

    def __init__(
        self,
        database: FileName,
        timeout: float = 5.0,
        detect_types: int = 0,
        isolation_level: str | None = "",
        check_same_thread: bool = True,
        factory: object = None,
        cached_statements: int = 128,
        uri: bool = False,
        *,
        autocommit: int = LEGACY_TRANSACTION_CONTROL,
    ) -> None:
        del factory, check_same_thread  # `connect` chooses the class; any thread may call
        if detect_types or autocommit not in {LEGACY_TRANSACTION_CONTROL, True}:
            raise NotSupportedError("detect_types and autocommit=False are not supported")
        self.lock = threading.RLock()
        self.isolation_level = None if autocommit is True else isolation_level
        self._text_factory: Callable[[bytes], Any] = str
        name, flags = _address(database, uri=uri)
        self._open(name, flags, cached_statements)
        self.set_busy_timeout(int(timeout * 1000))
        # Otherwise a statement with `LIMIT ?` is prepared again each time, for the bound value.
        self.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
        self.convert_binding = _adapt

    @in_turn
    def _open(self, name: str, flags: int, cached_statements: int) -> None:
        super().__init__(name, flags, statementcachesize=cached_statements)

    def execute(self, sql: str, parameters: Any = ()) -> Cursor:
        """Run a statement on a new cursor."""
        try:  # as `in_turn` does, without another call
            with self.lock:
                return Cursor(self).run(sql, parameters)
        except LIBRARY_ERRORS as error:
            raise to_error(error) from error

    def executemany(self, sql: str, rows: Iterable[Any]) -> Cursor:
        """Run a statement once for each row of parameters."""
        return Cursor(self).executemany(sql, rows)

    def executescript(self, script: str) -> Cursor:
        """Commit, then run all statements of a script."""
        return Cursor(self).executescript(script)

    @in_turn
    def cursor(self, factory: Callable[[Connection], Any] | None = None) -> Any:
        """A new cursor."""
        return (factory or Cursor)(self)

    @in_turn
    def commit(self) -> None:
        """Commit the transaction, if there is one."""
        if not self.getautocommit():
            Cursor(self).run("COMMIT")

    @in_turn
    def rollback(self) -> None:
        """Roll the transaction back, if there is one."""
        if not self.getautocommit():
            Cursor(self).run("ROLLBACK")

    def close(self, force: bool = False) -> None:
        """Close the connection and its cursors."""
        try:  # not in turn: at the end of the process the lock may belong to a thread that is gone
            super().close(force)
        except apsw.Error as error:
            raise to_error(error) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> Literal[False]:
        if exception == (None, None, None):
            self.commit()
        else:
            self.rollback()
        return False

    @property
    @in_turn
    def in_transaction(self) -> bool:
        """Whether a transaction is under way."""
        return not self.getautocommit()

    @property
    @in_turn
    def total_changes(self) -> int:
        """Rows changed since the connection was opened."""
        return super().total_changes()

    @property
    def row_factory(self) -> Any:
        """The function that makes a row of a cursor and a tuple; None for tuples."""
        return self.row_trace

    @row_factory.setter
    def row_factory(self, factory: Any) -> None:
        self.row_trace = factory

    @property
    def text_factory(self) -> Callable[[bytes], Any]:
        """The function that makes a value of the bytes of a text."""
        return self._text_factory

    @text_factory.setter
    def text_factory(self, factory: Callable[[bytes], Any]) -> None:
        if factory is not str and self.execute("PRAGMA encoding").fetchone()[0] != "UTF-8":
            raise NotSupportedError("text_factory is supported for UTF-8 databases only")
        self._text_factory = factory

    @in_turn
    def create_function(
        self, name: str, narg: int, func: Any, *, deterministic: bool = False
    ) -> None:
        """Make a Python function available in SQL."""
        self.create_scalar_function(name, func, narg, deterministic=deterministic)

    def setconfig(self, option: int, enable: bool = True, /) -> None:
        """Switch an option of the connection."""
        self.config(option, int(enable))

    @in_turn
    def backup(self, target: Connection) -> None:
        """Copy the database into another connection's."""
        with apsw.Connection.backup(target, "main", self, "main") as running:
            running.step(-1)


def connect(database: FileName, *arguments: Any, factory: Any = None, **options: Any) -> Any:
    """Open a database, with the arguments of the standard library."""
    return (factory or Connection)(database, *arguments, **options)


# One per process: the DB-API registers adapters for all connections.
ADAPTERS: Final[dict[type, Callable[[Any], Any]]] = {
    datetime.datetime: lambda moment: moment.isoformat(" "),
    datetime.date: lambda day: day.isoformat(),
}


def register_adapter(kind: type, adapter: Callable[[Any], Any]) -> None:
    """Convert parameters of class *kind* with *adapter*."""
    ADAPTERS[kind] = adapter


def register_converter(_name: str, _converter: Callable[[bytes], Any]) -> None:
    """Refuse a converter: libraries import this name and most do not call it."""
    raise NotSupportedError("converters are not supported")


def _adapt(_cursor: apsw.Cursor, _number: int, value: Any) -> Any:
    """The SQLite value for an object that is none."""
    adapter = ADAPTERS.get(type(value))
    if adapter is None:
        raise ProgrammingError(f"type {type(value).__name__!r} is not supported as a parameter")
    return adapter(value)


def _description(columns: Columns) -> Description:
    return tuple((name, None, None, None, None, None, None) for name, _ in columns)


def _address(database: FileName, *, uri: bool) -> tuple[str, int]:
    """The file name for SQLite, and the flags to open it with."""
    name = os.fsdecode(database)
    if uri:
        return name, OPEN_FLAGS | apsw.SQLITE_OPEN_URI
    try:
        name.encode()
    except UnicodeEncodeError:  # bytes that are not UTF-8 can be written in a URI only
        return f"file:{quote(os.fsencode(name))}", OPEN_FLAGS | apsw.SQLITE_OPEN_URI
    return name, OPEN_FLAGS
