"""Which sessions were changed otherwise than by new messages.

New messages are found by their ids, so appending pays nothing. Every other change that
statistics care about leaves a mark here, in its own transaction. A session has one mark,
the newest, so the table never grows beyond the number of sessions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from hermes_state.engine.transaction import Tx

MARK: Final = """
    INSERT INTO hermes_change (session_id, sequence)
    VALUES (?, (SELECT coalesce(max(sequence), 0) + 1 FROM hermes_change))
    ON CONFLICT (session_id) DO UPDATE SET sequence = excluded.sequence
"""
KEEP: Final = """
    INSERT INTO hermes_kept (session_id, facts, kept_at) VALUES (?, ?, ?)
    ON CONFLICT (session_id) DO UPDATE SET facts = excluded.facts, kept_at = excluded.kept_at
"""
# Facts of these change what a session adds.
TELLING: Final = frozenset({"model", "title_source"})


def mark(tx: Tx, session_id: str) -> None:
    """A session was changed: its row, or rows it already had."""
    tx.execute(MARK, (session_id,))


def keep(tx: Tx, session_id: str, facts: bytes) -> None:
    """Keep what a session adds to lifetime statistics, before its messages go."""
    tx.execute(KEEP, (session_id, facts, tx.clock.now()))
