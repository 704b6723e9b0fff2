"""The one SQLite of this process.

Two copies of SQLite in one process do not see each other's locks: one of them deletes
the other's write-ahead log, and acknowledged writes vanish without an error. So at
process entry `sqlite3` *becomes* pysqlite3, for us, for plugins and for libraries.
"""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any

from hermes_core.errors import SqliteTooOldError

if TYPE_CHECKING:
    import sqlite3
else:
    import pysqlite3 as sqlite3

__all__ = ["check_version", "connect", "install", "is_trustworthy", "sqlite3", "wait_patiently"]

# Releases in which the damage to write-ahead logs is mended, newest branch first.
MENDED_IN = ((3, 51, 3), (3, 50, 7), (3, 44, 6))


def install() -> None:
    """Make every later `import sqlite3` of this process mean our copy."""
    sys.modules["sqlite3"] = sqlite3
    sys.modules["sqlite3.dbapi2"] = sqlite3.dbapi2
    sys.modules["_sqlite3"] = sys.modules["pysqlite3._sqlite3"]


def is_trustworthy(version: tuple[int, ...]) -> bool:
    """Whether this SQLite release keeps write-ahead logs whole."""
    if version >= MENDED_IN[0]:
        return True
    return any(version[:2] == mended[:2] and version >= mended for mended in MENDED_IN)


def check_version(version: tuple[int, ...] | None = None) -> None:
    """Refuse a SQLite that is known to corrupt files."""
    found = version or sqlite3.sqlite_version_info
    if not is_trustworthy(found):
        text = ".".join(map(str, found))
        raise SqliteTooOldError(
            f"SQLite {text} can corrupt session files; 3.51.3 or newer is needed. "
            "Reinstall the locked dependencies (delete .venv and start ./hermes again)."
        )


def wait_patiently(connection: sqlite3.Connection, seconds: float) -> None:
    """Wait for a lock by looking again every few milliseconds.

    SQLite's own waiting looks ever more seldom, so that of two who wait the one who came
    first often gets its turn last.
    """
    deadline = 0.0

    def look_again(tries: int) -> bool:
        nonlocal deadline
        now = time.monotonic()
        if tries == 0:
            deadline = now + seconds
        if now >= deadline:
            return False
        time.sleep(0.001 + time.monotonic_ns() % 3_000_000 / 1e9)  # two must not look in step
        return True

    ours: Any = connection  # the interpreter's sqlite3, which types it, lacks the method
    ours.set_busy_handler(look_again)


def connect(address: str, busy_seconds: float, *, uri: bool = False) -> sqlite3.Connection:
    """A connection of ours: transactions are begun by hand, threads are our own affair."""
    return sqlite3.connect(
        address,
        timeout=busy_seconds,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=512,
        uri=uri,
    )
