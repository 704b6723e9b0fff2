"""The interface of the standard library's `sqlite3`, on the SQLite that apsw contains.

The store, plugins and libraries of a process use this module as `sqlite3` (see `driver`).
Differences from the standard library: `execute` accepts several statements, a column of a
result that is read only in part keeps its read lock until the cursor is released, and
`autocommit=False` is not supported.
"""

from __future__ import annotations

import datetime
import time
from typing import Final

import apsw

from hermes_state.engine.sqlite.dbapi.connection import (
    LEGACY_TRANSACTION_CONTROL,
    Connection,
)
from hermes_state.engine.sqlite.dbapi.cursor import Cursor
from hermes_state.engine.sqlite.dbapi.errors import (
    DatabaseError,
    DataError,
    Error,
    IntegrityError,
    InterfaceError,
    InternalError,
    NotSupportedError,
    OperationalError,
    ProgrammingError,
    Warning,  # noqa: A004 - the name in the DB-API
)
from hermes_state.engine.sqlite.dbapi.rows import Row
from hermes_state.engine.sqlite.dbapi.shared import connect
from hermes_state.engine.sqlite.dbapi.values import (
    PARSE_COLNAMES,
    PARSE_DECLTYPES,
    PrepareProtocol,
    adapt,
    register_adapter,
    register_converter,
)

__all__ = [
    "LEGACY_TRANSACTION_CONTROL", "PARSE_COLNAMES", "PARSE_DECLTYPES", "Binary", "Blob",
    "Connection", "Cursor", "DataError", "DatabaseError", "Date", "DateFromTicks", "Error",
    "IntegrityError", "InterfaceError", "InternalError", "NotSupportedError", "OperationalError",
    "PrepareProtocol", "ProgrammingError", "Row", "Time", "TimeFromTicks", "Timestamp",
    "TimestampFromTicks", "Warning", "adapt", "apilevel", "complete_statement", "connect",
    "enable_callback_tracebacks", "paramstyle", "register_adapter", "register_converter",
    "sqlite_version", "sqlite_version_info", "threadsafety", "version", "version_info",
]  # fmt: skip

apilevel: Final = "2.0"
paramstyle: Final = "qmark"
threadsafety: Final = 3
version: Final = "2.6.0"  # of the interface, as the standard library states it
version_info: Final = (2, 6, 0)
sqlite_version: Final = apsw.sqlite_lib_version()
sqlite_version_info: Final = tuple(map(int, sqlite_version.split(".")))

Binary = memoryview
Blob = apsw.Blob
Date = datetime.date
Time = datetime.time
Timestamp = datetime.datetime
complete_statement = apsw.complete

globals().update({name: value for name, value in vars(apsw).items() if name.startswith("SQLITE_")})


def DateFromTicks(ticks: float) -> datetime.date:  # noqa: N802 - the name in the DB-API
    """The local date of a time stamp."""
    return Date(*time.localtime(ticks)[:3])


def TimeFromTicks(ticks: float) -> datetime.time:  # noqa: N802 - the name in the DB-API
    """The local time of day of a time stamp."""
    return Time(*time.localtime(ticks)[3:6])


def TimestampFromTicks(ticks: float) -> datetime.datetime:  # noqa: N802 - the name in the DB-API
    """The local date and time of a time stamp."""
    return Timestamp(*time.localtime(ticks)[:6])


def enable_callback_tracebacks(_enabled: bool) -> None:
    """Part of sqlite3: errors in callbacks reach the caller of the statement anyway."""
