"""The time of the database server, so that clocks of machines need not agree."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from hermes_state.engine.postgres.connection import PostgresConnection

SERVER_TIME: Final = "SELECT extract(epoch FROM clock_timestamp())::double precision"


class DatabaseClock:
    """Unix time of the server, measured when a connection is opened.

    In between the monotonic clock counts, so setting the clock of this machine changes nothing.
    """

    def __init__(self) -> None:
        self._offset = time.time() - time.monotonic()

    def measure(self, connection: PostgresConnection) -> None:
        """Compare with the server's clock; the answer is assumed to be made half-way."""
        before = time.monotonic()
        server_time = float(connection.execute(SERVER_TIME).fetchone()[0])
        self._offset = server_time - (before + time.monotonic()) / 2

    def now(self) -> float:
        """Unix time in seconds."""
        return self._offset + time.monotonic()

    def monotonic(self) -> float:
        """The monotonic clock of this machine."""
        return time.monotonic()
