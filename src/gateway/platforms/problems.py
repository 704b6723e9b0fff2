"""Connection problems while running, e.g. a revoked token; shown as `problem` in the status."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncio

log = logging.getLogger(__name__)


class ReportsProblem:
    """An adapter with a `problem` attribute."""

    _problems: ConnectionProblems

    @property
    def problem(self) -> str:
        """Why nothing is received; empty while the connection works."""
        return self._problems.problem


class ConnectionProblems:
    """The current problems of a connection, by name."""

    def __init__(self, label: str) -> None:
        self._label = label
        self._texts: dict[str, str] = {}

    @property
    def problem(self) -> str:
        """Why nothing is received; empty while the connection works."""
        return next(iter(self._texts.values()), "")

    def note(self, name: str, text: str) -> None:
        """Add a problem."""
        self._texts[name] = text

    def clear(self, name: str) -> None:
        """Remove a problem."""
        if self._texts.pop(name, None) is not None:
            log.info("listening to %s again", self._label)

    def ended(self, task: asyncio.Task[None]) -> None:
        """Done callback of the listener task: report an unexpected end."""
        error = None if task.cancelled() else task.exception()
        if error is not None:
            log.error("stopped listening to %s", self._label, exc_info=error)
            self.note("listening", f"The listener stopped: {type(error).__name__}")

    def clear_all(self) -> None:
        """Remove all problems, before connecting."""
        self._texts.clear()
