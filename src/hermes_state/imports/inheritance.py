"""The history that a fork continues without repeating it: copies of the rows of its origin.

The origin, or the last part of it, may be imported after the fork. The fork is then completed:
the copies come first, and its own rows are stored again after them, under the same identities.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from hermes_state.imports.rows import END_KEY, IS_USABLE, InheritedHistory, identities, known_rows
from hermes_state.ledger.repository import record_change
from hermes_state.messages import edits
from hermes_state.portable.export_schema import INHERITED_NAME, delete_extra, save_json
from hermes_state.sessions import index

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes_state.engine.transaction import Reader, Tx

UPDATE_ROWS: Final = 200  # per statement

FIND_SESSION = "SELECT session_id FROM hermes_imported_session WHERE agent = ? AND native_id = ?"
UNIT_OF_SESSION = """
    SELECT u.state FROM hermes_imported_session i
    JOIN hermes_import_unit u ON u.agent = i.agent AND u.unit_id = i.path WHERE i.session_id = ?
"""
PENDING = """
    SELECT e.session_id, i.agent, e.value FROM hermes_session_extra e
    JOIN hermes_imported_session i ON i.session_id = e.session_id WHERE e.name = ?
"""
IS_PENDING = "SELECT 1 FROM hermes_session_extra WHERE session_id = ? AND name = ?"
OWN_ROWS = """
    SELECT m.id, h.uid FROM messages m JOIN hermes_message h ON h.message_id = m.id
    WHERE m.session_id = ? ORDER BY m.id
"""
INHERITED_ROWS = """
    SELECT id FROM messages WHERE session_id = ?
        AND id NOT IN (SELECT message_id FROM hermes_message)
"""
HAS_SUMMARY = """
    SELECT 1 FROM messages m JOIN hermes_copy c ON c.message_id = m.id
    WHERE m.session_id = ? AND c.origin_id = 0 AND m.role = 'user' LIMIT 1
"""
COMPACT = "UPDATE messages SET active = 0, compacted = 1 WHERE session_id = ? AND id > ?"
MOVE_UID = "UPDATE hermes_message SET message_id = ? WHERE uid = ?"
MOVE_COPY = "UPDATE hermes_copy SET message_id = ? WHERE message_id = ?"
MOVE_ORIGIN = "UPDATE hermes_copy SET origin_id = ? WHERE origin_id = ?"
MOVE_UNDO = "UPDATE hermes_undo_row SET message_id = ? WHERE message_id = ?"
USED_ORIGINS = "SELECT DISTINCT origin_id FROM hermes_copy WHERE origin_id IN ({places})"
DELETE_ROW = "DELETE FROM messages WHERE id = ?"
DELETE_COPY = "DELETE FROM hermes_copy WHERE message_id = ?"


def inherit(tx: Tx, agent: str, session_id: str, history: InheritedHistory) -> int:
    """Copy the history that a new fork continues; returns the number of copies.

    What is not here yet is added by `complete_forks`.
    """
    parent, last = _origin(tx, agent, history)
    if parent is None or last is None or not _is_complete(tx, parent, history.end):
        save_json(tx, session_id, INHERITED_NAME, list(history))
    if parent is None or last is None:
        return 0
    return edits.copy_rows(tx, parent, session_id, last)


def _origin(tx: Reader, agent: str, history: InheritedHistory) -> tuple[str | None, int | None]:
    """The conversation that a fork continues, and the last row of it that the fork has.

    That is the last record before the fork that is stored: a record may not be a message.
    """
    parent = tx.value(FIND_SESSION, (agent, history.native_id))
    uids = identities(agent, history.latest_keys())
    known = known_rows(tx, uids)
    stored = (known[uid] for uid in uids if uid in known)
    last = next((each.row_id for each in stored if each.session_id is not None), None)
    return parent, last


def _is_complete(tx: Reader, session_id: str, end: int) -> bool:
    """Whether an origin has its own inherited history, and all records before number *end*.

    Units that were read by earlier releases do not tell how many records they had.
    """
    if tx.value(IS_PENDING, (session_id, INHERITED_NAME)):
        return False
    state = tx.value(UNIT_OF_SESSION, (session_id,))
    read_end = json.loads(state).get(END_KEY) if state else None
    return not isinstance(read_end, int) or read_end >= end


def complete_forks(tx: Tx) -> int:
    """Add the history of their origins to forks that were imported before them.

    Returns the number of completed forks. A fork of a fork is completed after that.
    """
    completed = 0
    pending = list(tx.rows(PENDING, (INHERITED_NAME,)))
    while pending:
        left = [each for each in pending if not _complete(tx, *each)]
        if len(left) == len(pending):
            break
        completed += len(pending) - len(left)
        pending = left
    return completed


def _complete(tx: Tx, session_id: str, agent: str, text: str) -> bool:
    history = InheritedHistory(*json.loads(text))
    parent, last = _origin(tx, agent, history)
    if parent is None or last is None or not _is_complete(tx, parent, history.end):
        return False
    if not tx.value(IS_USABLE, (session_id,)):
        return False
    before = [row[0] for row in tx.rows(INHERITED_ROWS, (session_id,))]
    own = [(row_id, bytes(uid)) for row_id, uid in tx.rows(OWN_ROWS, (session_id,))]
    is_compacted = tx.value(HAS_SUMMARY, (session_id,)) is not None
    newest = tx.value(edits.LAST_ROW, (session_id,))
    edits.copy_rows(tx, parent, session_id, last)
    for row_id in before:  # copies of a part of the history, at first
        tx.execute(DELETE_COPY, (row_id,))
        tx.execute(DELETE_ROW, (row_id,))
    if is_compacted:
        tx.execute(COMPACT, (session_id, newest))
    _store_again(tx, own)
    delete_extra(tx, session_id, INHERITED_NAME)
    index.recount(tx, session_id, index.lifetime(tx, session_id))
    record_change(tx, session_id)
    return True


def _store_again(tx: Tx, rows: Sequence[tuple[int, bytes]]) -> None:
    """Give rows new numbers, after all others."""
    names = ", ".join(name for name in tx.columns.messages if name != "id")
    copy = f"INSERT INTO messages ({names}) SELECT {names} FROM messages WHERE id = ?"  # noqa: S608
    origins = _used_origins(tx, [row_id for row_id, _uid in rows])
    for row_id, uid in rows:
        new_id = tx.insert(copy, (row_id,), "id")
        tx.execute(MOVE_UID, (new_id, uid))
        tx.execute(MOVE_COPY, (new_id, row_id))
        tx.execute(MOVE_UNDO, (new_id, row_id))
        if row_id in origins:
            tx.execute(MOVE_ORIGIN, (new_id, row_id))
        tx.execute(DELETE_ROW, (row_id,))


def _used_origins(tx: Reader, row_ids: Sequence[int]) -> set[int]:
    """Those of the rows that have copies."""
    used: set[int] = set()
    for start in range(0, len(row_ids), UPDATE_ROWS):
        some = row_ids[start : start + UPDATE_ROWS]
        sql = USED_ORIGINS.format(places=", ".join("?" * len(some)))
        used.update(row[0] for row in tx.rows(sql, some))
    return used
