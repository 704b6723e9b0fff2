"""A ledger that lives as long as the process: for stores that have no room for a file."""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from hermes_achievements.scan.history import LedgerEntry


class MemoryLedger:
    """As the ledger on disk, without the disk."""

    def __init__(self) -> None:
        self._notes: dict[str, bytes] = {}
        self._entries: dict[str, tuple[int, LedgerEntry]] = {}
        self._lock = threading.Lock()

    def notes(self) -> dict[str, bytes]:
        return dict(self._notes)

    def save(
        self, entries: Iterable[LedgerEntry], notes: Mapping[str, bytes | None], generation: int
    ) -> None:
        for entry in entries:
            self._entries[entry.session_id] = (generation, entry)
        for name, value in notes.items():
            if value is None:
                self._notes.pop(name, None)
            else:
                self._notes[name] = value

    def known(self, generation: int | None = None) -> list[str]:
        return [
            one
            for one, (written, _) in self._entries.items()
            if generation is None or written == generation
        ]

    def count(self) -> int:
        return len(self._entries)

    def books(self, session_ids: Sequence[str]) -> dict[str, bytes]:
        return {one: self._entries[one][1].book for one in session_ids if one in self._entries}

    def contributions(
        self, session_ids: Sequence[str] | None = None
    ) -> Iterator[tuple[str, float, bytes]]:
        for one in list(self._entries) if session_ids is None else session_ids:
            if one in self._entries:
                entry = self._entries[one][1]
                yield one, entry.first_at, entry.contribution

    def sessions_on(self, day: str) -> list[str]:
        return [one for one, (_, entry) in self._entries.items() if day in entry.days]

    def forget(self) -> None:
        self._notes.clear()
        self._entries.clear()

    @contextlib.contextmanager
    def alone(self) -> Iterator[bool]:
        is_alone = self._lock.acquire(blocking=False)
        try:
            yield is_alone
        finally:
            if is_alone:
                self._lock.release()

    def size(self) -> int:
        return sum(len(entry.book) for _, entry in self._entries.values())

    def close(self) -> None:
        """Nothing to let go of."""
