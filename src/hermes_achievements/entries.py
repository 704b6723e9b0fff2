"""From a session's rows to its entry in the ledger: book and contribution."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_achievements.facts import (
    AT,
    PRINT,
    Book,
    add_facts,
    prints_of,
    read_book,
    remember_gone,
)
from hermes_achievements.history import Kind, LedgerEntry
from hermes_achievements.tally import contribute

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes_achievements.calendar import Calendar
    from hermes_achievements.history import History, MessageRow
    from hermes_achievements.tally import Contribution

CHILDREN = (Kind.BRANCH, Kind.CONTINUATION)


def book_of(history: History, session_id: str, before: bytes | None = None) -> Book | None:
    """All facts of a session: of its rows, and of rows that were there before.

    None when nothing is known about the session at all.
    """
    session = history.session(session_id)
    earlier = [Book.unpack(stored) for stored in (before, history.kept(session_id)) if stored]
    if session is None:
        if not earlier:
            return None
        book = Book(earlier[-1].session, [], [], 0)  # what was kept is the newest
    else:
        rows = history.rows(session_id)
        parents = []
        if session.kind in CHILDREN and session.parent_id and not _knows_copies(rows):
            parents = _parents_prints(history, session.parent_id)
        book = read_book(session, rows, parents)
    for one in earlier:
        remember_gone(book, one)
    return book


def _parents_prints(history: History, parent_id: str) -> list[int]:
    kept = history.kept(parent_id)
    if kept is not None:
        book = Book.unpack(kept)
        return [fact[PRINT] for fact in (*book.facts, *book.gone)]
    return prints_of(history.rows(parent_id))


def _knows_copies(rows: Sequence[MessageRow]) -> bool:
    return any(row.is_copy for row in rows)


def longer_book(history: History, session_id: str, before: bytes) -> Book | None:
    """The book of a session that only got new rows; None when it has to be read anew."""
    session = history.session(session_id)
    book = Book.unpack(before)
    if session is None or session.kind in CHILDREN or session.kind != book.session.kind:
        return None
    rows = history.rows(session_id, book.last_id)
    add_facts(book.facts, rows)
    last_id = rows[-1].id if rows else book.last_id
    return Book(session, book.facts, book.gone, last_id)


def entry_of(book: Book, calendar: Calendar) -> tuple[LedgerEntry, Contribution]:
    """What the ledger keeps of a session, and what the session adds."""
    contribution = contribute(book, calendar)
    first = min((fact[AT] for facts in (book.facts, book.gone) for fact in facts), default=0.0)
    entry = LedgerEntry(
        book.session.id, first, tuple(contribution.days), book.pack(), contribution.pack()
    )
    return entry, contribution


def take_facts(history: History, session_id: str) -> bytes | None:
    """What to keep of a session that is about to be removed for good."""
    book = book_of(history, session_id)
    if book is None or not (book.facts or book.gone):
        return None
    return book.pack()
