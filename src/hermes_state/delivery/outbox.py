"""Outbox: replies, committed with the turn that created them, sent at least once."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NotRequired, TypedDict, Unpack

from hermes_core.backoff import Backoff
from hermes_state.delivery import inbox
from hermes_state.delivery.inbox import settle
from hermes_state.delivery.rows import (
    add_interruption,
    forget_interruptions,
    is_object,
    read_object,
)
from hermes_state.engine.dialect import DIALECT
from hermes_state.repository import Repository

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes_state.delivery.rows import ReplyPayload, ReplyTarget
    from hermes_state.engine.transaction import Tx

OUTBOX_TOPIC: Final = "outbox"  # of notifications to other nodes
SEND_BACKOFF: Final = Backoff(2.0, 600.0)
UNCONFIRMED_BACKOFF: Final = Backoff(1.0, 600.0, factor=5.0)
MAX_UNCONFIRMED: Final = 5  # sends that may have arrived
MAX_AGE_SECONDS: Final = 7 * 86400.0  # a platform may be down for days

INSERT_REPLY = """
    INSERT INTO hermes_outbox
        (idempotency_key, session_id, inbox_id, platform, target, payload, created_at, state,
         due_at)
    VALUES (?, ?, ?, ?, ?, ?, ?, 'waiting', ?) ON CONFLICT DO NOTHING RETURNING outbox_id
"""
REPLY_COLUMNS = """
    outbox_id, idempotency_key, session_id, inbox_id, platform, target, payload, created_at, state,
    attempts, due_at, settled_at, receipt, error
"""
FIND_REPLY = "SELECT outbox_id FROM hermes_outbox WHERE idempotency_key = ?"
# The oldest due reply of a chat without earlier unsent replies. The condition on the state
# repeats that of the partial indexes, so that SQLite uses them.
NEXT_REPLY = f"""
    SELECT {REPLY_COLUMNS} FROM hermes_outbox o
    WHERE o.state IN ('waiting', 'sending', 'ambiguous') AND o.state <> 'sending'
        AND due_at <= ? {{platform}} AND NOT EXISTS (
        SELECT 1 FROM hermes_outbox e WHERE e.state IN ('waiting', 'sending', 'ambiguous')
            AND e.outbox_id < o.outbox_id AND e.platform = o.platform AND e.target = o.target)
    ORDER BY outbox_id LIMIT 1 {DIALECT.skip_locked}
"""  # noqa: S608 - own names
HAS_UNSENT = """
    SELECT 1 FROM hermes_outbox o
    WHERE state IN ('waiting', 'sending', 'ambiguous') AND state <> 'sending' {platform} LIMIT 1
"""
CLAIM_REPLY = """
    UPDATE hermes_outbox SET state = 'sending', process_id = ?, attempts = attempts + 1
    WHERE outbox_id = ? AND state IN ('waiting', 'ambiguous')
"""
SELECT_REPLY = f"SELECT {REPLY_COLUMNS} FROM hermes_outbox WHERE outbox_id = ?"  # noqa: S608
SETTLE_SENT = """
    UPDATE hermes_outbox SET state = 'sent', settled_at = ?, receipt = ?, error = NULL
    WHERE outbox_id = ? AND state = 'sending' AND process_id = ?
"""
SET_FAILED = """
    UPDATE hermes_outbox
    SET state = ?, due_at = ?, error = ?, process_id = NULL, settled_at = ?
    WHERE outbox_id = ?
"""
# A person asks for it: its age begins again, otherwise an old reply would be given up at once.
RETRY_UNSENT = """
    UPDATE hermes_outbox
    SET state = 'waiting', due_at = ?, created_at = ?, attempts = 0, error = NULL, settled_at = NULL
    WHERE outbox_id = ? AND state IN ('failed', 'ambiguous')
"""
DELETE_UNSENT = """
    DELETE FROM hermes_outbox WHERE outbox_id = ? AND state IN ('failed', 'ambiguous')
"""
# A reply may have arrived if its process died while sending it.
SENDING_BY = """
    SELECT outbox_id FROM hermes_outbox
    WHERE state = 'sending' AND state IN ('waiting', 'sending', 'ambiguous') AND process_id = ?
"""


class ReplyFields(TypedDict):
    """The fields of a reply to be stored."""

    platform: str
    target: ReplyTarget
    payload: ReplyPayload
    session_id: NotRequired[str | None]
    inbox_id: NotRequired[int | None]


class OutgoingReply(NamedTuple):
    """A reply to be sent: platform, target and payload."""

    platform: str
    target: ReplyTarget
    payload: ReplyPayload


class StoredReply(NamedTuple):
    """A row of the outbox."""

    outbox_id: int
    idempotency_key: str
    session_id: str | None
    inbox_id: int | None
    platform: str
    target: ReplyTarget
    payload: ReplyPayload
    created_at: float
    state: str
    attempts: int
    due_at: float
    settled_at: float | None
    receipt: str | None
    error: str | None
    was_ambiguous: bool  # when it was claimed: it may have arrived already
    has_more: bool  # when it was claimed: others are unsent

    @classmethod
    def of_row(cls, row: tuple[Any, ...]) -> StoredReply:
        """The reply of a row with the columns REPLY_COLUMNS."""
        target, payload = read_object(row[5]), read_object(row[6])
        return cls._make([*row[:5], target, payload, *row[7:], False, False])


class ReplyBatch(NamedTuple):
    """The replies to a message and to those merged into it."""

    inbox_id: int
    session_id: str | None
    replies: Sequence[OutgoingReply]
    merged: Sequence[int] = ()
    read: Sequence[int] = ()  # waiting messages that the turn has read


def insert_reply(
    tx: Tx,
    key: str,
    *,
    platform: str,
    target: ReplyTarget,
    payload: ReplyPayload,
    session_id: str | None = None,
    inbox_id: int | None = None,
) -> int:
    """Store a reply, in the transaction of the turn that created it."""
    now = tx.clock.now()
    target_json = json.dumps(target, sort_keys=True)
    row = (key, session_id, inbox_id, platform, target_json, json.dumps(payload))
    outbox_id = tx.value(INSERT_REPLY, (*row, now, now))
    tx.wake(OUTBOX_TOPIC)
    return int(tx.value(FIND_REPLY, (key,)) if outbox_id is None else outbox_id)


def answer(tx: Tx, process_id: str, batch: ReplyBatch) -> None:
    """Settle the messages that a turn has answered and store its replies."""
    read = inbox.claim_waiting(tx, process_id, batch.read)
    for inbox_id in (batch.inbox_id, *batch.merged, *read):
        settle(tx, inbox_id, process_id, batch.session_id)
    for number, reply in enumerate(batch.replies):
        insert_reply(
            tx,
            f"inbox:{batch.inbox_id}:{number}",
            platform=reply.platform,
            target=reply.target,
            payload=reply.payload,
            session_id=batch.session_id,
            inbox_id=batch.inbox_id,
        )


def release_claims(tx: Tx, process_id: str) -> None:
    """Requeue the replies that a dead process was sending."""
    for (outbox_id,) in tx.rows(SENDING_BY, (process_id,)):
        _set_unconfirmed(tx, outbox_id, "the process ended while sending it", first_pause=0.0)


def _set_unconfirmed(
    tx: Tx,
    outbox_id: int,
    error: str,
    delay: float | None = None,
    first_pause: float = UNCONFIRMED_BACKOFF.first_seconds,
) -> None:
    """Send a reply again that may have arrived: a few times, with growing delays."""
    sends = add_interruption(tx, "outbox", outbox_id)
    now = tx.clock.now()
    if sends >= MAX_UNCONFIRMED:
        text = f"sent {sends} times without confirmation: {error}"
        tx.execute(SET_FAILED, ("failed", now, text, now, outbox_id))
        return
    pause = first_pause if sends == 1 else UNCONFIRMED_BACKOFF.delay(sends)
    due_at = now + (pause if delay is None else delay)
    tx.execute(SET_FAILED, ("ambiguous", due_at, error, None, outbox_id))


class OutboxRepository(Repository):
    """Storing and sending replies."""

    def add(self, key: str, **reply: Unpack[ReplyFields]) -> int:
        """Store a reply until it is sent: platform, target, payload, session_id, inbox_id."""
        return self.engine.write(lambda tx: insert_reply(tx, key, **reply))

    def answer(self, batch: ReplyBatch) -> None:
        """Settle a message, and those merged into it, and store the replies, in one transaction."""
        self.engine.write(lambda tx: answer(tx, self.identity.process_id, batch))

    def claim(self, platform: str | None = None, *, has_more: bool = False) -> StoredReply | None:
        """Claim the next reply that is due, optionally of one platform.

        `was_ambiguous` means that it may have arrived already, `has_more` that other replies
        are unsent: pass it on, because the next reply of a chat is due when this one is
        settled. Replies of a chat are claimed in order.
        """
        condition = "" if platform is None else "AND o.platform = ?"
        sql, has_unsent = (text.format(platform=condition) for text in (NEXT_REPLY, HAS_UNSENT))
        platform_values = () if platform is None else (platform,)

        def claim(tx: Tx) -> StoredReply | None:
            reply = self._next(tx, sql, platform_values)
            if reply is None:
                return None
            outbox_id = reply.outbox_id
            self._register_process(tx)
            if not tx.execute(CLAIM_REPLY, (self.identity.process_id, outbox_id)).rowcount:
                return None  # another process was faster
            return reply._replace(
                attempts=reply.attempts + 1,
                was_ambiguous=reply.state == "ambiguous",
                has_more=tx.value(has_unsent, platform_values) is not None,
            )

        due = (self.clock.now(), *platform_values)
        if not has_more and self.engine.read(lambda reader: reader.value(sql, due)) is None:
            return None  # without acquiring the write lock
        return self.engine.write(claim, is_conditional=True)

    def _next(self, tx: Tx, sql: str, platform_values: tuple[str, ...]) -> StoredReply | None:
        """The next reply that is due; those that are too old or not readable are given up."""
        now = tx.clock.now()
        while (row := tx.row(sql, (now, *platform_values))) is not None:
            reply = StoredReply.of_row(row)
            is_readable = is_object(row[5]) and is_object(row[6])
            if is_readable and now - reply.created_at <= MAX_AGE_SECONDS:
                return reply
            error = "it was too old to be sent" if is_readable else "it is not readable"
            tx.execute(SET_FAILED, ("failed", now, error, now, reply.outbox_id))
        return None

    def settle(self, outbox_id: int, receipt: str | None = None) -> None:
        """Mark the reply as delivered, with the next commit."""
        values = (self.clock.now(), receipt, outbox_id, self.identity.process_id)
        self.engine.write_soon(lambda tx: tx.run(SETTLE_SENT, values), "settle a reply")

    def postpone(
        self,
        outbox_id: int,
        error: str,
        *,
        may_have_arrived: bool = False,
        after_seconds: float | None = None,
        is_hopeless: bool = False,
    ) -> None:
        """Record a failed attempt: retry later with backoff, or give up."""

        def record_failure(tx: Tx) -> None:
            reply = StoredReply.of_row(tx.rows(SELECT_REPLY, (outbox_id,))[0])
            if reply.state != "sending":
                return  # it was released, and another process has it or settled it
            now = tx.clock.now()
            if is_hopeless or now - reply.created_at > MAX_AGE_SECONDS:
                tx.execute(SET_FAILED, ("failed", now, error, now, outbox_id))
            elif may_have_arrived:
                _set_unconfirmed(tx, outbox_id, error, after_seconds)
            else:
                delay = SEND_BACKOFF.delay(reply.attempts)
                due_at = now + (delay if after_seconds is None else after_seconds)
                tx.execute(SET_FAILED, ("waiting", due_at, error, None, outbox_id))

        self.engine.write(record_failure)

    def retry_unsent(self, outbox_id: int) -> bool:
        """Send a reply again that failed or may have arrived; false if there is none."""

        def retry(tx: Tx) -> bool:
            now = tx.clock.now()
            is_waiting = tx.execute(RETRY_UNSENT, (now, now, outbox_id)).rowcount > 0
            if is_waiting:
                forget_interruptions(tx, "outbox", outbox_id)
                tx.wake(OUTBOX_TOPIC)
            return is_waiting

        return self.engine.write(retry)

    def delete_unsent(self, outbox_id: int) -> bool:
        """Give up a reply that failed or may have arrived; false if there is none."""
        return self.engine.write(lambda tx: tx.execute(DELETE_UNSENT, (outbox_id,)).rowcount > 0)
