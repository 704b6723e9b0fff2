"""Storing messages idempotently: each identity is stored once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hermes_core.errors import (
    IdFormatError,
    LeaseLostError,
    SessionDeletedError,
    SessionNotFoundError,
)
from hermes_core.ids import MessageIds, foreign_row_id, uid_bytes
from hermes_state.engine.database import ConstraintError
from hermes_state.messages.rows import insert_statement, written_columns
from hermes_state.sessions import index, trash
from hermes_state.sessions import rows as sessions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes_state.engine.transaction import Reader, Tx
    from hermes_state.messages.rows import NewMessage

DAY_SECONDS: Final = 86_400

ROW_BY_UID = "SELECT message_id FROM hermes_message WHERE uid = ?"
SESSION_OF = "SELECT session_id FROM messages WHERE id = ?"
NEWEST_UID = "SELECT max(uid) FROM hermes_message WHERE uid < ?"
INSERT_UID = "INSERT INTO hermes_message (uid, message_id) VALUES (?, ?)"
INSERT_ALIAS = "INSERT INTO hermes_message (uid, message_id) VALUES (?, ?) ON CONFLICT DO NOTHING"
CURRENT_LEASE = "SELECT token FROM hermes_lease WHERE session_id = ?"
COUNT_IN_SESSION = """
    UPDATE sessions SET message_count = coalesce(message_count, 0) + ?,
        tool_call_count = coalesce(tool_call_count, 0) + ? WHERE id = ? AND ended_at IS NULL
"""
COUNT_AND_STAMP = """
    UPDATE sessions SET message_count = coalesce(message_count, 0) + ?,
        tool_call_count = coalesce(tool_call_count, 0) + ?, last_activity_at = ?
    WHERE id = ? AND ended_at IS NULL
"""


def append(tx: Tx, session_id: str, message: NewMessage, token: int | None = None) -> int:
    """Append a message to a session; returns its row ID, new or existing."""
    return append_all(tx, session_id, [message], token)[0]


def append_all(
    tx: Tx, session_id: str, messages: Sequence[NewMessage], token: int | None = None
) -> list[int]:
    """Append messages in order; messages already stored keep their rows."""
    if token is not None:
        check_token(tx, session_id, token)
    row_ids: list[int] = []
    new: list[NewMessage] = []
    for message in messages:
        row_id, key = _look_up(tx, session_id, message)
        if row_id is None:
            row_id = _insert(tx, session_id, message, key)
            new.append(message)
        row_ids.append(row_id)
    if new:
        _count(tx, session_id, new, max(row_ids))
    return row_ids


def check_token(tx: Tx, session_id: str, token: int) -> None:
    """Raise LeaseLostError for a turn whose lease was taken over."""
    current = tx.value(CURRENT_LEASE, (session_id,))
    if current != token and tx.value(index.IN_TRASH, (session_id,)) is not None:
        raise SessionDeletedError(
            f"the conversation {session_id} was deleted; this turn's message was not stored"
        )
    if current != token:
        raise LeaseLostError(
            f"another process has taken over the conversation {session_id}; "
            "this turn's message was not stored"
        )


def _uid_key(uid: str) -> bytes:
    """The stored form of an identity; a foreign identity is hashed."""
    try:
        return uid_bytes(uid)
    except IdFormatError:
        return _digest(uid.encode("utf-8", "surrogatepass"))


def derive_identity(session_id: str, key: bytes) -> bytes:
    """The identity in this conversation of a message that exists in another one."""
    return _digest(key + session_id.encode())


def _digest(data: bytes) -> bytes:
    import hashlib  # noqa: PLC0415 - rarely needed, and slow to load

    return hashlib.blake2b(data, digest_size=16).digest()


def alias(tx: Tx, uid: str, row_id: int) -> None:
    """Add another identity to a stored message: that of a message merged into it."""
    tx.execute(INSERT_ALIAS, (_uid_key(uid), row_id))


def row_with(reader: Reader, uid: str) -> int | None:
    """Row of the message with this identity, in any conversation."""
    row_id: int | None = reader.value(ROW_BY_UID, (_uid_key(uid),))
    return row_id


def row_of(reader: Reader, session_id: str, uid: str) -> int | None:
    """Row of the message with this identity in a conversation."""
    row_id: int | None = reader.value(ROW_BY_UID, (_uid_key(uid),))
    if row_id is None or reader.value(SESSION_OF, (row_id,)) != session_id:
        return None
    return row_id


def known_row(tx: Tx, session_id: str, message: NewMessage) -> int | None:
    """Row of a message that is already stored in this session, or None."""
    return None if message.has_new_uid else _look_up(tx, session_id, message)[0]


def _look_up(tx: Tx, session_id: str, message: NewMessage) -> tuple[int | None, bytes | None]:
    """Row of a message already stored in this session, or the key to store it under."""
    uid = message.uid
    if uid is None:
        return None, None
    if message.has_new_uid:
        return None, bytes.fromhex(uid)
    row_id = foreign_row_id(uid)
    if row_id is not None:
        if tx.value(SESSION_OF, (row_id,)) == session_id:
            return row_id, None
        key = derive_identity(session_id, uid.encode())
        return tx.value(ROW_BY_UID, (key,)), key
    key = _uid_key(uid)
    if _is_newer_than_all(tx, key):
        return None, key
    known = tx.value(ROW_BY_UID, (key,))
    if known is not None and tx.value(SESSION_OF, (known,)) != session_id:
        # Stored in another conversation: here its identity is derived from both.
        key = derive_identity(session_id, key)
        known = tx.value(ROW_BY_UID, (key,))
    return known, key


def _is_newer_than_all(tx: Tx, key: bytes) -> bool:
    """Whether an identity is greater than every stored one, so that it needs no lookup.

    An identity starts with the time of its creation, so a new one nearly always is the
    greatest. A hashed identity may have any value: the limit of one day from now excludes
    it from the comparison.
    """
    if tx.newest_uid is None:
        milliseconds = max(0, int((tx.clock.now() + DAY_SECONDS) * 1000))
        tx.uid_limit = milliseconds.to_bytes(8, "big")[2:]
        tx.newest_uid = tx.value(NEWEST_UID, (tx.uid_limit,)) or b""
    return tx.newest_uid < key < tx.uid_limit


def _insert(tx: Tx, session_id: str, message: NewMessage, key: bytes | None) -> int:
    values = message.values
    values.setdefault("timestamp", tx.clock.now())
    values.setdefault("observed", 0)
    names = tuple([name for name in tx.prepared(written_columns) if name in values])
    parameters = (session_id, *[values[name] for name in names])
    try:
        row_id = tx.insert(insert_statement(names), parameters, "id")
    except ConstraintError as error:
        if "FOREIGN KEY" not in str(error):
            raise
        raise SessionNotFoundError(f"session not found: {session_id}") from error
    if key is not None:
        tx.execute(INSERT_UID, (key, row_id))
        if tx.newest_uid is not None and tx.newest_uid < key < tx.uid_limit:
            tx.newest_uid = key
    return row_id


def _count(tx: Tx, session_id: str, new: list[NewMessage], last_id: int) -> None:
    calls = sum(message.tool_calls for message in new)
    at = max(message.timestamp for message in new)
    text = next((message.preview for message in new if message.preview), "")
    rows = len(new)
    is_stamped = tx.columns.stamps_activity
    sql = COUNT_AND_STAMP if is_stamped else COUNT_IN_SESSION
    values = (rows, calls, at, session_id) if is_stamped else (rows, calls, session_id)
    if not tx.execute(sql, values).rowcount:
        # A session that has ended is not written to without an event that it continues.
        sessions.reopen(tx, MessageIds(tx.clock).new(), session_id)
        tx.execute(sql, values)
    added = index.AppendedRows(last_id, at, rows, calls, text)
    if index.record_append(tx, session_id, added):
        # A conversation that continues is restored from the trash.
        trash.restore_all(tx, MessageIds(tx.clock), session_id)
