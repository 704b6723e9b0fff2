"""What a platform refuses while we run: a token that was revoked, say. It shows as `problem`."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncio

log = logging.getLogger(__name__)


class Refusable:
    """An adapter that shows what is refused."""

    _refusals: Refusals

    @property
    def problem(self) -> str:
        """Why nothing is heard any more; empty while all is well."""
        return self._refusals.problem


class Refusals:
    """What is refused at present, each under the name of what is refused."""

    def __init__(self, label: str) -> None:
        self._label = label
        self._texts: dict[str, str] = {}

    @property
    def problem(self) -> str:
        """Why nothing is heard any more; empty while all is well."""
        return next(iter(self._texts.values()), "")

    def note(self, what: str, text: str) -> None:
        """Something is refused."""
        self._texts[what] = text

    def clear(self, what: str) -> None:
        """It works again."""
        if self._texts.pop(what, None) is not None:
            log.info("%s is listened to again", self._label)

    def ended(self, task: asyncio.Task[None]) -> None:
        """The task that listens is over; an end that nobody expected is not silent."""
        error = None if task.cancelled() else task.exception()
        if error is not None:
            log.error("%s is not listened to any more", self._label, exc_info=error)
            self.note("listening", f"listening broke off: {type(error).__name__}")

    def clear_all(self) -> None:
        """A new beginning."""
        self._texts.clear()
