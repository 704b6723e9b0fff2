"""Connections of the DB-API, with the interface of the standard library's `sqlite3`."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any, Final, Literal
from urllib.parse import quote

import apsw

from hermes_state.engine.sqlite.dbapi.cursor import Cursor, TextCursor
from hermes_state.engine.sqlite.dbapi.errors import NotSupportedError
from hermes_state.engine.sqlite.dbapi.rows import row_tracer
from hermes_state.engine.sqlite.dbapi.values import CONVERSIONS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from types import TracebackType
    from typing import Self

    FileName = str | bytes | os.PathLike[str] | os.PathLike[bytes]

LEGACY_TRANSACTION_CONTROL: Final = -1
OPEN_FLAGS: Final = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE

_total_changes = apsw.Connection.total_changes


class Connection(apsw.Connection):
    """An open database.

    Threads may take turns; one that uses it while another does gets a ProgrammingError.
    """

    cursor_classes: tuple[type[Cursor], type[Cursor]] = (Cursor, TextCursor)

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
        del factory, check_same_thread  # `connect` chooses the class
        if autocommit not in {LEGACY_TRANSACTION_CONTROL, True}:
            raise NotSupportedError("autocommit=False is not supported; use isolation_level")
        name, flags = _address(database, uri=uri)
        super().__init__(name, flags=flags, statementcachesize=cached_statements)
        self.set_busy_timeout(int(timeout * 1000))
        # Otherwise a statement with `LIMIT ?` is prepared again each time, for the bound value.
        self.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
        self.convert_binding = _adapt
        self.isolation_level = None if autocommit is True else isolation_level
        self.detect_types = detect_types
        self.row_factory = None
        self._text_factory: Callable[[bytes], Any] = str
        self._cursor_class = self.cursor_classes[0]

    def execute(self, sql: str, parameters: Any = ()) -> Cursor:
        """Run a statement on a new cursor."""
        return self._cursor_class(self).execute(sql, parameters)

    def executemany(self, sql: str, rows: Iterable[Any]) -> Cursor:
        """Run a statement once for each row of parameters."""
        return self._cursor_class(self).executemany(sql, rows)

    def executescript(self, script: str) -> Cursor:
        """Commit, then run all statements of a script."""
        return self._cursor_class(self).executescript(script)

    def cursor(self, factory: Callable[[Connection], Any] | None = None) -> Any:
        """A new cursor."""
        return (factory or self._cursor_class)(self)

    def begin_implicitly(self) -> None:
        """Begin the transaction of a statement that changes rows."""
        if not self.in_transaction:
            self.execute(f"BEGIN {self.isolation_level}")

    def commit(self) -> None:
        """Commit the transaction, if there is one."""
        if self.in_transaction:
            self.execute("COMMIT")

    def rollback(self) -> None:
        """Roll the transaction back, if there is one."""
        if self.in_transaction:
            self.execute("ROLLBACK")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> Literal[False]:
        if kind is None:
            self.commit()
        else:
            self.rollback()
        return False

    @property
    def total_changes(self) -> int:
        """Rows changed since the connection was opened."""
        return _total_changes(self)

    @property
    def row_factory(self) -> Any:
        """The function that makes a row of a cursor and a tuple; None for tuples."""
        return self._row_factory

    @row_factory.setter
    def row_factory(self, factory: Any) -> None:
        self._row_factory = factory
        self.row_trace = row_tracer(factory, self.detect_types)

    @property
    def text_factory(self) -> Callable[[bytes], Any]:
        """The function that makes a value of the bytes of a text."""
        return self._text_factory

    @text_factory.setter
    def text_factory(self, factory: Callable[[bytes], Any]) -> None:
        if factory is not str and self.execute("PRAGMA encoding").fetchone()[0] != "UTF-8":
            raise NotSupportedError("text_factory is supported for UTF-8 databases only")
        self._text_factory = factory
        self._cursor_class = self.cursor_classes[factory is not str]

    def create_function(
        self, name: str, narg: int, func: Any, *, deterministic: bool = False
    ) -> None:
        """Make a Python function available in SQL."""
        self.create_scalar_function(name, func, narg, deterministic=deterministic)

    def create_aggregate(self, name: str, n_arg: int, aggregate_class: Any) -> None:
        """Make a class with `step` and `finalize` available as an aggregate function."""

        def start() -> Any:
            state = aggregate_class()
            return state, _step, _finalize

        self.create_aggregate_function(name, start if aggregate_class else None, n_arg)

    def create_window_function(self, name: str, num_params: int, aggregate_class: Any) -> None:
        """Make a class with `step`, `inverse`, `value`, `finalize` a window function."""

        def start() -> Any:
            state = aggregate_class()
            return state, _step, _finalize, lambda window: window.value(), _inverse

        super().create_window_function(name, start if aggregate_class else None, num_params)

    def set_progress_handler(self, handler: Callable[[], object] | None, n: int) -> None:
        """Call *handler* every *n* instructions; a true result interrupts the statement."""
        checked = None if handler is None else lambda: bool(handler())
        super().set_progress_handler(checked, n)

    def set_trace_callback(self, callback: Callable[[str], object] | None) -> None:
        """Call *callback* with the SQL of every statement."""
        traced: Any = None if callback is None else lambda event: callback(event["sql"])
        self.trace_v2(apsw.SQLITE_TRACE_STMT if traced else 0, traced)

    def backup(
        self,
        target: Connection,
        *,
        pages: int = -1,
        progress: Callable[[int, int, int], object] | None = None,
        name: str = "main",
        sleep: float = 0.25,
    ) -> None:
        """Copy the database into another connection's."""
        with apsw.Connection.backup(target, "main", self, name) as running:
            while not running.done:
                try:
                    running.step(pages or -1)
                except (apsw.BusyError, apsw.LockedError):
                    time.sleep(sleep)
                if progress is not None:
                    progress(0, running.remaining, running.page_count)

    def iterdump(self) -> Iterator[str]:
        """SQL statements that create a copy of the database."""
        from hermes_state.engine.sqlite.dbapi.dump import dump_statements  # noqa: PLC0415 - rarely needed

        return dump_statements(self)

    def blobopen(
        self, table: str, column: str, row: int, /, *, readonly: bool = False, name: str = "main"
    ) -> apsw.Blob:
        """Open a value for reading and writing in parts."""
        return self.blob_open(name, table, column, row, not readonly)

    def getlimit(self, category: int) -> int:
        """A limit of the connection."""
        return self.limit(category)

    def setlimit(self, category: int, limit: int) -> int:
        """Set a limit of the connection; returns the old one."""
        return self.limit(category, limit)

    def getconfig(self, option: int, /) -> bool:
        """Whether an option of the connection is on."""
        return bool(self.config(option, -1))

    def setconfig(self, option: int, enable: bool = True, /) -> None:
        """Switch an option of the connection."""
        self.config(option, int(enable))

    def serialize(self, *, name: str = "main") -> bytes:
        """The database as bytes."""
        return super().serialize(name)

    def deserialize(self, data: bytes, /, *, name: str = "main") -> None:
        """Replace the database by one in memory."""
        super().deserialize(name, data)


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


def _adapt(_cursor: apsw.Cursor, _number: int, value: Any) -> Any:
    return CONVERSIONS.adapt(value)


def _step(state: Any, *values: Any) -> None:
    state.step(*values)


def _inverse(state: Any, *values: Any) -> None:
    state.inverse(*values)


def _finalize(state: Any) -> Any:
    return state.finalize()
