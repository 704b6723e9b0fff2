"""The catalogue with achievements of plugins, without those that the user hides."""

from __future__ import annotations

import logging
import threading
import time
from typing import TYPE_CHECKING, Final
from zlib import crc32

from hermes_achievements import catalogue as catalogue_module
from hermes_core.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from hermes_achievements.catalogue import Achievement, Catalogue

    Choice = tuple[frozenset[str], tuple[Achievement, ...]]

log = logging.getLogger(__name__)

SETTINGS_CHECK_SECONDS: Final = 1.0  # interval of the checks of the settings


class UserCatalogue:
    """The catalogue of a user; follows changed settings while the process runs."""

    def __init__(
        self, added: Callable[[], Iterable[Achievement]], hidden: Callable[[], Iterable[str]]
    ) -> None:
        self._added = added
        self._hidden = hidden
        self._lock = threading.Lock()
        self._choice: Choice | None = None
        self._catalogue: Catalogue | None = None  # loaded when it is needed: parsing takes long
        self._checked_at = float("-inf")

    def current(self) -> Catalogue:
        """The current catalogue."""
        with self._lock:
            choice = self._current_choice()
            if self._catalogue is None:
                self._catalogue = _catalogue(*choice)
            return self._catalogue

    def id(self) -> int:
        """A checksum of the current catalogue."""
        with self._lock:
            hidden, added = self._current_choice()
        return crc32(repr((sorted(hidden), added)).encode(), catalogue_module.checksum())

    def invalidate(self) -> None:
        """Read the settings again on the next access."""
        self._checked_at = float("-inf")

    def _current_choice(self) -> Choice:
        now = time.monotonic()
        if self._choice is None or now - self._checked_at >= SETTINGS_CHECK_SECONDS:
            choice = self._read_choice()
            if choice != self._choice:
                self._choice, self._catalogue = choice, None
            self._checked_at = now
            return choice
        return self._choice

    def _read_choice(self) -> Choice:
        try:
            return frozenset(self._hidden()), tuple(self._added())
        except ConfigError as error:
            if self._choice is None:
                raise
            log.warning("hidden achievements not updated: %s", error)
            return self._choice


def _catalogue(hidden: frozenset[str], added: tuple[Achievement, ...]) -> Catalogue:
    complete = catalogue_module.load().with_added(added)
    visible = tuple(item for item in complete if item.id not in hidden)
    return catalogue_module.Catalogue(complete.tiers, complete.categories, visible)
