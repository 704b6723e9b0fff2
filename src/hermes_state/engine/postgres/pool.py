"""Idle connections, reused by any thread.

Taking and returning a connection acquires no lock, because a signal handler may do it while
the main thread does (`engine.threads`).
"""

from __future__ import annotations

import contextlib
from collections import deque
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from hermes_state.engine.postgres.connection import PostgresConnection

MAX_IDLE_CONNECTIONS: Final = 8


class ConnectionPool:
    """Opens a connection when none is idle."""

    def __init__(self, connect: Callable[[], PostgresConnection]) -> None:
        self._connect = connect
        self._idle: deque[PostgresConnection] = deque()
        self._is_closed = False

    @contextlib.contextmanager
    def connection(self) -> Iterator[PostgresConnection]:
        """Borrow a connection; one that is broken or in a transaction is closed afterwards."""
        connection = self._take()
        try:
            yield connection
        finally:
            is_kept = connection.is_usable and len(self._idle) < MAX_IDLE_CONNECTIONS
            if is_kept and not self._is_closed:
                self._idle.append(connection)
            else:
                connection.close()

    def _take(self) -> PostgresConnection:
        try:
            return self._idle.pop()
        except IndexError:
            return self._connect()

    def discard_idle(self) -> None:
        """Close idle connections, for example after the server was restarted."""
        while self._idle:
            with contextlib.suppress(IndexError):  # another thread may take the last one
                self._idle.pop().close()

    def close(self) -> None:
        """Close idle connections; those in use are closed when they are returned."""
        self._is_closed = True
        self.discard_idle()
