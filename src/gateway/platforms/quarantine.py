"""Sets aside updates of a platform that cannot be handled, so that the others are received.

An update that fails for an unexpected reason is tried again; after the last try it is stored in
the inbox as failed, where `hermes gateway quarantine` shows it, and counts as received. Failures
of the store or the connection are not the fault of the update.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from hermes_core.errors import HermesError, PlatformDownError
from hermes_core.isolate import Failure, attempt_async

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    # Stores an update: its ID, its content and the error.
    Quarantine = Callable[[str, object, str], Awaitable[None]]

log = logging.getLogger(__name__)

MAX_TRIES: Final = 3
MAX_TRACKED: Final = 1000


class UpdateFailedError(HermesError):
    """An update could not be handled; it is to be tried again."""


class UpdateGuard:
    """Counts the failures of updates."""

    def __init__(
        self, quarantine: Quarantine, request_errors: tuple[type[Exception], ...] = ()
    ) -> None:
        self._quarantine = quarantine
        self._request_errors = request_errors  # of the platform's libraries
        self._failures: dict[str, int] = {}

    async def handle(self, update_id: str, content: object, work: Awaitable[None]) -> None:
        """Await *work*; UpdateFailedError if the update is to be tried again."""
        result = await attempt_async(f"handle update {update_id}", work)
        if not isinstance(result, Failure):
            self._failures.pop(update_id, None)
            return
        if isinstance(result.error, HermesError | OSError):
            raise result.error
        if isinstance(result.error, self._request_errors):
            reason = str(result.error) or type(result.error).__name__
            raise PlatformDownError(reason) from result.error
        if len(self._failures) >= MAX_TRACKED:
            self._failures.clear()
        failures = self._failures[update_id] = self._failures.get(update_id, 0) + 1
        error = f"{type(result.error).__name__}: {result.error}"
        if failures < MAX_TRIES:
            raise UpdateFailedError(f"update {update_id} failed: {error}") from result.error
        await self.set_aside(update_id, content, error)
        self._failures.pop(update_id, None)
        log.error("update %s quarantined after %d tries: %s", update_id, failures, error)

    async def set_aside(self, update_id: str, content: object, error: str) -> None:
        """Store an update that cannot be handled."""
        await self._quarantine(update_id, content, error)
