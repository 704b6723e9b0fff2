"""From a session's rows to its entry in the ledger: book and contribution."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from hermes_achievements.metrics.facts import (
    ID,
    PRINT,
    TIME_FIELD,
    Book,
    FactReader,
    book_from,
    fact_of,
    remember_gone,
)
from hermes_achievements.metrics.tally import contribute
from hermes_achievements.scan.history import Kind, LedgerEntry
from hermes_core.errors import LedgerDamagedError

if TYPE_CHECKING:
    from hermes_achievements.calendar import Calendar
    from hermes_achievements.metrics.tally import Contribution
    from hermes_achievements.scan.history import History, MessageRow

log = logging.getLogger(__name__)

CHILDREN = (Kind.BRANCH, Kind.CONTINUATION)


def book_of(history: History, session_id: str, before: bytes | None = None) -> Book | None:
    """All facts of a session: of its rows, and of rows that were there before.

    None when nothing is known about the session at all.
    """
    session = history.session(session_id)
    earlier = [book for stored in (before, history.kept(session_id)) if (book := readable(stored))]
    if session is None:
        if not earlier:
            return None
        book = Book(earlier[-1].session, [], [], 0, 0)  # what was kept is the newest
    else:
        reading = FactReader(session)
        history.each_row(session_id, reading.take)
        parents: list[int] = []
        if session.kind in CHILDREN and session.parent_id and not reading.knows_copies:
            parents = _parents_prints(history, session.parent_id)
        book = book_from(reading, parents)
    for item in earlier:
        remember_gone(book, item)
    return book


def readable(stored: bytes | None) -> Book | None:
    """A book, or None where there is none of use: the rows are read in any case."""
    if not stored:
        return None
    try:
        return Book.unpack(stored)
    except LedgerDamagedError as error:
        log.warning("facts that were kept cannot be read: %s", error)
        return None


def _parents_prints(history: History, parent_id: str) -> list[int]:
    result = readable(history.kept(parent_id))
    if result is not None:
        return [fact[PRINT] for fact in (*result.facts, *result.gone)]
    prints: list[tuple[int, int]] = []

    def take(row: MessageRow) -> None:
        fact = fact_of(row)
        if fact is not None:
            prints.append((fact[ID], fact[PRINT]))

    history.each_row(parent_id, take)
    return [print_ for _, print_ in sorted(prints)]


def longer_book(history: History, session_id: str, before: bytes) -> Book | None:
    """The book of a session that only got new rows; None when it has to be read anew."""
    session = history.session(session_id)
    book = readable(before)
    if book is None or session is None or session.kind != book.session.kind:
        return None
    if session.kind in CHILDREN or book.gone:
        return None
    if history.rows_through(session_id, book.last_id) != book.rows:
        return None  # rows went, or came back under other ids
    reading = FactReader.going_on(session, book)
    history.each_row(session_id, reading.take, after=book.last_id)
    return book_from(reading, ())


def entry_of(book: Book, calendar: Calendar) -> tuple[LedgerEntry, Contribution]:
    """What the ledger keeps of a session, and what the session adds."""
    contribution = contribute(book, calendar)
    first = min(
        (fact[TIME_FIELD] for facts in (book.facts, book.gone) for fact in facts), default=0.0
    )
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
