"""Crash recovery: sessions, claims and leases of dead processes are settled."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from hermes_state.delivery import boundaries, inbox, leases, outbox
from hermes_state.engine import process_identity
from hermes_state.messages import drafts
from hermes_state.sessions import rows

if TYPE_CHECKING:
    from hermes_core.ids import MessageIds
    from hermes_state.engine.engine import Engine
    from hermes_state.engine.process_identity import ProcessIdentity
    from hermes_state.engine.transaction import Tx

log = logging.getLogger(__name__)

LAST_ACTIVITY = """
    SELECT coalesce(i.last_activity, s.started_at) FROM sessions s
    LEFT JOIN hermes_session_index i ON i.session_id = s.id WHERE s.id = ?
"""


def sweep(engine: Engine, current: ProcessIdentity, ids: MessageIds) -> list[str]:
    """End the sessions of dead processes; returns their IDs."""
    dead = engine.read(
        lambda reader: process_identity.dead_processes(reader, current, engine.clock)
    )
    ended: list[str] = []
    for process_id in dead:
        ended += engine.write(
            lambda tx, process_id=process_id: _release_if_dead(tx, process_id, current, ids)  # type: ignore[misc]
        )
    if ended:
        log.info("crash recovery ended %d sessions", len(ended))
    return ended


def _release_if_dead(
    tx: Tx, process_id: str, current: ProcessIdentity, ids: MessageIds
) -> list[str]:
    """Settle what a process held, unless it has shown a sign of life meanwhile."""
    if process_id not in process_identity.dead_processes(tx, current, tx.clock):
        return []
    return release_process(tx, process_id, ids)


def release_process(tx: Tx, process_id: str, ids: MessageIds) -> list[str]:
    """Settle everything that a dead process held, in one transaction."""
    recovered = drafts.recover(tx, process_id)
    ended = []
    # A terminal's conversation ends with its process, that of a chat only with its turn.
    joined, in_turn = process_identity.joined_by(tx, process_id), leases.held_by(tx, process_id)
    for session_id in dict.fromkeys([*joined, *in_turn, *recovered]):
        process_identity.leave(tx, session_id, process_id)
        is_joined = tx.row(process_identity.PARTICIPANTS, (session_id,)) is not None
        if leases.is_held_by_another(tx, session_id, process_id) or (
            is_joined and session_id not in in_turn
        ):
            continue  # it is in use
        last = tx.value(LAST_ACTIVITY, (session_id,))
        if rows.end(tx, ids.new(), session_id, process_identity.CRASHED, ended_at=last):
            ended.append(session_id)
    leases.release_process(tx, process_id)
    inbox.release_claims(tx, process_id)
    outbox.release_claims(tx, process_id)
    boundaries.release_claims(tx, process_id)
    process_identity.unregister(tx, process_id)
    return ended
