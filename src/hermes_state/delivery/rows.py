"""Rows of the inbox, and the JSON that rows of delivery contain."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, NotRequired, TypedDict

if TYPE_CHECKING:
    from hermes_state.engine.transaction import Tx

    Kind = Literal["inbox", "outbox"]


class StoredSource(TypedDict, total=False):
    """Where a message came from: platform, chat and sender."""

    platform: str
    chat_id: str
    chat_name: str | None
    chat_type: str
    user_id: str | None
    user_name: str | None
    thread_id: str | None
    chat_topic: str | None
    user_id_alt: str
    chat_id_alt: str
    guild_id: str
    parent_chat_id: str
    message_id: str
    profile: str


class MessagePayload(TypedDict):
    """The content of a row of the inbox."""

    text: str
    message_id: NotRequired[str | None]
    platform_update_id: NotRequired[int | None]
    media_urls: NotRequired[list[str]]
    media_types: NotRequired[list[str]]
    media_names: NotRequired[list[str]]
    reply_to_message_id: NotRequired[str | None]
    reply_to_text: NotRequired[str | None]
    is_edit: NotRequired[bool]
    group_id: NotRequired[str | None]
    is_addressed: NotRequired[bool]
    internal: NotRequired[bool]
    question_id: NotRequired[str]
    timestamp: NotRequired[float]
    type: NotRequired[str]
    source: StoredSource
    occurrence_id: NotRequired[int]  # of a scheduled job
    instructions: NotRequired[str]  # of an API client, for the conversation
    continues: NotRequired[tuple[str, int] | None]  # a conversation and its last message
    channel_context: NotRequired[str | None]  # earlier messages of the chat
    undecided: NotRequired[str]  # why no plugin has decided yet whether it may be handled


class ReplyTarget(TypedDict):
    """The chat that a reply is sent to."""

    chat_id: str
    thread_id: NotRequired[str | None]


class JobTarget(TypedDict, total=False):
    """Where the results of a scheduled job go; without a chat, to the owner's."""

    platform: str
    chat_id: str
    thread_id: str | None


class StoredUsage(TypedDict):
    """The tokens of all model requests of a turn; cached ones are not part of `input`."""

    input: int
    output: int
    cache_read: int
    cache_write: int
    reasoning: int


class StoredFailure(TypedDict):
    """Why a turn has no answer."""

    kind: str
    message: str
    retry_after: NotRequired[float]


class ReplyPayload(TypedDict):
    """The content of a row of the outbox."""

    text: str
    reply_to: NotRequired[str | None]
    in_place_of: NotRequired[str]
    file: NotRequired[str]
    media: NotRequired[str]
    buttons: NotRequired[list[tuple[str, str]]]  # labels and data
    usage: NotRequired[StoredUsage]  # of the turn, for programs
    failure: NotRequired[StoredFailure]  # the text describes it
    problem: NotRequired[str]  # why the answer is not complete, for programs


class StoredRoute(TypedDict, total=False):
    """A route as the gateway stores it; files by hand may lack anything."""

    session_key: str
    session_id: str
    created_at: str
    updated_at: str
    origin: StoredSource
    display_name: str | None
    platform: str | None
    chat_type: str
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    total_tokens: int
    estimated_cost_usd: float
    cost_status: str
    last_prompt_tokens: int
    was_auto_reset: bool
    auto_reset_reason: str | None
    reset_had_activity: bool
    is_fresh_reset: bool
    expiry_finalized: bool
    memory_flushed: bool  # in files of hermes-agent
    suspended: bool
    resume_pending: bool
    resume_reason: str | None
    last_resume_marked_at: str | None
    prev_session_id: str | None
    place: str


def read_object(stored: str | None) -> Any:
    """A stored JSON object; an empty one if it is unreadable.

    A damaged row, or one of a newer release, must not keep its readers from the others.
    """
    return _parse(stored) or {}


def is_object(stored: str | None) -> bool:
    """Whether a stored JSON object is readable."""
    return _parse(stored) is not None


def _parse(stored: str | None) -> dict[str, Any] | None:
    try:
        value = json.loads(stored or "{}")
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


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
