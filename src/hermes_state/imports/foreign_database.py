"""Databases of other agents, opened for reading while the agents may write to them.

Neither the database nor its folder is changed.
"""

from __future__ import annotations

import shutil
import tempfile
import weakref
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import quote

from hermes_core.errors import AgentDatabaseError
from hermes_state.engine.sqlite import driver
from hermes_state.engine.sqlite.driver import sqlite3

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from hermes_state.engine.values import SqlValue

BUSY_SECONDS: Final = 5.0
COPY_ATTEMPTS: Final = 5
WAL_SUFFIX: Final = "-wal"
INDEX_SUFFIX: Final = "-shm"
HEADER_BYTES: Final = 20
WAL_VERSIONS: Final = b"\x02\x02"  # of the format, at the end of the header
COLUMNS: Final = "SELECT name FROM pragma_table_info(?)"


class FileState(NamedTuple):
    """What tells whether a database and its write-ahead log have changed."""

    size_bytes: int
    modified_ns: int
    wal_size_bytes: int
    wal_modified_ns: int

    @property
    def written_at(self) -> float:
        """When the database was written last, in seconds since 1970."""
        return max(self.modified_ns, self.wal_modified_ns) / 1e9


def file_state(path: Path) -> FileState:
    """The state of a database's files."""
    try:
        status = path.stat()
    except OSError as error:
        raise AgentDatabaseError(f"{path}: {error.strerror}") from error
    try:
        wal = _beside(path, WAL_SUFFIX).stat()
    except OSError:
        return FileState(status.st_size, status.st_mtime_ns, 0, 0)
    return FileState(status.st_size, status.st_mtime_ns, wal.st_size, wal.st_mtime_ns)


class UnchangedFile:
    """A database file, opened in the one way that leaves its folder as it is.

    SQLite would create files beside a database with a write-ahead log. A log with its index is
    read with both; one that a crash has left is recovered in a private copy. Without a log no
    program has the file open, and it is read without locks.
    """

    def __init__(self, path: Path, busy_seconds: float = BUSY_SECONDS) -> None:
        self.path = path
        self._busy_seconds = busy_seconds
        self._remove_copy: Callable[[], object] | None = None
        self._state = file_state(path)
        self._is_unlocked = False
        self.connection = self._open()

    def close(self) -> None:
        """Close the file, and delete a private copy of it."""
        self.connection.close()
        if self._remove_copy is not None:
            self._remove_copy()

    @property
    def is_current(self) -> bool:
        """Whether the connection shows what programs have written to the file meanwhile."""
        is_fixed = self._is_unlocked or self._remove_copy is not None
        return not is_fixed or file_state(self.path) == self._state

    def check_unlocked(self) -> None:
        """Raise AgentDatabaseError if a file that is read without locks was written."""
        if self._is_unlocked and file_state(self.path)[:2] != self._state[:2]:
            raise AgentDatabaseError(
                f"{self.path}: the database changed while it was read. Try again later."
            )

    def _open(self) -> sqlite3.Connection:
        wal = _beside(self.path, WAL_SUFFIX)
        if not wal.exists() and not _is_in_wal_mode(self.path):
            return self._connect(self.path)
        if wal.exists() and _beside(self.path, INDEX_SUFFIX).exists():
            return self._connect(self.path, "&readonly_shm=1")
        if self._state.wal_size_bytes:
            return self._open_copy()
        self._is_unlocked = True
        return self._connect(self.path, "&immutable=1")

    def _open_copy(self) -> sqlite3.Connection:
        folder = Path(tempfile.mkdtemp(prefix="hermes-import-"))
        self._remove_copy = weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        self._state = _copy(self.path, folder)
        return self._connect(folder / self.path.name)

    def _connect(self, path: Path, options: str = "") -> sqlite3.Connection:
        address = f"file:{quote(str(path))}?mode=ro{options}"
        return driver.connect(address, self._busy_seconds, uri=True)


def _beside(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)


def _is_in_wal_mode(path: Path) -> bool:
    """Whether the header of a database file names a write-ahead log."""
    try:
        with path.open("rb") as file:
            return file.read(HEADER_BYTES).endswith(WAL_VERSIONS)
    except OSError as error:
        raise AgentDatabaseError(f"{path}: {error.strerror}") from error


class ForeignDatabase:
    """An open database of another agent."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._columns: dict[str, frozenset[str]] = {}
        with _explained(path):
            self._file = UnchangedFile(path)

    def close(self) -> None:
        """Close it."""
        self._file.close()

    def rows(self, sql: str, parameters: Sequence[SqlValue] = ()) -> list[tuple[Any, ...]]:
        """The rows of a query."""
        with self._reading() as connection:
            return connection.execute(sql, tuple(parameters)).fetchall()

    def dicts(self, sql: str, parameters: Sequence[SqlValue] = ()) -> list[dict[str, Any]]:
        """The rows of a query, by the names of its columns."""
        with self._reading() as connection:
            cursor = connection.execute(sql, tuple(parameters))
            names = [column[0] for column in cursor.description or ()]
            return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        with _explained(self.path):
            yield self._file.connection
        self._file.check_unlocked()

    def columns(self, table: str) -> frozenset[str]:
        """The columns of a table; none if this version of the schema lacks the table."""
        if table not in self._columns:
            found = self.rows(COLUMNS, (table,))
            self._columns[table] = frozenset(name for (name,) in found)
        return self._columns[table]

    def select(
        self, table: str, wanted: Sequence[str], rest: str = "", parameters: Sequence[SqlValue] = ()
    ) -> list[dict[str, Any]]:
        """The rows of a table; a column that this version of the schema lacks is None.

        *rest* is the part of the query after the table. Without the table there are no rows.
        """
        present = self.columns(table)
        if not present:
            return []
        names = ", ".join(
            f'"{name}"' if name in present else f'NULL AS "{name}"' for name in wanted
        )
        return self.dicts(f'SELECT {names} FROM "{table}" {rest}', parameters)  # noqa: S608


def _copy(path: Path, folder: Path) -> FileState:
    """Copy a database and its write-ahead log, again if they change meanwhile."""
    wal = _beside(path, WAL_SUFFIX)
    for _ in range(COPY_ATTEMPTS):
        before = file_state(path)
        try:
            shutil.copyfile(path, folder / path.name)
            if before.wal_size_bytes:
                shutil.copyfile(wal, folder / wal.name)
        except OSError as error:
            raise AgentDatabaseError(f"{path}: {error.strerror}") from error
        if file_state(path) == before:
            return before
    raise AgentDatabaseError(f"{path}: the database changed while it was copied. Try again later.")


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Raise SQLite's errors as AgentDatabaseError."""
    try:
        yield
    except sqlite3.Error as error:
        raise AgentDatabaseError(f"{path}: {error}") from error
