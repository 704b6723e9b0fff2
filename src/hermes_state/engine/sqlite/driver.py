"""The SQLite library of this process.

Two copies of SQLite in one process do not see each other's locks: one of them deletes
the other's write-ahead log, and acknowledged writes are lost without an error. So at
process start `sqlite3` is replaced by `hermes_state.engine.sqlite.dbapi`, which uses the
SQLite inside apsw, for Hermes, plugins and libraries.
"""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any

from hermes_core.errors import SqliteTooOldError

if TYPE_CHECKING:
    import sqlite3
else:
    from hermes_state.engine.sqlite import dbapi as sqlite3

__all__ = ["check_version", "connect", "install", "is_safe_version", "set_busy_handler", "sqlite3"]

# Releases in which the corruption of write-ahead logs is fixed, newest branch first.
FIXED_VERSIONS = ((3, 51, 3), (3, 50, 7), (3, 44, 6))


def install() -> None:
    """Make every later `import sqlite3` of this process load the store's SQLite."""
    for name in ("sqlite3", "sqlite3.dbapi2", "_sqlite3"):
        sys.modules[name] = sqlite3


def is_safe_version(version: tuple[int, ...]) -> bool:
    """Whether this SQLite release does not corrupt write-ahead logs."""
    if version >= FIXED_VERSIONS[0]:
        return True
    return any(version[:2] == fixed[:2] and version >= fixed for fixed in FIXED_VERSIONS)


def check_version(version: tuple[int, ...] | None = None) -> None:
    """Raise SqliteTooOldError for a release that is known to corrupt files."""
    current = version or sqlite3.sqlite_version_info
    if not is_safe_version(current):
        text = ".".join(map(str, current))
        raise SqliteTooOldError(
            f"SQLite {text} can corrupt session files; 3.51.3 or newer is needed. It is part of "
            "the package apsw. Run `pip install --only-binary apsw 'apsw>=3.51.3'` where Hermes is "
            "installed; an apsw that was compiled here uses the SQLite of the system."
        )


def set_busy_handler(connection: sqlite3.Connection, seconds: float) -> None:
    """Retry a lock every few milliseconds for up to *seconds*.

    SQLite's own busy handler backs off, so the connection that has waited longest often
    gets the lock last.
    """
    deadline = 0.0

    def retry(tries: int) -> bool:
        nonlocal deadline
        now = time.monotonic()
        if tries == 0:
            deadline = now + seconds
        if now >= deadline:
            return False
        time.sleep(0.001 + time.monotonic_ns() % 3_000_000 / 1e9)  # jitter
        return True

    own_connection: Any = connection  # the standard library's lacks the method
    own_connection.set_busy_handler(retry)


def connect(address: str, busy_seconds: float, *, uri: bool = False) -> sqlite3.Connection:
    """Open a connection with explicit transactions; threads may use it one after the other."""
    connection = sqlite3.connect(
        address, timeout=busy_seconds, isolation_level=None, cached_statements=512, uri=uri
    )
    connection.execute("PRAGMA temp_store = MEMORY")  # no copies of messages in /tmp
    return connection
