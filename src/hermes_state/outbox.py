"""Replies as obligations: committed with the turn that made them, sent at least once."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from hermes_state.part import StorePart

if TYPE_CHECKING:
    from hermes_state.transaction import Tx

MOST_ATTEMPTS: Final = 10

PUT = """
    INSERT INTO hermes_outbox
        (idempotency_key, session_id, inbox_id, platform, target, payload, created_at, state,
         due_at)
    VALUES (?, ?, ?, ?, ?, ?, ?, 'waiting', ?) ON CONFLICT DO NOTHING
"""
FIND = "SELECT outbox_id FROM hermes_outbox WHERE idempotency_key = ?"
NEXT = """
    SELECT outbox_id FROM hermes_outbox
    WHERE state IN ('waiting', 'ambiguous') AND due_at <= ? ORDER BY outbox_id LIMIT 1
"""
CLAIM = "UPDATE hermes_outbox SET state = 'sending', process_id = ? WHERE outbox_id = ?"
COUNT = "UPDATE hermes_outbox SET attempts = attempts + 1 WHERE outbox_id = ?"
GET = "SELECT * FROM hermes_outbox WHERE outbox_id = ?"
SENT = """
    UPDATE hermes_outbox SET state = 'sent', settled_at = ?, receipt = ?, error = NULL
    WHERE outbox_id = ?
"""
LATER = """
    UPDATE hermes_outbox SET state = ?, due_at = ?, error = ?, process_id = NULL
    WHERE outbox_id = ?
"""
# A send that was under way when its process died may have arrived.
GIVE_BACK = """
    UPDATE hermes_outbox SET state = 'ambiguous', process_id = NULL
    WHERE state = 'sending' AND process_id = ?
"""


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
    row = (key, session_id, inbox_id, platform, json.dumps(target), json.dumps(payload))
    tx.execute(PUT, (*row, now, now))
    return int(tx.value(FIND, (key,)))


def give_back(tx: Tx, process_id: str) -> None:
    """A process died in the middle of sending."""
    tx.execute(GIVE_BACK, (process_id,))


class OutboxPart(StorePart):
    """Owing and sending replies."""

    def owe_reply(self, key: str, **reply: Any) -> int:
        """Keep a reply until it is sent: platform, target, payload, session_id, inbox_id."""
        return self.engine.write(lambda tx: put(tx, key, **reply))

    def claim_reply(self) -> dict[str, Any] | None:
        """Take the next reply that is due; `was_ambiguous` says it may have arrived already."""

        def claim(tx: Tx) -> dict[str, Any] | None:
            found = tx.value(NEXT, (tx.clock.now(),))
            if found is None:
                return None
            row = tx.dicts(GET, (found,))[0]
            self.present(tx)
            tx.execute(CLAIM, (self.identity.process_id, found))
            tx.execute(COUNT, (found,))
            row["was_ambiguous"] = row["state"] == "ambiguous"
            row["attempts"] += 1
            row["target"], row["payload"] = json.loads(row["target"]), json.loads(row["payload"])
            return row

        return self.engine.write(claim)

    def settle_reply(self, outbox_id: int, receipt: str | None = None) -> None:
        """The reply has arrived."""
        self.engine.write(lambda tx: tx.run(SENT, (tx.clock.now(), receipt, outbox_id)))

    def postpone_reply(self, outbox_id: int, error: str, *, may_have_arrived: bool = False) -> None:
        """Sending failed: try again later, longer each time, at last no more."""

        def later(tx: Tx) -> None:
            row = tx.dicts(GET, (outbox_id,))[0]
            if row["attempts"] >= MOST_ATTEMPTS:
                state = "failed"
            else:
                state = "ambiguous" if may_have_arrived else "waiting"
            due = tx.clock.now() + min(2.0 ** row["attempts"], 600.0)
            tx.execute(LATER, (state, due, error, outbox_id))

        self.engine.write(later)
