"""The error classes of the DB-API, as base classes of apsw's own.

    Error                     apsw.Error; raised itself only for a code that apsw does not know
      InterfaceError          also below hermes_state.engine.database.DriverError
      DatabaseError           likewise
        DataError
        IntegrityError
        InternalError
        NotSupportedError
        OperationalError
        ProgrammingError

apsw raises its own class for every result code. Giving these classes the bases of the DB-API
costs nothing per call; catching and raising again would slow down every statement and row.
A change of the bases of `Error` would recompute all classes below it, at every start.
"""

from __future__ import annotations

from typing import Any, Final

import apsw

from hermes_state.engine import database

Error = apsw.Error


class Warning(Exception):  # noqa: A001, N818 - the name in the DB-API
    """An important warning; never raised, as in the standard library."""


class InterfaceError(Error, database.DriverError):
    """The library was used in a wrong way."""


class DatabaseError(Error, database.DriverError):
    """The database reported an error."""


class DataError(DatabaseError):
    """A value is too large."""


class IntegrityError(DatabaseError, database.ConstraintError):
    """A constraint failed, or a value has the wrong type."""


class InternalError(DatabaseError):
    """SQLite found an inconsistency in itself."""


class NotSupportedError(DatabaseError):
    """A method is not available."""


class OperationalError(DatabaseError):
    """The statement or the environment is at fault: syntax, locks, disk."""


class UndecodableTextError(OperationalError, database.InvalidTextError):
    """A text is not UTF-8; another program has written it."""


class ProgrammingError(DatabaseError):
    """The connection is closed, or the number of parameters is wrong."""


# The mapping of the standard library (Modules/_sqlite/util.c), and apsw's errors without a code.
BASES: Final[dict[type[Error], tuple[str, ...]]] = {
    InterfaceError: ("MisuseError", "RangeError"),
    DatabaseError: ("AuthError", "CorruptError", "FormatError", "NoLFSError", "NotADBError"),
    DataError: ("TooBigError",),
    IntegrityError: ("ConstraintError", "MismatchError"),
    InternalError: ("InternalError", "NotFoundError"),
    OperationalError: (
        "AbortError", "BusyError", "CantOpenError", "ConnectionNotClosedError", "EmptyError",
        "ExecTraceAbort", "ExtensionLoadingError", "FullError", "IOError", "InterruptError",
        "LockedError", "NoFTS5Error", "NoMemError", "PermissionsError", "ProtocolError",
        "ReadOnlyError", "SQLError", "SchemaChangeError", "VFSFileClosedError",
        "VFSNotImplementedError",
    ),
    ProgrammingError: (
        "BindingsError", "ConnectionClosedError", "CursorClosedError", "ExecutionCompleteError",
        "ForkingViolationError", "IncompleteExecutionError", "InvalidContextError",
        "ThreadingViolationError",
    ),
}  # fmt: skip


def _extended_code(error: Any) -> int:
    return int(error.extendedresult)


def _code_name(error: Any) -> str:
    extended = apsw.mapping_extended_result_codes.get(error.extendedresult)
    return str(extended or apsw.mapping_result_codes[error.result])


def _set_bases() -> None:
    for base, names in BASES.items():
        for name in names:
            getattr(apsw, name).__bases__ = (base,)
    Error.sqlite_errorcode = property(_extended_code)  # type: ignore[attr-defined]
    Error.sqlite_errorname = property(_code_name)  # type: ignore[attr-defined]


_set_bases()
