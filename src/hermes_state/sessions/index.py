"""The session index: the columns of lists, updated in the transaction that changes them.

Another program may write to the same file without updating the index. This is detected by
rows above the watermark `indexed_through` whose session's index row is older, and by
sessions without an index row. Both are checked before each transaction and each list; a
stale session is recomputed from its rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from hermes_core.messages import preview
from hermes_state.engine.values import amount_sql, number_sql
from hermes_state.messages import copies
from hermes_state.messages.rows import decode_content, to_utf8_text
from hermes_state.sessions import lineage

if TYPE_CHECKING:
    from hermes_state.engine.transaction import Reader, Tx

# Values of `shown`.
UNLISTED: Final = 0
LISTED: Final = 1
TRASHED: Final = 2
PURGED: Final = 3

WATERMARK_INTERVAL_ROWS: Final = 512
MAX_TAIL_ROWS: Final = 2000

READ_WATERMARK = "SELECT CAST(value AS INTEGER) FROM hermes_layout WHERE name = 'indexed_through'"
WRITE_WATERMARK = """
    INSERT INTO hermes_layout (name, value) VALUES ('indexed_through', ?)
    ON CONFLICT (name) DO UPDATE SET value = excluded.value
"""
SESSIONS_IN_TAIL = """
    SELECT session_id, max(id) FROM messages WHERE id > ? AND id <= ? GROUP BY session_id
"""
LAST_INDEXED = "SELECT last_message_id FROM hermes_session_index WHERE session_id = ?"
UNINDEXED = """
    SELECT s.id FROM sessions s
    WHERE NOT EXISTS (SELECT 1 FROM hermes_session_index i WHERE i.session_id = s.id)
    ORDER BY s.started_at DESC LIMIT ?
"""
MARK_PURGED = """
    UPDATE hermes_session_index SET shown = 3, preview = NULL
    WHERE shown < 3 AND NOT EXISTS (SELECT 1 FROM sessions s WHERE s.id = session_id)
"""
# Counting all rows, or the few purged ones, is fast; counting those below 3 is not.
COUNTS = """
    SELECT (SELECT count(*) FROM sessions),
           (SELECT count(*) FROM hermes_session_index)
           - (SELECT count(*) FROM hermes_session_index WHERE shown >= 3)
"""
COUNT_ROWS = f"""
    SELECT count(*), count(*) FILTER (WHERE coalesce(active, 1) = 1), max({number_sql("timestamp")})
    FROM messages WHERE session_id = ?
"""  # noqa: S608 - own names
LAST_ID = "SELECT max(id) FROM messages WHERE session_id = ?"
FIRST_USER_CONTENTS = """
    SELECT content FROM messages
    WHERE session_id = ? AND role = 'user' AND (coalesce(active, 1) = 1 OR compacted = 1)
        AND coalesce(finish_reason, '') <> 'deleted' ORDER BY id LIMIT 20
"""
SESSION_FACTS = f"""
    SELECT {amount_sql("started_at")}, {number_sql("ended_at")}, {amount_sql("tool_call_count")}
    FROM sessions WHERE id = ?
"""  # noqa: S608 - own names
IN_TRASH = "SELECT 1 FROM hermes_trash WHERE session_id = ?"
OLD_COUNTS = """
    SELECT lifetime_messages, lifetime_tool_calls, epoch
    FROM hermes_session_index WHERE session_id = ?
"""
UPSERT_INDEX_ROW = """
    INSERT INTO hermes_session_index
        (session_id, kind, root_id, shown, last_activity, last_message_id, active_count,
         lifetime_messages, lifetime_tool_calls, epoch, preview)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (session_id) DO UPDATE SET
        kind = excluded.kind, root_id = excluded.root_id, shown = excluded.shown,
        last_activity = excluded.last_activity, last_message_id = excluded.last_message_id,
        active_count = excluded.active_count, lifetime_messages = excluded.lifetime_messages,
        lifetime_tool_calls = excluded.lifetime_tool_calls, preview = excluded.preview
"""
# The last activity does not decrease when the clock is set back.
COUNT_APPENDED = """
    UPDATE hermes_session_index
    SET last_activity = CASE
            WHEN last_message_id > 0 AND last_activity > ? THEN last_activity ELSE ? END,
        last_message_id = ?, active_count = active_count + ?,
        lifetime_messages = lifetime_messages + ?, lifetime_tool_calls = lifetime_tool_calls + ?,
        preview = coalesce(preview, ?)
    WHERE session_id = ? AND shown <> 2
"""
SET_COUNTS = "UPDATE sessions SET message_count = ?, tool_call_count = ? WHERE id = ?"
SET_LIFETIME = """
    UPDATE hermes_session_index SET lifetime_messages = ?, lifetime_tool_calls = ?
    WHERE session_id = ?
"""
FAMILY = """
    SELECT id FROM sessions WHERE id = ? OR parent_session_id = ?
    UNION SELECT parent_session_id FROM sessions
          WHERE id = ? AND parent_session_id IS NOT NULL
"""
PARENT = "SELECT parent_session_id FROM sessions WHERE id = ?"
SET_POSITION = """
    UPDATE hermes_session_index SET kind = ?, root_id = ?, shown = ? WHERE session_id = ?
"""


class AppendedRows(NamedTuple):
    """Rows that were appended to a session."""

    last_id: int
    at: float
    rows: int
    tool_calls: int
    preview: str  # of the first user message, if there is one


def record_append(tx: Tx, session_id: str, added: AppendedRows) -> bool:
    """Update the index for appended rows; whether the session is in the trash."""
    if tx.is_behind:
        reindex(tx, session_id)
        return tx.value(IN_TRASH, (session_id,)) is not None
    counts = (added.at, added.at, added.last_id, added.rows, added.rows, added.tool_calls)
    values = (*counts, added.preview or None, session_id)
    is_indexed = tx.execute(COUNT_APPENDED, values).rowcount > 0
    tx.covered = max(tx.covered, added.last_id)
    if not is_indexed:  # not indexed yet, or in the trash
        reindex(tx, session_id)
        return tx.value(IN_TRASH, (session_id,)) is not None
    return False


def reindex(tx: Tx, session_id: str) -> None:
    """Compute a session's index row from its rows; lifetime counts never decrease."""
    facts = tx.row(SESSION_FACTS, (session_id,))
    if facts is None:
        tx.execute(MARK_PURGED)
        return
    started_at, ended_at, tool_calls = facts
    total, active, newest = tx.row(COUNT_ROWS, (session_id,)) or (0, 0, None)
    own = (total, tool_calls)
    if copies.has_copies(tx):
        found = copies.count(tx, session_id)
        own = (found.own_messages, tool_calls - (found.calls - found.own_calls))
    old = tx.row(OLD_COUNTS, (session_id,)) or (0, 0, 0)
    position = lineage.position_of(tx, session_id)
    tx.execute(
        UPSERT_INDEX_ROW,
        (
            session_id,
            position.kind,
            position.root_id,
            _shown(tx, session_id, position),
            newest or ended_at or started_at,
            tx.value(LAST_ID, (session_id,)) or 0,
            active,
            max(own[0], old[0]),
            max(own[1], old[1]),
            old[2],
            first_user_text(tx, session_id),
        ),
    )
    parent = tx.value(PARENT, (session_id,))
    if parent is not None:
        update_position(tx, parent)  # this session may continue it


class LifetimeCounts(NamedTuple):
    """Messages and tool calls that a conversation ever had, without those of another one."""

    messages: int = 0
    tool_calls: int = 0


NO_COUNTS: Final = LifetimeCounts()


def lifetime(reader: Reader, session_id: str) -> LifetimeCounts:
    """The lifetime counts of a session."""
    row = reader.row(OLD_COUNTS, (session_id,))
    return LifetimeCounts() if row is None else LifetimeCounts(row[0], row[1])


def recount(tx: Tx, session_id: str, at_least: LifetimeCounts = NO_COUNTS) -> None:
    """Count the messages and calls of a session from its rows, each once."""
    found = copies.count(tx, session_id)
    tx.execute(SET_COUNTS, (found.messages, found.calls, session_id))
    reindex(tx, session_id)
    own = (
        max(found.own_messages, at_least.messages),
        max(found.own_calls, at_least.tool_calls),
    )
    tx.execute(SET_LIFETIME, (*own, session_id))


def first_user_text(reader: Reader, session_id: str) -> str | None:
    """The preview of a conversation: the start of its first user message."""
    for (content,) in reader.rows(FIRST_USER_CONTENTS, (session_id,)):
        if text := to_utf8_text(preview(decode_content(content))):
            return text
    return None


def update_family_positions(tx: Tx, session_id: str) -> None:
    """Update the positions of a session, its parent and its children."""
    for (row_id,) in tx.rows(FAMILY, (session_id, session_id, session_id)):
        update_position(tx, row_id)


def update_position(tx: Tx, session_id: str) -> None:
    """Recompute the position of a session in its lineage."""
    position = lineage.position_of(tx, session_id)
    shown = _shown(tx, session_id, position)
    tx.execute(SET_POSITION, (position.kind, position.root_id, shown, session_id))


def _shown(tx: Tx, session_id: str, position: lineage.LineagePosition) -> int:
    if tx.value(IN_TRASH, (session_id,)):
        return TRASHED
    return LISTED if position.is_listed else UNLISTED


def stale_in_tail(reader: Reader, watermark: int, through: int) -> list[str]:
    """Sessions with rows above *watermark* that their index row does not include."""
    return [
        session_id
        for session_id, newest in reader.rows(SESSIONS_IN_TAIL, (watermark, through))
        if (reader.value(LAST_INDEXED, (session_id,)) or 0) < newest
    ]


def is_stale(reader: Reader) -> bool:
    """Whether another program wrote sessions or messages that the index does not include."""
    if not reader.columns.has_foreign_writers:
        return False
    total, indexed = counts(reader)
    if total != indexed:
        return True
    watermark = reader.value(READ_WATERMARK) or 0
    newest = reader.value("SELECT max(id) FROM messages") or 0
    return newest > watermark and bool(stale_in_tail(reader, watermark, newest))


def catch_up(tx: Tx) -> None:
    """Reindex the sessions that other programs wrote to.

    A long tail is processed in several transactions, so that no writer waits for it.
    """
    if not tx.watermark:
        tx.watermark = tx.value(READ_WATERMARK) or 0
        tx.covered = max(tx.covered, tx.watermark)
    newest = tx.value("SELECT max(id) FROM messages") or 0
    through = min(newest, tx.covered + MAX_TAIL_ROWS)
    if through > tx.covered:
        for session_id in stale_in_tail(tx, tx.covered, through):
            reindex(tx, session_id)
        tx.covered = through
    tx.is_behind = through < newest


def before_commit(tx: Tx) -> None:
    """Advance the watermark at intervals, so that the tail stays short."""
    if tx.covered - tx.watermark >= WATERMARK_INTERVAL_ROWS:
        write_watermark(tx)


def write_watermark(tx: Tx) -> None:
    """Store that all messages up to `covered` are indexed."""
    tx.execute(WRITE_WATERMARK, (str(tx.covered),))
    tx.watermark = tx.covered


def missing_sessions(reader: Reader, limit: int) -> list[str]:
    """Sessions without an index row, newest first."""
    return [row[0] for row in reader.rows(UNINDEXED, (limit,))]


def counts(reader: Reader) -> tuple[int, int]:
    """Number of sessions, and of indexed sessions."""
    row: Any = reader.row(COUNTS)
    return int(row[0]), int(row[1])
