"""Connections as work functions use them: `Reader` for reading, `Tx` for a transaction.

`Columns` are the tables and columns of the opened file, which differ between releases.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

from hermes_state.schema.base import MESSAGE_DEFAULTS, SESSION_DEFAULTS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from contextlib import AbstractContextManager

    from hermes_core.clock import Clock
    from hermes_state.engine.database import DatabaseConnection, Row

    ValueKind = Literal["text", "int", "float", "bytes"]


class Columns(NamedTuple):
    """Tables and columns of a file, read once when it is opened."""

    sessions: tuple[str, ...]
    messages: tuple[str, ...]
    tables: frozenset[str]
    stamps_activity: bool
    has_foreign_writers: bool = True  # another program may write without updating the index
    process_timeout_seconds: float = 120.0  # until a process of another machine counts as dead

    def session_has(self, column: str) -> bool:
        """Whether `sessions` has *column*."""
        return column in self.sessions

    @property
    def hashes_prompts(self) -> bool:
        """Whether system prompts are deduplicated in a separate table."""
        return "system_prompt_hash" in self.sessions and "system_prompts" in self.tables

    def missing(self) -> dict[str, dict[str, str]]:
        """Columns that files of schema 16 have and this one lacks, by table, with defaults."""
        pairs = {
            "sessions": (self.sessions, SESSION_DEFAULTS),
            "messages": (self.messages, MESSAGE_DEFAULTS),
        }
        lacking = {
            table: {name: value for name, value in defaults.items() if name not in present}
            for table, (present, defaults) in pairs.items()
        }
        return {table: names for table, names in lacking.items() if names}

    def missing_names(self) -> list[str]:
        """The missing columns as `table.column`."""
        return [f"{table}.{name}" for table, names in self.missing().items() for name in names]

    def completed(self) -> Columns:
        """The columns of a connection that `add_missing_columns` has completed."""
        missing = self.missing()
        return self._replace(
            sessions=(*self.sessions, *missing.get("sessions", {})),
            messages=(*self.messages, *missing.get("messages", {})),
        )

    @property
    def has_own_tables(self) -> bool:
        """Whether Hermes has opened this file for writing before."""
        return "hermes_layout" in self.tables


T = TypeVar("T")


def insert_sql(table: str, columns: Sequence[str]) -> str:
    """The statement that inserts a row with these columns."""
    places = ", ".join("?" * len(columns))
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({places})"  # noqa: S608 - own names


class Reader:
    """A connection for reading; `columns` describes the opened file."""

    def __init__(self, connection: DatabaseConnection, columns: Columns) -> None:
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

    def replacing_invalid_text(self) -> AbstractContextManager[None]:
        """Replace invalid UTF-8 within the context instead of raising an error."""
        return contextlib.nullcontext()

    def map_into_memory(self) -> None:
        """Read the file through a new memory map, if this engine has a file."""

    def column_kinds(self, table: str) -> dict[str, ValueKind]:
        """The kind of value that each column takes; SQLite's take any."""
        del table
        return {}

    def dicts(self, sql: str, parameters: Sequence[Any] = ()) -> list[dict[str, Any]]:
        """All rows as dictionaries."""
        cursor = self.execute(sql, parameters)
        names = [column[0] for column in cursor.description]
        return [dict(zip(names, row, strict=True)) for row in cursor]


class Tx(Reader):
    """The writing connection inside one transaction.

    `covered` is the highest message id known to be in the session index, `watermark` the
    value stored in the file; `is_behind` means that another program has written messages that
    are not indexed yet.

    `newest_uid` is the highest message identity below `uid_limit`, or None if unknown;
    after a rollback it may be too high, which costs a lookup and nothing else.
    """

    def __init__(self, connection: DatabaseConnection, columns: Columns, clock: Clock) -> None:
        super().__init__(connection, columns)
        self.clock = clock
        self.covered = 0
        self.watermark = 0
        self.is_behind = False
        self.newest_uid: bytes | None = None
        self.uid_limit = b""
        self.foreign_changes = 0  # how often other connections changed the file

    def run(self, sql: str, parameters: Sequence[Any] = ()) -> None:
        """Execute a statement and discard its result."""
        self.execute(sql, parameters)

    def insert(self, sql: str, parameters: Sequence[Any], key: str) -> int:
        """Insert one row; returns the number that the database gave its column *key*."""
        return int(self.value(f"{sql} RETURNING {key}", parameters))

    def insert_many(
        self, table: str, columns: Sequence[str], rows: Sequence[Sequence[Any]], key: str
    ) -> list[int]:
        """Insert rows; returns the numbers that the database gave their columns *key*."""
        sql = insert_sql(table, columns)
        return [self.insert(sql, row, key) for row in rows]

    def wake(self, topic: str) -> None:
        """Tell other nodes, once this is committed, that there is something to do for them."""

    def compact(self) -> None:
        """Return free space to the disk; ends this transaction and begins another."""
        self.run("COMMIT")
        self.run("VACUUM")
        self.run("PRAGMA wal_checkpoint(PASSIVE)")
        self.run("BEGIN IMMEDIATE")

    def update_planner(self) -> None:
        """Let the database measure its tables after many rows were added."""

    def continue_numbers(self, table: str, key: str) -> None:
        """Let the numbers of new rows of a table follow those of rows that were copied into it."""

    def many(self, sql: str, parameters: Iterable[Sequence[Any]]) -> None:
        """Execute a statement once for each set of parameters."""
        self.connection.executemany(sql, parameters)


class HistorySnapshot(NamedTuple):
    """Reads inside one transaction."""

    place: str
    columns: Columns
    reader: Reader

    def read(self, work: Callable[[Reader], T]) -> T:
        """Run *work* in the transaction."""
        return work(self.reader)
