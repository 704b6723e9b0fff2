"""A connection that holds a lock, for work that one process of all machines does at a time.

The lock is released by the server when the connection ends, so a process that was killed holds
nothing. What the lock protects is written through the same connection: a process that has lost
it cannot write. A holder shows that it works; if it does not for a while, because its
process is frozen or its machine is gone, the next process that asks ends its connection.
"""

from __future__ import annotations

import contextlib
import threading
import time
from typing import TYPE_CHECKING, Final

from hermes_state.engine.database import DriverError
from hermes_state.engine.postgres.connection import PostgresConnection, open_connection

if TYPE_CHECKING:
    from collections.abc import Iterator

BEATS_PER_TIMEOUT: Final = 4
TAKE_OVER_SECONDS: Final = 2.0  # until the server has ended a connection
RETRY_SECONDS: Final = 0.02
TRY_LOCK: Final = "SELECT pg_try_advisory_lock(hashtext(?), hashtext(current_schema()))"
# Numbers of locks are unsigned in pg_locks.
END_STALLED: Final = """
    SELECT pg_terminate_backend(lock.pid)
    FROM pg_locks lock JOIN pg_stat_activity activity ON activity.pid = lock.pid
    WHERE lock.locktype = 'advisory' AND lock.granted AND lock.objsubid = 2
        AND lock.database = (SELECT oid FROM pg_database WHERE datname = current_database())
        AND lock.classid::bigint = hashtext(?)::bigint & 4294967295
        AND lock.objid::bigint = hashtext(current_schema())::bigint & 4294967295
        AND activity.state <> 'active'
        AND activity.state_change < clock_timestamp() - make_interval(secs => ?)
"""


@contextlib.contextmanager
def exclusive_connection(
    url: str, name: str, timeout_seconds: float
) -> Iterator[PostgresConnection | None]:
    """A connection that holds the lock *name*; None while another process holds it."""
    connection = PostgresConnection(open_connection(url, f"hermes ({name})"))
    try:
        if not _lock(connection, name, timeout_seconds):
            yield None
            return
        stopping = threading.Event()
        beat_seconds = timeout_seconds / BEATS_PER_TIMEOUT
        thread = threading.Thread(
            target=_beat, args=(connection, beat_seconds, stopping), name="hermes-lock", daemon=True
        )
        thread.start()
        try:
            yield connection
        finally:
            stopping.set()
            thread.join()
    finally:
        connection.close()


def _lock(connection: PostgresConnection, name: str, timeout_seconds: float) -> bool:
    if _try_lock(connection, name):
        return True
    if not connection.execute(END_STALLED, (name, timeout_seconds)).fetchall():
        return False
    deadline = time.monotonic() + TAKE_OVER_SECONDS
    while time.monotonic() < deadline:
        if _try_lock(connection, name):
            return True
        time.sleep(RETRY_SECONDS)
    return False


def _try_lock(connection: PostgresConnection, name: str) -> bool:
    return bool(connection.execute(TRY_LOCK, (name,)).fetchone()[0])


def _beat(connection: PostgresConnection, seconds: float, stopping: threading.Event) -> None:
    """Use the connection regularly; the work reports that it is lost."""
    while not stopping.wait(seconds):
        with contextlib.suppress(DriverError):
            connection.execute("SELECT 1")
