"""Hand-offs: a conversation moves to another platform."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_state.repository import DELETE_META, GET_META, UPSERT_META, Repository
from hermes_state.sessions.records import all_columns, other_columns, to_session, with_extras

if TYPE_CHECKING:
    from hermes_state.engine.transaction import Columns, Reader, Tx
    from hermes_state.sessions.records import SessionRow

WAIT_POLL_SECONDS: Final = 0.1
HANDOFF_REQUESTED: Final = "handoff_asked"  # the key in released files

REQUEST_HANDOFF = """
    UPDATE sessions SET handoff_state = 'pending', handoff_platform = ?, handoff_error = NULL
    WHERE id = ? AND (handoff_state IS NULL OR handoff_state NOT IN ('pending', 'running'))
"""
SET_HANDOFF_STATE = """
    UPDATE sessions SET handoff_state = ?, handoff_error = ? WHERE id = ? AND handoff_state = ?
"""
RETRY_HANDOFFS = "UPDATE sessions SET handoff_state = 'pending' WHERE handoff_state = 'running'"
GET_HANDOFF = "SELECT handoff_state, handoff_platform, handoff_error FROM sessions WHERE id = ?"


class Handoff(NamedTuple):
    """A hand-off; its state is pending, running, completed or failed."""

    state: str
    platform: str
    error: str | None


def _select_pending(columns: Columns) -> str:
    return (
        f"SELECT {all_columns(columns)} FROM sessions s"  # noqa: S608 - the file's names
        " WHERE s.handoff_state = 'pending' ORDER BY s.started_at"
    )


class HandoffRepository(Repository):
    """Hand-offs by state: pending, running, completed or failed."""

    def request_handoff(self, session_id: str, platform: str) -> bool:
        """Request that a conversation continues on another platform."""

        def request(tx: Tx) -> bool:
            is_requested = tx.execute(REQUEST_HANDOFF, (platform, session_id)).rowcount > 0
            if is_requested:
                tx.run(UPSERT_META, (HANDOFF_REQUESTED, session_id))
            return is_requested

        return self.engine.write(request)

    def is_requested(self) -> bool:
        """Whether a hand-off was requested since the last call; very cheap."""
        if not self.engine.read(lambda reader: reader.value(GET_META, (HANDOFF_REQUESTED,))):
            return False
        self.engine.write(lambda tx: tx.run(DELETE_META, (HANDOFF_REQUESTED,)))
        return True

    def retry(self) -> int:
        """Restart hand-offs that a process left unfinished; returns their number."""
        return self.engine.write(lambda tx: tx.execute(RETRY_HANDOFFS).rowcount)

    def claim_handoff(self, session_id: str) -> bool:
        """Start a hand-off; only one claim succeeds."""
        return self._move(session_id, "pending", "running", None)

    def complete_handoff(self, session_id: str) -> bool:
        """Mark the hand-off as completed."""
        return self._move(session_id, "running", "completed", None)

    def fail_handoff(self, session_id: str, error: str) -> bool:
        """Mark the hand-off as failed."""
        return self._move(session_id, "running", "failed", error)

    def find(self, session_id: str) -> Handoff | None:
        """The hand-off of a session, or None."""
        row = self.engine.read(lambda reader: reader.row(GET_HANDOFF, (session_id,)))
        return None if row is None or row[0] is None else Handoff._make(row)

    def wait(self, session_id: str, seconds: float) -> Handoff | None:
        """The hand-off of a session once it has ended, or after *seconds* as it is then."""
        until = time.monotonic() + seconds
        while True:
            handoff = self.find(session_id)
            is_open = handoff is not None and handoff.state in {"pending", "running"}
            if not is_open or time.monotonic() >= until:
                return handoff
            time.sleep(WAIT_POLL_SECONDS)

    def pending(self) -> list[SessionRow]:
        """Sessions with a hand-off that no process has started."""

        def read(reader: Reader) -> list[SessionRow]:
            rows = reader.rows(reader.prepared(_select_pending))
            other_count = len(reader.prepared(other_columns))
            return with_extras(reader, [to_session(row, other_count) for row in rows])

        return self.engine.read(read)

    def _move(self, session_id: str, before: str, after: str, error: str | None) -> bool:
        return self.engine.write(
            lambda tx: (
                tx.execute(SET_HANDOFF_STATE, (after, error, session_id, before)).rowcount > 0
            )
        )
