"""Deduplication: idempotency keys, and a bounded set of recent items with notes."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Hashable


def idempotency_key(*parts: str) -> str:
    """A stable key of some texts, for platforms that deduplicate by key."""
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:40]


MAX_REMEMBERED_ITEMS: Final = 5000


class RecentItems:
    """A bounded mapping from items to notes; the oldest are dropped."""

    def __init__(self, limit: int = MAX_REMEMBERED_ITEMS) -> None:
        self._limit = limit
        self._items: OrderedDict[Hashable, str] = OrderedDict()

    def __contains__(self, item: Hashable) -> bool:
        return item in self._items

    def add(self, item: Hashable, note: str = "") -> None:
        """Add an item; drop the oldest above the limit."""
        self._items[item] = note
        self._items.move_to_end(item)
        while len(self._items) > self._limit:
            self._items.popitem(last=False)

    def note_of(self, item: Hashable) -> str | None:
        """The note of an item."""
        return self._items.get(item)

    def forget(self, item: Hashable) -> str | None:
        """Remove an item; its note."""
        return self._items.pop(item, None)
