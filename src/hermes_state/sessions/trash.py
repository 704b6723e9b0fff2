"""The trash: deleting, restoring and purging sessions.

A trashed session is archived, so that other programs hide it too, and its title becomes
available. Purging deletes rows in small transactions, so that no writer waits; lifetime
counts are kept in the index.
"""

from __future__ import annotations

import functools
import time
from typing import TYPE_CHECKING, Final

from hermes_core.errors import SessionNotFoundError
from hermes_core.hooks import BoundaryKind
from hermes_state.engine.threads import SLICE_SECONDS
from hermes_state.ledger.repository import record_change, save_facts
from hermes_state.messages.rows import decode_json, encode_json
from hermes_state.repository import Repository
from hermes_state.sessions import index, lifecycle, lineage, usage
from hermes_state.sessions import rows as sessions
from hermes_state.sessions.records import TrashedSession
from hermes_state.sessions.rows import set_fact

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes_core.ids import MessageIds
    from hermes_state.engine.transaction import Reader, Tx
    from hermes_state.ledger.repository import LedgerRepository
    from hermes_state.repository import StoreContext

SLICE_ROWS: Final = 20
DAY_SECONDS: Final = 86400.0

INSERT_TRASH = """
    INSERT INTO hermes_trash (session_id, trashed_at, reason, was_archived, was_open, title)
    VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING
"""
SELECT_TRASH = "SELECT was_archived, was_open, title FROM hermes_trash WHERE session_id = ?"
TRASHED_AT = "SELECT trashed_at FROM hermes_trash WHERE session_id = ?"
DELETE_TRASH = "DELETE FROM hermes_trash WHERE session_id = ?"
CUT_ROUTES = "DELETE FROM hermes_route WHERE session_id = ?"
REVOKE_LEASE = """
    UPDATE hermes_lease SET token = token + 1, process_id = NULL, holder = NULL
    WHERE session_id = ? AND process_id IS NOT NULL
"""
DELETE_DRAFTS = "DELETE FROM hermes_draft WHERE session_id = ?"
HIDE = "UPDATE sessions SET archived = 1, title = NULL WHERE id = ?"
UNHIDE = "UPDATE sessions SET archived = ?, title = ? WHERE id = ?"
LIST_TRASH = """
    SELECT t.session_id, t.trashed_at, t.reason, t.title, i.preview
    FROM hermes_trash t LEFT JOIN hermes_session_index i ON i.session_id = t.session_id
    ORDER BY t.trashed_at DESC
"""
EXPIRED = "SELECT session_id FROM hermes_trash WHERE trashed_at <= ?"
TITLE_TAKEN = "SELECT 1 FROM sessions WHERE title = ?"
NEXT_ROWS = "SELECT id FROM messages WHERE session_id = ? LIMIT ?"
CHILDREN = "SELECT id FROM sessions WHERE parent_session_id = ?"
CLEAR_PARENT = "UPDATE sessions SET parent_session_id = NULL WHERE parent_session_id = ?"
# What an agent added to a conversation in the trash was not imported: it is read again.
READ_UNITS_AGAIN = """
    UPDATE hermes_import_unit SET revision = '', position = 0, state = '{}'
    WHERE EXISTS (
        SELECT 1 FROM hermes_imported_session i
        WHERE i.session_id = ? AND i.agent = hermes_import_unit.agent
            AND unit_id IN (i.path, i.path || '#' || i.native_id))
"""
DELETE_SESSION_DATA = (
    "DELETE FROM hermes_session_extra WHERE session_id = ?",
    "DELETE FROM hermes_tag WHERE session_id = ?",
    "DELETE FROM hermes_participant WHERE session_id = ?",
    "DELETE FROM hermes_lease WHERE session_id = ?",
    "DELETE FROM hermes_draft WHERE session_id = ?",
    "DELETE FROM hermes_undo_row WHERE undo_id IN"
    " (SELECT undo_id FROM hermes_undo WHERE session_id = ?)",
    "DELETE FROM hermes_undo WHERE session_id = ?",
    "DELETE FROM hermes_trash WHERE session_id = ?",
    "DELETE FROM hermes_edit WHERE session_id = ?",
    "DELETE FROM hermes_outcome WHERE session_id = ?",
    "DELETE FROM hermes_call_mark WHERE session_id = ?",
    CUT_ROUTES,
    "UPDATE hermes_session_index SET shown = 3, preview = NULL WHERE session_id = ?",
)


def move_to_trash(tx: Tx, event_id: str, session_id: str, reason: str, at: float) -> bool:
    """Move a session to the trash, ending it if it is open.

    It stays there: its place is routed to another conversation by the next message, and a turn
    that runs in it can no longer write.
    """
    row = sessions.get(tx, session_id)
    if row is None:
        return False
    was_open = int(row.ended_at is None)
    values = (at, reason, row.archived, was_open, row.title)
    if not tx.execute(INSERT_TRASH, (session_id, *values)).rowcount:
        return False
    if not sessions.end(tx, event_id, session_id, reason):
        sessions.announce(tx, event_id, session_id, BoundaryKind.PRUNE, reason)
    if row.session_key is not None:
        tx.execute(CUT_ROUTES, (session_id,))
    tx.execute(REVOKE_LEASE, (session_id,))
    tx.execute(DELETE_DRAFTS, (session_id,))
    tx.execute(HIDE, (session_id,))
    index.update_family_positions(tx, session_id)
    return True


def restore(tx: Tx, event_id: str, session_id: str) -> None:
    """Restore a session from the trash; a title that is in use now gets a number."""
    trashed = tx.row(SELECT_TRASH, (session_id,))
    if trashed is None:
        raise SessionNotFoundError(f"session {session_id} is not in the trash")
    archived, was_open, title = trashed
    tx.execute(DELETE_TRASH, (session_id,))
    name, number = title, 2
    while name is not None and tx.value(TITLE_TAKEN, (name,)):
        name, number = f"{title} #{number}", number + 1
    tx.execute(UNHIDE, (archived, name, session_id))
    if was_open:
        sessions.reopen(tx, event_id, session_id)
    if "hermes_import_unit" in tx.columns.tables:
        tx.execute(READ_UNITS_AGAIN, (session_id,))
    index.update_family_positions(tx, session_id)


def rows_with_delegates(reader: Reader, session_id: str) -> list[str]:
    """The rows of a conversation and of the tasks delegated from it."""
    row_ids: list[str] = []
    queue = lineage.conversation_of(reader, session_id)
    while queue:
        current = queue.pop()
        row_ids.append(current)
        for (child,) in reader.rows(CHILDREN, (current,)):
            if lineage.kind_of(reader, child)[0] == lineage.DELEGATE:
                queue.append(child)
    return row_ids


def restore_all(tx: Tx, ids: MessageIds, session_id: str) -> None:
    """Restore a conversation and everything that was trashed with it."""
    at = tx.value(TRASHED_AT, (session_id,))
    if at is None:
        raise SessionNotFoundError(f"session {session_id} is not in the trash")
    for row_id in rows_with_delegates(tx, session_id):
        if tx.value(TRASHED_AT, (row_id,)) == at:
            restore(tx, ids.new(), row_id)


def purge_batch(tx: Tx, session_id: str) -> bool:
    """Delete a batch of a session's rows permanently; whether the session is purged."""
    lifecycle.plan(tx, session_id, lifecycle.LifecycleChange.PURGE)
    deadline = time.monotonic() + SLICE_SECONDS
    while True:
        row_ids = [row[0] for row in tx.rows(NEXT_ROWS, (session_id, SLICE_ROWS))]
        if not row_ids:
            break
        placeholders = ", ".join("?" * len(row_ids))
        tx.execute(f"DELETE FROM hermes_copy WHERE message_id IN ({placeholders})", row_ids)  # noqa: S608
        usage.delete(tx, row_ids)
        tx.execute(f"DELETE FROM messages WHERE id IN ({placeholders})", row_ids)  # noqa: S608
        if time.monotonic() >= deadline:
            return False
    for sql in DELETE_SESSION_DATA:
        tx.execute(sql, (session_id,))
    record_change(tx, session_id)
    relatives = [row[0] for row in tx.rows(index.FAMILY, (session_id,) * 3)]
    _mark_branches(tx, session_id)
    tx.execute(CLEAR_PARENT, (session_id,))
    for table in ("session_model_usage", "compression_locks"):
        if table in tx.columns.tables:
            tx.execute(f"DELETE FROM {table} WHERE session_id = ?", (session_id,))  # noqa: S608
    tx.execute("DELETE FROM sessions WHERE id = ?", (session_id,))
    for relative in relatives:
        if relative != session_id:
            index.update_position(tx, relative)
    return True


def _mark_branches(tx: Tx, session_id: str) -> None:
    """Store the marker in branches whose kind follows only from the parent to be purged."""
    for (child,) in tx.rows(CHILDREN, (session_id,)):
        if lineage.kind_of(tx, child)[0] != lineage.BRANCH:
            continue
        stored = tx.value("SELECT model_config FROM sessions WHERE id = ?", (child,))
        config = decode_json(stored) if stored else {}
        if isinstance(config, dict) and "_branched_from" not in config:
            marked = encode_json({**config, "_branched_from": session_id})
            set_fact(tx, child, "model_config", marked)


class TrashRepository(Repository):
    """Deleting, restoring and purging."""

    def __init__(self, context: StoreContext, ledger: LedgerRepository) -> None:
        super().__init__(context)
        self._ledger = ledger

    def delete_session(
        self, session_id: str, sessions_dir: object = None, *, reason: str = "deleted"
    ) -> bool:
        """Move a conversation and the tasks delegated from it to the trash; branches are kept.

        `sessions_dir` is accepted for hermes-agent's sake; files there are not deleted.
        """
        return self.delete_sessions([session_id], reason=reason) > 0

    def delete_sessions(
        self, session_ids: Sequence[str], sessions_dir: object = None, *, reason: str = "deleted"
    ) -> int:
        """Move sessions to the trash; returns their number."""
        count = 0
        for session_id in session_ids:
            count += self.engine.write_upkeep(
                lambda tx, session_id=session_id: self._trash_all(  # type: ignore[misc]
                    tx, session_id, reason
                )
            )
        return count

    def _trash_all(self, tx: Tx, session_id: str, reason: str) -> int:
        at = tx.clock.now()
        family = rows_with_delegates(tx, session_id)
        moved = {row_id: move_to_trash(tx, self.ids.new(), row_id, reason, at) for row_id in family}
        return int(moved[session_id])

    def restore(self, session_id: str) -> None:
        """Restore a conversation, and everything deleted with it, from the trash."""
        self.engine.write(lambda tx: restore_all(tx, self.ids, session_id))

    def trashed_at(self, session_id: str) -> float | None:
        """When a session was moved to the trash; None if it is not there."""
        if not self.engine.columns.has_own_tables:
            return None
        sql = "SELECT trashed_at FROM hermes_trash WHERE session_id = ?"
        found = self.engine.read(lambda reader: reader.value(sql, (session_id,)))
        return None if found is None else float(found)

    def content(self) -> list[TrashedSession]:
        """Content of the trash, newest first."""
        rows = self.engine.read(lambda reader: reader.rows(LIST_TRASH))
        return [TrashedSession._make(row) for row in rows]

    def purge(self, session_id: str) -> bool:
        """Delete a conversation and its delegated tasks permanently, including the search index.

        It works in slices so that other writers are not blocked.
        """
        if self.engine.read(lambda reader: sessions.get(reader, session_id)) is None:
            return False
        for row_id in self.engine.read(lambda reader: rows_with_delegates(reader, session_id)):
            self._purge_row(row_id)
        return True

    def _purge_row(self, session_id: str) -> None:
        event = self.ids.new()  # a session ends before it is purged
        self.engine.write(lambda tx: sessions.end(tx, event, session_id, "deleted"))
        self._run_purge_hook(session_id)
        self._remove_from_search(session_id)
        while not self.engine.write_upkeep(lambda tx: purge_batch(tx, session_id)):
            pass  # more rows than one slice deletes

    def purge_expired(self, older_than_days: float = 30) -> int:
        """Permanently delete sessions that have been in the trash for this time.

        Returns their number.
        """
        before = self.clock.now() - older_than_days * DAY_SECONDS
        due = self.engine.read(lambda reader: reader.rows(EXPIRED, (before,)))
        for (session_id,) in due:
            self._purge_row(session_id)
        return len(due)

    def _run_purge_hook(self, session_id: str) -> None:
        """Store what a session adds to lifetime statistics, before its rows are deleted."""
        hook = self.context.purge_hook
        facts = None if hook is None else hook(self._ledger.history(), session_id)
        if facts is not None:
            self.engine.write(lambda tx: save_facts(tx, session_id, facts))

    def _remove_from_search(self, session_id: str) -> None:
        """Remove a session from the search index, before its rows are deleted."""
        if not self.engine.database.is_file:
            from hermes_state.search import postgres  # noqa: PLC0415 - loaded at first use

            self.engine.write_upkeep(lambda tx: postgres.remove_session(tx, session_id))
            return
        from hermes_state.search import index_cleanup  # noqa: PLC0415 - loaded at first use

        search = self.engine.search
        last = 0
        while search.path.exists():
            rows = self.engine.read(
                lambda reader, last=last: index_cleanup.read_session(reader, session_id, last)  # type: ignore[misc]
            )
            if not rows:
                return
            forget = functools.partial(index_cleanup.delete_rows, rows=rows)
            if not search.use(forget):
                search.remove()
            last = rows[-1].id

    def set_session_hidden(self, session_id: str, hidden: bool = True) -> bool:
        """Hide a session from front ends that support it."""
        return self.engine.write(lambda tx: set_fact(tx, session_id, "hidden", int(hidden)))
