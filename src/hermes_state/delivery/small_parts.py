"""Small shared tables: key-value notes, compression locks, hand-overs between platforms."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from hermes_state.part import StorePart

if TYPE_CHECKING:
    from hermes_state.engine.transaction import Tx

COMPRESSION_SECONDS: Final = 300.0
HANDOFF_ASKED: Final = "handoff_asked"

GET_META = "SELECT value FROM state_meta WHERE key = ?"
PUT_META = """
    INSERT INTO state_meta (key, value) VALUES (?, ?)
    ON CONFLICT (key) DO UPDATE SET value = excluded.value
"""
TAKE_LOCK = """
    INSERT INTO compression_locks (session_id, holder, acquired_at, expires_at)
    VALUES (?, ?, ?, ?)
    ON CONFLICT (session_id) DO UPDATE SET
        holder = excluded.holder, acquired_at = excluded.acquired_at,
        expires_at = excluded.expires_at
    WHERE compression_locks.expires_at <= excluded.acquired_at
       OR compression_locks.holder = excluded.holder
"""
DROP_LOCK = "DELETE FROM compression_locks WHERE session_id = ? AND holder = ?"
LOCK_HOLDER = "SELECT holder FROM compression_locks WHERE session_id = ? AND expires_at > ?"
ASK_HANDOFF = """
    UPDATE sessions SET handoff_state = 'pending', handoff_platform = ?, handoff_error = NULL
    WHERE id = ? AND (handoff_state IS NULL OR handoff_state NOT IN ('pending', 'running'))
"""
MOVE_HANDOFF = """
    UPDATE sessions SET handoff_state = ?, handoff_error = ? WHERE id = ? AND handoff_state = ?
"""
RETRY_HANDOFFS = "UPDATE sessions SET handoff_state = 'pending' WHERE handoff_state = 'running'"
GET_HANDOFF = "SELECT handoff_state, handoff_platform, handoff_error FROM sessions WHERE id = ?"
PENDING_HANDOFFS = """
    SELECT * FROM sessions WHERE handoff_state = 'pending' ORDER BY started_at
"""


class MetaPart(StorePart):
    """Notes by key."""

    def get_meta(self, key: str) -> str | None:
        """A note, or None."""
        value: str | None = self.engine.read(lambda reader: reader.value(GET_META, (key,)))
        return value

    def set_meta(self, key: str, value: str) -> None:
        """Write a note."""
        self.engine.write(lambda tx: tx.run(PUT_META, (key, value)))

    def delete_meta(self, key: str) -> None:
        """Take a note away."""
        self.engine.write(lambda tx: tx.run("DELETE FROM state_meta WHERE key = ?", (key,)))


class CompressionLockPart(StorePart):
    """One compaction at a time per session."""

    def try_acquire_compression_lock(
        self, session_id: str, holder: str, ttl_seconds: float = COMPRESSION_SECONDS
    ) -> bool:
        """Take the lock if it is free, expired or ours."""

        def take(tx: Tx) -> bool:
            now = tx.clock.now()
            row = (session_id, holder, now, now + ttl_seconds)
            return tx.execute(TAKE_LOCK, row).rowcount > 0

        return self.engine.write(take)

    def release_compression_lock(self, session_id: str, holder: str) -> None:
        """Give the lock back."""
        self.engine.write(lambda tx: tx.run(DROP_LOCK, (session_id, holder)))

    def get_compression_lock_holder(self, session_id: str) -> str | None:
        """Who is compacting."""
        now = self.clock.now()
        return self.engine.read(  # type: ignore[no-any-return]
            lambda reader: reader.value(LOCK_HOLDER, (session_id, now))
        )


class HandoffPart(StorePart):
    """Moving a conversation to another platform: asked, claimed, done or failed."""

    def request_handoff(self, session_id: str, platform: str) -> bool:
        """Ask that a conversation goes on elsewhere."""

        def ask(tx: Tx) -> bool:
            is_asked = tx.execute(ASK_HANDOFF, (platform, session_id)).rowcount > 0
            if is_asked:
                tx.run(PUT_META, (HANDOFF_ASKED, session_id))
            return is_asked

        return self.engine.write(ask)

    def is_handoff_asked(self) -> bool:
        """Whether anybody has asked for a hand-over since this was last asked; costs nothing."""
        if not self.engine.read(lambda reader: reader.value(GET_META, (HANDOFF_ASKED,))):
            return False
        sql = "DELETE FROM state_meta WHERE key = ?"
        self.engine.write(lambda tx: tx.run(sql, (HANDOFF_ASKED,)))
        return True

    def retry_handoffs(self) -> int:
        """Begin anew with hand-overs that a process left in the middle; how many."""
        return self.engine.write(lambda tx: tx.execute(RETRY_HANDOFFS).rowcount)

    def claim_handoff(self, session_id: str) -> bool:
        """Begin to carry out a hand-over; only one claim succeeds."""
        return self._move(session_id, "pending", "running", None)

    def complete_handoff(self, session_id: str) -> bool:
        """The conversation has moved."""
        return self._move(session_id, "running", "completed", None)

    def fail_handoff(self, session_id: str, error: str) -> bool:
        """The conversation could not be moved."""
        return self._move(session_id, "running", "failed", error)

    def get_handoff_state(self, session_id: str) -> dict[str, Any] | None:
        """How far a hand-over has come: state, platform, error."""
        row = self.engine.read(lambda reader: reader.row(GET_HANDOFF, (session_id,)))
        if row is None or row[0] is None:
            return None
        return {"state": row[0], "platform": row[1], "error": row[2]}

    def list_pending_handoffs(self) -> list[dict[str, Any]]:
        """Hand-overs that nobody has begun."""
        return self.engine.read(lambda reader: reader.dicts(PENDING_HANDOFFS))

    def _move(self, session_id: str, before: str, after: str, error: str | None) -> bool:
        return self.engine.write(
            lambda tx: tx.execute(MOVE_HANDOFF, (after, error, session_id, before)).rowcount > 0
        )
