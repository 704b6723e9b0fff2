"""The last few things that were done, with a note to each."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Hashable


def key_of(*words: str) -> str:
    """The same for the same words; a platform takes what has it once."""
    return hashlib.sha256("\0".join(words).encode("utf-8", "surrogatepass")).hexdigest()[:40]


REMEMBERED: Final = 5000


class Recent:
    """Remembers so many things and no more."""

    def __init__(self, limit: int = REMEMBERED) -> None:
        self._limit = limit
        self._known: OrderedDict[Hashable, str] = OrderedDict()

    def __contains__(self, thing: Hashable) -> bool:
        return thing in self._known

    def add(self, thing: Hashable, note: str = "") -> None:
        """Remember; the oldest is forgotten for it."""
        self._known[thing] = note
        self._known.move_to_end(thing)
        while len(self._known) > self._limit:
            self._known.popitem(last=False)

    def note_of(self, thing: Hashable) -> str | None:
        """What was noted about a thing."""
        return self._known.get(thing)

    def forget(self, thing: Hashable) -> str | None:
        """Remember a thing no longer; what was noted about it."""
        return self._known.pop(thing, None)
