"""The version of a conversation's messages: it tells whether kept ones are still the current ones.

Messages are only added or moved in and out of the model's context. Every change by Hermes changes
the last row, the number of rewinds or the open undo; a change by another process or program changes
`Tx.foreign_changes`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from hermes_state.engine.transaction import Tx

SELECT_VERSION = """
    SELECT (SELECT max(id) FROM messages WHERE session_id = s.id), rewind_count,
           (SELECT max(undo_id) FROM hermes_undo WHERE session_id = s.id AND is_open = 1)
    FROM sessions s WHERE id = ? AND ended_at IS NULL
"""


class HistoryVersion(NamedTuple):
    """A value that differs after every change of the messages of an open session."""

    last_row: int | None
    rewinds: int
    open_undo: int | None
    foreign_changes: int


def read(tx: Tx, session_id: str) -> HistoryVersion | None:
    """The version now; None if the session has ended."""
    row = tx.row(SELECT_VERSION, (session_id,))
    if row is None:
        return None
    last_row, rewinds, open_undo = row
    return HistoryVersion(last_row, rewinds, open_undo, tx.foreign_changes)
