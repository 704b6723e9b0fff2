"""Stores a part of another agent's conversation: what is new of it, once."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_core.messages import preview
from hermes_state.engine.dialect import DIALECT
from hermes_state.engine.transaction import insert_sql
from hermes_state.imports.inheritance import FIND_SESSION, inherit
from hermes_state.imports.rows import (
    IS_USABLE,
    ConversationKind,
    PartResult,
    identities,
    identity,
    is_own_key,
    known_rows,
    session_id_of,
)
from hermes_state.imports.values import (
    COLUMNS,
    answer_usage_values,
    calls_text,
    row_values,
    usage_by_model,
)
from hermes_state.ledger.repository import record_change
from hermes_state.messages import edits
from hermes_state.messages.copies import NO_ORIGIN, UNKNOWN_ORIGIN
from hermes_state.messages.history import INSERT_UID
from hermes_state.messages.rows import (
    decode_content,
    decode_json,
    encode_content,
    to_utf8_text,
    tool_call_count,
)
from hermes_state.portable.export_schema import LABELS_NAME, PARENT_NAME, save_extra, save_json
from hermes_state.sessions import index, trash, usage
from hermes_state.sessions import rows as sessions
from hermes_state.sessions.records import EXTRA_COLUMNS
from hermes_state.sessions.rows import UPSERT_EXTRA, archive, prompt_columns
from hermes_state.sessions.usage import INSERT as INSERT_ANSWER_USAGE

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from hermes_core.ids import MessageIds
    from hermes_core.json_values import JsonObject
    from hermes_state.engine.transaction import Tx
    from hermes_state.engine.values import SqlValue
    from hermes_state.imports.rows import (
        ImportedConversation,
        ImportedMessage,
        ImportedPart,
        ImportedUsage,
        KnownMessage,
    )


SESSION_COLUMNS: Final = (
    "user_id", "model_config", "system_prompt", "session_key", "chat_id", "chat_type",
    "thread_id", "display_name", "origin_json", "expiry_finalized", "git_repo_root",
    "rewind_count", "title_source", "profile_name", "pinned", "hidden", "last_read_at",
)  # fmt: skip
MESSAGE_COLUMNS: Final = (
    "token_count", "reasoning_content", "reasoning_details", "codex_reasoning_items",
    "codex_message_items", "platform_message_id", "active", "compacted", "effect_disposition",
    "api_content", "display_kind", "display_metadata",
)  # fmt: skip
MESSAGE_DEFAULTS: Final[dict[str, SqlValue]] = {"active": 1, "compacted": 0}
SET_COUNTS = "UPDATE sessions SET message_count = ?, tool_call_count = ? WHERE id = ?"
HIDE_ROW = """
    UPDATE messages SET active = 0, compacted = ? WHERE id = ? AND coalesce(active, 1) = 1
"""


def session_values(tx: Tx, columns: Mapping[str, SqlValue]) -> dict[str, SqlValue]:
    """The values of a new session row; those that the file has no column for are left out."""
    values = {name: _text(columns[name]) for name in SESSION_COLUMNS if columns.get(name)}
    prompt = values.pop("system_prompt", None)
    if isinstance(prompt, str):
        values |= prompt_columns(tx, prompt)
    return values


def save_extras(tx: Tx, session_id: str, columns: Mapping[str, SqlValue]) -> None:
    """Store the values of columns that only newer files have."""
    for name in EXTRA_COLUMNS - set(tx.columns.sessions):
        value = columns.get(name)
        if value:
            text = repr(value) if isinstance(value, float) else value
            tx.execute(UPSERT_EXTRA, (session_id, name, text))


def set_counts(tx: Tx, session_id: str, columns: Mapping[str, SqlValue]) -> None:
    """Give a new session the counts of hermes-agent, which leave out compacted messages."""
    messages, calls = columns.get("message_count"), columns.get("tool_call_count")
    if messages:
        tx.execute(SET_COUNTS, (messages, calls or 0, session_id))


def message_names(tx: Tx, messages: Iterable[ImportedMessage]) -> tuple[str, ...]:
    """The further columns of these messages; none for those of other agents."""
    if not any(message.columns for message in messages):
        return ()
    return tuple(name for name in MESSAGE_COLUMNS if name in tx.columns.messages)


def message_values(message: ImportedMessage, names: Iterable[str]) -> list[SqlValue]:
    """The values of a message in these columns."""
    values = (message.columns.get(name) for name in names)
    return [
        MESSAGE_DEFAULTS.get(name) if value is None else _text(value)
        for name, value in zip(names, values, strict=True)
    ]


def hide_row(tx: Tx, row_id: int, message: ImportedMessage) -> bool:
    """Hide a stored message that was undone or compacted since; whether it changed."""
    if message.columns.get("active", 1) or not message.columns:
        return False
    compacted = message.columns.get("compacted") or 0
    return tx.execute(HIDE_ROW, (compacted, row_id)).rowcount > 0


def _text(value: SqlValue) -> SqlValue:
    return to_utf8_text(value) if isinstance(value, str) else value


# Title and archive state of a conversation in its agent, which are followed here.
#
# What the agent said last is stored. A change there is applied here unless the user has changed
# the same thing here: a title that is not the one of the import stays.

NUMBERED_TITLES = "SELECT count(*) FROM sessions WHERE title >= ? AND title < ?"
SET_TITLE = "UPDATE sessions SET title = ? WHERE id = ?"
CURRENT = "SELECT title, coalesce(archived, 0) FROM sessions WHERE id = ?"
STORED = "SELECT value FROM hermes_session_extra WHERE session_id = ? AND name = ?"


class SourceLabels(NamedTuple):
    """What the agent said last, and the title that was made of it here."""

    title: str | None
    title_here: str | None
    is_archived: bool


def follow_labels(tx: Tx, session_id: str, about: ImportedConversation) -> None:
    """Apply the title and the archive state of an imported conversation, if they have changed."""
    title_here, is_archived_here = tx.row(CURRENT, (session_id,)) or (None, 0)
    stored = tx.value(STORED, (session_id, LABELS_NAME))
    title = to_utf8_text(about.title)
    if stored is None and not title and not about.is_archived:
        return
    before = SourceLabels(*json.loads(stored)) if stored else SourceLabels(None, None, False)
    shown = before.title_here
    if title and title != before.title and title_here == before.title_here:
        shown = _free_title(tx, title)
        tx.execute(SET_TITLE, (shown, session_id))
        if title_here is not None:
            record_change(tx, session_id)
    if about.is_archived != before.is_archived and bool(is_archived_here) == before.is_archived:
        archive(tx, session_id, about.is_archived)
    after = SourceLabels(title or before.title, shown, about.is_archived)
    if after != before:
        save_json(tx, session_id, LABELS_NAME, list(after))


def _free_title(tx: Tx, title: str) -> str:
    """The title, with a number if another conversation has it."""
    name = title
    if tx.value(trash.TITLE_TAKEN, (name,)):
        number = 2 + tx.value(NUMBERED_TITLES, (f"{title} #", f"{title} $"))
        while tx.value(trash.TITLE_TAKEN, (name,)):
            name, number = f"{title} #{number}", number + 1
    return name


IDLE: Final = "idle"  # the end reason of a conversation without further records
SUBAGENT_SOURCE: Final = usage.SUBAGENT

INSERT_SESSION = """
    INSERT INTO hermes_imported_session
        (session_id, agent, native_id, path, imported_at, last_record_at)
    VALUES (?, ?, ?, ?, ?, ?)
"""
TOUCH_SESSION = """
    UPDATE hermes_imported_session SET path = ?, last_record_at = max(last_record_at, ?)
    WHERE session_id = ?
"""
PATH = "SELECT path FROM hermes_imported_session WHERE session_id = ?"
SET_PATH = "UPDATE hermes_imported_session SET path = ? WHERE session_id = ?"
FORGET_UNIT = "DELETE FROM hermes_import_unit WHERE agent = ? AND unit_id = ?"
IS_BRANCH = f"SELECT 1 FROM sessions WHERE id = ? AND model_config {DIALECT.like} ?"  # noqa: S608 - own names
BRANCH_MARKER: Final = "_branched_from"
MARK_BRANCH = "UPDATE sessions SET model_config = ? WHERE id = ? AND model_config IS NULL"
UPDATE_ROW = """
    UPDATE messages SET content = ?, tool_calls = ?, reasoning = ?, finish_reason = ?
    WHERE id = ?
"""
OLD_ROW = "SELECT content, tool_calls, reasoning, finish_reason FROM messages WHERE id = ?"
ORIGINAL_ROW = """
    SELECT content, tool_calls, tool_call_id, tool_name, reasoning, finish_reason
    FROM messages WHERE id = ?
"""
COUNT_ROWS = """
    UPDATE sessions SET message_count = coalesce(message_count, 0) + ?,
        tool_call_count = coalesce(tool_call_count, 0) + ? WHERE id = ?
"""
COMPACT_ROWS = """
    UPDATE messages SET active = 0, compacted = 1
    WHERE session_id = ? AND coalesce(active, 1) = 1
"""
INSERT_USAGE_KEY = """
    INSERT INTO hermes_imported_usage (usage_key, session_id) VALUES (?, ?) ON CONFLICT DO NOTHING
"""
END_SILENTLY = """
    UPDATE sessions SET ended_at = ?, end_reason = ? WHERE id = ? AND ended_at IS NULL
"""
ENDED_AT = "SELECT ended_at FROM sessions WHERE id = ?"
IMPORTED_AT = "SELECT imported_at FROM hermes_imported_session WHERE session_id = ?"
LAST_RECORD = "SELECT last_record_at FROM hermes_imported_session WHERE session_id = ?"


class NewRow(NamedTuple):
    """A message to be stored, its identity here, and what it is a copy of."""

    message: ImportedMessage
    uid: bytes
    original: KnownMessage | None = None


class PartStorage:
    """Storing one part within a transaction."""

    def __init__(self, tx: Tx, ids: MessageIds, agent: str, path: str, part: ImportedPart) -> None:
        self._tx = tx
        self._ids = ids
        self._agent = agent
        self._path = path
        self._part = part
        self._conversation = part.conversation
        about = part.conversation
        self._session_id = about.native_id if about.keeps_id else self._id_of(about.native_id)
        self._added = self._copies = self._calls = self._inherited = 0
        self._last_row = 0
        self._last_at = 0.0
        self._preview = ""
        self._spent: list[ImportedUsage] = []
        self._answers: list[tuple[int, ImportedUsage]] = []  # by the row of the answer
        self._changed = False  # rows that were stored before
        self._is_extended = False  # a row that was stored before

    def store(self, *, is_live: bool, run_started_at: float) -> PartResult:
        """Store what is new; a conversation that is not *is_live* has ended.

        *run_started_at* is when the import started: earlier parts may be of the same run.
        """
        known_as = self._tx.value(FIND_SESSION, (self._agent, self._conversation.native_id))
        is_new = known_as is None
        if known_as is not None:
            self._session_id = known_as
            if not self._tx.value(IS_USABLE, (known_as,)):
                return PartResult(known_as, is_deleted=True)
            self._follow_file()
        elif self._tx.value(sessions.EXISTS, (self._session_id,)):
            return PartResult(self._session_id, is_taken=True)
        elif self._is_unchanged_handoff():
            return PartResult(self._session_id)
        else:
            self._create()
        follow_labels(self._tx, self._session_id, self._conversation)
        self._append(self._part.messages, is_new=is_new)
        if is_new:
            set_counts(self._tx, self._session_id, self._conversation.columns)
            self._index()
        elif self._changed or (self._added and self._conversation.columns):
            index.reindex(self._tx, self._session_id)  # rows outside of the model's context
            record_change(self._tx, self._session_id)
        self._add_usage()
        if self._part.is_last:
            is_first = self._tx.value(IMPORTED_AT, (self._session_id,)) >= run_started_at
            self._end(is_new=is_first, is_live=is_live)
        new = self._added - self._copies
        return PartResult(self._session_id, is_new, new, self._copies + self._inherited)

    def _is_unchanged_handoff(self) -> bool:
        """Whether an agent has added nothing to a conversation that was handed to it."""
        keys = [message.key for message in self._part.messages]
        if not self._part.is_last or not keys or not all(map(is_own_key, keys)):
            return False
        uids = set(identities(self._agent, keys))
        return known_rows(self._tx, list(uids)).keys() == uids

    def _follow_file(self) -> None:
        """Note where the file was moved to; it is read again if it is moved back."""
        before = self._tx.value(PATH, (self._session_id,))
        if before != self._path and not Path(before).exists():
            self._tx.execute(SET_PATH, (self._path, self._session_id))
            self._tx.execute(FORGET_UNIT, (self._agent, before))

    def _id_of(self, native_id: str) -> str:
        return session_id_of(self._agent, native_id)

    def _create(self) -> None:
        tx, about = self._tx, self._conversation
        markers: JsonObject = {}
        parent = self._parent_session()
        if about.kind is ConversationKind.FORK:
            markers[BRANCH_MARKER] = parent or about.parent_id or ""
        elif about.kind is ConversationKind.SUBAGENT:
            markers["_delegate_from"] = parent or about.parent_id or ""
        is_subagent = about.kind is ConversationKind.SUBAGENT
        facts: dict[str, SqlValue] = {
            "source": about.source or (SUBAGENT_SOURCE if is_subagent else self._agent),
            "model": to_utf8_text(about.model),
            "model_config": json.dumps(markers) if markers else None,
            "parent_session_id": parent,
            "started_at": about.started_at,
            "cwd": to_utf8_text(about.cwd),
            "git_branch": to_utf8_text(about.git_branch),
            **session_values(tx, about.columns),
        }
        known = {name: value for name, value in facts.items() if value is not None}
        columns = ["id", *(name for name in known if tx.columns.session_has(name))]
        tx.execute(
            insert_sql("sessions", columns), [{**known, "id": self._session_id}[n] for n in columns]
        )
        tx.execute(sessions.NEXT_EPOCH, (self._session_id,))  # if the ID was purged before
        save_extras(tx, self._session_id, about.columns)
        if parent is None and about.parent_id is not None:
            target = about.parent_id if about.keeps_id else self._id_of(about.parent_id)
            save_extra(tx, self._session_id, PARENT_NAME, target)
        now = tx.clock.now()
        started_at = min(about.started_at, now)
        row = (self._session_id, self._agent, about.native_id, self._path, now, started_at)
        tx.execute(INSERT_SESSION, row)
        if self._part.inherits is not None:
            history = self._part.inherits
            self._inherited = inherit(tx, self._agent, self._session_id, history)

    def _parent_session(self) -> str | None:
        """The session of the parent, if it is here."""
        if self._conversation.parent_id is None:
            return None
        parent = self._tx.value(FIND_SESSION, (self._agent, self._conversation.parent_id))
        if parent is None or not self._tx.value(sessions.EXISTS, (parent,)):
            return None
        return str(parent)

    def _append(self, messages: Sequence[ImportedMessage], *, is_new: bool) -> None:
        uids = identities(self._agent, [message.key for message in messages])
        known = known_rows(self._tx, uids)
        new: dict[bytes, NewRow] = {}
        for message, uid in zip(messages, uids, strict=True):
            original = known.get(uid) if known else None
            if original is None:
                if uid not in new:
                    new[uid] = NewRow(message, uid)
            elif not self._is_here(
                message, original
            ):  # of another conversation, which this one continues
                as_here = self._as_here(message, original)
                new[uid] = NewRow(as_here, self._copy_uid(uid), original)
        if known or not is_new:
            self._drop_stored_copies(new, is_new=is_new)
        if not new and not self._is_extended:
            return
        if not is_new and self._tx.value(ENDED_AT, (self._session_id,)) is not None:
            sessions.reopen(self._tx, self._ids.new(), self._session_id)
        if new:
            self._insert(list(new.values()))
            self._count(is_new=is_new)
        if self._is_extended:
            index.reindex(self._tx, self._session_id)
            record_change(self._tx, self._session_id)

    def _as_here(self, message: ImportedMessage, original: KnownMessage) -> ImportedMessage:
        """A message that was handed to the agent, as it is here; others as the agent has them."""
        if original.session_id is None or not is_own_key(message.key):
            return message
        row = self._tx.row(ORIGINAL_ROW, (original.row_id,))
        content, calls, call_id, name, reasoning, reason = row or ()
        return message._replace(
            content=decode_content(content),
            tool_calls=decode_json(calls) or (),
            tool_call_id=call_id,
            tool_name=name,
            reasoning=reasoning,
            finish_reason=reason,
        )

    def _copy_uid(self, uid: bytes) -> bytes:
        """The identity of the copy of a message in this conversation."""
        return hashlib.blake2b(uid + self._session_id.encode(), digest_size=16).digest()

    def _drop_stored_copies(self, new: dict[bytes, NewRow], *, is_new: bool) -> None:
        """Leave out the copies that this conversation has already.

        The originals of a branch may be purged, and their identities with them.
        """
        marker = f'%"{BRANCH_MARKER}"%'
        is_branch = not is_new and self._tx.value(IS_BRANCH, (self._session_id, marker))
        copies = {
            self._copy_uid(uid): uid
            for uid, row in new.items()
            if row.original is not None or is_branch
        }
        for stored, known in known_rows(self._tx, list(copies)).items():
            message = new.pop(copies[stored]).message
            if message.may_change:
                self._extend_row(message, known.row_id)

    def _is_here(self, message: ImportedMessage, known: KnownMessage) -> bool:
        """Whether a message is in this conversation; what the agent added to it is stored."""
        if known.session_id != self._session_id:
            return False
        if hide_row(self._tx, known.row_id, message):
            self._changed = True
        if message.may_change:
            self._extend_row(message, known.row_id)
        return True

    def _extend_row(self, message: ImportedMessage, row_id: int) -> None:
        """Store what the agent added to a message."""
        before = tuple(self._tx.row(OLD_ROW, (row_id,)) or ())
        reasoning, reason = map(to_utf8_text, (message.reasoning, message.finish_reason))
        values = (encode_content(message.content), calls_text(message), reasoning, reason)
        texts = zip(before[:3], values[:3], strict=True)
        is_less = any(len(old or "") > len(new or "") for old, new in texts)
        if (is_less and message.only_grows) or values == before:
            return
        self._tx.execute(UPDATE_ROW, (*values, row_id))
        more = len(message.tool_calls) - tool_call_count(before[1])
        self._tx.execute(COUNT_ROWS, (0, more, self._session_id))
        self._is_extended = True

    def _insert(self, rows: list[NewRow]) -> None:
        """Insert rows; a summary replaces what is in the model's context before it."""
        start = 0
        for position, row in enumerate(rows):
            if row.message.is_summary:
                self._insert_rows(rows[start:position])
                self._tx.execute(COMPACT_ROWS, (self._session_id,))
                start = position
        self._insert_rows(rows[start:])

    def _insert_rows(self, rows: list[NewRow]) -> None:
        if not rows:
            return
        tx, session_id = self._tx, self._session_id
        names = message_names(tx, (row.message for row in rows))
        values = [row_values(session_id, row.message) for row in rows]
        if names:
            more = [message_values(row.message, names) for row in rows]
            values = [(*first, *last) for first, last in zip(values, more, strict=True)]
        row_ids = tx.insert_many("messages", (*COLUMNS, *names), values, "id")
        # In the order of the table: neighbouring identities are on the same pages.
        uids = sorted((row.uid, row_id) for row, row_id in zip(rows, row_ids, strict=True))
        tx.many(INSERT_UID, uids)
        for row, row_id in zip(rows, row_ids, strict=True):
            if row.original is not None or row.message.is_copy:
                self._note_copy(row_id, row.original)
            elif row.message.usage is not None:
                self._spent.append(row.message.usage)
                self._answers.append((row_id, row.message.usage))
        self._note([row.message for row in rows])
        self._last_row = row_ids[-1]

    def _note(self, messages: Sequence[ImportedMessage]) -> None:
        self._added += len(messages)
        self._calls += sum([len(message.tool_calls) for message in messages])
        self._last_at = max(self._last_at, *[message.at for message in messages])
        for message in messages:
            if self._preview:
                return
            if message.role == "user" and not message.is_summary:
                self._preview = to_utf8_text(preview(message.content)) or ""

    def _note_copy(self, row_id: int, original: KnownMessage | None) -> None:
        origin = NO_ORIGIN
        if original is not None and original.session_id is None:  # purged
            origin = UNKNOWN_ORIGIN
            markers = json.dumps({BRANCH_MARKER: ""})
            self._tx.execute(MARK_BRANCH, (markers, self._session_id))
        elif original is not None:
            self._adopt(str(original.session_id))
            first = self._tx.value(edits.SELECT_ORIGIN, (original.row_id,))
            origin = original.row_id if first is None else first
        self._tx.execute(edits.INSERT_COPY, (row_id, origin))
        self._copies += 1

    def _adopt(self, parent: str) -> None:
        """Note which conversation this one continues, if its agent does not say so."""
        if self._copies or self._conversation.parent_id is not None:
            return
        markers = json.dumps({BRANCH_MARKER: parent})
        self._tx.execute(
            "UPDATE sessions SET parent_session_id = ?, model_config = ?"
            " WHERE id = ? AND parent_session_id IS NULL",
            (parent, markers, self._session_id),
        )
        index.update_family_positions(self._tx, self._session_id)

    def _index(self) -> None:
        """Add a new conversation to the session index, with all of its rows."""
        if self._copies or self._inherited:
            index.recount(self._tx, self._session_id)
        else:
            index.reindex(self._tx, self._session_id)
        if self._conversation.parent_id is not None:
            index.update_family_positions(self._tx, self._session_id)
        if self._last_row and not self._tx.is_behind:
            self._tx.covered = max(self._tx.covered, self._last_row)

    def _count(self, *, is_new: bool) -> None:
        tx, session_id = self._tx, self._session_id
        tx.execute(COUNT_ROWS, (self._added, self._calls, session_id))
        if tx.columns.stamps_activity:
            tx.execute(
                "UPDATE sessions SET last_activity_at = ? WHERE id = ?", (self._last_at, session_id)
            )
        last_at = min(self._last_at, tx.clock.now())  # one in the future would never be idle
        tx.execute(TOUCH_SESSION, (self._path, last_at, session_id))
        if is_new:
            return
        lifetime = index.lifetime(tx, session_id)
        added = index.AppendedRows(
            self._last_row, self._last_at, self._added, self._calls, self._preview
        )
        index.record_append(tx, session_id, added)
        if any(message.is_summary for message in self._part.messages):
            index.reindex(tx, session_id)  # fewer rows are in the model's context
        if self._copies:
            index.recount(tx, session_id, lifetime)

    def _add_usage(self) -> None:
        new: list[ImportedUsage] = []
        for each in self._part.usage:
            key = identity(self._agent, f"usage:{each.key}")
            if self._tx.execute(INSERT_USAGE_KEY, (key, self._session_id)).rowcount:
                new.append(each)
        self._spent += new
        self._find_answers([each for each in new if each.answer])
        self._add_answers()
        for row in self._part.usage_columns:
            key = identity(self._agent, f"usage:{row.key}")
            if self._tx.execute(INSERT_USAGE_KEY, (key, self._session_id)).rowcount:
                usage.update(self._tx, self._session_id, row.columns, absolute=False)
        for values in usage_by_model(self._spent):
            usage.update(self._tx, self._session_id, values, absolute=False)

    def _find_answers(self, spent: Sequence[ImportedUsage]) -> None:
        """Note the rows of the answers that requests were answered with."""
        uids = identities(self._agent, [each.answer for each in spent])
        known = known_rows(self._tx, uids)
        for uid, each in zip(uids, spent, strict=True):
            answer = known.get(uid)
            if answer is not None and answer.session_id == self._session_id:
                self._answers.append((answer.row_id, each))

    def _add_answers(self) -> None:
        """Store the usage of each answer; the first one that is known of it applies."""
        if rows := answer_usage_values(self._answers):
            self._tx.many(INSERT_ANSWER_USAGE, rows)

    def _end(self, *, is_new: bool, is_live: bool) -> None:
        """End the conversation, unless more is expected of it soon.

        One that had ended before it was imported has its end recorded but not announced.
        """
        tx, ended_at = self._tx, self._part.ended_at
        if ended_at is None and (is_live or self._conversation.stays_open):
            return
        reason = self._conversation.end_reason or IDLE
        at = ended_at or tx.value(LAST_RECORD, (self._session_id,))
        if is_new and not is_live:
            tx.execute(END_SILENTLY, (at, reason, self._session_id))
        else:
            sessions.end(tx, self._ids.new(), self._session_id, reason, ended_at=at)
