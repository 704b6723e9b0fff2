"""Locks that allow one compaction at a time per session."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hermes_state.repository import Repository

if TYPE_CHECKING:
    from hermes_state.engine.transaction import Tx

LOCK_SECONDS: Final = 300.0

ACQUIRE_LOCK = """
    INSERT INTO compression_locks (session_id, holder, acquired_at, expires_at)
    VALUES (?, ?, ?, ?)
    ON CONFLICT (session_id) DO UPDATE SET
        holder = excluded.holder, acquired_at = excluded.acquired_at,
        expires_at = excluded.expires_at
    WHERE compression_locks.expires_at <= excluded.acquired_at
       OR compression_locks.holder = excluded.holder
"""
RELEASE_LOCK = "DELETE FROM compression_locks WHERE session_id = ? AND holder = ?"
LOCK_HOLDER = "SELECT holder FROM compression_locks WHERE session_id = ? AND expires_at > ?"


class CompressionLockRepository(Repository):
    """One compaction at a time per session."""

    def try_acquire_compression_lock(
        self, session_id: str, holder: str, ttl_seconds: float = LOCK_SECONDS
    ) -> bool:
        """Acquire the lock if it is free, expired or already held by *holder*."""
        if not session_id or not holder:
            return False

        def acquire(tx: Tx) -> bool:
            now = tx.clock.now()
            row = (session_id, holder, now, now + ttl_seconds)
            return tx.execute(ACQUIRE_LOCK, row).rowcount > 0

        return self.engine.write(acquire)

    def release_compression_lock(self, session_id: str, holder: str) -> None:
        """Release the lock."""
        self.engine.write(lambda tx: tx.run(RELEASE_LOCK, (session_id, holder)))

    def get_compression_lock_holder(self, session_id: str) -> str | None:
        """The holder of the lock, or None."""
        now = self.clock.now()
        return self.engine.read(  # type: ignore[no-any-return]
            lambda reader: reader.value(LOCK_HOLDER, (session_id, now))
        )
