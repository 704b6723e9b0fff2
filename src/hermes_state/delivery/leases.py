"""Leases with a fencing token and a heartbeat: one turn at a time per conversation.

The token increases with every acquisition and is checked by every write of the turn, so a
holder that was presumed dead cannot write later. Expiry is measured on the monotonic
clock if both processes share a boot, so changing the wall clock neither ends a lease nor
extends it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_core.errors import LeaseLostError, LeaseTakenError
from hermes_core.ids import MessageIds
from hermes_state.engine import process_identity
from hermes_state.messages import drafts
from hermes_state.repository import Repository
from hermes_state.sessions import rows as sessions

if TYPE_CHECKING:
    from hermes_core.clock import Clock
    from hermes_state.engine.process_identity import ProcessIdentity
    from hermes_state.engine.transaction import Reader, Tx

LEASE_SECONDS: Final = 60.0

SELECT_LEASE = """
    SELECT l.token, l.process_id, l.holder, l.expires_at, l.expires_monotonic, p.host, p.boot_id
    FROM hermes_lease l LEFT JOIN hermes_process p ON p.process_id = l.process_id
    WHERE l.session_id = ?
"""
SELECT_LEASES = """
    SELECT l.token, l.process_id, l.holder, l.expires_at, l.expires_monotonic, p.host, p.boot_id,
           l.session_id
    FROM hermes_lease l JOIN hermes_process p ON p.process_id = l.process_id
"""
UPSERT_LEASE = """
    INSERT INTO hermes_lease
        (session_id, token, process_id, holder, acquired_at, expires_at, expires_monotonic)
    VALUES (?, 1, ?, ?, ?, ?, ?)
    ON CONFLICT (session_id) DO UPDATE SET
        token = hermes_lease.token + 1, process_id = excluded.process_id,
        holder = excluded.holder, acquired_at = excluded.acquired_at,
        expires_at = excluded.expires_at, expires_monotonic = excluded.expires_monotonic
    WHERE hermes_lease.token = ?
    RETURNING token
"""
RENEW = """
    UPDATE hermes_lease SET expires_at = ?, expires_monotonic = ?
    WHERE session_id = ? AND token = ? AND process_id IS NOT NULL
"""
RELEASE = """
    UPDATE hermes_lease SET process_id = NULL, holder = NULL WHERE session_id = ? AND token = ?
"""
HELD_SESSIONS = "SELECT session_id FROM hermes_lease WHERE process_id = ? ORDER BY session_id"
# A process that was presumed dead may wake: its token is no longer valid.
RELEASE_PROCESS = """
    UPDATE hermes_lease SET token = token + 1, process_id = NULL, holder = NULL
    WHERE process_id = ?
"""
HOLDER = "SELECT process_id FROM hermes_lease WHERE session_id = ?"


class Lease(NamedTuple):
    """The right to run one turn of one conversation."""

    session_id: str
    token: int
    holder: str


def acquire(
    tx: Tx, session_id: str, holder: str, seconds: float, current: ProcessIdentity
) -> Lease:
    """Acquire the lease, which may be taken over from a dead or expired holder."""
    row = tx.row(SELECT_LEASE, (session_id,))
    holder_process = None if row is None else row[1]
    if row is not None and holder_process is not None:
        if _is_held(tx, row, current, tx.clock):
            raise _taken(row[2])
        drafts.recover(tx, holder_process, session_id)  # before the messages of the new turn
        if holder_process in process_identity.dead_processes(tx, current, tx.clock):
            _announce_crash(tx, session_id)
    now, tick = tx.clock.now(), tx.clock.monotonic()
    expected = 0 if row is None else row[0]
    values = (session_id, current.process_id, holder, now, now + seconds, tick + seconds, expected)
    token = tx.value(UPSERT_LEASE, values)
    if token is None:
        raise _taken("another process")  # which acquired it at the same moment
    return Lease(session_id, int(token), holder)


def _announce_crash(tx: Tx, session_id: str) -> None:
    """Announce that a turn died, before the next one takes its lease over."""
    ids = MessageIds(tx.clock)
    if sessions.end(tx, ids.new(), session_id, process_identity.CRASHED):
        sessions.reopen(tx, ids.new(), session_id)


def _taken(holder: str) -> LeaseTakenError:
    return LeaseTakenError(
        f"a turn of this conversation is already running ({holder}); "
        "wait for it, or interrupt it there",
        holder,
    )


def _is_held(
    reader: Reader, row: tuple[object, ...], current: ProcessIdentity, clock: Clock
) -> bool:
    process_id, expires_at, expires_monotonic, host, boot_id = row[1], *row[3:]
    if host is None:
        return False  # the holder's process is no longer registered
    if (host, boot_id) == (current.host, current.boot_id):
        is_unexpired = float(str(expires_monotonic)) > clock.monotonic()
    else:
        is_unexpired = float(str(expires_at)) > clock.now()
    return is_unexpired and process_id not in process_identity.dead_processes(
        reader, current, clock
    )


def running_sessions(reader: Reader, current: ProcessIdentity, clock: Clock) -> set[str]:
    """Sessions with a running turn, in any process."""
    if not reader.columns.has_own_tables:
        return set()
    rows = reader.rows(SELECT_LEASES)
    return {str(row[-1]) for row in rows if _is_held(reader, row[:-1], current, clock)}


def held_by(reader: Reader, process_id: str) -> list[str]:
    """Sessions whose turn a process runs."""
    return [str(row[0]) for row in reader.rows(HELD_SESSIONS, (process_id,))]


def is_held_by_another(reader: Reader, session_id: str, process_id: str) -> bool:
    """Whether another process has taken over the turns of a session."""
    return reader.value(HOLDER, (session_id,)) not in {None, process_id}


def release_process(tx: Tx, process_id: str) -> None:
    """Release the leases of a dead process."""
    tx.execute(RELEASE_PROCESS, (process_id,))


def release(tx: Tx, lease: Lease) -> None:
    """Release the lease, in the transaction that stores the turn's answer."""
    tx.execute(RELEASE, (lease.session_id, lease.token))


class LeaseRepository(Repository):
    """Turn leases."""

    def acquire(self, session_id: str, holder: str = "", seconds: float = LEASE_SECONDS) -> Lease:
        """Acquire the lease for a turn; raises LeaseTakenError while another holder has it."""
        holder_name = holder or f"process {self.identity.pid} on {self.identity.host}"

        def acquire_lease(tx: Tx) -> Lease:
            self._register_process(tx)
            return acquire(tx, session_id, holder_name, seconds, self.identity)

        return self.engine.write(acquire_lease)

    def renew(self, lease: Lease, seconds: float = LEASE_SECONDS) -> None:
        """Renew the lease of a running turn; raises LeaseLostError if it was taken over."""

        def renew(tx: Tx) -> None:
            until = (tx.clock.now() + seconds, tx.clock.monotonic() + seconds)
            if not tx.execute(RENEW, (*until, lease.session_id, lease.token)).rowcount:
                raise LeaseLostError(
                    f"the turn of {lease.session_id} was taken over by another process"
                )

        self.engine.write(renew)

    def is_held_elsewhere(self, session_id: str) -> bool:
        """Whether another process runs a turn of the conversation."""

        def read(reader: Reader) -> bool:
            row = reader.row(SELECT_LEASE, (session_id,))
            if row is None or row[1] in {None, self.identity.process_id}:
                return False
            return _is_held(reader, row, self.identity, self.clock)

        return self.engine.read(read)

    def running(self) -> set[str]:
        """Sessions with a running turn, in this or another process."""
        return self.engine.read(lambda reader: running_sessions(reader, self.identity, self.clock))

    def release(self, lease: Lease) -> None:
        """Release the lease; has no effect if it was taken over."""
        self.engine.write(lambda tx: release(tx, lease))


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
