"""Queue of boundary events: written with the change they announce, delivered later."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_core.backoff import Backoff
from hermes_core.hooks import BoundaryKind
from hermes_state.engine.dialect import DIALECT
from hermes_state.repository import Repository

if TYPE_CHECKING:
    from hermes_state.engine.transaction import Tx

DELIVERY_BACKOFF: Final = Backoff(2.0, 600.0)
MAX_ATTEMPTS: Final = 8


class BoundaryEvent(NamedTuple):
    """A boundary event; its state is waiting, delivering, delivered or dead."""

    sequence: int
    event_id: str
    session_id: str
    epoch: int
    kind: str
    reason: str
    old_session_id: str | None
    new_session_id: str | None
    platform: str
    occurred_at: float
    is_final: int
    state: str
    attempts: int
    due_at: float
    process_id: str | None
    settled_at: float | None
    error: str | None

    @property
    def is_reset(self) -> bool:
        """Whether a place has another conversation: `new_session_id` instead of the old one.

        A place that had none has another one only by a hand-off.
        """
        is_handed_over = self.kind == BoundaryKind.HANDOFF and self.new_session_id is not None
        had_another = self.old_session_id not in (None, self.new_session_id)
        return is_handed_over or (had_another and self.new_session_id is not None)


SELECT_EVENTS: Final = f"SELECT {', '.join(BoundaryEvent._fields)} FROM hermes_boundary"  # noqa: S608
INSERT_EVENT = """
    INSERT INTO hermes_boundary
        (event_id, session_id, epoch, kind, reason, old_session_id, new_session_id, platform,
         occurred_at, is_final, state, due_at)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'waiting', ?)
    ON CONFLICT DO NOTHING
"""
PLATFORM_AND_EPOCH = """
    SELECT s.source, coalesce(i.epoch, 0) FROM sessions s
    LEFT JOIN hermes_session_index i ON i.session_id = s.id WHERE s.id = ?
"""
NEXT_DUE = f"""
    SELECT sequence FROM hermes_boundary
    WHERE state = 'waiting' AND due_at <= ? ORDER BY sequence LIMIT ? {DIALECT.skip_locked}
"""  # noqa: S608 - own names
CLAIM = """
    UPDATE hermes_boundary SET state = 'delivering', process_id = ?, attempts = attempts + 1
    WHERE sequence = ? AND state = 'waiting'
"""
SELECT_EVENT = f"{SELECT_EVENTS} WHERE sequence = ?"
SETTLE = """
    UPDATE hermes_boundary SET state = ?, settled_at = ?, due_at = ?, error = ?, process_id = NULL
    WHERE event_id = ?
"""
ATTEMPTS = "SELECT attempts FROM hermes_boundary WHERE event_id = ?"
RELEASE_CLAIMS = """
    UPDATE hermes_boundary
    SET state = CASE WHEN attempts < ? THEN 'waiting' ELSE 'dead' END,
        settled_at = CASE WHEN attempts < ? THEN NULL ELSE ? END,
        error = 'the process that delivered it ended in the middle of it', process_id = NULL
    WHERE state = 'delivering' AND process_id = ?
"""
CONSUMERS = "SELECT consumer FROM hermes_delivery WHERE event_id = ?"
INSERT_DELIVERY = """
    INSERT INTO hermes_delivery (event_id, consumer, taken_at) VALUES (?, ?, ?)
    ON CONFLICT DO NOTHING
"""
SETTLE_UNCLAIMED = """
    UPDATE hermes_boundary SET state = 'delivered', settled_at = ?
    WHERE state = 'waiting' AND attempts = 0
"""
SETTLE_OLD = f"{SETTLE_UNCLAIMED} AND occurred_at < ?"
DELETE_DELIVERIES = "DELETE FROM hermes_delivery WHERE event_id = ?"
REQUEUE = """
    UPDATE hermes_boundary SET state = 'waiting', attempts = 0, due_at = ?, error = NULL,
        settled_at = NULL
    WHERE event_id = ?
"""
LIST_EVENTS = f"{SELECT_EVENTS} WHERE sequence < ? ORDER BY sequence DESC LIMIT ?"
LIST_OF_SESSION = (
    f"{SELECT_EVENTS} WHERE session_id = ? AND sequence < ? ORDER BY sequence DESC LIMIT ?"
)
PENDING = "SELECT count(*) FROM hermes_boundary WHERE state IN ('waiting', 'delivering')"
MAX_SEQUENCE: Final = 2**63 - 1


def announce(
    tx: Tx,
    event_id: str,
    session_id: str,
    kind: str,
    reason: str,
    *,
    is_final: bool,
    old_session_id: str | None = None,
    new_session_id: str | None = None,
) -> bool:
    """Add a boundary event; False if the session's epoch already has its final one."""
    platform, epoch = tx.row(PLATFORM_AND_EPOCH, (session_id,)) or ("unknown", 0)
    now = tx.clock.now()
    row = (event_id, session_id, epoch, kind, reason, old_session_id, new_session_id, platform)
    return tx.execute(INSERT_EVENT, (*row, now, int(is_final), now)).rowcount > 0


def release_claims(tx: Tx, process_id: str) -> None:
    """Requeue the events of a dead dispatcher; events with too many attempts are given up."""
    tx.execute(RELEASE_CLAIMS, (MAX_ATTEMPTS, MAX_ATTEMPTS, tx.clock.now(), process_id))


class BoundaryRepository(Repository):
    """Claiming and settling boundary events."""

    def claim(self, limit: int = 50) -> list[BoundaryEvent]:
        """Claim events that are due, oldest first; each claim counts as an attempt."""

        def claim(tx: Tx) -> list[BoundaryEvent]:
            self._register_process(tx)
            due = tx.rows(NEXT_DUE, (tx.clock.now(), limit))
            tx.many(CLAIM, [(self.identity.process_id, sequence) for (sequence,) in due])
            rows = [row for (sequence,) in due for row in tx.rows(SELECT_EVENT, (sequence,))]
            return [BoundaryEvent._make(row) for row in rows]

        return self.engine.write(claim, is_conditional=True)

    def settle(self, event_id: str, error: str | None = None) -> None:
        """Record the delivery or the failure of an event.

        A failed delivery is retried with backoff and finally given up.
        """

        def settle(tx: Tx) -> None:
            now = tx.clock.now()
            attempts = tx.value(ATTEMPTS, (event_id,)) or 0
            if error is None:
                tx.execute(SETTLE, ("delivered", now, now, None, event_id))
            elif attempts >= MAX_ATTEMPTS:
                tx.execute(SETTLE, ("dead", now, now, error, event_id))
            else:
                due = now + DELIVERY_BACKOFF.delay(attempts)
                tx.execute(SETTLE, ("waiting", None, due, error, event_id))

        self.engine.write(settle)

    def consumers_of(self, event_id: str) -> set[str]:
        """The consumers that have accepted an event."""
        rows = self.engine.read(lambda reader: reader.rows(CONSUMERS, (event_id,)))
        return {row[0] for row in rows}

    def record_delivery(self, event_id: str, consumer: str) -> None:
        """Record that a consumer has accepted an event, so that it is not delivered to it again."""
        self.engine.write(lambda tx: tx.run(INSERT_DELIVERY, (event_id, consumer, tx.clock.now())))

    def skip_all(self) -> int:
        """Skip all events from before the first consumer; returns their number."""
        return self.engine.write(
            lambda tx: tx.execute(SETTLE_UNCLAIMED, (tx.clock.now(),)).rowcount
        )

    def skip_before(self, moment: float) -> int:
        """Skip events that are older than *moment* and were never delivered; their number."""
        return self.engine.write(
            lambda tx: tx.execute(SETTLE_OLD, (tx.clock.now(), moment)).rowcount
        )

    def replay(self, event_id: str) -> bool:
        """Deliver an event again to all consumers; False if the event does not exist."""

        def replay(tx: Tx) -> bool:
            tx.run(DELETE_DELIVERIES, (event_id,))
            return tx.execute(REQUEUE, (tx.clock.now(), event_id)).rowcount > 0

        return self.engine.write(replay)

    def recent(
        self, session_id: str | None = None, limit: int = 50, *, before: int | None = None
    ) -> list[BoundaryEvent]:
        """Boundary events, newest first; `before` is the sequence number of the last known one."""
        below = MAX_SEQUENCE if before is None else before
        if session_id is None:
            rows = self.engine.read(lambda reader: reader.rows(LIST_EVENTS, (below, limit)))
        else:
            values = (session_id, below, limit)
            rows = self.engine.read(lambda reader: reader.rows(LIST_OF_SESSION, values))
        return [BoundaryEvent._make(row) for row in rows]

    def pending(self) -> int:
        """Number of undelivered events."""
        return int(self.engine.read(lambda reader: reader.value(PENDING)))
