"""Tokens, cost and time of each answer of the model.

A row is written in the transaction that stores the answer. A copy of an answer, in a branch or
after a compaction, has no row of its own: it shows that of its origin and is not counted again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from hermes_state.messages import append

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from hermes_state.engine.transaction import Reader, Tx
    from hermes_state.engine.values import SqlValue

TABLE = "hermes_answer_usage"


class AnswerUsage(NamedTuple):
    """What an answer took; the cost is None if no price is known.

    `cost_status` is actual, estimated, included or unknown, as for sessions.
    """

    model: str
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    reasoning_tokens: int
    cost_usd: float | None
    cost_status: str
    seconds: float


NAMES = ", ".join(AnswerUsage._fields)
INSERT = (
    f"INSERT INTO {TABLE} (message_id, {NAMES})"  # noqa: S608 - our names
    f" VALUES ({', '.join('?' * (len(AnswerUsage._fields) + 1))}) ON CONFLICT DO NOTHING"
)
QUALIFIED = ", ".join(f"u.{name}" for name in AnswerUsage._fields)
OF_SESSION = (
    f"SELECT m.id, {QUALIFIED} FROM messages m JOIN {TABLE} u ON u.message_id = m.id"  # noqa: S608
    " WHERE m.session_id = ?"
)
COPIES_OF_SESSION = (
    f"SELECT m.id, {QUALIFIED} FROM messages m"  # noqa: S608 - our names
    f" JOIN hermes_copy c ON c.message_id = m.id JOIN {TABLE} u ON u.message_id = c.origin_id"
    " WHERE m.session_id = ?"
)


def record(tx: Tx, row_id: int, usage: AnswerUsage) -> None:
    """Store the usage of an answer."""
    tx.execute(INSERT, (row_id, *usage))


def record_by_uid(tx: Tx, uid: str, usage: AnswerUsage) -> None:
    """Store the usage of the answer with this identity, if it is stored."""
    row_id = append.row_with(tx, uid)
    if row_id is not None:
        record(tx, row_id, usage)


def delete(tx: Tx, row_ids: Sequence[int]) -> None:
    """Delete the usage of answers that are purged."""
    places = ", ".join("?" * len(row_ids))
    tx.execute(f"DELETE FROM {TABLE} WHERE message_id IN ({places})", row_ids)  # noqa: S608


def of_session(
    reader: Reader, session_id: str, *, with_copies: bool = True
) -> dict[int, AnswerUsage]:
    """The usage of the answers of a session, by message ID."""
    if not _has_table(reader):
        return {}
    found = _by_message(reader.rows(OF_SESSION, (session_id,)))
    if with_copies:
        found |= _by_message(reader.rows(COPIES_OF_SESSION, (session_id,)))
    return found


def of_messages(reader: Reader, row_ids: Sequence[int]) -> dict[int, AnswerUsage]:
    """The usage of these answers, by message ID."""
    if not row_ids or not _has_table(reader):
        return {}
    places = ", ".join("?" * len(row_ids))
    own = f"SELECT u.message_id, {QUALIFIED} FROM {TABLE} u WHERE u.message_id IN ({places})"  # noqa: S608
    copies = (
        f"SELECT c.message_id, {QUALIFIED} FROM hermes_copy c"  # noqa: S608 - our names
        f" JOIN {TABLE} u ON u.message_id = c.origin_id WHERE c.message_id IN ({places})"
    )
    return _by_message(reader.rows(own, row_ids)) | _by_message(reader.rows(copies, row_ids))


def _has_table(reader: Reader) -> bool:
    """Whether the file has the table; one that another program wrote may have no own tables."""
    return TABLE in reader.columns.tables


def _by_message(rows: Iterable[tuple[SqlValue, ...]]) -> dict[int, AnswerUsage]:
    return {int(row[0] or 0): AnswerUsage._make(row[1:]) for row in rows}
