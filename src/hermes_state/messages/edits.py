"""Undo, redo, retry, branch and compaction. None of them deletes a row.

A row leaves the model's context by a change of its state: undone rows are inactive,
compacted rows are inactive and compacted.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

from hermes_core.errors import SessionNotFoundError, UsageError
from hermes_core.hooks import BoundaryKind
from hermes_core.ids import new_session_id
from hermes_state.engine import process_identity
from hermes_state.messages import copies, history
from hermes_state.messages.copies import NO_ORIGIN
from hermes_state.messages.rows import (
    DELETED,
    MessageRow,
    NewMessage,
    decode_json,
    select_list,
    to_messages,
)
from hermes_state.repository import Repository
from hermes_state.sessions import index, labels
from hermes_state.sessions import rows as sessions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes_core.ids import MessageIds
    from hermes_core.json_values import JsonObject
    from hermes_core.messages import Message
    from hermes_state.engine.transaction import Reader, Tx
    from hermes_state.engine.values import SqlValue

LIVE_FROM = """
    SELECT id FROM messages
    WHERE session_id = ? AND id >= ? AND coalesce(active, 1) = 1 ORDER BY id
"""
# A summary has the role of a user message; it is stored as a copy without an origin.
PROMPTS = """
    SELECT id FROM messages WHERE session_id = ? AND role = 'user' AND coalesce(active, 1) = 1
        AND coalesce(finish_reason, '') <> 'hook_feedback'
        AND id NOT IN (SELECT message_id FROM hermes_copy WHERE origin_id = 0)
"""
LAST_USERS = f"{PROMPTS} ORDER BY id DESC LIMIT ?"
COUNT_UNDONE = """
    SELECT count(*) FROM messages
    WHERE session_id = ? AND coalesce(active, 1) = 0 AND coalesce(compacted, 0) = 0
"""
SET_STATE = "UPDATE messages SET active = ?, compacted = ? WHERE id = ?"
LAST_LIVE = """
    SELECT max(id) FROM messages WHERE session_id = ? AND coalesce(active, 1) = 1
"""
LAST_ROW = "SELECT coalesce(max(id), 0) FROM messages WHERE session_id = ?"
COUNT_REWIND = "UPDATE sessions SET rewind_count = rewind_count + 1 WHERE id = ?"
INSERT_UNDO = """
    INSERT INTO hermes_undo (session_id, created_at, last_message_id, is_open)
    VALUES (?, ?, ?, 1)
"""
INSERT_UNDO_ROW = "INSERT INTO hermes_undo_row (undo_id, message_id) VALUES (?, ?)"
LAST_UNDO = """
    SELECT undo_id, last_message_id FROM hermes_undo WHERE session_id = ? AND is_open = 1
    ORDER BY undo_id DESC LIMIT 1
"""
UNDO_ROWS = "SELECT message_id FROM hermes_undo_row WHERE undo_id = ? ORDER BY message_id"
CLOSE_UNDO = "UPDATE hermes_undo SET is_open = 0 WHERE undo_id = ?"
INSERT_COPY = "INSERT INTO hermes_copy (message_id, origin_id) VALUES (?, ?)"
ORIGINS = """
    SELECT message_id, origin_id FROM hermes_copy
    WHERE message_id IN (SELECT id FROM messages WHERE session_id = ?)
"""
LAST_SUMMARY = """
    SELECT max(m.id) FROM messages m JOIN hermes_copy c ON c.message_id = m.id
    WHERE m.session_id = ? AND m.id > ? AND c.origin_id = 0 AND m.role = 'user'
"""
UNCOMPACT = """
    UPDATE messages SET active = 1, compacted = 0
    WHERE session_id = ? AND id > ? AND id >= ? AND compacted = 1
"""
SELECT_ORIGIN = "SELECT origin_id FROM hermes_copy WHERE message_id = ?"


MARK_DELETED = "UPDATE messages SET finish_reason = ? WHERE id = ? AND role = 'user'"
COPIES_OF = "SELECT message_id FROM hermes_copy WHERE origin_id = ?"


class Rewind(NamedTuple):
    """The result of a rewind; `new_head_id` is the last row in the model's context."""

    rewound_count: int
    target_message: MessageRow
    new_head_id: int | None


def get_row(reader: Reader, message_id: int) -> MessageRow | None:
    """A message row, or None."""
    names = reader.prepared(select_list)
    rows = reader.rows(f"SELECT {names} FROM messages WHERE id = ?", (message_id,))  # noqa: S608
    return next(iter(to_messages(rows)), None)


def set_state(tx: Tx, row_ids: Sequence[int], *, active: int, compacted: int) -> None:
    """Set the state of rows, which adds them to the model's context or removes them."""
    for row_id in row_ids:
        tx.execute(SET_STATE, (active, compacted, row_id))


def undo_from(tx: Tx, session_id: str, first_id: int) -> list[int]:
    """Remove a row and all later ones from the context; returns their IDs."""
    row_ids = [row[0] for row in tx.rows(LIVE_FROM, (session_id, first_id))]
    if row_ids:
        set_state(tx, row_ids, active=0, compacted=0)
        last = tx.value(LAST_ROW, (session_id,))
        undo_id = tx.insert(INSERT_UNDO, (session_id, tx.clock.now(), last), "undo_id")
        tx.many(INSERT_UNDO_ROW, [(undo_id, row_id) for row_id in row_ids])
        tx.execute(COUNT_REWIND, (session_id,))
        index.reindex(tx, session_id)
    return row_ids


def redo(tx: Tx, session_id: str) -> list[int]:
    """Restore the rows of the last undo, unless messages were added since."""
    last_undo = tx.row(LAST_UNDO, (session_id,))
    if last_undo is None or last_undo[1] != tx.value(LAST_ROW, (session_id,)):
        return []
    row_ids = [row[0] for row in tx.rows(UNDO_ROWS, (last_undo[0],))]
    set_state(tx, row_ids, active=1, compacted=0)
    tx.execute(CLOSE_UNDO, (last_undo[0],))
    index.reindex(tx, session_id)
    return row_ids


def compact(tx: Tx, session_id: str, messages: Sequence[NewMessage]) -> int:
    """Replace the live rows by *messages*; returns the number of live rows."""
    row_ids = [row[0] for row in tx.rows(LIVE_FROM, (session_id, 0))]
    lifetime = index.lifetime(tx, session_id)
    origins = _origins(tx, session_id, messages, row_ids)
    set_state(tx, row_ids, active=0, compacted=1)
    for message, origin in zip(messages, origins, strict=True):
        if origin is not None:
            message.uid = None  # stored again after the summary, as a copy
    added = history.append_all(tx, session_id, messages)
    _record_copies(tx, added, origins)
    for summary_id in _summaries(added, origins):
        tx.execute(INSERT_COPY, (summary_id, NO_ORIGIN))
    index.recount(tx, session_id, lifetime)
    return len(messages)


def _origins(
    tx: Tx, session_id: str, messages: Sequence[NewMessage], row_ids: Sequence[int]
) -> list[int | None]:
    """The rows that messages repeat: by identity, otherwise by content, in order."""
    candidates = list(row_ids)
    origins: list[int | None] = []
    for message in messages:
        origin = history.known_row(tx, session_id, message)
        if origin is None:
            origin = next((row for row in candidates if _is_equal(tx, row, message)), None)
        if origin in candidates:
            candidates = candidates[candidates.index(origin) + 1 :]
        origins.append(origin)
    return origins


def _record_copies(tx: Tx, row_ids: Sequence[int], origins: Sequence[int | None]) -> None:
    for row_id, origin in zip(row_ids, origins, strict=True):
        if origin is not None and row_id != origin:
            tx.execute(INSERT_COPY, (row_id, _first_origin(tx, origin)))


def _first_origin(tx: Tx, row_id: int) -> int:
    """The first origin of a row: itself, an older row, or NO_ORIGIN."""
    origin: int | None = tx.value(SELECT_ORIGIN, (row_id,))
    return row_id if origin is None else origin


def _summaries(row_ids: Sequence[int], origins: Sequence[int | None]) -> list[int]:
    """Summary rows: those before the first repeated message, or the first row."""
    first_kept = next((n for n, origin in enumerate(origins) if origin is not None), 1)
    return list(row_ids[:first_kept])


def replace(tx: Tx, session_id: str, messages: Sequence[Message]) -> None:
    """Make the live rows equal to *messages*; the common beginning is not changed."""
    live = [row[0] for row in tx.rows(LIVE_FROM, (session_id, 0))]
    new = [NewMessage.from_conversation(message) for message in messages]
    lifetime = index.lifetime(tx, session_id)
    same = 0
    while same < min(len(live), len(new)) and _is_equal(tx, live[same], new[same]):
        same += 1
    origins = _origins(tx, session_id, new[same:], live[same:])
    if same < len(live):
        undo_from(tx, session_id, live[same])
    for message in new[same:]:
        message.uid = None
    added = history.append_all(tx, session_id, new[same:])
    _record_copies(tx, added, origins)
    index.recount(tx, session_id, lifetime)


def _is_equal(tx: Tx, row_id: int, message: NewMessage) -> bool:
    row = tx.row(
        "SELECT role, content, tool_calls, tool_call_id FROM messages WHERE id = ?", (row_id,)
    )
    values = message.values
    expected = [values.get(name) for name in ("role", "content", "tool_calls", "tool_call_id")]
    # Models do not distinguish between no content and empty content.
    return row is not None and [value or None for value in row] == [
        value or None for value in expected
    ]


def copy_rows(tx: Tx, session_id: str, new_id: str, through_id: int | None) -> int:
    """Copy a session's rows with all columns and states; returns their number.

    With *through_id*, a message that is repeated after that row is not copied, and a compaction
    after it has no effect on the copies.
    """
    newest = tx.value(LAST_ROW, (new_id,))
    repeated = copies.repeated_rows(tx, session_id)
    names = [name for name in tx.columns.messages if name not in ("id", "session_id")]
    listed = ", ".join(names)
    read = f"SELECT id, {listed} FROM messages WHERE session_id = ?"  # noqa: S608 - file's names
    parameters: tuple[SqlValue, ...] = (session_id,)
    if through_id is not None:
        read += " AND id <= ?"
        parameters = (session_id, through_id)
    placeholders = ", ".join("?" * (len(names) + 1))
    insert = f"INSERT INTO messages (session_id, {listed}) VALUES ({placeholders})"  # noqa: S608 - as above
    count = 0
    for origin, *values in tx.rows(f"{read} ORDER BY id", parameters):
        last = repeated.last_row(repeated.first_row(origin))
        if through_id is not None and last > through_id:
            continue
        copy_id = tx.insert(insert, (new_id, *values), "id")
        tx.execute(INSERT_COPY, (copy_id, _first_origin(tx, origin)))
        count += 1
    if through_id is not None:
        summary = tx.value(LAST_SUMMARY, (new_id, newest)) or 0
        tx.execute(UNCOMPACT, (new_id, newest, summary))
    return count


def branch(
    tx: Tx, session_id: str, new_id: str, through_id: int | None, source: str | None = None
) -> None:
    """Create a conversation that starts with the rows of another one.

    With *source* it is one of this program: the model of the other one is not used.
    """
    parent = sessions.require(tx, session_id)
    config = decode_json(parent.model_config)
    markers: JsonObject = config if isinstance(config, dict) else {}
    markers.pop("_delegate_from", None)
    markers["_branched_from"] = session_id
    columns = {
        "source": source or parent.source,
        "user_id": parent.user_id,
        "model": None if source else parent.model,
        "model_config": json.dumps(markers),
        "system_prompt": parent.system_prompt,
        "parent_session_id": session_id,
        "cwd": parent.cwd,
        "session_key": parent.session_key,
        "chat_id": parent.chat_id,
        "chat_type": parent.chat_type,
        "thread_id": parent.thread_id,
    }
    if not sessions.create(tx, new_id, columns):
        raise UsageError(f"session {new_id} already exists")
    copy_rows(tx, session_id, new_id, through_id)
    index.recount(tx, new_id)


class EditRepository(Repository):
    """Changes to the history of a conversation."""

    def prompt_ids(self, session_id: str) -> set[int]:
        """Row IDs of the user messages in the model's context."""
        rows = self.engine.read(lambda reader: reader.rows(PROMPTS, (session_id,)))
        return {row[0] for row in rows}

    def origins(self, session_id: str) -> dict[int, int]:
        """The rows that copies in a session repeat: those of a branch, or after a compaction."""
        rows = self.engine.read(lambda reader: reader.rows(ORIGINS, (session_id,)))
        return {row[0]: row[1] for row in rows}

    def undo(self, session_id: str, exchanges: int = 1) -> list[int]:
        """Undo the last exchanges, or all of fewer; each starts with a user message.

        Returns their rows.
        """

        def change(tx: Tx) -> list[int]:
            found = tx.rows(LAST_USERS, (session_id, max(exchanges, 1)))
            return undo_from(tx, session_id, found[-1][0]) if found else []

        return self.engine.write(change)

    def redo(self, session_id: str) -> list[int]:
        """Restore the messages of the last undo, unless the conversation has continued since."""
        return self.engine.write(lambda tx: redo(tx, session_id))

    def can_redo(self, session_id: str) -> bool:
        """Whether `redo` would restore messages."""

        def read(reader: Reader) -> bool:
            last_undo = reader.row(LAST_UNDO, (session_id,))
            return last_undo is not None and last_undo[1] == reader.value(LAST_ROW, (session_id,))

        return self.engine.read(read)

    def undone_count(self, session_id: str) -> int:
        """Number of message rows that were undone and not restored."""
        return int(self.engine.read(lambda reader: reader.value(COUNT_UNDONE, (session_id,))))

    def retry(self, session_id: str) -> MessageRow | None:
        """Undo the answer to the last user message, and return that message."""

        def change(tx: Tx) -> MessageRow | None:
            user_id = tx.value(LAST_USERS, (session_id, 1))
            if user_id is None:
                return None
            undo_from(tx, session_id, user_id + 1)
            return get_row(tx, user_id)

        return self.engine.write(change)

    def rewind(self, session_id: str, target_message_id: int) -> Rewind:
        """Undo a message and everything after it."""

        def change(tx: Tx) -> Rewind:
            target = get_row(tx, target_message_id)
            if target is None or target.session_id != session_id:
                raise SessionNotFoundError(
                    f"session {session_id} has no message {target_message_id}"
                )
            last = copies.repeated_rows(tx, session_id).last_row(target_message_id)
            row_ids = undo_from(tx, session_id, last)
            return Rewind(len(row_ids), target, tx.value(LAST_LIVE, (session_id,)))

        return self.engine.write(change)

    def restore_rewound(self, session_id: str, since_message_id: int | None = None) -> int:
        """Restore the messages of the last rewind; returns the number of rows.

        With `since_message_id`, the messages of all rewinds are restored from there on.
        """
        count = len(self.redo(session_id))
        while since_message_id is not None and (restored := self.redo(session_id)):
            count += sum(row_id >= since_message_id for row_id in restored)
        return count

    def mark_deleted(self, uid: str) -> list[str]:
        """Mark a user message, and its copies, as deleted by its sender.

        Returns the changed sessions. The history keeps the text; the model no longer gets it.
        """

        def change(tx: Tx) -> list[str]:
            row_id = history.row_with(tx, uid)
            if row_id is None:
                return []
            sessions_changed = []
            for copy_id in (row_id, *(row[0] for row in tx.rows(COPIES_OF, (row_id,)))):
                session_id = str(tx.value(history.SESSION_OF, (copy_id,)))
                tx.execute(MARK_DELETED, (DELETED, copy_id))
                tx.execute(COUNT_REWIND, (session_id,))  # kept messages are no longer current
                index.reindex(tx, session_id)
                sessions_changed.append(session_id)
            return sessions_changed

        return self.engine.write(change)

    def archive_and_compact(self, session_id: str, compacted_messages: Sequence[Message]) -> int:
        """Replace the context by a summary; the old rows stay in the history."""
        new = [NewMessage.from_conversation(message) for message in compacted_messages]
        for message in new:
            message.ensure_uid(self.ids)
        event = self.ids.new()

        def change(tx: Tx) -> int:
            count = compact(tx, session_id, new)
            sessions.announce(tx, event, session_id, BoundaryKind.COMPACTION, "compacted")
            return count

        return self.engine.write(change)

    def replace_messages(self, session_id: str, messages: Sequence[Message]) -> None:
        """Set the context to *messages*; rows that leave it stay in the history."""
        self.engine.write(lambda tx: replace(tx, session_id, messages))

    def clear_messages(self, session_id: str) -> None:
        """Empty the context; the rows stay in the history and can be restored."""
        self.engine.write(lambda tx: undo_from(tx, session_id, 0) and None)

    def branch(
        self,
        session_id: str,
        new_session_id: str | None = None,
        *,
        through_message_id: int | None = None,
        title: str | None = None,
        is_switched: bool = False,
        end_parent: bool = False,
        source: str | None = None,
    ) -> str:
        """Start a second conversation from a point of this one; returns its ID.

        With *is_switched* a terminal continues with it, and leaves this one, which may end.
        """
        new_id = new_session_id or new_session_id_for(self)

        def change(tx: Tx) -> None:
            branch(tx, session_id, new_id, through_message_id, source)
            if title is not None:
                labels.set_title(tx, new_id, title, labels.USER)
            self._register_process(tx)
            process_identity.join(tx, new_id, self.identity.process_id)
            announce_branch(
                tx, self.ids, session_id, new_id, is_switched=is_switched, end_parent=end_parent
            )

        self.engine.write(change)
        return new_id


def announce_branch(
    tx: Tx,
    ids: MessageIds,
    session_id: str,
    new_id: str,
    *,
    is_switched: bool,
    end_parent: bool = True,
) -> None:
    """Announce a branch: one event for it, and one for the parent if its place switches.

    The parent ends with the switch. If it stays as it is, the branch's event names both.
    """
    is_left = (
        is_switched
        and end_parent
        and sessions.end(tx, ids.new(), session_id, "branched", new_session_id=new_id)
    )
    sessions.announce(
        tx,
        ids.new(),
        new_id,
        BoundaryKind.BRANCH,
        "branched",
        old_session_id=session_id,
        new_session_id=new_id if is_switched and not is_left else None,
    )


def new_session_id_for(part: Repository) -> str:
    """An ID for a session that the store creates."""
    return new_session_id(part.clock)
