"""Deleting without fear: into the trash, back from it, and for good only in the end.

A trashed session is archived, so that other programs hide it too, and gives its title
free. Purging removes rows in small transactions, so that no writer waits; lifetime
counts stay in the index.
"""

from __future__ import annotations

import functools
import time
from typing import TYPE_CHECKING, Any, Final

from hermes_core.errors import SessionNotFoundError
from hermes_core.hooks import BoundaryKind
from hermes_state.engine.threads import SLICE_SECONDS
from hermes_state.ledger import part
from hermes_state.ledger.part import LedgerPart
from hermes_state.messages.rows import decode_json, encode_json
from hermes_state.sessions import index, lifecycle, lineage
from hermes_state.sessions import rows as sessions
from hermes_state.sessions.rows import set_fact

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes_core.ids import MessageIds
    from hermes_state.engine.transaction import Reader, Tx

SLICE_ROWS: Final = 20
DAY_SECONDS: Final = 86400.0

INSERT_TRASH = """
    INSERT INTO hermes_trash (session_id, trashed_at, reason, was_archived, was_open, title)
    VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING
"""
SELECT_TRASH = "SELECT was_archived, was_open, title FROM hermes_trash WHERE session_id = ?"
TRASHED_AT = "SELECT trashed_at FROM hermes_trash WHERE session_id = ?"
TAKE = "DELETE FROM hermes_trash WHERE session_id = ?"
HIDE = "UPDATE sessions SET archived = 1, title = NULL WHERE id = ?"
SHOW = "UPDATE sessions SET archived = ?, title = ? WHERE id = ?"
LIST = """
    SELECT t.session_id, t.trashed_at, t.reason, t.title, i.preview
    FROM hermes_trash t LEFT JOIN hermes_session_index i ON i.session_id = t.session_id
    ORDER BY t.trashed_at DESC
"""
OLD = "SELECT session_id FROM hermes_trash WHERE trashed_at <= ?"
TITLE_TAKEN = "SELECT 1 FROM sessions WHERE title = ?"
SOME_ROWS = "SELECT id FROM messages WHERE session_id = ? LIMIT ?"
CHILDREN = "SELECT id FROM sessions WHERE parent_session_id = ?"
ORPHAN = "UPDATE sessions SET parent_session_id = NULL WHERE parent_session_id = ?"
FORGET_SESSION = (
    "DELETE FROM hermes_session_extra WHERE session_id = ?",
    "DELETE FROM hermes_tag WHERE session_id = ?",
    "DELETE FROM hermes_owner WHERE session_id = ?",
    "DELETE FROM hermes_lease WHERE session_id = ?",
    "DELETE FROM hermes_draft WHERE session_id = ?",
    "DELETE FROM hermes_undo_row WHERE undo_id IN"
    " (SELECT undo_id FROM hermes_undo WHERE session_id = ?)",
    "DELETE FROM hermes_undo WHERE session_id = ?",
    "DELETE FROM hermes_trash WHERE session_id = ?",
    "UPDATE hermes_session_index SET shown = 3, preview = NULL WHERE session_id = ?",
)


def put(tx: Tx, event_id: str, session_id: str, reason: str, at: float) -> bool:
    """Move one session into the trash, ending it if it is open."""
    row = sessions.get(tx, session_id)
    if row is None:
        return False
    was_open = int(row["ended_at"] is None)
    known = (at, reason, row["archived"], was_open, row["title"])
    if not tx.execute(INSERT_TRASH, (session_id, *known)).rowcount:
        return False
    if not sessions.end(tx, event_id, session_id, reason):
        sessions.announce(tx, event_id, session_id, BoundaryKind.PRUNE, reason)
    tx.execute(HIDE, (session_id,))
    index.replace_family(tx, session_id)
    return True


def restore(tx: Tx, event_id: str, session_id: str) -> None:
    """Take a session out of the trash; a title that was given away gets a number."""
    found = tx.row(SELECT_TRASH, (session_id,))
    if found is None:
        raise SessionNotFoundError(f"session {session_id} is not in the trash")
    archived, was_open, title = found
    tx.execute(TAKE, (session_id,))
    name, number = title, 2
    while name is not None and tx.value(TITLE_TAKEN, (name,)):
        name, number = f"{title} #{number}", number + 1
    tx.execute(SHOW, (archived, name, session_id))
    if was_open:
        sessions.reopen(tx, event_id, session_id)
    index.replace_family(tx, session_id)


def everything_of(reader: Reader, session_id: str) -> list[str]:
    """A conversation's rows and the work done for it, which has no life of its own."""
    found: list[str] = []
    waiting = lineage.conversation_of(reader, session_id)
    while waiting:
        current = waiting.pop()
        found.append(current)
        for (child,) in reader.rows(CHILDREN, (current,)):
            if lineage.kind_of(reader, child)[0] == lineage.DELEGATE:
                waiting.append(child)
    return found


def restore_all(tx: Tx, ids: MessageIds, session_id: str) -> None:
    """Take a conversation out of the trash: whatever went into it together."""
    at = tx.value(TRASHED_AT, (session_id,))
    if at is None:
        raise SessionNotFoundError(f"session {session_id} is not in the trash")
    for one in everything_of(tx, session_id):
        if tx.value(TRASHED_AT, (one,)) == at:
            restore(tx, ids.new(), one)


def purge_some(tx: Tx, session_id: str) -> bool:
    """Remove some rows of a session for good; whether the session itself is gone."""
    lifecycle.plan(tx, session_id, lifecycle.Change.PURGE)
    deadline = time.monotonic() + SLICE_SECONDS
    while True:
        row_ids = [row[0] for row in tx.rows(SOME_ROWS, (session_id, SLICE_ROWS))]
        if not row_ids:
            break
        marks = ", ".join("?" * len(row_ids))
        tx.execute(f"DELETE FROM hermes_copy WHERE message_id IN ({marks})", row_ids)  # noqa: S608
        tx.execute(f"DELETE FROM messages WHERE id IN ({marks})", row_ids)  # noqa: S608
        if time.monotonic() >= deadline:
            return False
    for sql in FORGET_SESSION:
        tx.execute(sql, (session_id,))
    part.mark(tx, session_id)
    relatives = [row[0] for row in tx.rows(index.FAMILY, (session_id,) * 3)]
    _mark_branches(tx, session_id)
    tx.execute(ORPHAN, (session_id,))
    for table in ("session_model_usage", "compression_locks"):
        if table in tx.columns.tables:
            tx.execute(f"DELETE FROM {table} WHERE session_id = ?", (session_id,))  # noqa: S608
    tx.execute("DELETE FROM sessions WHERE id = ?", (session_id,))
    for one in relatives:
        if one != session_id:
            index.replace_one(tx, one)
    return True


def _mark_branches(tx: Tx, session_id: str) -> None:
    """Let branches say themselves what they are: their parent cannot, once it is gone."""
    for (child,) in tx.rows(CHILDREN, (session_id,)):
        if lineage.kind_of(tx, child)[0] != lineage.BRANCH:
            continue
        stored = tx.value("SELECT model_config FROM sessions WHERE id = ?", (child,))
        config = decode_json(stored) if stored else {}
        if isinstance(config, dict) and "_branched_from" not in config:
            marked = encode_json({**config, "_branched_from": session_id})
            set_fact(tx, child, "model_config", marked)


class TrashPart(LedgerPart):
    """Deleting, restoring and purging."""

    def delete_session(self, session_id: str, *, reason: str = "deleted") -> bool:
        """Move a conversation and what was delegated from it into the trash; branches stay."""
        return self.delete_sessions([session_id], reason=reason) > 0

    def delete_sessions(self, session_ids: Sequence[str], *, reason: str = "deleted") -> int:
        """Move sessions into the trash; how many."""
        done = 0
        for session_id in session_ids:
            done += self.engine.write_upkeep(
                lambda tx, session_id=session_id: self._trash_all(  # type: ignore[misc]
                    tx, session_id, reason
                )
            )
        return done

    def _trash_all(self, tx: Tx, session_id: str, reason: str) -> int:
        at = tx.clock.now()
        family = everything_of(tx, session_id)
        moved = {one: put(tx, self.ids.new(), one, reason, at) for one in family}
        return int(moved[session_id])

    def restore_session(self, session_id: str) -> None:
        """Take a conversation, and what went with it, back out of the trash."""
        self.engine.write(lambda tx: restore_all(tx, self.ids, session_id))

    def list_trash(self) -> list[dict[str, Any]]:
        """What is in the trash, newest first."""
        return self.engine.read(lambda reader: reader.dicts(LIST))

    def purge_session(self, session_id: str) -> bool:
        """Remove a conversation and its delegates for good, from the search index too.

        It works in slices that let other writers through.
        """
        done = self._purge(session_id)
        self._clean_search()
        return done

    def _purge(self, session_id: str) -> bool:
        if self.engine.read(lambda reader: sessions.get(reader, session_id)) is None:
            return False
        for one in self.engine.read(lambda reader: everything_of(reader, session_id)):
            self._purge_row(one)
        return True

    def _purge_row(self, session_id: str) -> None:
        event = self.ids.new()  # what is gone has ended before
        self.engine.write(lambda tx: sessions.end(tx, event, session_id, "deleted"))
        self._keep_facts(session_id)
        self._forget_words(session_id)
        while not self.engine.write_upkeep(lambda tx: purge_some(tx, session_id)):
            pass  # the session had more rows than one slice removes

    def purge_trash(self, older_than_days: float = 30) -> int:
        """Remove for good what has been in the trash that long; how many sessions."""
        before = self.clock.now() - older_than_days * DAY_SECONDS
        due = self.engine.read(lambda reader: reader.rows(OLD, (before,)))
        for (session_id,) in due:
            self._purge_row(session_id)
        self._clean_search()
        return len(due)

    def _keep_facts(self, session_id: str) -> None:
        """Keep what a session adds to lifetime statistics, before its rows are gone."""
        facts = None if self.keeper is None else self.keeper(self.history(), session_id)
        if facts is not None:
            self.engine.write(lambda tx: part.keep(tx, session_id, facts))

    def _forget_words(self, session_id: str) -> None:
        """Take a session out of the search index, before its rows are gone."""
        from hermes_state.search import index_builder  # noqa: PLC0415 - loaded when it is needed

        search, with_tools = self.engine.search, self.engine.settings.search_tools
        last = 0
        while search.path.exists():
            rows = self.engine.read(
                lambda reader, last=last: index_builder.read_session(reader, session_id, last)  # type: ignore[misc]
            )
            if not rows:
                return
            forget = functools.partial(index_builder.forget, rows=rows, with_tools=with_tools)
            if not search.use(forget):
                search.remove()
            last = rows[-1].id

    def _clean_search(self) -> None:
        """Write the index anew without what was forgotten; deleted entries linger otherwise."""
        from hermes_state.search import index_builder  # noqa: PLC0415 - loaded when it is needed

        search = self.engine.search
        is_first = True
        while search.path.exists():
            done = search.use(lambda c, first=is_first: index_builder.merge(c, is_first=first))  # type: ignore[misc]
            if done is not False:
                return
            is_first = False

    def set_session_hidden(self, session_id: str, hidden: bool = True) -> bool:
        """Hide a session from front ends that honour it."""
        return self.engine.write(lambda tx: set_fact(tx, session_id, "hidden", int(hidden)))
