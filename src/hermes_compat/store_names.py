"""What plugins written for hermes-agent import from its module `hermes_state`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

from hermes_compat.async_store import AsyncSessionDB
from hermes_compat.session_db import OriginalSessionDB as SessionDB
from hermes_core import paths
from hermes_core.errors import HermesError
from hermes_state.engine.sqlite.driver import sqlite3
from hermes_state.schema import base
from hermes_state.upkeep.health import examine

if TYPE_CHECKING:
    from typing import Any


__all__ = [
    "AsyncSessionDB",
    "SessionDB",
    "apply_wal_with_fallback",
    "format_session_db_unavailable",
    "get_last_init_error",
    "is_malformed_db_error",
    "repair_state_db_schema",
]
SCHEMA_VERSION = base.BASE_VERSION


def __getattr__(name: str) -> Any:
    if name == "SCHEMA_SQL":
        return base.schema_sql()
    if name == "DEFAULT_DB_PATH":
        return paths.state_db_path()
    raise AttributeError(f"module 'hermes_state' has no attribute {name!r}")


def apply_wal_with_fallback(connection: sqlite3.Connection, **_ignored: Any) -> str:
    """Switch a plugin's own database to WAL mode if possible; returns the mode in use."""
    try:
        return str(connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]).lower()
    except sqlite3.OperationalError:
        return str(connection.execute("PRAGMA journal_mode").fetchone()[0]).lower()


def get_last_init_error() -> str | None:
    """The error that prevents the user's store from opening, or None."""
    try:
        SessionDB(read_only=True).close()
    except HermesError as error:
        return str(error)
    return None


def format_session_db_unavailable(prefix: str = "Session store unavailable") -> str:
    """A message for the user about why the store cannot be opened."""
    return f"{prefix}: {get_last_init_error() or 'no error is known'}"


def is_malformed_db_error(error: BaseException) -> bool:
    """Whether an error means that the file is damaged."""
    text = str(error)
    return "malformed" in text or "not a database" in text or "is damaged" in text


class RepairReport(TypedDict):
    """Whether a store was repaired, and its problems."""

    repaired: bool
    problems: list[str]


def repair_state_db_schema(path: str | Path, **_ignored: Any) -> RepairReport:
    """Problems of a store; nothing is changed."""
    findings = [finding for finding in examine(Path(path)) if finding.status == "failed"]
    return {
        "repaired": False,
        "problems": [f"{finding.name}: {finding.detail}" for finding in findings],
    }


def _db_opens_cleanly(path: str | Path) -> bool:
    return all(finding.status != "failed" for finding in examine(Path(path)))
