"""Databases of other agents, opened for reading while the agents may write to them.

The database itself is never written. SQLite reads a write-ahead log only where it can create
its index beside the database; in a read-only folder a copy is opened instead. `immutable` is
not used, because it reads half of a write that happens meanwhile.
"""

from __future__ import annotations

import os
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
HEADER_BYTES: Final = 20
WAL_VERSIONS: Final = b"\x02\x02"  # of the format, at the end of the header
WRITE_BITS: Final = 0o222
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
        wal = path.with_name(path.name + WAL_SUFFIX).stat()
    except OSError:
        return FileState(status.st_size, status.st_mtime_ns, 0, 0)
    return FileState(status.st_size, status.st_mtime_ns, wal.st_size, wal.st_mtime_ns)


class ForeignDatabase:
    """An open database of another agent."""

    def __init__(self, path: Path, copy: Path | None = None) -> None:
        """Open the database at *path*, or its copy, whose folder is removed at the end."""
        opened = path if copy is None else copy
        self.path = path
        self._columns: dict[str, frozenset[str]] = {}
        self._remove_copy: Callable[[], object] | None = None
        if copy is not None:
            remove = weakref.finalize(self, shutil.rmtree, copy.parent, ignore_errors=True)
            self._remove_copy = remove
        with _explained(path):
            address = f"file:{quote(str(opened))}?mode=ro"
            self._connection = driver.connect(address, BUSY_SECONDS, uri=True)

    def close(self) -> None:
        """Close it."""
        self._connection.close()
        if self._remove_copy is not None:
            self._remove_copy()

    def rows(self, sql: str, parameters: Sequence[SqlValue] = ()) -> list[tuple[Any, ...]]:
        """The rows of a query."""
        with _explained(self.path):
            return self._connection.execute(sql, tuple(parameters)).fetchall()

    def dicts(self, sql: str, parameters: Sequence[SqlValue] = ()) -> list[dict[str, Any]]:
        """The rows of a query, by the names of its columns."""
        with _explained(self.path):
            cursor = self._connection.execute(sql, tuple(parameters))
            names = [column[0] for column in cursor.description or ()]
            return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]

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


def open_database(path: Path) -> ForeignDatabase:
    """Open a database for reading; a copy where it cannot be read in its folder."""
    if _needs_copy(path):
        return _open_copy(path)
    return ForeignDatabase(path)


def _needs_copy(path: Path) -> bool:
    """Whether the database has a write-ahead log in a folder that is not writable.

    Permissions are looked at as well, because they do not stop the superuser.
    """
    try:
        with path.open("rb") as file:
            is_wal = file.read(HEADER_BYTES).endswith(WAL_VERSIONS)
        is_writable = path.parent.stat().st_mode & WRITE_BITS and os.access(path.parent, os.W_OK)
    except OSError as error:
        raise AgentDatabaseError(f"{path}: {error.strerror}") from error
    return is_wal and not is_writable


def _open_copy(path: Path) -> ForeignDatabase:
    folder = Path(tempfile.mkdtemp(prefix="hermes-import-"))
    try:
        _copy(path, folder)
    except AgentDatabaseError:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return ForeignDatabase(path, folder / path.name)


def _copy(path: Path, folder: Path) -> None:
    """Copy a database and its write-ahead log, again if they change meanwhile."""
    wal = path.with_name(path.name + WAL_SUFFIX)
    for _ in range(COPY_ATTEMPTS):
        before = file_state(path)
        try:
            shutil.copyfile(path, folder / path.name)
            if before.wal_size_bytes:
                shutil.copyfile(wal, folder / wal.name)
        except OSError as error:
            raise AgentDatabaseError(f"{path}: {error.strerror}") from error
        if file_state(path) == before:
            return
    raise AgentDatabaseError(f"{path}: the database changed while it was copied. Try again later.")


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Raise SQLite's errors as AgentDatabaseError."""
    try:
        yield
    except sqlite3.Error as error:
        raise AgentDatabaseError(f"{path}: {error}") from error
