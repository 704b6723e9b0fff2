"""Notifications of PostgreSQL: hints that another process has stored something.

They are hints only: one that is missed, for example while the server restarts, delays its
receiver until its next check.
"""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, Final

import psycopg

from hermes_core.backoff import Backoff
from hermes_core.isolate import attempt
from hermes_state.engine.postgres.connection import open_connection
from hermes_state.engine.postgres.errors import PostgresError

if TYPE_CHECKING:
    from collections.abc import Callable

log = logging.getLogger(__name__)

RECONNECT_BACKOFF: Final = Backoff(0.5, 30.0)
CHECK_SECONDS: Final = 0.5  # how soon the thread notices that it has to stop
NOTIFY: Final = "SELECT pg_notify(current_schema() || '.hermes', ?)"
# The name of a channel cannot be a parameter.
LISTEN: Final = "SELECT 'LISTEN ' || quote_ident(current_schema() || '.hermes')"


class Listener:
    """A thread that passes the topic of each notification to *on_wake*."""

    def __init__(self, url: str, on_wake: Callable[[str], object]) -> None:
        self._url = url
        self._on_wake = on_wake
        self._is_stopping = threading.Event()
        threading.Thread(target=self._run, name="hermes-listener", daemon=True).start()

    def stop(self) -> None:
        """Stop soon."""
        self._is_stopping.set()

    def _run(self) -> None:
        attempts = 0
        while not self._is_stopping.is_set():
            try:
                with open_connection(self._url, "hermes (notifications)") as connection:
                    self._listen(connection)
                attempts = 0
            except (psycopg.Error, PostgresError) as error:
                attempts += 1
                log.debug("database notifications lost: %s", error)
                self._is_stopping.wait(RECONNECT_BACKOFF.delay(attempts))

    def _listen(self, connection: psycopg.Connection[tuple[object, ...]]) -> None:
        row = connection.execute(LISTEN).fetchone()
        connection.execute(str(row[0] if row else "").encode())
        while not self._is_stopping.is_set():
            for notification in connection.notifies(timeout=CHECK_SECONDS):
                topic = notification.payload
                attempt("wake after a notification", lambda: self._on_wake(topic))  # noqa: B023
