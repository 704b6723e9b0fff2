"""What the store needs of a database. Repositories use nothing else.

`hermes_state.engine.sqlite` implements it with one file and one writer per process. Other
programs and processes may write to the same database at any time, so a change is valid only
if it does not rely on what another transaction may have read: a claim names the state that
it expects, a token is increased in the statement that stores it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from hermes_core.clock import Clock
    from hermes_core.errors import StoreError
    from hermes_state.engine.transaction import Columns, Reader, Tx

Row = tuple[Any, ...]
T = TypeVar("T")


class DriverError(Exception):
    """The database refused a statement; the driver's errors are subclasses."""

    __slots__ = ()


class ConstraintError(DriverError):
    """A row would violate a constraint."""

    __slots__ = ()


class InvalidTextError(DriverError):
    """A text is not UTF-8."""

    __slots__ = ()


class QueryResult(Protocol):
    """The result of a statement."""

    @property
    def rowcount(self) -> int:
        """Number of changed rows."""

    @property
    def description(self) -> Any:
        """One tuple per column; its name comes first."""

    def fetchone(self) -> Any:
        """The next row, or None."""

    def fetchall(self) -> list[Any]:
        """The remaining rows."""

    def __iter__(self) -> Iterator[Any]:
        """The remaining rows, one by one."""


class DatabaseConnection(Protocol):
    """A connection that one thread uses at a time."""

    def execute(self, sql: str, parameters: Sequence[Any] = ..., /) -> QueryResult:
        """Run a statement; `?` stands for a parameter."""

    def executemany(self, sql: str, parameters: Iterable[Sequence[Any]], /) -> QueryResult:
        """Run a statement once for each set of parameters."""

    def close(self) -> None:
        """Close the connection."""


class Writer(Protocol):
    """Runs functions in transactions."""

    @property
    def commits(self) -> int:
        """Number of committed transactions."""

    def submit(
        self, work: Callable[[Tx], T], *, is_conditional: bool = False, is_alone: bool = False
    ) -> T:
        """Run *work* in a transaction; return its result once it is on disk.

        *work* may run again after a conflict with another transaction. With *is_conditional*,
        each of its statements checks what it changes. With *is_alone*, no other work shares the
        transaction, so that *work* may end it.
        """

    def submit_soon(
        self, work: Callable[[Tx], object], on_error: Callable[[BaseException], object]
    ) -> None:
        """Run *work* with the next commit; jobs that are submitted later see its changes."""

    def flush(self) -> None:
        """Run the deferred work now."""

    def later(self, seconds: float, task: Callable[[], object]) -> None:
        """Run *task* on a thread of the writer after *seconds*, or when the writer stops."""

    def close(self) -> None:
        """Finish the submitted work, then stop."""


class DatabaseReader(Protocol):
    """A history that can be read."""

    @property
    def place(self) -> str:
        """Where the history is, for people: a path, or a URL without the password."""

    @property
    def columns(self) -> Columns:
        """Tables and columns, read when the database was opened."""

    def read(self, work: Callable[[Reader], T]) -> T:
        """Run *work* on a connection for one short read."""


class Database(DatabaseReader, Protocol):
    """A history in a database."""

    @property
    def path(self) -> Path:
        """The file; journals and derived files are beside it."""

    @property
    def is_file(self) -> bool:
        """Whether the history is an SQLite file at `path`."""

    @property
    def clock(self) -> Clock | None:
        """The clock that all processes share; None if that is the system's."""

    def snapshot(self) -> AbstractContextManager[DatabaseReader]:
        """The history as it is now, however long it is read."""

    def listen(self, on_wake: Callable[[str], object]) -> Callable[[], None]:
        """Pass the topics of other nodes' changes (`Tx.wake`) to *on_wake*, in a thread.

        Returns how to stop. A topic may be missed. No other node uses a file.
        """

    def size_bytes(self) -> tuple[int, int]:
        """Size of the history on disk, and of its log."""

    def open_writer(self, clock: Clock) -> Writer:
        """Start writing."""

    def version(self) -> int:
        """A number that changes with every commit of any process."""

    def to_store_error(self, error: DriverError) -> StoreError:
        """The error to show, with the next step."""

    def is_write_refused(self, error: DriverError) -> bool:
        """Whether nothing can be stored now, whatever the data."""

    def is_busy(self, error: DriverError) -> bool:
        """Whether the time to wait for other transactions has already passed."""

    def close(self) -> None:
        """Close all connections; the writer was closed before."""
