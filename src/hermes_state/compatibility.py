"""Names that programs written for the original's store module import from it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from hermes_core.errors import HermesError
from hermes_state.engine.driver import sqlite3
from hermes_state.upkeep.health import examine

if TYPE_CHECKING:
    from typing import Any


def apply_wal_with_fallback(connection: sqlite3.Connection, **_ignored: Any) -> str:
    """Put a database of a plugin's own into WAL mode if that is possible; the mode in use."""
    try:
        return str(connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]).lower()
    except sqlite3.OperationalError:
        return str(connection.execute("PRAGMA journal_mode").fetchone()[0]).lower()


def get_last_init_error() -> str | None:
    """Why the user's store cannot be opened; None if it can."""
    from hermes_state.store import SessionDB  # noqa: PLC0415 - the store imports much more

    try:
        SessionDB(read_only=True).close()
    except HermesError as error:
        return str(error)
    return None


def format_session_db_unavailable(prefix: str = "Session store unavailable") -> str:
    """A sentence for people about why the store cannot be opened."""
    return f"{prefix}: {get_last_init_error() or 'no error is known'}"


def is_malformed_db_error(error: BaseException) -> bool:
    """Whether an error means that the file is damaged."""
    text = str(error)
    return "malformed" in text or "not a database" in text or "is damaged" in text


def repair_state_db_schema(path: str | Path, **_ignored: Any) -> dict[str, Any]:
    """What is wrong with a store; it changes nothing."""
    findings = [one for one in examine(Path(path)) if one.status == "failed"]
    return {"repaired": False, "problems": [f"{one.name}: {one.detail}" for one in findings]}


def _db_opens_cleanly(path: str | Path) -> bool:
    return all(one.status != "failed" for one in examine(Path(path)))
