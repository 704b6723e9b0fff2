"""Inbox: incoming chat messages, stored before they are acknowledged, processed once."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final, NamedTuple, cast

from hermes_core.errors import StoreError
from hermes_state.delivery.rows import (
    INCOMING_COLUMNS,
    FailedMessage,
    IncomingMessage,
    MessageAges,
    ReceivedMessage,
    add_interruption,
    forget_interruptions,
)
from hermes_state.engine.dialect import DIALECT
from hermes_state.repository import Repository

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes_state.delivery.rows import MessagePayload
    from hermes_state.engine.transaction import Reader, Tx

INBOX_TOPIC: Final = "inbox"  # of notifications to other nodes
MAX_SEARCHED_ROWS: Final = 50
INSERT_INCOMING = """
    INSERT INTO hermes_inbox
        (platform, account, chat_id, message_id, session_key, payload, received_at, state)
    VALUES (?, ?, ?, ?, ?, ?, ?, 'waiting') ON CONFLICT DO NOTHING RETURNING inbox_id
"""
# A new message is claimed at once if it is the only one of its place, which is neither bound to
# another node nor paused.
IS_PLACE_FREE = """
    SELECT 1 WHERE NOT EXISTS (
        SELECT 1 FROM hermes_inbox
        WHERE session_key = ? AND state IN ('waiting', 'claimed') AND inbox_id < ?)
        AND NOT EXISTS (
        SELECT 1 FROM hermes_bound_place WHERE session_key = ? AND node <> ?)
        AND NOT EXISTS (
        SELECT 1 FROM hermes_paused_place WHERE session_key = ? AND until_at > ?)
"""
FIND_INCOMING = """
    SELECT inbox_id FROM hermes_inbox
    WHERE platform = ? AND account = ? AND chat_id = ? AND message_id = ?
"""
# The oldest waiting message of a place that has no claimed message and no older one: another
# process may be claiming that. The condition on unsettled states repeats that of the partial
# indexes, so that SQLite uses them.
CLAIMABLE = """
    w.state = 'waiting' AND w.state IN ('waiting', 'claimed') AND NOT EXISTS (
        SELECT 1 FROM hermes_inbox c WHERE c.session_key = w.session_key
            AND (c.state = 'claimed' OR c.inbox_id < w.inbox_id)
            AND c.state IN ('waiting', 'claimed'))
        AND NOT EXISTS (
        SELECT 1 FROM hermes_bound_place b WHERE b.session_key = w.session_key AND b.node <> ?)
        AND NOT EXISTS (
        SELECT 1 FROM hermes_paused_place p WHERE p.session_key = w.session_key AND p.until_at > ?)
"""
OLDEST = f"ORDER BY w.inbox_id LIMIT 1 {DIALECT.skip_locked}"
NEXT_INCOMING = f"SELECT inbox_id FROM hermes_inbox w WHERE {CLAIMABLE} {OLDEST}"  # noqa: S608
NEXT_OF_PLACE = f"""
    SELECT inbox_id FROM hermes_inbox w WHERE w.session_key = ? AND {CLAIMABLE} {OLDEST}
"""  # noqa: S608 - own names
WAITING_PLACES = """
    SELECT count(DISTINCT session_key) FROM hermes_inbox
    WHERE state = 'waiting' AND state IN ('waiting', 'claimed')
"""
# SQLite would use the index on the state instead of the place's.
FOLLOWING = f"""
    SELECT {INCOMING_COLUMNS} FROM hermes_inbox
    WHERE session_key = ? AND state IN ('waiting', 'claimed')
        AND {DIALECT.unindexed}state = 'waiting' AND inbox_id > ?
    ORDER BY inbox_id LIMIT ?
"""  # noqa: S608 - own names
# Messages that arrived, perhaps on another node, while this process handles their place.
WAITING_DURING_TURNS = f"""
    SELECT {INCOMING_COLUMNS} FROM hermes_inbox w
    WHERE w.state = 'waiting' AND w.state IN ('waiting', 'claimed') AND EXISTS (
        SELECT 1 FROM hermes_inbox c WHERE c.session_key = w.session_key
            AND c.state = 'claimed' AND c.state IN ('waiting', 'claimed') AND c.process_id = ?)
    ORDER BY w.inbox_id
"""  # noqa: S608 - own names
IS_PLACE_CLAIMED = """
    SELECT 1 FROM hermes_inbox
    WHERE session_key = ? AND state = 'claimed' AND state IN ('waiting', 'claimed') LIMIT 1
"""
CLAIM_WAITING = """
    UPDATE hermes_inbox SET state = 'claimed', process_id = ?, attempts = attempts + 1
    WHERE inbox_id = ? AND state = 'waiting'
"""
CLAIM_AND_READ = f"""
    {CLAIM_WAITING} RETURNING {INCOMING_COLUMNS}, coalesce((
        SELECT i.count FROM hermes_interruption i
        WHERE i.kind = 'inbox' AND i.number = hermes_inbox.inbox_id), 0)
"""  # noqa: S608 - own names
SELECT_INCOMING = f"SELECT {INCOMING_COLUMNS} FROM hermes_inbox WHERE inbox_id = ?"  # noqa: S608
SETTLE = """
    UPDATE hermes_inbox SET state = ?, session_id = ?, settled_at = ?, error = ?
    WHERE inbox_id = ? AND state = 'claimed' AND process_id = ?
"""
CLAIMED_BY = """
    SELECT inbox_id, session_key FROM hermes_inbox
    WHERE state = 'claimed' AND state IN ('waiting', 'claimed') AND process_id = ?
"""
RELEASE_CLAIMS = """
    UPDATE hermes_inbox SET state = 'waiting', process_id = NULL
    WHERE state = 'claimed' AND state IN ('waiting', 'claimed') AND process_id = ?
"""
SUSPECT_MARK: Final = "suspect:{}"  # while a message runs that may be the cause of crashes
MARK = "INSERT INTO hermes_mark (name, made_at) VALUES (?, ?) ON CONFLICT DO NOTHING"
UNMARK = "DELETE FROM hermes_mark WHERE name = ?"
NO_ATTEMPT = "UPDATE hermes_inbox SET attempts = attempts - 1 WHERE inbox_id = ? AND attempts > 0"
SETTLE_WAITING = """
    UPDATE hermes_inbox SET state = 'done', settled_at = ? WHERE inbox_id = ? AND state = 'waiting'
"""
WITHDRAWN: Final = "deleted by its sender"
WITHDRAW = """
    UPDATE hermes_inbox SET state = 'done', settled_at = ?, error = ?
    WHERE inbox_id = ? AND state = 'waiting'
"""
# A message, and the messages that its edits have added: their IDs have a suffix.
SENT_AS = f"""
    SELECT {INCOMING_COLUMNS} FROM hermes_inbox
    WHERE platform = ? AND account = ?
        AND (message_id = ? OR (message_id > ? AND message_id < ?))
    ORDER BY inbox_id
"""  # noqa: S608 - own names
AMEND = """
    UPDATE hermes_inbox SET payload = ?
    WHERE inbox_id = ? AND state = 'waiting' AND attempts = 0
"""
# Released on purpose: this does not count as an attempt.
RELEASE_PLACE = """
    UPDATE hermes_inbox SET state = 'waiting', process_id = NULL, attempts = attempts - 1
    WHERE state = 'claimed' AND state IN ('waiting', 'claimed')
        AND process_id = ? AND session_key = ?
"""

# An update that could not be handled: its ID takes the place of a message ID.
INSERT_QUARANTINED = """
    INSERT INTO hermes_inbox
        (platform, account, chat_id, message_id, session_key, payload, received_at, state,
         settled_at, error)
    VALUES (?, '', '', ?, '', ?, ?, 'failed', ?, ?) ON CONFLICT DO NOTHING
"""
SELECT_FAILED = """
    SELECT inbox_id, platform, chat_id, message_id, payload, received_at, attempts, error
    FROM hermes_inbox WHERE state = 'failed'
    ORDER BY inbox_id DESC LIMIT ?
"""
COUNT_FAILED = "SELECT count(*) FROM hermes_inbox WHERE state = 'failed'"
# An update that could not be read has no chat: nothing can handle it.
RETRY_FAILED = """
    UPDATE hermes_inbox
    SET state = 'waiting', settled_at = NULL, error = NULL, attempts = 0, process_id = NULL
    WHERE inbox_id = ? AND state = 'failed' AND session_key <> ''
"""
DELETE_FAILED = "DELETE FROM hermes_inbox WHERE inbox_id = ? AND state = 'failed'"

OLDEST_BY_STATE = """
    SELECT state, min(received_at) FROM hermes_inbox
    WHERE state IN ('waiting', 'claimed')
        AND session_key NOT IN (SELECT session_key FROM hermes_paused_place)
    GROUP BY state
"""


def enqueue(
    tx: Tx,
    *,
    platform: str,
    account: str,
    chat_id: str,
    message_id: str,
    session_key: str,
    payload: str,
) -> int:
    """Insert a message, unless it is there; its number."""
    key = (platform, account, chat_id, message_id)
    inbox_id = tx.value(INSERT_INCOMING, (*key, session_key, payload, tx.clock.now()))
    tx.wake(INBOX_TOPIC)
    return int(tx.value(FIND_INCOMING, key) if inbox_id is None else inbox_id)


def settle(
    tx: Tx, inbox_id: int, process_id: str, session_id: str | None, error: str | None = None
) -> None:
    """Mark a claimed message as processed, in the transaction that stores the answer."""
    state = "done" if error is None else "failed"
    row = (state, session_id, tx.clock.now(), error, inbox_id, process_id)
    if not tx.execute(SETTLE, row).rowcount:
        raise StoreError(f"incoming message {inbox_id} is not claimed by this process")


def claim_waiting(tx: Tx, process_id: str, inbox_ids: Sequence[int]) -> list[int]:
    """Claim those of the messages that still wait."""
    return [
        inbox_id
        for inbox_id in inbox_ids
        if tx.execute(CLAIM_WAITING, (process_id, inbox_id)).rowcount
    ]


def release_claims(tx: Tx, process_id: str) -> None:
    """Requeue the messages that a dead process had claimed.

    Of several places, any may be the cause of its end: that counts as a crash of each message,
    not as an attempt. A place that was alone, and a suspect, has used up an attempt.
    """
    claimed = tx.rows(CLAIMED_BY, (process_id,))
    if len({session_key for _, session_key in claimed}) > 1:
        for inbox_id, _ in claimed:
            add_interruption(tx, "inbox", inbox_id)
            if not tx.execute(UNMARK, (SUSPECT_MARK.format(inbox_id),)).rowcount:
                tx.execute(NO_ATTEMPT, (inbox_id,))
    if claimed:
        tx.execute(RELEASE_CLAIMS, (process_id,))
        tx.wake(INBOX_TOPIC)


class InboxRepository(Repository):
    """Receiving and claiming chat messages."""

    def receive(
        self,
        *,
        platform: str,
        account: str,
        chat_id: str,
        message_id: str,
        session_key: str,
        payload: MessagePayload,
        claim: bool = False,
    ) -> ReceivedMessage:
        """Store an incoming message; repeated deliveries are recognized.

        With *claim*, a new message is claimed at once, unless others of its place are unsettled.
        """
        key = (platform, account, chat_id, message_id)
        text = json.dumps(payload)

        def insert(tx: Tx) -> ReceivedMessage:
            now = tx.clock.now()
            inbox_id = tx.value(INSERT_INCOMING, (*key, session_key, text, now))
            is_new = inbox_id is not None
            if inbox_id is None:
                inbox_id = tx.value(FIND_INCOMING, key)
            place = (session_key, inbox_id, session_key, self.identity.host, session_key, now)
            is_claimed = claim and is_new and tx.value(IS_PLACE_FREE, place) is not None
            claimed = self._claim(tx, inbox_id) if is_claimed else None
            if claimed is None:
                tx.wake(INBOX_TOPIC)
            return ReceivedMessage(int(inbox_id), is_new, claimed)

        return self.engine.write(insert)

    def _claim(self, tx: Tx, inbox_id: int) -> IncomingMessage | None:
        self._register_process(tx)
        row = tx.row(CLAIM_AND_READ, (self.identity.process_id, inbox_id))
        if row is None:
            return None  # another process was faster
        return IncomingMessage.of_row(row[:-1], crashes=row[-1])

    def claim(
        self, session_key: str | None = None, *, or_any: bool = False
    ) -> IncomingMessage | None:
        """Claim the next message to process; one at a time per place, in order.

        With *session_key*, one of this place; with *or_any*, of another if it has none.
        """
        values = (self.identity.host, self.clock.now())

        def find_of_place(reader: Reader) -> int | None:
            return cast("int | None", reader.value(NEXT_OF_PLACE, (session_key, *values)))

        def find_any(reader: Reader) -> int | None:
            return cast("int | None", reader.value(NEXT_INCOMING, values))

        def claim(tx: Tx) -> IncomingMessage | None:
            inbox_id = None if session_key is None else find_of_place(tx)
            if inbox_id is None and is_any:
                inbox_id = find_any(tx)
            return None if inbox_id is None else self._claim(tx, inbox_id)

        is_any = or_any or session_key is None
        if self.engine.read(find_any if is_any else find_of_place) is None:
            return None  # without acquiring the write lock
        return self.engine.write(claim, is_conditional=True)

    def claim_command(self, session_key: str, overtaking: frozenset[str]) -> IncomingMessage | None:
        """Claim a waiting command of a place where nothing is being processed.

        It must be the oldest message there, or one of *overtaking*.
        """

        def claim(tx: Tx) -> IncomingMessage | None:
            if tx.value(IS_PLACE_CLAIMED, (session_key,)) is not None:
                return None
            rows = tx.rows(FOLLOWING, (session_key, 0, MAX_SEARCHED_ROWS))
            for number, row in enumerate(rows):
                name = IncomingMessage.of_row(row).command
                if name in overtaking or (name and number == 0):
                    return self._claim(tx, int(row[0]))
            return None

        return self.engine.write(claim)

    def waiting_behind(self, claimed: IncomingMessage, limit: int = 50) -> list[IncomingMessage]:
        """Waiting messages of the same place after a claimed one, in order; not claimed."""
        values = (claimed.session_key, claimed.inbox_id, limit)
        rows = self.engine.read(lambda reader: reader.rows(FOLLOWING, values))
        return [IncomingMessage.of_row(row) for row in rows]

    def waiting_during_turns(self) -> list[IncomingMessage]:
        """Waiting messages of the places that this process is handling, in order."""
        values = (self.identity.process_id,)
        rows = self.engine.read(lambda reader: reader.rows(WAITING_DURING_TURNS, values))
        return [IncomingMessage.of_row(row) for row in rows]

    def is_place_claimed(self, session_key: str) -> bool:
        """Whether a process, perhaps on another node, is handling a message of a place."""
        return self.engine.read(lambda r: r.value(IS_PLACE_CLAIMED, (session_key,))) is not None

    def claim_with(self, inbox_ids: Sequence[int]) -> list[int]:
        """Claim waiting messages to process them together with a claimed one.

        Returns the claimed IDs.
        """
        if not inbox_ids:
            return []

        process_id = self.identity.process_id
        return self.engine.write(
            lambda tx: claim_waiting(tx, process_id, inbox_ids), is_conditional=True
        )

    def get(self, inbox_id: int) -> IncomingMessage | None:
        """An incoming message, in any state."""
        row = self.engine.read(lambda reader: reader.row(SELECT_INCOMING, (inbox_id,)))
        return None if row is None else IncomingMessage.of_row(row)

    def find_id(self, platform: str, account: str, chat_id: str, message_id: str) -> int | None:
        """Number of an incoming message, by the platform's identifiers."""
        key = (platform, account, chat_id, message_id)
        inbox_id: int | None = self.engine.read(lambda reader: reader.value(FIND_INCOMING, key))
        return inbox_id

    def sent_as(
        self, platform: str, account: str, chat_id: str, message_id: str
    ) -> list[IncomingMessage]:
        """The rows of a platform message and of its edits; *chat_id* may be that of a thread."""
        values = (platform, account, message_id, f"{message_id}#", f"{message_id}$")
        rows = self.engine.read(lambda reader: reader.rows(SENT_AS, values))
        messages = [IncomingMessage.of_row(row) for row in rows]
        return [
            message
            for message in messages
            if chat_id in (message.chat_id, (message.payload.get("source") or {}).get("thread_id"))
        ]

    def withdraw(self, inbox_id: int) -> bool:
        """Settle a message that its sender has deleted; False if it does not wait."""
        return self.engine.write(
            lambda tx: tx.execute(WITHDRAW, (tx.clock.now(), WITHDRAWN, inbox_id)).rowcount > 0
        )

    def amend(self, inbox_id: int, payload: MessagePayload) -> bool:
        """Replace the content of a message that is not being processed yet; False if it is."""
        row = (json.dumps(payload), inbox_id)
        return self.engine.write(lambda tx: tx.execute(AMEND, row).rowcount > 0)

    def waiting_places(self) -> int:
        """Number of places with waiting messages that no process is handling."""
        return int(self.engine.read(lambda reader: reader.value(WAITING_PLACES)))

    def ages(self) -> MessageAges:
        """How long the oldest messages wait, and are being handled."""
        rows = self.engine.read(lambda reader: reader.rows(OLDEST_BY_STATE))
        now = self.clock.now()
        return MessageAges(**{state: max(0.0, now - oldest) for state, oldest in rows})

    def settle(
        self, inbox_id: int, session_id: str | None = None, error: str | None = None
    ) -> None:
        """Mark a claimed message as processed, or as permanently failed."""
        process_id = self.identity.process_id
        self.engine.write(lambda tx: settle(tx, inbox_id, process_id, session_id, error))

    def requeue(self, message: IncomingMessage, *, is_attempt: bool, error: str = "") -> None:
        """Requeue a message whose processing was interrupted; with an *error*, quarantine it.

        All messages claimed together with it are requeued too.
        """
        process_id = self.identity.process_id

        def requeue(tx: Tx) -> None:
            if error:
                row = ("failed", None, tx.clock.now(), error, message.inbox_id, process_id)
                tx.execute(SETTLE, row)
            elif is_attempt:
                tx.execute(RELEASE_CLAIMS + " AND inbox_id = ?", (process_id, message.inbox_id))
            tx.execute(RELEASE_PLACE, (process_id, message.session_key))

        self.engine.write(requeue)

    def mark_suspect(self, inbox_id: int) -> None:
        """Note that a message runs which is held responsible if the process ends."""
        mark = SUSPECT_MARK.format(inbox_id)
        self.engine.write(lambda tx: tx.execute(MARK, (mark, tx.clock.now())))

    def unmark_suspect(self, inbox_id: int) -> None:
        """Note that the process has survived the message."""
        self.engine.write(lambda tx: tx.execute(UNMARK, (SUSPECT_MARK.format(inbox_id),)))

    def settle_waiting(self, inbox_id: int) -> bool:
        """Settle a message that was handled without being claimed.

        Returns whether it was still waiting.
        """
        return self.engine.write(
            lambda tx: tx.execute(SETTLE_WAITING, (tx.clock.now(), inbox_id)).rowcount > 0
        )

    # Messages that could not be handled

    def quarantine(self, platform: str, update_id: str, content: str, error: str) -> None:
        """Store an update that could not be handled, as JSON."""

        def insert(tx: Tx) -> None:
            now = tx.clock.now()
            tx.execute(
                INSERT_QUARANTINED, (platform, f"update:{update_id}", content, now, now, error)
            )

        self.engine.write(insert)

    def failed(self, limit: int = 50) -> list[FailedMessage]:
        """Messages and updates that could not be handled, latest first."""
        rows = self.engine.read(lambda reader: reader.rows(SELECT_FAILED, (limit,)))
        return [FailedMessage._make(row) for row in rows]

    def count_failed(self) -> int:
        """Number of messages and updates that could not be handled."""
        return int(self.engine.read(lambda reader: reader.value(COUNT_FAILED)))

    def delete_failed(self, inbox_id: int) -> bool:
        """Delete a message or update that could not be handled; whether it was there."""
        return self.engine.write(lambda tx: tx.execute(DELETE_FAILED, (inbox_id,)).rowcount > 0)

    def retry_failed(self, inbox_id: int) -> bool:
        """Let a message that could not be handled wait again; false if there is none."""

        def retry(tx: Tx) -> bool:
            is_waiting = tx.execute(RETRY_FAILED, (inbox_id,)).rowcount > 0
            if is_waiting:
                forget_interruptions(tx, "inbox", inbox_id)
            return is_waiting

        return self.engine.write(retry)


PAUSE = """
    INSERT INTO hermes_paused_place (session_key, until_at, platform, user_id)
    VALUES (?, ?, ?, ?)
    ON CONFLICT (session_key) DO UPDATE SET until_at = excluded.until_at,
        platform = excluded.platform, user_id = excluded.user_id
"""
SELECT_PAUSED = "SELECT session_key, until_at, platform, user_id FROM hermes_paused_place"
RELEASE = "DELETE FROM hermes_paused_place WHERE session_key = ?"


class PausedPlace(NamedTuple):
    """A place whose messages wait, and the person whose budget is used up."""

    session_key: str
    until_at: float
    platform: str
    user_id: str


class PausedPlaceRepository(Repository):
    """Places whose messages no process claims before a time."""

    def pause(self, message: IncomingMessage, place: PausedPlace) -> None:
        """Requeue a claimed message; all messages of its place wait."""
        process_id = self.identity.process_id

        def pause(tx: Tx) -> None:
            tx.run(RELEASE_PLACE, (process_id, message.session_key))
            tx.run(PAUSE, place)

        self.engine.write(pause)

    def all(self) -> list[PausedPlace]:
        """All paused places."""
        rows = self.engine.read(lambda reader: reader.rows(SELECT_PAUSED))
        return [PausedPlace._make(row) for row in rows]

    def release(self, session_key: str) -> None:
        """Let the messages of a place be processed."""

        def release(tx: Tx) -> None:
            tx.run(RELEASE, (session_key,))
            tx.wake(INBOX_TOPIC)

        self.engine.write(release)
