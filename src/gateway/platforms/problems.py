"""Connection problems while running, e.g. a revoked token; shown as `problem` in the status."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from gateway.platforms.base import ErrorKind, SendResult
from gateway.supervision import RESTART_BACKOFF, TaskRecord, supervise

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from hermes_core.backoff import Backoff

UNREACHABLE: Final = "unreachable"
UNREACHABLE_FAILURES: Final = 3

log = logging.getLogger(__name__)


class ReportsProblem:
    """An adapter with a `problem` attribute."""

    _problems: ConnectionProblems

    @property
    def problem(self) -> str:
        """Why nothing is received; empty while the connection works."""
        return self._problems.problem

    @property
    def listener(self) -> TaskRecord:
        """The task that listens, and its failures."""
        return self._problems.listener


class ConnectionProblems:
    """The current problems of a connection, by name."""

    def __init__(self, label: str) -> None:
        self._label = label
        self._texts: dict[str, str] = {}
        self.listener = TaskRecord(f"{label} listener", is_platform=True)

    @property
    def problem(self) -> str:
        """Why nothing is received; empty while the connection works."""
        return next(iter(self._texts.values()), "") or self.listener.problem

    @property
    def not_connected(self) -> SendResult:
        """The result of a message that cannot be sent now."""
        error = f"{self._label} is not connected"
        return SendResult(False, error=error, error_kind=ErrorKind.TRANSIENT)

    def start_listener(
        self, run: Callable[[], Awaitable[None]], backoff: Backoff = RESTART_BACKOFF
    ) -> asyncio.Task[None]:
        """Run a listener; after an unexpected end it is restarted with backoff."""
        return asyncio.create_task(supervise(self.listener, run, backoff))

    def note(self, name: str, text: str) -> None:
        """Add a problem."""
        self._texts[name] = text

    def note_failure(self, failures: int, text: str) -> None:
        """Note that the platform is unreachable, after several failures in a row."""
        if failures >= UNREACHABLE_FAILURES:
            self.note(UNREACHABLE, text)

    def clear(self, name: str) -> None:
        """Remove a problem."""
        if self._texts.pop(name, None) is not None:
            log.info("listening to %s again", self._label)

    def clear_all(self) -> None:
        """Remove all problems, before connecting."""
        self._texts.clear()
