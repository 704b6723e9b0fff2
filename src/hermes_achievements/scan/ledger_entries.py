"""Computes the ledger entry of a session, recorded facts and contribution, from its rows."""

from __future__ import annotations

import functools
import logging
from itertools import chain
from typing import TYPE_CHECKING

from hermes_achievements.metrics.fact_reader import FactReader, fingerprint_of, recorded_facts_from
from hermes_achievements.metrics.facts import (
    BY_TIME,
    FINGERPRINT_FIELD,
    RecordedFacts,
    carry_over_deleted,
)
from hermes_achievements.metrics.tally import compute_contribution
from hermes_achievements.scan.history import LedgerEntry, SessionKind
from hermes_core.errors import LedgerDamagedError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hermes_achievements.calendar import Calendar
    from hermes_achievements.metrics.tally import Contribution
    from hermes_achievements.scan.history import History, MessageColumns

log = logging.getLogger(__name__)

CHILD_KINDS = (SessionKind.BRANCH, SessionKind.CONTINUATION)


def collect_facts(
    history: History, session_id: str, before: bytes | None = None
) -> RecordedFacts | None:
    """All facts of a session: of its rows, and of rows deleted since the last scan.

    None if nothing is stored about the session.
    """
    session = history.session(session_id)
    earlier = [
        recorded
        for stored in (before, history.purged_facts(session_id))
        if (recorded := decode_facts(stored))
    ]
    if session is None:
        if not earlier:
            return None
        # Facts stored by a purge are the newest.
        recorded = RecordedFacts(earlier[-1].session, [], [], 0, 0)
    else:
        reader = history.read_rows(session_id, functools.partial(FactReader.of, session))
        parent_fingerprints: list[int] = []
        if session.kind in CHILD_KINDS and session.parent_id and not reader.has_copy_marks:
            parent_fingerprints = _parent_fingerprints(history, session.parent_id)
        recorded = recorded_facts_from(reader, parent_fingerprints)
    for item in earlier:
        carry_over_deleted(recorded, item)
    return recorded


def decode_facts(stored: bytes | None) -> RecordedFacts | None:
    """Decode stored facts; None without facts, or if they are damaged."""
    if not stored:
        return None
    try:
        return RecordedFacts.unpack(stored)
    except LedgerDamagedError as error:
        log.warning("stored facts unreadable: %s", error)
        return None


def _parent_fingerprints(history: History, parent_id: str) -> list[int]:
    result = decode_facts(history.purged_facts(parent_id))
    if result is not None:
        return [fact[FINGERPRINT_FIELD] for fact in (*result.facts, *result.deleted)]
    return history.read_rows(parent_id, _fingerprints)


def _fingerprints(rows: Iterable[MessageColumns]) -> list[int]:
    """The fingerprints of messages in the order of their IDs."""
    pairs = sorted(
        (row[0], fingerprint) for row in rows if (fingerprint := fingerprint_of(row)) is not None
    )
    return [fingerprint for _, fingerprint in pairs]


def extend_facts(history: History, session_id: str, before: bytes) -> RecordedFacts | None:
    """The facts of a session with only new rows; None if it has to be read completely."""
    session = history.session(session_id)
    recorded = decode_facts(before)
    if recorded is None or session is None or session.kind != recorded.session.kind:
        return None
    if session.kind in CHILD_KINDS or recorded.deleted:
        return None
    if history.count_rows_through(session_id, recorded.last_id) != recorded.rows:
        return None  # rows were deleted or renumbered
    resume = functools.partial(FactReader.resume, session, recorded)
    reader = history.read_rows(session_id, resume, after=recorded.last_id)
    return recorded_facts_from(reader, ())


def make_entry(recorded: RecordedFacts, calendar: Calendar) -> tuple[LedgerEntry, Contribution]:
    """The ledger entry of a session, and its contribution."""
    contribution = compute_contribution(recorded, calendar)
    first = min(map(BY_TIME, chain(recorded.facts, recorded.deleted)), default=0.0)
    entry = LedgerEntry(
        recorded.session.id, first, tuple(contribution.days), recorded.pack(), contribution.pack()
    )
    return entry, contribution


def facts_to_keep(history: History, session_id: str) -> bytes | None:
    """The facts to keep of a session that is about to be purged; None without messages."""
    recorded = collect_facts(history, session_id)
    if recorded is None or not (recorded.facts or recorded.deleted):
        return None
    return recorded.pack()
