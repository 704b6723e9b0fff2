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
        self._cached: tuple[Choice, Catalogue, int] | None = None
        self._checked_at = float("-inf")

    def current(self) -> Catalogue:
        """The current catalogue."""
        return self._current()[1]

    def id(self) -> int:
        """A checksum of the current catalogue."""
        return self._current()[2]

    def invalidate(self) -> None:
        """Read the settings again on the next access."""
        self._checked_at = float("-inf")

    def _current(self) -> tuple[Choice, Catalogue, int]:
        with self._lock:
            now = time.monotonic()
            if self._cached is None or now - self._checked_at >= SETTINGS_CHECK_SECONDS:
                self._cached = self._reload()
                self._checked_at = now
            return self._cached

    def _reload(self) -> tuple[Choice, Catalogue, int]:
        try:
            choice = frozenset(self._hidden()), tuple(self._added())
        except ConfigError as error:
            if self._cached is None:
                raise
            log.warning("hidden achievements not updated: %s", error)
            return self._cached
        if self._cached is not None and self._cached[0] == choice:
            return self._cached
        catalogue = _catalogue(*choice)
        return choice, catalogue, crc32(repr(catalogue.achievements).encode())


def _catalogue(hidden: frozenset[str], added: tuple[Achievement, ...]) -> Catalogue:
    complete = catalogue_module.load().with_added(added)
    visible = tuple(item for item in complete if item.id not in hidden)
    return catalogue_module.Catalogue(complete.tiers, complete.categories, visible)
