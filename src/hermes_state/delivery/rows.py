"""Rows of the inbox."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from hermes_state.delivery.stored_json import read_object

if TYPE_CHECKING:
    from hermes_state.engine.transaction import Tx

    Kind = Literal["inbox", "outbox"]
    from hermes_state.delivery.stored_json import MessagePayload

INCOMING_COLUMNS = """
    inbox_id, platform, account, chat_id, message_id, session_key, payload, received_at, state,
    attempts, session_id, settled_at, error
"""


class MessageAges(NamedTuple):
    """Seconds since the oldest unsettled messages arrived that wait for no budget."""

    waiting: float = 0.0
    claimed: float = 0.0


class FailedMessage(NamedTuple):
    """A message or update that could not be handled; *content* is its stored JSON."""

    inbox_id: int
    platform: str
    chat_id: str
    message_id: str
    content: str
    received_at: float
    attempts: int
    error: str | None


class IncomingMessage(NamedTuple):
    """A row of the inbox."""

    inbox_id: int
    platform: str
    account: str
    chat_id: str
    message_id: str
    session_key: str
    payload: MessagePayload
    received_at: float
    state: str
    attempts: int
    session_id: str | None
    settled_at: float | None
    error: str | None
    rows: dict[str, int | None]  # its row by session ID, where it was looked up
    crashes: int = 0  # of processes that handled it together with messages of other places

    @classmethod
    def of_row(cls, row: tuple[Any, ...], crashes: int = 0) -> IncomingMessage:
        """The message of a row with the columns INCOMING_COLUMNS."""
        return cls._make([*row[:6], read_object(row[6]), *row[7:], {}, crashes])

    @property
    def command(self) -> str:
        """The name of a command; empty for other messages."""
        text = str(self.payload.get("text", ""))
        word = text.split(maxsplit=1)[0] if text.startswith("/") else ""
        return word[1:].partition("@")[0].lower()


class ReceivedMessage(NamedTuple):
    """Inbox ID of an incoming message, whether it is new, and its row if it was claimed."""

    inbox_id: int
    is_new: bool
    claimed: IncomingMessage | None = None


ADD_INTERRUPTION = """
    INSERT INTO hermes_interruption (kind, number, count, noted_at) VALUES (?, ?, 1, ?)
    ON CONFLICT (kind, number)
    DO UPDATE SET count = hermes_interruption.count + 1, noted_at = excluded.noted_at
    RETURNING count
"""
FORGET_INTERRUPTIONS = "DELETE FROM hermes_interruption WHERE kind = ? AND number = ?"
DELETE_OLD_INTERRUPTIONS = "DELETE FROM hermes_interruption WHERE noted_at < ?"


def add_interruption(tx: Tx, kind: Kind, number: int) -> int:
    """Count an interruption; the number so far."""
    return int(tx.value(ADD_INTERRUPTION, (kind, number, tx.clock.now())))


def forget_interruptions(tx: Tx, kind: Kind, number: int) -> None:
    """Start the count of a message or reply again."""
    tx.execute(FORGET_INTERRUPTIONS, (kind, number))


def delete_old_interruptions(tx: Tx, before: float) -> None:
    """Delete the counts from before a time."""
    tx.execute(DELETE_OLD_INTERRUPTIONS, (before,))
