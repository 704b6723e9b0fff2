"""Every error this project raises on purpose.

    HermesError
      UsageError                 the user asked for something that cannot be done as asked
        ConfigError              a setting cannot be used as written
          NoModelError           nothing was chosen, and nothing here can answer
        SessionNotFoundError     no session has that id, prefix or title
        AmbiguousSessionError    more than one session fits
        TitleError               a text cannot be the title of a session
        PortableFileError        a file is no export or backup of ours, or not whole
      OutputError                what was printed could not be written
      KeyFormatError             a session key cannot be read
      IdFormatError              a message or event id cannot be read
      FetchError                 the built-in model could not be fetched
      PluginError                a plugin cannot be used
      PlatformError              a chat platform cannot be used
        PlatformDownError        it does not answer now; trying again makes sense
        PlatformRefusedError     what is configured for it is wrong or missing
      CatalogueError             an achievement cannot be used as written
      ScanError                  the history could not be read for statistics
        ScanBusyError            another process is doing it
        LedgerDamagedError       what was kept of an earlier scan cannot be read
      StoreError                 the session store refused or failed
        StoreUnavailableError    the file cannot be opened or written here
          NotADatabaseError      the file is something else
          NetworkFileSystemError the folder lies on a file system that breaks locks
          StoreInUseError        another process has the file open
        SchemaTooNewError        our own tables were written by a newer release
        SqliteTooOldError        the SQLite in use is known to corrupt files
        ForeignAccessError       somebody reached past the store to its file
        LeaseError               a turn lease is not ours
          LeaseTakenError        somebody else holds the conversation
          LeaseLostError         our lease was taken over; the write was refused
        IllegalChangeError       a conversation cannot be changed so from where it is
        NotSavedError            neither the database nor the journal took the data

An error's text says what happened and what to do about it; `exit_code` is what the
command line returns for it.
"""

from __future__ import annotations


class HermesError(Exception):
    """Something this project reports on purpose, with a text meant for people."""

    exit_code = 1


class UsageError(HermesError):
    """The user asked for something that cannot be done as asked."""

    exit_code = 2


class ConfigError(UsageError):
    """A setting cannot be used as written."""


class NoModelError(ConfigError):
    """Nothing was chosen, and nothing on this machine can answer."""


class SessionNotFoundError(UsageError):
    """No session has that id, prefix or title."""


class AmbiguousSessionError(UsageError):
    """More than one session fits what was asked for."""


class TitleError(UsageError, ValueError):
    """A text cannot be the title of a session."""


class PortableFileError(UsageError):
    """A file is no export or backup of ours, or not whole."""


class OutputError(HermesError):
    """What was printed could not be written: a full disk, say."""


class PlatformError(HermesError):
    """A chat platform cannot be used."""


class PlatformDownError(PlatformError):
    """A platform does not answer now; trying again makes sense."""


class PlatformRefusedError(PlatformError):
    """What is configured for a platform is wrong or missing; only the user can mend it."""

    exit_code = 2


class KeyFormatError(HermesError, ValueError):
    """A session key cannot be read."""


class IdFormatError(HermesError, ValueError):
    """A message or event id cannot be read."""


class FetchError(HermesError):
    """The built-in model could not be fetched; the text says what to do."""


class PluginError(HermesError):
    """A plugin cannot be used."""


class CatalogueError(HermesError, ValueError):
    """An achievement cannot be used as written."""


class ScanError(HermesError):
    """The history could not be read for statistics."""


class ScanBusyError(ScanError):
    """Another process is reading the history for statistics."""


class LedgerDamagedError(ScanError):
    """What was kept of an earlier scan cannot be read; a whole scan makes it anew."""


class StoreError(HermesError):
    """The session store refused or failed."""


class StoreUnavailableError(StoreError):
    """The file cannot be opened or written here."""


class NotADatabaseError(StoreUnavailableError):
    """The file is something else."""


class NetworkFileSystemError(StoreUnavailableError):
    """The folder lies on a file system that breaks locks."""


class StoreInUseError(StoreUnavailableError):
    """Another process has the file open."""


class SchemaTooNewError(StoreError):
    """Our own tables were written by a newer release."""


class SqliteTooOldError(StoreError):
    """The SQLite in use is known to corrupt files."""


class ForeignAccessError(StoreError):
    """Somebody reached past the store to its file."""


class LeaseError(StoreError):
    """A turn lease is not ours."""


class LeaseTakenError(LeaseError):
    """Somebody else holds the conversation."""


class LeaseLostError(LeaseError):
    """Our lease was taken over; the write was refused."""


class IllegalChangeError(StoreError):
    """A conversation cannot be changed so from the state it is in."""


class NotSavedError(StoreError):
    """Neither the database nor the journal took the data."""
