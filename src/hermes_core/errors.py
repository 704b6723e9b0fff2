"""All errors that Hermes raises deliberately.

    HermesError
      UsageError                 the request cannot be carried out as given
        FieldError               a field of the request is wrong
        ConfigError              a setting cannot be used as written
          NoModelError           no model is configured and no local one was found
        SessionNotFoundError     no session has that id, prefix or title
        AmbiguousSessionError    several sessions match
        TitleError               a title is not allowed
        PortableFileError        a file is not a Hermes export or backup, or is incomplete
      OutputError                output could not be written
      KeyFormatError             a session key is malformed
      IdFormatError              a message or event ID is malformed
      FetchError                 the built-in model could not be downloaded
      PluginError                a plugin cannot be used
      PlatformError              a chat platform cannot be used
        PlatformDownError        it is unreachable; a retry may succeed
        PlatformRefusedError     its configuration is wrong or incomplete
      CatalogueError             an achievement's definition is invalid
      ScanError                  the history could not be read for statistics
        ScanBusyError            another process is scanning
        LedgerDamagedError       the ledger of an earlier scan is unreadable
      StoreError                 the session store refused or failed
        StatementError           the database rejected a statement
        StoreUnavailableError    the file cannot be opened or written here
          StoreUnreachableError  the database server cannot be reached now
          NotADatabaseError      the file is not a SQLite database
          NetworkFileSystemError the folder is on a file system with unreliable locks
          StoreInUseError        another process has the file open
        SchemaTooNewError        Hermes' tables were written by a newer release
        SqliteTooOldError        the SQLite in use is known to corrupt files
        ForeignAccessError       code opened the store's file directly
        LeaseError               a turn lease is not held by this process
          LeaseTakenError        another process runs a turn in the conversation
          LeaseLostError         the lease was taken over; the write was rejected
            SessionDeletedError  the conversation of a turn was deleted meanwhile
        IllegalChangeError       the change is not allowed in the conversation's state
        NotSavedError            neither the database nor the journal accepted the data
        EmbeddingError           texts could not be turned into vectors for search by meaning
      AgentDatabaseError         the database of another agent cannot be read
      CheckpointError            a checkpoint of a folder cannot be taken or restored
        FolderTooLargeError      the folder is beyond the limits of checkpoints

An error message states what happened and what to do; `exit_code` is the exit status of the
command line.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


class HermesError(Exception):
    """Base class of all errors that Hermes raises deliberately."""

    exit_code = 1


class UsageError(HermesError):
    """The request cannot be carried out as given."""

    exit_code = 2


class FieldError(UsageError):
    """A field of the request is wrong; a form shows the message at this field."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


@contextmanager
def of_field(name: str) -> Iterator[None]:
    """Raise a UsageError of the block as the FieldError of this field."""
    try:
        yield
    except FieldError:
        raise
    except UsageError as error:
        raise FieldError(name, str(error)) from error


class ConfigError(UsageError):
    """A setting cannot be used as written."""


class NoModelError(ConfigError):
    """No model is configured and no local one was found."""


class SessionNotFoundError(UsageError):
    """No session has that ID, prefix or title."""


class AmbiguousSessionError(UsageError):
    """Several sessions match."""


class TitleError(UsageError, ValueError):
    """A title is not allowed."""


class PortableFileError(UsageError):
    """A file is not a Hermes export or backup, or is incomplete."""


class OutputError(HermesError):
    """Output could not be written."""


class PlatformError(HermesError):
    """A chat platform cannot be used."""


class PlatformDownError(PlatformError):
    """It is unreachable; a retry may succeed."""


class PlatformRefusedError(PlatformError):
    """Its configuration is wrong or incomplete."""

    exit_code = 2


class KeyFormatError(HermesError, ValueError):
    """A session key is malformed."""


class IdFormatError(HermesError, ValueError):
    """A message or event ID is malformed."""


class FetchError(HermesError):
    """The built-in model could not be downloaded."""


class PluginError(HermesError):
    """A plugin cannot be used."""


class CatalogueError(HermesError, ValueError):
    """An achievement's definition is invalid."""


class ScanError(HermesError):
    """The history could not be read for statistics."""


class ScanBusyError(ScanError):
    """Another process is scanning."""


class LedgerDamagedError(ScanError):
    """The ledger of an earlier scan is unreadable."""


class StoreError(HermesError):
    """The session store refused or failed."""


class EmbeddingError(StoreError):
    """Texts could not be turned into vectors for search by meaning."""


class StatementError(StoreError):
    """The database rejected a statement, which trying again does not change."""


class StoreUnavailableError(StoreError):
    """The file cannot be opened or written here."""


class StoreUnreachableError(StoreUnavailableError):
    """The database server cannot be reached now.

    The store logs when the server is lost and when it is reachable again, so others do not.
    """


class NotADatabaseError(StoreUnavailableError):
    """The file is not a SQLite database."""


class NetworkFileSystemError(StoreUnavailableError):
    """The folder is on a file system with unreliable locks."""


class StoreInUseError(StoreUnavailableError):
    """Another process has the file open."""


class SchemaTooNewError(StoreError):
    """Hermes' tables were written by a newer release."""


class SqliteTooOldError(StoreError):
    """The SQLite in use is known to corrupt files."""


class ForeignAccessError(StoreError):
    """Code opened the store's file directly."""


class LeaseError(StoreError):
    """A turn lease is not held by this process."""


class LeaseTakenError(LeaseError):
    """Another process runs a turn in the conversation."""

    def __init__(self, message: str, holder: str = "") -> None:
        super().__init__(message)
        self.holder = holder


class LeaseLostError(LeaseError):
    """The lease was taken over; the write was rejected."""


class SessionDeletedError(LeaseLostError):
    """The conversation of a turn was deleted meanwhile."""


class IllegalChangeError(StoreError):
    """The change is not allowed in the conversation's state."""


class NotSavedError(StoreError):
    """Neither the database nor the journal accepted the data."""


class AgentDatabaseError(HermesError):
    """The database of another agent cannot be read."""


class CheckpointError(HermesError):
    """A checkpoint of a folder cannot be taken or restored."""


class FolderTooLargeError(CheckpointError):
    """The folder is beyond the limits of checkpoints."""
