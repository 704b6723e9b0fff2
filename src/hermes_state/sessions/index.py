"""The session index: what lists need, kept in the transaction that changes it.

Another program may write the same file without knowing the index. Two things tell:
rows above the mark `indexed_through` whose session's index row is behind them, and
sessions that have no index row. Both are looked at before any work of ours begins and
before a list is answered; a session found stale is computed again from its rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from hermes_core.messages import preview
from hermes_state.messages.rows import decode_content, storable
from hermes_state.sessions import lineage

if TYPE_CHECKING:
    from hermes_state.engine.transaction import Reader, Tx

# Values of `shown`.
INNER: Final = 0
LISTED: Final = 1
TRASHED: Final = 2
PURGED: Final = 3

MARK_EVERY: Final = 512
LONGEST_TAIL: Final = 2000

READ_MARK = "SELECT CAST(value AS INTEGER) FROM hermes_layout WHERE name = 'indexed_through'"
WRITE_MARK = """
    INSERT INTO hermes_layout (name, value) VALUES ('indexed_through', ?)
    ON CONFLICT (name) DO UPDATE SET value = excluded.value
"""
TAIL = """
    SELECT session_id, max(id) FROM messages WHERE id > ? AND id <= ? GROUP BY session_id
"""
LAST_INDEXED = "SELECT last_message_id FROM hermes_session_index WHERE session_id = ?"
UNINDEXED = """
    SELECT s.id FROM sessions s
    WHERE NOT EXISTS (SELECT 1 FROM hermes_session_index i WHERE i.session_id = s.id)
    ORDER BY s.started_at DESC LIMIT ?
"""
VANISHED = """
    UPDATE hermes_session_index SET shown = 3, preview = NULL
    WHERE shown < 3 AND NOT EXISTS (SELECT 1 FROM sessions s WHERE s.id = session_id)
"""
# Counting a whole table, or the few purged rows, is quick; counting those below 3 is not.
COUNTS = """
    SELECT (SELECT count(*) FROM sessions),
           (SELECT count(*) FROM hermes_session_index)
           - (SELECT count(*) FROM hermes_session_index WHERE shown >= 3)
"""
COUNT_ROWS = """
    SELECT count(*), coalesce(sum(coalesce(active, 1)), 0), max(timestamp)
    FROM messages WHERE session_id = ?
"""
COUNT_COPIES = """
    SELECT count(*) FROM messages m JOIN hermes_copy c ON c.message_id = m.id
    WHERE m.session_id = ?
"""
LAST_ID = "SELECT max(id) FROM messages WHERE session_id = ?"
FIRST_USER_CONTENTS = """
    SELECT content FROM messages
    WHERE session_id = ? AND role = 'user' AND coalesce(active, 1) = 1 ORDER BY id LIMIT 20
"""
SESSION_FACTS = "SELECT started_at, ended_at, tool_call_count FROM sessions WHERE id = ?"
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
# A clock that was set back does not take the last activity back.
APPENDED = """
    UPDATE hermes_session_index
    SET last_activity = CASE
            WHEN last_message_id > 0 AND last_activity > ? THEN last_activity ELSE ? END,
        last_message_id = ?, active_count = active_count + ?,
        lifetime_messages = lifetime_messages + ?, lifetime_tool_calls = lifetime_tool_calls + ?
    WHERE session_id = ? AND shown <> 2
"""
APPENDED_FIRST_WORDS = """
    UPDATE hermes_session_index SET preview = ? WHERE session_id = ? AND preview IS NULL
"""
FAMILY = """
    SELECT id FROM sessions WHERE id = ? OR parent_session_id = ?
    UNION SELECT parent_session_id FROM sessions
          WHERE id = ? AND parent_session_id IS NOT NULL
"""
PARENT = "SELECT parent_session_id FROM sessions WHERE id = ?"
PLACE = """
    UPDATE hermes_session_index SET kind = ?, root_id = ?, shown = ? WHERE session_id = ?
"""


class Appended(NamedTuple):
    """Rows that were added at the end of a session."""

    last_id: int
    at: float
    rows: int
    tool_calls: int
    words: str  # the beginning of what a user said, if one did


def note_append(tx: Tx, session_id: str, added: Appended) -> bool:
    """Rows were added at the end of a session; whether it lies in the trash."""
    if tx.is_behind:
        reindex(tx, session_id)
        return tx.value(IN_TRASH, (session_id,)) is not None
    values = (added.at, added.at, added.last_id, added.rows, added.rows, added.tool_calls)
    is_noted = tx.execute(APPENDED, (*values, session_id)).rowcount > 0
    tx.covered = max(tx.covered, added.last_id)
    if not is_noted:  # not indexed yet, or in the trash
        reindex(tx, session_id)
        return tx.value(IN_TRASH, (session_id,)) is not None
    if added.words:
        tx.execute(APPENDED_FIRST_WORDS, (added.words, session_id))
    return False


def reindex(tx: Tx, session_id: str) -> None:
    """Compute a session's index row from its rows; lifetime counts never go down."""
    facts = tx.row(SESSION_FACTS, (session_id,))
    if facts is None:
        tx.execute(VANISHED)
        return
    started_at, ended_at, tool_calls = facts
    total, active, newest = tx.row(COUNT_ROWS, (session_id,)) or (0, 0, None)
    copies = tx.value(COUNT_COPIES, (session_id,)) if _has_copies(tx) else 0
    old = tx.row(OLD_COUNTS, (session_id,)) or (0, 0, 0)
    place = lineage.place_of(tx, session_id)
    tx.execute(
        UPSERT_INDEX_ROW,
        (
            session_id,
            place.kind,
            place.root_id,
            _shown(tx, session_id, place),
            newest or ended_at or started_at,
            tx.value(LAST_ID, (session_id,)) or 0,
            active,
            max(total - copies, old[0]),
            max(tool_calls or 0, old[1]),
            old[2],
            first_words(tx, session_id),
        ),
    )
    parent = tx.value(PARENT, (session_id,))
    if parent is not None:
        replace_one(tx, parent)  # it may be continued here


def _has_copies(tx: Tx) -> bool:
    return tx.value("SELECT 1 FROM hermes_copy LIMIT 1") is not None


def first_words(reader: Reader, session_id: str) -> str | None:
    """What the user said first: the preview of a conversation."""
    for (content,) in reader.execute(FIRST_USER_CONTENTS, (session_id,)):
        if words := storable(preview(decode_content(content))):
            return words
    return None


def replace_family(tx: Tx, session_id: str) -> None:
    """A session's place changed: look again at it, its parent and its children."""
    for (one,) in tx.rows(FAMILY, (session_id, session_id, session_id)):
        replace_one(tx, one)


def replace_one(tx: Tx, session_id: str) -> None:
    """Look again at where a session stands."""
    place = lineage.place_of(tx, session_id)
    shown = _shown(tx, session_id, place)
    tx.execute(PLACE, (place.kind, place.root_id, shown, session_id))


def _shown(tx: Tx, session_id: str, place: lineage.LineagePosition) -> int:
    if tx.value(IN_TRASH, (session_id,)):
        return TRASHED
    return LISTED if place.is_listed else INNER


def stale_in_tail(reader: Reader, mark: int, through: int) -> list[str]:
    """Sessions with rows above *mark* that their index row has not seen."""
    return [
        session_id
        for session_id, newest in reader.rows(TAIL, (mark, through))
        if (reader.value(LAST_INDEXED, (session_id,)) or 0) < newest
    ]


def catch_up(tx: Tx) -> None:
    """Others wrote since we last looked: bring the sessions they touched up to date.

    A long tail is read in pieces, one per transaction, so that no writer waits for it.
    """
    if not tx.marked:
        tx.marked = tx.value(READ_MARK) or 0
        tx.covered = max(tx.covered, tx.marked)
    newest = tx.value("SELECT max(id) FROM messages") or 0
    through = min(newest, tx.covered + LONGEST_TAIL)
    if through > tx.covered:
        for session_id in stale_in_tail(tx, tx.covered, through):
            reindex(tx, session_id)
        tx.covered = through
    tx.is_behind = through < newest


def before_commit(tx: Tx) -> None:
    """Move the mark from time to time, so that the tail stays short."""
    if tx.covered - tx.marked >= MARK_EVERY:
        write_mark(tx)


def write_mark(tx: Tx) -> None:
    """Everything up to `covered` is in the index."""
    tx.execute(WRITE_MARK, (str(tx.covered),))
    tx.marked = tx.covered


def missing_sessions(reader: Reader, limit: int) -> list[str]:
    """Sessions without an index row, newest first."""
    return [row[0] for row in reader.rows(UNINDEXED, (limit,))]


def counts(reader: Reader) -> tuple[int, int]:
    """How many sessions there are, and how many of them are indexed."""
    row: Any = reader.row(COUNTS)
    return int(row[0]), int(row[1])
