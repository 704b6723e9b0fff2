"""Data of the gateway besides messages and routes: marks, spending, streamed answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hermes_state.delivery.outbox import REPLY_COLUMNS, SELECT_REPLY, StoredReply
from hermes_state.delivery.rows import INCOMING_COLUMNS, IncomingMessage, delete_old_interruptions
from hermes_state.repository import Repository

if TYPE_CHECKING:
    from hermes_state.engine.transaction import Tx

DAY_SECONDS: Final = 86400.0

ADD_SPENDING = """
    INSERT INTO hermes_spending (platform, user_id, day, dollars) VALUES (?, ?, ?, ?)
    ON CONFLICT (platform, user_id, day)
    DO UPDATE SET dollars = hermes_spending.dollars + excluded.dollars
"""
SELECT_SPENDING = (
    "SELECT dollars FROM hermes_spending WHERE platform = ? AND user_id = ? AND day = ?"
)
SPENDING_OF_ALL = "SELECT coalesce(sum(dollars), 0) FROM hermes_spending WHERE day = ?"
ADD_TOKENS = """
    INSERT INTO hermes_token_use (platform, user_id, day, tokens) VALUES (?, ?, ?, ?)
    ON CONFLICT (platform, user_id, day)
    DO UPDATE SET tokens = hermes_token_use.tokens + excluded.tokens
"""
SELECT_TOKENS = "SELECT tokens FROM hermes_token_use WHERE platform = ? AND user_id = ? AND day = ?"
TOKENS_OF_ALL = "SELECT coalesce(sum(tokens), 0) FROM hermes_token_use WHERE day = ?"
UPSERT_SHOWN = """
    INSERT INTO hermes_shown (inbox_id, receipt) VALUES (?, ?)
    ON CONFLICT (inbox_id) DO UPDATE SET receipt = excluded.receipt
"""
SELECT_SHOWN = "SELECT receipt FROM hermes_shown WHERE inbox_id = ?"
FIND_INCOMING = f"""
    SELECT {INCOMING_COLUMNS} FROM hermes_inbox WHERE message_id = ? OR inbox_id = ?
    ORDER BY inbox_id DESC LIMIT 20
"""  # noqa: S608 - own names
REPLIES = f"SELECT {REPLY_COLUMNS} FROM hermes_outbox WHERE inbox_id = ? ORDER BY outbox_id"  # noqa: S608
UNSENT = f"""
    SELECT {REPLY_COLUMNS} FROM hermes_outbox WHERE state IN ('failed', 'ambiguous')
    ORDER BY outbox_id DESC LIMIT ?
"""  # noqa: S608 - own names
# The conditions are those of the partial indexes on unsettled rows.
COUNT_UNSETTLED = {
    "inbox": "SELECT platform, state, count(*) FROM hermes_inbox"
    " WHERE state IN ('waiting', 'claimed') GROUP BY platform, state",
    "outbox": "SELECT platform, state, count(*) FROM hermes_outbox"
    " WHERE state IN ('waiting', 'sending', 'ambiguous') GROUP BY platform, state",
}
DELETE_SETTLED = (
    "DELETE FROM hermes_shown WHERE inbox_id IN (SELECT inbox_id FROM hermes_inbox"
    " WHERE settled_at IS NOT NULL AND settled_at < ? ORDER BY settled_at LIMIT ?)",
    "DELETE FROM hermes_inbox WHERE inbox_id IN (SELECT inbox_id FROM hermes_inbox"
    " WHERE settled_at IS NOT NULL AND settled_at < ? ORDER BY settled_at LIMIT ?)",
    "DELETE FROM hermes_outbox WHERE outbox_id IN (SELECT outbox_id FROM hermes_outbox"
    " WHERE settled_at IS NOT NULL AND settled_at < ? ORDER BY settled_at LIMIT ?)",
)
DELETE_MARKS = "DELETE FROM hermes_mark WHERE made_at < ?"
INSERT_MARK = "INSERT INTO hermes_mark (name, made_at) VALUES (?, ?) ON CONFLICT DO NOTHING"
IS_MARKED = "SELECT 1 FROM hermes_mark WHERE name = ?"
SLICE_ROWS: Final = 1000
OLDEST_WAITING = """
    SELECT min(received_at) FROM hermes_inbox
    WHERE state = 'waiting' AND state IN ('waiting', 'claimed')
"""


def mark(tx: Tx, name: str) -> bool:
    """Record an action, in the transaction that does it; False if it was recorded before."""
    return tx.execute(INSERT_MARK, (name, tx.clock.now())).rowcount > 0


class ChatRepository(Repository):
    """Marks, spending, streamed answers, and lookups in the inbox and the outbox."""

    def mark(self, name: str) -> bool:
        """Record that an action is about to be done, once; False if it was recorded before."""
        return self.engine.write(lambda tx: mark(tx, name))

    def is_marked(self, name: str) -> bool:
        """Whether an action was recorded."""
        return self.engine.read(lambda reader: reader.value(IS_MARKED, (name,))) is not None

    def add_spending(self, platform: str, user_id: str, day: str, dollars: float) -> None:
        """Add the cost of a user's turns on a day."""
        self.engine.write(lambda tx: tx.run(ADD_SPENDING, (platform, user_id, day, dollars)))

    def spending(self, platform: str, user_id: str, day: str) -> float:
        """Cost of a user's turns on a day."""
        key = (platform, user_id, day)
        return float(self.engine.read(lambda reader: reader.value(SELECT_SPENDING, key)) or 0.0)

    def spending_of_all(self, day: str) -> float:
        """Cost of the turns of all users on a day."""
        return float(self.engine.read(lambda reader: reader.value(SPENDING_OF_ALL, (day,))))

    def add_tokens(self, platform: str, user_id: str, day: str, tokens: int) -> None:
        """Add the tokens of a user's turns on a day."""
        self.engine.write(lambda tx: tx.run(ADD_TOKENS, (platform, user_id, day, tokens)))

    def tokens(self, platform: str, user_id: str, day: str) -> int:
        """Tokens of a user's turns on a day."""
        key = (platform, user_id, day)
        return int(self.engine.read(lambda reader: reader.value(SELECT_TOKENS, key)) or 0)

    def tokens_of_all(self, day: str) -> int:
        """Tokens of the turns of all users on a day."""
        return int(self.engine.read(lambda reader: reader.value(TOKENS_OF_ALL, (day,))))

    def note_shown(self, inbox_id: int, receipt: str) -> None:
        """Record that the answer is being streamed in the platform message `receipt`."""
        self.engine.write(lambda tx: tx.run(UPSERT_SHOWN, (inbox_id, receipt)))

    def shown(self, inbox_id: int) -> str | None:
        """The platform message in which the answer is being streamed."""
        receipt: str | None = self.engine.read(
            lambda reader: reader.value(SELECT_SHOWN, (inbox_id,))
        )
        return receipt

    def find_incoming(self, text: str) -> list[IncomingMessage]:
        """Incoming messages, by number or by the platform's ID, latest first."""
        number = int(text) if text.isdecimal() else 0
        rows = self.engine.read(lambda reader: reader.rows(FIND_INCOMING, (text, number)))
        return [IncomingMessage.of_row(row) for row in rows]

    def replies_to(self, inbox_id: int) -> list[StoredReply]:
        """Sent and pending replies to a message."""
        rows = self.engine.read(lambda reader: reader.rows(REPLIES, (inbox_id,)))
        return [StoredReply.of_row(row) for row in rows]

    def reply(self, outbox_id: int) -> StoredReply | None:
        """A pending or sent reply."""
        row = self.engine.read(lambda reader: reader.row(SELECT_REPLY, (outbox_id,)))
        return None if row is None else StoredReply.of_row(row)

    def unsent_replies(self, limit: int = 20) -> list[StoredReply]:
        """Replies that failed permanently or may have arrived, latest first."""
        rows = self.engine.read(lambda reader: reader.rows(UNSENT, (limit,)))
        return [StoredReply.of_row(row) for row in rows]

    def mail_counts(self) -> dict[str, dict[tuple[str, str], int]]:
        """Number of unsettled inbox and outbox rows, by platform and state."""
        rows_by_table = {
            name: self.engine.read(lambda reader, sql=sql: reader.rows(sql))  # type: ignore[misc]
            for name, sql in COUNT_UNSETTLED.items()
        }
        return {
            name: {(platform, state): int(count) for platform, state, count in rows}
            for name, rows in rows_by_table.items()
        }

    def oldest_waiting(self) -> float | None:
        """Arrival time of the message that has been waiting longest."""
        received_at: float | None = self.engine.read(lambda reader: reader.value(OLDEST_WAITING))
        return received_at

    def forget_mail(self, older_than_days: float) -> int:
        """Delete rows that were settled this long ago, oldest first.

        Returns their number. The conversations keep the messages. Each call processes one
        slice.
        """
        before = self.clock.now() - older_than_days * DAY_SECONDS

        def forget(tx: Tx) -> int:
            tx.execute(DELETE_MARKS, (before,))
            delete_old_interruptions(tx, before)
            return sum(tx.execute(sql, (before, SLICE_ROWS)).rowcount for sql in DELETE_SETTLED)

        return self.engine.write_upkeep(forget)
