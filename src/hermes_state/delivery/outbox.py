"""Replies as obligations: committed with the turn that made them, sent at least once."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from hermes_core.backoff import Backoff
from hermes_state.delivery.inbox import settle
from hermes_state.part import StorePart

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes_state.engine.transaction import Tx

RETRY: Final = Backoff(2.0, 600.0)
MAX_ATTEMPTS: Final = 10  # of what may have arrived each time
MAX_SECONDS: Final = 7 * 86400.0  # a platform may be down for days

INSERT_REPLY = """
    INSERT INTO hermes_outbox
        (idempotency_key, session_id, inbox_id, platform, target, payload, created_at, state,
         due_at)
    VALUES (?, ?, ?, ?, ?, ?, ?, 'waiting', ?) ON CONFLICT DO NOTHING
"""
FIND = "SELECT outbox_id FROM hermes_outbox WHERE idempotency_key = ?"
# The oldest that is due of a chat in which none before it is still to be sent.
# The words of the indexes on what is not settled, so that they are used.
NEXT = """
    SELECT outbox_id FROM hermes_outbox o
    WHERE o.state IN ('waiting', 'sending', 'ambiguous') AND o.state <> 'sending'
        AND due_at <= ? {platform} AND NOT EXISTS (
        SELECT 1 FROM hermes_outbox e WHERE e.state IN ('waiting', 'sending', 'ambiguous')
            AND e.outbox_id < o.outbox_id AND e.platform = o.platform AND e.target = o.target)
    ORDER BY outbox_id LIMIT 1
"""
CLAIM = "UPDATE hermes_outbox SET state = 'sending', process_id = ? WHERE outbox_id = ?"
COUNT = "UPDATE hermes_outbox SET attempts = attempts + 1 WHERE outbox_id = ?"
SELECT_REPLY = "SELECT * FROM hermes_outbox WHERE outbox_id = ?"
SENT = """
    UPDATE hermes_outbox SET state = 'sent', settled_at = ?, receipt = ?, error = NULL
    WHERE outbox_id = ?
"""
LATER = """
    UPDATE hermes_outbox
    SET state = ?, due_at = ?, error = ?, process_id = NULL, settled_at = ?
    WHERE outbox_id = ?
"""
# A send that was under way when its process died may have arrived.
GIVE_BACK = """
    UPDATE hermes_outbox SET state = 'ambiguous', process_id = NULL
    WHERE state = 'sending' AND state IN ('waiting', 'sending', 'ambiguous') AND process_id = ?
"""


class OutgoingReply(NamedTuple):
    """Something to be sent: where, and what."""

    platform: str
    target: dict[str, Any]
    payload: dict[str, Any]


def put(
    tx: Tx,
    key: str,
    *,
    platform: str,
    target: dict[str, Any],
    payload: dict[str, Any],
    session_id: str | None = None,
    inbox_id: int | None = None,
) -> int:
    """Owe a reply; in the transaction of the turn that made it."""
    now = tx.clock.now()
    where = json.dumps(target, sort_keys=True)
    row = (key, session_id, inbox_id, platform, where, json.dumps(payload))
    tx.execute(INSERT_REPLY, (*row, now, now))
    return int(tx.value(FIND, (key,)))


def give_back(tx: Tx, process_id: str) -> None:
    """A process died in the middle of sending."""
    tx.execute(GIVE_BACK, (process_id,))


class OutboxPart(StorePart):
    """Owing and sending replies."""

    def owe_reply(self, key: str, **reply: Any) -> int:
        """Store a reply until it is sent: platform, target, payload, session_id, inbox_id."""
        return self.engine.write(lambda tx: put(tx, key, **reply))

    def answer_incoming(
        self,
        inbox_id: int,
        session_id: str | None,
        replies: Sequence[OutgoingReply],
        merged: Sequence[int] = (),
    ) -> None:
        """Settle a message, and those merged into it, and store the replies, in one transaction."""
        process_id = self.identity.process_id

        def answer(tx: Tx) -> None:
            for one in (inbox_id, *merged):
                settle(tx, one, process_id, session_id)
            for number, reply in enumerate(replies):
                put(
                    tx,
                    f"inbox:{inbox_id}:{number}",
                    platform=reply.platform,
                    target=reply.target,
                    payload=reply.payload,
                    session_id=session_id,
                    inbox_id=inbox_id,
                )

        self.engine.write(answer)

    def claim_reply(self, platform: str | None = None) -> dict[str, Any] | None:
        """Claim the next reply that is due, optionally of one platform.

        `was_ambiguous` means that it may have arrived already. Replies of a chat are
        claimed in order.
        """
        sql = NEXT.format(platform="" if platform is None else "AND o.platform = ?")
        more = () if platform is None else (platform,)

        def claim(tx: Tx) -> dict[str, Any] | None:
            row = self._next(tx, sql, more)
            if row is None:
                return None
            found = row["outbox_id"]
            self.register_process(tx)
            tx.execute(CLAIM, (self.identity.process_id, found))
            tx.execute(COUNT, (found,))
            row["was_ambiguous"] = row["state"] == "ambiguous"
            row["attempts"] += 1
            row["target"], row["payload"] = json.loads(row["target"]), json.loads(row["payload"])
            return row

        due = (self.clock.now(), *more)
        if self.engine.read(lambda reader: reader.value(sql, due)) is None:
            return None  # who only looks keeps no writer waiting
        return self.engine.write(claim)

    def _next(self, tx: Tx, sql: str, more: tuple[str, ...]) -> dict[str, Any] | None:
        """The next one that is due; what is too old to make sense any more is given up."""
        now = tx.clock.now()
        while (found := tx.value(sql, (now, *more))) is not None:
            row = tx.dicts(SELECT_REPLY, (found,))[0]
            if now - row["created_at"] <= MAX_SECONDS:
                return row
            tx.execute(LATER, ("failed", now, "it was too old to be sent", now, found))
        return None

    def settle_reply(self, outbox_id: int, receipt: str | None = None) -> None:
        """Mark the reply as delivered."""
        self.engine.write(lambda tx: tx.run(SENT, (tx.clock.now(), receipt, outbox_id)))

    def postpone_reply(
        self,
        outbox_id: int,
        error: str,
        *,
        may_have_arrived: bool = False,
        after_seconds: float | None = None,
        is_hopeless: bool = False,
    ) -> None:
        """Record a failed attempt: retry later with backoff, or give up."""

        def later(tx: Tx) -> None:
            row = tx.dicts(SELECT_REPLY, (outbox_id,))[0]
            is_too_old = tx.clock.now() - row["created_at"] > MAX_SECONDS
            is_too_much = may_have_arrived and row["attempts"] >= MAX_ATTEMPTS
            if is_hopeless or is_too_old or is_too_much:
                state = "failed"
            else:
                state = "ambiguous" if may_have_arrived else "waiting"
            delay = RETRY.delay(row["attempts"]) if after_seconds is None else after_seconds
            now = tx.clock.now()
            settled = now if state == "failed" else None
            tx.execute(LATER, (state, now + delay, error, settled, outbox_id))

        self.engine.write(later)
