"""A scan that is only looked at: every session with its numbers, nothing written."""

from __future__ import annotations

from datetime import UTC
from typing import TYPE_CHECKING, Any

from hermes_achievements.calendar import Calendar
from hermes_achievements.evaluation.values import values_of
from hermes_achievements.metrics.tally import Tally, contribute
from hermes_achievements.scan.ledger_entries import book_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import tzinfo

    from hermes_achievements.metrics.facts import Book
    from hermes_achievements.metrics.tally import Contribution
    from hermes_achievements.scan.history import History

    Callback = Callable[[dict[str, Any], int, int], object]


def scan_plain(
    history: History, on_progress: Callback | None, every: int, zone: tzinfo = UTC
) -> dict[str, Any]:
    """Read every session of *history* and add it all up."""
    calendar = Calendar(zone)
    everything = history.everything()
    tally = Tally()
    sessions: list[dict[str, Any]] = []
    for number, (session_id, _) in enumerate(everything, 1):
        book = book_of(history, session_id)
        if book is not None:
            contribution = contribute(book, calendar)
            tally.add(session_id, contribution)
            sessions.append(_numbers(book, contribution))
        if on_progress is not None and number % max(1, every) == 0 and number < len(everything):
            on_progress(_scan(sessions, tally, len(everything)), number, len(everything))
    return _scan(sessions, tally, len(everything))


def _scan(sessions: list[dict[str, Any]], tally: Tally, total: int) -> dict[str, Any]:
    return {
        "sessions": sessions,
        "aggregate": values_of(tally),
        "scan_meta": {
            "mode": "full",
            "sessions_total": total,
            "sessions_rescanned": len(sessions),
            "sessions_reused": 0,
        },
    }


def _numbers(book: Book, contribution: Contribution) -> dict[str, Any]:
    totals = contribution.totals()
    return {
        "session_id": book.session.id,
        "source": book.session.source,
        "model": book.session.model,
        "started_at": book.session.started_at,
        "tool_call_count": totals.get("tool_calls", 0),
        "tool_names": sorted(contribution.seen.get("tool_kinds", {})),
        "totals": totals,
    }
