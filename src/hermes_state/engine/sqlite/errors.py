"""SQLite errors translated into store errors that name the next step."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_core.errors import (
    NotADatabaseError,
    StatementError,
    StoreError,
    StoreUnavailableError,
)
from hermes_state.engine.sqlite.filesystem import disk_full_text, is_full

if TYPE_CHECKING:
    from pathlib import Path


def to_store_error(error: Exception, path: Path) -> StoreError:
    """The StoreError for SQLite's *error* on the file at *path*."""
    text = str(error)
    if "not a database" in text or "file is encrypted" in text:
        return NotADatabaseError(
            f"{path} is not a session store: it is not an SQLite database. Move it away, or "
            "point HERMES_HOME elsewhere. If it was one, `hermes sessions salvage` recovers "
            "what is readable."
        )
    if "malformed" in text:
        return StoreError(
            f"{path} is damaged ({text}). Restore a backup, or run `hermes sessions salvage`: it "
            "keeps the damaged file and recovers what is readable into a new one."
        )
    if "locked" in text:
        return StoreError(
            f"{path} is busy: another program has held it for too long. Try again, or see "
            "`hermes doctor`."
        )
    is_disk_error = "disk I/O" in text or "unable to open" in text
    if "full" in text or (is_disk_error and is_full(path.parent)):
        return StoreUnavailableError(disk_full_text(path))
    if "readonly" in text or "unable to open" in text:
        return StoreUnavailableError(f"{path} cannot be opened for this ({text}).")
    kind = StoreError if is_transient(error) else StatementError
    return kind(f"{path}: {text}")


def is_transient(error: Exception) -> bool:
    """Whether the cause is the disk or a lock, not the statement."""
    text = str(error)
    return any(
        part in text for part in ("locked", "full", "disk I/O", "readonly", "unable to open")
    )


def is_write_refused(error: Exception) -> bool:
    """Whether the database cannot store anything now, whatever the data."""
    return is_transient(error) or "malformed" in str(error)
