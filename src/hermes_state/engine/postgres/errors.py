"""psycopg's errors as errors of the store."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Final

import psycopg
from psycopg import errors

from hermes_core.errors import StoreError, StoreUnavailableError, StoreUnreachableError
from hermes_state.engine.database import ConstraintError, DriverError

if TYPE_CHECKING:
    from collections.abc import Iterator

# The transaction had no effect and may succeed when it is repeated.
CONFLICTS: Final = (
    errors.SerializationFailure,
    errors.DeadlockDetected,
    errors.UniqueViolation,  # another transaction stored the same key meanwhile
)
# The server ends, starts, or has no connection left: another attempt may reach it.
UNAVAILABLE: Final = (
    errors.AdminShutdown,
    errors.CrashShutdown,
    errors.CannotConnectNow,
    errors.TooManyConnections,
    errors.IdleInTransactionSessionTimeout,
)
# Nothing can be stored now, whatever the data.
REFUSALS: Final = (
    errors.DiskFull,
    errors.OutOfMemory,
    errors.ReadOnlySqlTransaction,
    errors.LockNotAvailable,
    errors.QueryCanceled,
    *UNAVAILABLE,
)


class PostgresError(DriverError):
    """PostgreSQL refused a statement."""

    __slots__ = ("cause",)

    def __init__(self, cause: psycopg.Error) -> None:
        super().__init__(str(cause).strip() or type(cause).__name__)
        self.cause = cause

    @property
    def is_conflict(self) -> bool:
        """Whether the transaction may succeed when it is repeated."""
        return isinstance(self.cause, CONFLICTS)

    @property
    def is_connection_lost(self) -> bool:
        """Whether the server cannot be reached now."""
        if isinstance(self.cause, UNAVAILABLE):
            return True
        return isinstance(self.cause, psycopg.OperationalError) and self.cause.sqlstate is None


class PostgresConstraintError(PostgresError, ConstraintError):
    """A row would violate a constraint."""

    __slots__ = ()


@contextlib.contextmanager
def translated() -> Iterator[None]:
    """Raise psycopg's errors as errors of the store."""
    try:
        yield
    except psycopg.Error as error:
        raise translate(error) from error


def translate(error: psycopg.Error) -> PostgresError:
    """An error of psycopg as an error of the store."""
    if isinstance(error, errors.ForeignKeyViolation):
        return PostgresConstraintError(type(error)(f"FOREIGN KEY constraint failed: {error}"))
    if isinstance(error, psycopg.IntegrityError):
        return PostgresConstraintError(error)
    return PostgresError(error)


def is_write_refused(error: DriverError) -> bool:
    """Whether nothing can be stored now, whatever the data."""
    return isinstance(error, PostgresError) and (
        error.is_connection_lost or isinstance(error.cause, REFUSALS)
    )


def to_store_error(error: DriverError, place: str) -> StoreError:
    """The error to show, with the next step."""
    if isinstance(error, PostgresError) and error.is_connection_lost:
        return StoreUnreachableError(f"cannot reach the history at {place}: {_advice(str(error))}")
    if isinstance(error, PostgresError) and isinstance(error.cause, REFUSALS):
        return StoreUnavailableError(f"the history at {place} cannot be written to: {error}")
    return StoreError(f"the history at {place} refused a statement: {error}")


def _advice(reason: str) -> str:
    """The reason without the question of the client library, and what to do."""
    reason = reason.partition("Is the server running")[0].strip().rstrip(".?")
    if "password" in reason:
        return f"{reason}. Set the password: hermes config set store.password"
    if "does not exist" in reason or "service" in reason:
        return f"{reason}. Check the setting store.url."
    return f"{reason}. Check that the server runs, and the setting store.url."
