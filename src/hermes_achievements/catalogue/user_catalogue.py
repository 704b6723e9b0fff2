"""The catalogue as the user wants it: with what plugins add, without what is hidden."""

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

LOOK_SECONDS: Final = 1.0  # how often the settings are worth a look


class ChosenCatalogue:
    """Follows the settings of a user who may change them while this process runs."""

    def __init__(
        self, added: Callable[[], Iterable[Achievement]], hidden: Callable[[], Iterable[str]]
    ) -> None:
        self._added = added
        self._hidden = hidden
        self._lock = threading.Lock()
        self._made: tuple[Choice, Catalogue, int] | None = None
        self._looked_at = float("-inf")

    def current(self) -> Catalogue:
        """What can be earned."""
        return self._current()[1]

    def id(self) -> int:
        """What tells this catalogue from another one."""
        return self._current()[2]

    def look(self) -> None:
        """Look at the settings when they are next needed, however short ago that was."""
        self._looked_at = float("-inf")

    def _current(self) -> tuple[Choice, Catalogue, int]:
        with self._lock:
            now = time.monotonic()
            if self._made is None or now - self._looked_at >= LOOK_SECONDS:
                self._made = self._look()
                self._looked_at = now
            return self._made

    def _look(self) -> tuple[Choice, Catalogue, int]:
        try:
            choice = frozenset(self._hidden()), tuple(self._added())
        except ConfigError as error:
            if self._made is None:
                raise
            log.warning("hidden achievements stay as they are: %s", error)
            return self._made
        if self._made is not None and self._made[0] == choice:
            return self._made
        catalogue = _catalogue(*choice)
        return choice, catalogue, crc32(repr(catalogue.achievements).encode())


def _catalogue(hidden: frozenset[str], added: tuple[Achievement, ...]) -> Catalogue:
    everything = catalogue_module.load().with_added(added)
    results = tuple(item for item in everything if item.id not in hidden)
    return catalogue_module.Catalogue(everything.tiers, everything.categories, results)
