"""The protocols through which achievements see a history and keep what they made of it.

Whoever owns conversations implements them; nothing here knows a database.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from hermes_core.history_rows import Changed, Kind, LedgerEntry, Mark, MessageRow, SessionRow

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

__all__ = [
    "Changed",
    "History",
    "Kind",
    "Ledger",
    "LedgerEntry",
    "Mark",
    "MessageRow",
    "SessionRow",
]


class History(Protocol):
    """Conversations, as the scanner reads them. Every method reads in a short transaction."""

    def mark(self) -> Mark:
        """Where the history stands now."""

    def version(self) -> int:
        """A number that stays the same as long as nobody has written anything.

        It is negative once another history lies in the place of this one.
        """

    def is_same(self, mark: Mark) -> bool:
        """Whether *mark* was made of this history, not of another one in its place."""

    def everything(self) -> Sequence[tuple[str, int]]:
        """Every session with its size in messages, the newest first.

        Sessions of which only kept facts remain come last.
        """

    def changed_since(self, mark: Mark) -> Sequence[Changed]:
        """Sessions that were written to since *mark*."""

    def signatures(self) -> dict[str, str]:
        """Every session with a signature of what its row says, to find silent changes."""

    def session(self, session_id: str) -> SessionRow | None:
        """A session's row; None when it is gone."""

    def each_row(
        self, session_id: str, take: Callable[[MessageRow], object], after: int = 0
    ) -> None:
        """Hand over a session's messages with ids above *after*, one at a time, in any order.

        Undone and compacted ones are among them: they happened.
        """

    def rows_through(self, session_id: str, message_id: int) -> int:
        """How many messages of a session have ids up to *message_id*."""

    def kept(self, session_id: str) -> bytes | None:
        """Facts that were taken of a session before its messages were removed."""

    def titles(self, session_ids: Iterable[str]) -> dict[str, str]:
        """Titles or first words, for showing where something was earned."""

    def close(self) -> None:
        """Let go of the history."""


class Ledger(Protocol):
    """What was made of a history, kept between scans. Losing it costs a scan, no more."""

    def notes(self) -> dict[str, bytes]:
        """Everything noted beside the sessions."""

    def save(
        self, entries: Iterable[LedgerEntry], notes: Mapping[str, bytes | None], generation: int
    ) -> None:
        """Keep entries and notes, all or none of them; a note of None is forgotten."""

    def known(self, generation: int | None = None) -> list[str]:
        """The sessions in the ledger, of one generation or of all."""

    def count(self) -> int:
        """How many sessions are in the ledger."""

    def books(self, session_ids: Sequence[str]) -> dict[str, bytes]:
        """The books of these sessions, as far as there are any."""

    def contributions(
        self, session_ids: Sequence[str] | None = None
    ) -> Iterator[tuple[str, float, bytes]]:
        """Session, time of its first message and contribution; of all without *session_ids*."""

    def sessions_on(self, day: str) -> list[str]:
        """The sessions that added something on *day*."""

    def forget(self) -> None:
        """Throw everything away."""

    def alone(self) -> AbstractContextManager[bool]:
        """Whether nobody else, in any process, is working on the ledger; and keep it so."""

    def size(self) -> int:
        """Bytes on disk."""

    def close(self) -> None:
        """Let go of the ledger."""
