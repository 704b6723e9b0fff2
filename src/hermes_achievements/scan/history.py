"""Protocols for reading a history and for storing scan results.

The session store implements them; this package does not depend on a database.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

from hermes_core.history_rows import (
    ChangedSession,
    HistoryPosition,
    LedgerEntry,
    MessageColumns,
    ScannedMessage,
    ScannedSession,
    SessionKind,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

T = TypeVar("T")

__all__ = [
    "ChangedSession",
    "History",
    "HistoryPosition",
    "Ledger",
    "LedgerEntry",
    "MessageColumns",
    "ScannedMessage",
    "ScannedSession",
    "SessionKind",
]


class History(Protocol):
    """Read access of the scanner to sessions; each method uses a short transaction."""

    def position(self) -> HistoryPosition:
        """The current position of the history."""

    def version(self) -> int:
        """A number that changes when the history is written to.

        It is negative after the file was replaced by another history.
        """

    def is_same_history(self, position: HistoryPosition) -> bool:
        """Whether *position* refers to this history, not to a replaced one."""

    def session_sizes(self) -> Sequence[tuple[str, int]]:
        """Every session with its number of messages, newest first.

        Purged sessions, of which only facts are stored, come last.
        """

    def changed_since(self, position: HistoryPosition) -> Sequence[ChangedSession]:
        """Sessions that were written to since *position*."""

    def signatures(self) -> dict[str, str]:
        """Every session with a checksum of its row, to detect changes by other programs."""

    def session(self, session_id: str) -> ScannedSession | None:
        """The row of a session, or None."""

    def read_rows(
        self, session_id: str, read: Callable[[Iterable[MessageColumns]], T], after: int = 0
    ) -> T:
        """The result of *read* for the messages of a session with IDs above *after*.

        Messages are in any order; undone and compacted ones are included. *read* is called
        again with all messages if the text of one is damaged.
        """

    def map_into_memory(self) -> None:
        """Read through a memory map from now on, if possible; again, release its pages.

        An I/O error then ends the process, so this is for worker processes only.
        """

    def count_rows_through(self, session_id: str, message_id: int) -> int:
        """Number of messages of a session with IDs up to *message_id*."""

    def purged_facts(self, session_id: str) -> bytes | None:
        """The facts that were stored when a session was purged, or None."""

    def titles(self, session_ids: Iterable[str]) -> dict[str, str]:
        """Titles or previews of sessions."""

    def close(self) -> None:
        """Close the history."""


class Ledger(Protocol):
    """Stored results of scans; a lost ledger is rebuilt by a full scan."""

    @property
    def is_shared(self) -> bool:
        """Whether processes of other machines, maybe of other releases, write it, too."""

    def notes(self) -> dict[str, bytes]:
        """All notes by name."""

    def save(
        self, entries: Iterable[LedgerEntry], notes: Mapping[str, bytes | None], generation: int
    ) -> None:
        """Store entries and notes atomically; a note of None is deleted."""

    def session_ids(self, generation: int | None = None) -> list[str]:
        """IDs of the sessions in the ledger, of one generation or of all."""

    def count(self) -> int:
        """Number of sessions in the ledger."""

    def recorded_facts(self, session_ids: Sequence[str]) -> dict[str, bytes]:
        """Recorded facts of these sessions; unknown sessions are omitted."""

    def contributions(
        self, session_ids: Sequence[str] | None = None
    ) -> Iterator[tuple[str, float, bytes]]:
        """Session, time of its first message and contribution; of all without *session_ids*."""

    def sessions_on_day(self, day: str) -> list[str]:
        """Sessions with activity on *day*."""

    def clear(self) -> None:
        """Delete all entries and notes."""

    def try_lock(self) -> AbstractContextManager[bool]:
        """Try to lock the ledger against other scanners; yields whether it succeeded."""

    def size(self) -> int:
        """Bytes on disk."""

    def close(self) -> None:
        """Close the ledger."""
