"""Open sessions belong to a process; when it dies, they are ended, not left open for ever."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from hermes_state.engine.transaction import Reader, Tx

OWN = """
    INSERT INTO hermes_owner (session_id, process_id, since) VALUES (?, ?, ?)
    ON CONFLICT (session_id) DO UPDATE SET process_id = excluded.process_id, since = excluded.since
"""
DISOWN = "DELETE FROM hermes_owner WHERE session_id = ?"
OF_PROCESS = "SELECT session_id FROM hermes_owner WHERE process_id = ?"
OPEN_WITHOUT_OWNER = """
    SELECT s.id FROM sessions s WHERE s.ended_at IS NULL
    AND NOT EXISTS (SELECT 1 FROM hermes_owner o WHERE o.session_id = s.id)
"""
CRASHED: Final = "crashed"


def own(tx: Tx, session_id: str, process_id: str) -> None:
    """A session belongs to a process from now on."""
    tx.execute(OWN, (session_id, process_id, tx.clock.now()))


def disown(tx: Tx, session_id: str) -> None:
    """A session belongs to nobody."""
    tx.execute(DISOWN, (session_id,))


def owned_by(reader: Reader, process_id: str) -> list[str]:
    """The sessions of a process."""
    return [row[0] for row in reader.rows(OF_PROCESS, (process_id,))]


def open_without_owner(reader: Reader) -> list[str]:
    """Open sessions that nobody carries: left by another program, or released."""
    return [row[0] for row in reader.rows(OPEN_WITHOUT_OWNER)]
