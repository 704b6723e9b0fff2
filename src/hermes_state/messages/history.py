"""Appending, reading and exporting messages."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from hermes_core.backoff import Backoff
from hermes_core.errors import (
    IdFormatError,
    LeaseLostError,
    SessionDeletedError,
    SessionNotFoundError,
)
from hermes_core.ids import MessageIds, foreign_row_id, uid_bytes
from hermes_core.messages import Message, preview
from hermes_state.delivery import leases
from hermes_state.engine.database import ConstraintError, DriverError
from hermes_state.messages import copies, drafts
from hermes_state.messages import rows as message_rows
from hermes_state.messages.rows import (
    MessageRow,
    NewMessage,
    as_turn,
    decode_content,
    history_version,
    insert_statement,
    select_list,
    to_messages,
    written_columns,
)
from hermes_state.repository import Repository
from hermes_state.sessions import index, lineage, records, trash
from hermes_state.sessions import rows as sessions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from hermes_state.delivery.leases import Lease
    from hermes_state.engine.transaction import Reader, Tx
    from hermes_state.messages.copies import RepeatedRows
    from hermes_state.messages.drafts import Draft
    from hermes_state.messages.rows import HistoryVersion
    from hermes_state.repository import StoreContext
    from hermes_state.sessions.lists import ListRepository
    from hermes_state.sessions.records import SessionRow


DAY_SECONDS: Final = 86_400

ROW_BY_UID = "SELECT message_id FROM hermes_message WHERE uid = ?"
SESSION_OF = "SELECT session_id FROM messages WHERE id = ?"
NEWEST_UID = "SELECT max(uid) FROM hermes_message WHERE uid < ?"
INSERT_UID = "INSERT INTO hermes_message (uid, message_id) VALUES (?, ?)"
INSERT_ALIAS = "INSERT INTO hermes_message (uid, message_id) VALUES (?, ?) ON CONFLICT DO NOTHING"
# The identities of a conversation's rows; a row that repeats a message has that of the first one.
IDENTITIES = """
    SELECT m.id, h.uid FROM messages m
    LEFT JOIN hermes_copy c ON c.message_id = m.id AND c.origin_id > 0
    LEFT JOIN hermes_message h ON h.message_id = coalesce(c.origin_id, m.id)
    WHERE m.session_id = ? ORDER BY m.id, h.uid DESC
"""
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


def add_alias(tx: Tx, uid: str, row_id: int) -> None:
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


CHUNK_ROWS: Final = 500
RETRY_BACKOFF: Final = Backoff(0.02, 0.1, factor=5.0)
MAX_RETRIES: Final = 2
MAX_CONFLICTS: Final = 30  # of a turn's message, each after the writer's own attempts
JOURNALED_ROW_ID: Final = 0

ACTIVE_ONLY = " AND coalesce(active, 1) = 1"
LIVE_OR_COMPACTED = " AND (coalesce(active, 1) = 1 OR compacted = 1)"
RECENT_USER = """
    SELECT id, timestamp, content FROM messages
    WHERE session_id = ? AND role = 'user' AND (coalesce(active, 1) = 1 OR ? = 1)
        AND coalesce(finish_reason, '') <> 'hook_feedback'
    ORDER BY id DESC LIMIT ?
"""


class PromptFields(Message, total=False):
    """The prompt of a turn: a message, its identity, and those of messages merged into it."""

    uid: str | None
    aliases: Sequence[str]


class RecentPrompt(NamedTuple):
    """A user message: a possible target of a rewind."""

    id: int
    timestamp: float
    preview: str


class MessageWindow(NamedTuple):
    """Rows around a message."""

    window: list[MessageRow]
    messages_before: int
    messages_after: int


class AnchoredView(NamedTuple):
    """Rows around a message, with the first and last rows of the session."""

    around: MessageWindow
    bookend_start: list[MessageRow]
    bookend_end: list[MessageRow]


class ExportedSession(NamedTuple):
    """A session with its messages."""

    session: SessionRow
    messages: list[MessageRow]


def _state_filter(*, include_inactive: bool, include_compacted: bool = False) -> str:
    if include_inactive:
        return ""
    return LIVE_OR_COMPACTED if include_compacted else ACTIVE_ONLY


def read_chunk(
    reader: Reader, session_id: str, after_id: int, limit: int, state: str
) -> list[MessageRow]:
    """The next rows of a session after a row ID, oldest first."""
    names = reader.prepared(select_list)
    sql = (
        f"SELECT {names} FROM messages"  # noqa: S608 - the file's own column names
        f" WHERE session_id = ? AND id > ?{state} ORDER BY id LIMIT ?"
    )
    return to_messages(reader.rows(sql, (session_id, after_id, limit)))


def read_latest(
    reader: Reader, session_id: str, limit: int, offset: int, state: str
) -> list[MessageRow]:
    """The last rows of a session, oldest first."""
    names = reader.prepared(select_list)
    sql = (
        f"SELECT {names} FROM messages"  # noqa: S608 - the file's own column names
        f" WHERE session_id = ?{state} ORDER BY id DESC LIMIT ? OFFSET ?"
    )
    return to_messages(reader.rows(sql, (session_id, limit, offset)))[::-1]


class MessageRepository(Repository):
    """Appending and reading messages."""

    def append_message(
        self,
        /,
        session_id: str,
        role: str,
        content: Any = None,
        tool_name: str | None = None,
        tool_calls: Any = None,
        tool_call_id: str | None = None,
        token_count: int | None = None,
        finish_reason: str | None = None,
        reasoning: str | None = None,
        reasoning_content: str | None = None,
        reasoning_details: Any = None,
        codex_reasoning_items: Any = None,
        codex_message_items: Any = None,
        platform_message_id: str | None = None,
        observed: bool = False,
        timestamp: float | None = None,
        *,
        uid: str | None = None,
        aliases: Sequence[str] = (),
        lease: Lease | None = None,
        **columns: Any,
    ) -> int:
        """Store a message.

        Returns its row ID once it is on disk. `uid` is its durable identity: storing the
        same one again changes nothing. `aliases` are the identities of messages that were
        merged into it. With `lease`, the write is refused if the turn was taken over. If
        the database refuses the write, the message is kept in the journal and 0 is
        returned.
        """
        message: Message = {
            "role": role,
            "content": content,
            "tool_name": tool_name,
            "tool_calls": tool_calls,
            "tool_call_id": tool_call_id,
            "token_count": token_count,
            "finish_reason": finish_reason,
            "reasoning": reasoning,
            "reasoning_content": reasoning_content,
            "reasoning_details": reasoning_details,
            "codex_reasoning_items": codex_reasoning_items,
            "codex_message_items": codex_message_items,
            "platform_message_id": platform_message_id,
            "observed": observed,
            "timestamp": timestamp,
        }
        if columns:
            message |= cast("Message", columns)
        row_ids: list[int] = []

        def add_aliases(tx: Tx) -> None:
            for alias in aliases:
                add_alias(tx, alias, row_ids[0])

        return self.save(
            session_id, [NewMessage.encode(message, uid)], lease, add_aliases, row_ids
        )[0]

    def message_of(self, session_id: str, uid: str) -> int | None:
        """Row ID of the message with this identity, or None."""
        return self.engine.read(lambda reader: row_of(reader, session_id, uid))

    def identities(self, session_id: str) -> dict[int, str]:
        """The identities of a conversation's messages by row; those without one get it."""

        def read(reader: Reader) -> dict[int, bytes | None]:
            return dict(reader.rows(IDENTITIES, (session_id,)))

        def add(tx: Tx) -> dict[int, bytes | None]:
            found = read(tx)
            for row_id in [row_id for row_id, uid in found.items() if uid is None]:
                found[row_id] = derive_identity(session_id, f"row-{row_id}".encode())
                tx.execute(INSERT_ALIAS, (found[row_id], row_id))
            return found

        known = self.engine.read(read)
        if None in known.values():
            known = self.engine.write(add)
        return {row_id: bytes(uid or b"").hex() for row_id, uid in known.items()}

    def append_messages_batch(
        self,
        session_id: str,
        messages: Sequence[Message],
        *,
        lease: Lease | None = None,
    ) -> list[int]:
        """Store messages of a conversation in one transaction; returns their row IDs."""
        return self.save(session_id, [NewMessage.from_conversation(m) for m in messages], lease)

    def save(
        self,
        session_id: str,
        messages: list[NewMessage],
        lease: Lease | None = None,
        also: Callable[[Tx], None] | None = None,
        made: list[int] | None = None,
    ) -> list[int]:
        """Store messages and execute *also* in the same transaction.

        The list *made* receives their row IDs.
        """
        for message in messages:
            message.ensure_uid(self.ids)
        token = None if lease is None else lease.token

        def store(tx: Tx) -> list[int]:
            row_ids = append_all(tx, session_id, messages, token)
            if made is not None:
                made[:] = row_ids
            if also is not None:
                also(tx)
            return row_ids

        try:
            return self._store_with_retry(store, MAX_CONFLICTS if lease else 0)
        except DriverError as error:
            if not self.engine.database.is_write_refused(error):
                raise self.engine.database.to_store_error(error) from error
            self.engine.journal.add(session_id, messages, error)
            return [JOURNALED_ROW_ID] * len(messages)

    def start_turn(
        self, session_id: str, holder: str, prompt: PromptFields, expected: HistoryVersion
    ) -> tuple[Lease, int] | None:
        """Acquire the turn's lease and store its prompt, if the history is at *expected*.

        Returns the lease and the row ID; None if the history has changed.
        """
        aliases, uid = prompt.pop("aliases", ()), prompt.pop("uid", None)
        new = NewMessage.encode(prompt, uid)
        new.ensure_uid(self.ids)

        def start(tx: Tx) -> tuple[Lease, int] | None:
            if history_version(tx, session_id) != expected:
                return None
            self._register_process(tx)
            lease = leases.acquire(tx, session_id, holder, leases.LEASE_SECONDS, self.identity)
            (row_id,) = append_all(tx, session_id, [new])
            for alias in aliases:
                add_alias(tx, alias, row_id)
            return lease, row_id

        if self.engine.journal.waiting:
            return None
        return self.engine.write(start)

    def _store_with_retry(self, store: Callable[[Tx], list[int]], max_conflicts: int) -> list[int]:
        """Store messages; those of a turn, which are paid for, also after long conflicts.

        The model is not asked again, unless the turn loses its lease.
        """
        database = self.engine.database
        failures = conflicts = 0
        while True:
            try:
                return self._store_after_journal(store)
            except DriverError as error:
                is_refused, is_busy = database.is_write_refused(error), database.is_busy(error)
                conflicts += is_busy and not is_refused
                failures += is_refused and not is_busy
                if failures > MAX_RETRIES or conflicts > max_conflicts or is_refused == is_busy:
                    raise
                time.sleep(RETRY_BACKOFF.delay(max(failures, 1)))

    def _store_after_journal(self, store: Callable[[Tx], list[int]]) -> list[int]:
        """Store journaled messages first, which are older; if that fails, nothing is stored."""
        if self.engine.journal.waiting:
            self.engine.journal.replay(self.engine)
        return self.engine.write_untranslated(store)

    def draft(
        self, session_id: str, *, uid: str | None = None, lease: Lease | None = None
    ) -> Draft:
        """A reply that is about to stream."""

        def save(message: Message, also: Callable[[Tx], None]) -> int:
            stored = NewMessage.encode(message, draft.uid)
            return self.save(session_id, [stored], lease, also)[0]

        draft = drafts.Draft(
            self.engine,
            session_id,
            uid or self.ids.new(),
            identity=self.identity,
            save=save,
            interval_seconds=self.engine.settings.draft_interval_ms / 1000,
            token=lease.token if lease else None,
        )
        return draft

    def rows(
        self,
        session_id: str,
        include_inactive: bool = False,
        *,
        limit: int | None = None,
        offset: int = 0,
        latest: bool = False,
        after_id: int = 0,
        include_compacted: bool = False,
    ) -> list[MessageRow]:
        """Rows of a session in order; by default those in the model's context."""
        state = _state_filter(
            include_inactive=include_inactive, include_compacted=include_compacted
        )
        row_limit = -1 if limit is None else limit
        if latest:
            rows = self.engine.read(lambda r: read_latest(r, session_id, row_limit, offset, state))
        else:
            chunk_rows = -1 if row_limit < 0 else row_limit + offset
            rows = self.engine.read(
                lambda r: read_chunk(r, session_id, after_id, chunk_rows, state)
            )
            rows = rows[offset:]
        return rows

    def iter_messages(
        self, session_id: str, include_inactive: bool = False, *, after_id: int = 0
    ) -> Iterator[MessageRow]:
        """Rows of a session one by one; memory use does not depend on their number."""
        state = _state_filter(include_inactive=include_inactive)
        last = after_id
        while True:
            start = last
            rows = self.engine.read(
                lambda reader, start=start: read_chunk(  # type: ignore[misc]
                    reader, session_id, start, CHUNK_ROWS, state
                )
            )
            yield from rows
            if len(rows) < CHUNK_ROWS:
                return
            last = rows[-1].id

    def shown(
        self, session_id: str, *, with_undone: bool = False, after_id: int = 0
    ) -> Iterator[MessageRow]:
        """The messages of a session as it happened, each once; summaries have their own role.

        Compacted messages are included. Memory use does not depend on their number.
        """
        rows = self.iter_messages(session_id, True, after_id=after_id)
        return self.repeated(session_id).shown(rows, with_undone=with_undone)

    def session_of(self, message_id: int) -> str | None:
        """The session that a message belongs to; None if there is no such message."""
        sql = "SELECT session_id FROM messages WHERE id = ?"
        found: str | None = self.engine.read(lambda reader: reader.value(sql, (message_id,)))
        return found

    def repeated(self, session_id: str) -> RepeatedRows:
        """The rows of a session that repeat messages."""
        return self.engine.read(lambda reader: copies.repeated_rows(reader, session_id))

    def get_messages_as_conversation(
        self,
        session_id: str,
        include_ancestors: bool = False,
        include_inactive: bool = False,
    ) -> list[Message]:
        """The conversation in the format of model APIs; each message carries its identity."""
        state = _state_filter(include_inactive=include_inactive)

        def read(reader: Reader) -> list[MessageRow]:
            chain = lineage.chain_of(reader, session_id) if include_ancestors else [session_id]
            return [row for row_id in chain for row in read_chunk(reader, row_id, 0, -1, state)]

        return [as_turn(row) for row in self.engine.read(read)]

    def recent_prompts(
        self, session_id: str, limit: int = 20, include_inactive: bool = False
    ) -> list[RecentPrompt]:
        """The latest user messages, newest first: possible targets of a rewind."""
        values = (session_id, int(include_inactive), limit)
        rows = self.engine.read(lambda reader: reader.rows(RECENT_USER, values))
        return [
            RecentPrompt(row_id, at, preview(decode_content(content)))
            for row_id, at, content in rows
        ]

    def around(self, session_id: str, around_message_id: int, window: int = 5) -> MessageWindow:
        """The rows around a message of the session, and how many are before and after it."""
        rows = self.engine.read(lambda r: _rows_around(r, session_id, around_message_id, window))
        return _window(rows, around_message_id)

    def anchored_view(
        self,
        session_id: str,
        around_message_id: int,
        window: int = 5,
        bookend: int = 3,
        keep_roles: Sequence[str] | None = ("user", "assistant"),
    ) -> AnchoredView:
        """Like `around`, with the first and last rows of the session.

        Only rows with a role of `keep_roles` are returned (None: all), and no row twice.
        """

        def view(reader: Reader) -> AnchoredView:
            rows = _rows_around(reader, session_id, around_message_id, window)
            if not rows:
                return AnchoredView(_window([], around_message_id), [], [])
            first = read_chunk(reader, session_id, 0, bookend, LIVE_OR_COMPACTED)
            last = read_latest(reader, session_id, bookend, 0, LIVE_OR_COMPACTED)
            start = [row for row in first if row.id < rows[0].id]
            end = [row for row in last if row.id > rows[-1].id]
            kept = _with_roles(rows, keep_roles, around_message_id)
            return AnchoredView(
                _window(kept, around_message_id),
                _with_roles(start, keep_roles),
                _with_roles(end, keep_roles),
            )

        return self.engine.read(view)


def _rows_around(reader: Reader, session_id: str, message_id: int, window: int) -> list[MessageRow]:
    """A message with up to *window* rows on each side; none if it is not in the session."""
    names = reader.prepared(select_list)
    before_sql = (
        f"SELECT {names} FROM messages"  # noqa: S608 - the file's own column names
        " WHERE session_id = ? AND id < ? ORDER BY id DESC LIMIT ?"
    )
    after = read_chunk(reader, session_id, message_id - 1, window + 1, "")
    if not after or after[0].id != message_id:
        return []
    before = to_messages(reader.rows(before_sql, (session_id, message_id, window)))
    return before[::-1] + after


def _window(rows: list[MessageRow], message_id: int) -> MessageWindow:
    before = sum(row.id < message_id for row in rows)
    return MessageWindow(rows, before, sum(row.id > message_id for row in rows))


def _with_roles(
    rows: list[MessageRow], roles: Sequence[str] | None, anchor: int | None = None
) -> list[MessageRow]:
    return [row for row in rows if roles is None or row.role in roles or row.id == anchor]


class ExportRepository(Repository):
    """Sessions with all their messages."""

    def __init__(
        self, context: StoreContext, messages: MessageRepository, lists: ListRepository
    ) -> None:
        super().__init__(context)
        self._messages, self._lists = messages, lists

    def session(self, session_id: str, include_inactive: bool = True) -> ExportedSession | None:
        """A session with its messages, by default including undone and compacted ones."""
        session = self.engine.read(lambda reader: sessions.get(reader, session_id))
        if session is None:
            return None
        messages = list(self._messages.iter_messages(session_id, include_inactive))
        return ExportedSession(session, messages)

    def by_column(self, session_id: str) -> dict[str, object] | None:
        """All columns of a session, and `messages` with all of theirs."""
        columns, export = self.engine.columns, self.session(session_id)
        if export is None:
            return None
        messages = [message_rows.by_column(columns, message) for message in export.messages]
        return {**records.by_column(columns, export.session), "messages": messages}

    def conversation(self, session_id: str) -> list[ExportedSession]:
        """Every row of the conversation that a session belongs to, oldest first."""
        tip = self.engine.read(lambda reader: lineage.tip_of(reader, session_id))
        chain = self.engine.read(lambda reader: lineage.chain_of(reader, tip))
        exports = (self.session(row_id) for row_id in chain)
        return [session for session in exports if session is not None]

    def iter_exports(self, source: str | None = None) -> Iterator[ExportedSession]:
        """All sessions, oldest first, one at a time in memory."""
        for row in self._lists.sessions(
            source, limit=-1, include_children=True, include_archived=True
        )[::-1]:
            session = self.session(row.id)
            if session is not None:
                yield session
