"""Read access to the history for statistics: short transactions, few columns."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar
from zlib import crc32

from hermes_core.clock import SystemClock
from hermes_core.history_rows import (
    SCHEDULED_SOURCES,
    ChangedSession,
    HistoryPosition,
    MessageColumns,
    ScannedMessage,
    ScannedSession,
    SessionKind,
    project_of,
)
from hermes_core.messages import HOOK_FEEDBACK
from hermes_state.engine.database import InvalidTextError
from hermes_state.engine.dialect import DIALECT
from hermes_state.engine.engine import ENGINES
from hermes_state.messages.copies import has_copies
from hermes_state.messages.rows import PORTABLE_JSON_PREFIX, decode_json
from hermes_state.sessions import lineage
from hermes_state.sessions.sort_values import (
    CHANGED_SESSIONS,
    NEWEST_CHANGE,
    SESSIONS_WITH_NEW_ROWS,
)
from hermes_state.store_settings import StoreSettings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from hermes_state.engine.columns import Columns
    from hermes_state.engine.engine import Engine
    from hermes_state.engine.transaction import Reader

T = TypeVar("T")

CONTENT_BYTES: Final = 200
WITNESS_COUNT: Final = 8
DEFAULT_MESSAGES: Final = 50  # size of a session that is not indexed yet

SESSION_KINDS: Final = {
    lineage.DELEGATE: SessionKind.SUBAGENT,
    lineage.BRANCH: SessionKind.BRANCH,
    lineage.CONTINUATION: SessionKind.CONTINUATION,
}
BRANCH_MARKER: Final = "_branched_from"

NEXT_WITNESS: Final = """
    SELECT id, session_id, timestamp FROM messages WHERE id >= ? ORDER BY id LIMIT 1
"""
SELECT_WITNESS: Final = "SELECT id, session_id, timestamp FROM messages WHERE id = ?"
ALL_SESSIONS: Final = """
    SELECT s.id, coalesce(i.lifetime_messages, ?) FROM sessions s
    LEFT JOIN hermes_session_index i ON i.session_id = s.id ORDER BY s.started_at DESC
"""
ALL_SESSIONS_UNINDEXED: Final = "SELECT id, ? FROM sessions ORDER BY started_at DESC"
PURGED_SESSIONS: Final = """
    SELECT session_id, 0 FROM hermes_kept k
    WHERE NOT EXISTS (SELECT 1 FROM sessions s WHERE s.id = k.session_id)
"""
TRASHED_TITLE: Final = "SELECT title FROM hermes_trash WHERE session_id = ?"
SELECT_FACTS: Final = "SELECT facts FROM hermes_kept WHERE session_id = ?"
TITLES: Final = """
    SELECT coalesce(s.title, i.preview) FROM sessions s
    LEFT JOIN hermes_session_index i ON i.session_id = s.id WHERE s.id = ?
"""


TITLES_UNINDEXED: Final = "SELECT title FROM sessions WHERE id = ?"
# In a database that several processes write to, numbers are those of transactions: one with a
# lower number may commit later, so the sum of the recent ones is compared, too.
RECENT_TRANSACTIONS: Final = 10_000
CHANGES_VERSION: Final = f"""
    SELECT sum(sequence), count(*) FROM {DIALECT.changes_after} ? + (
        SELECT sequence FROM {DIALECT.changes_after} 0 ORDER BY sequence DESC LIMIT 1)
"""  # noqa: S608 - own names
COUNT_THROUGH: Final = "SELECT count(*) FROM messages WHERE session_id = ? AND id <= ?"
HISTORY_ID: Final = "SELECT value FROM hermes_layout WHERE name = 'history'"
MAX_EXACT_INTEGER: Final = 2**53


@cache
def _session_sql(columns: Columns) -> str:
    def column(name: str) -> str:
        return name if columns.session_has(name) else "NULL"

    costs = f"coalesce({column('actual_cost_usd')}, {column('estimated_cost_usd')}, 0.0)"
    return (
        "SELECT source, coalesce(model, ''), started_at, ended_at, coalesce(end_reason, ''),"  # noqa: S608
        f" {column('title')} IS NOT NULL, coalesce({column('input_tokens')}, 0),"
        f" coalesce({column('output_tokens')}, 0), coalesce({column('cache_read_tokens')}, 0),"
        f" coalesce({column('reasoning_tokens')}, 0), {costs}, parent_session_id, model_config,"
        f" {column('cwd')}"
        " FROM sessions WHERE id = ?"
    )


@cache
def _signature_sql(columns: Columns) -> str:
    names = (
        "model", "ended_at", "end_reason", "title", "input_tokens", "output_tokens",
        "cache_read_tokens", "reasoning_tokens", "actual_cost_usd", "estimated_cost_usd",
    )  # fmt: skip
    known = [name for name in names if columns.session_has(name)]
    parts = ", ".join(known)
    return f"SELECT id, {parts} FROM sessions"  # noqa: S608 - columns of the file


@cache
def _rows_sql(columns: Columns, *, with_copies: bool) -> str:
    """Complete tool results, the start of other contents, and the length of user messages.

    Contents with several parts have the length 0. In a file they start with a zero character,
    where SQLite ends a text.
    """
    is_observed = "coalesce(m.observed, 0) <> 0" if "observed" in columns.messages else "0 <> 0"
    observed = f"({is_observed} OR coalesce(m.finish_reason, '') = '{HOOK_FEEDBACK}')"
    copy, join = "0", ""
    if with_copies:
        copy = "c.message_id IS NOT NULL"
        join = " LEFT JOIN hermes_copy c ON c.message_id = m.id"
    return (
        "SELECT m.id, m.role, m.timestamp,"  # noqa: S608 - columns of the file
        " CASE m.role WHEN 'tool' THEN CAST(m.content AS BLOB)"
        f" ELSE CAST(substr(m.content, 1, {CONTENT_BYTES}) AS BLOB) END,"
        f" CASE WHEN m.role <> 'user' OR substr(m.content, 1, {len(PORTABLE_JSON_PREFIX)})"
        f" = '{PORTABLE_JSON_PREFIX}' THEN 0"
        " ELSE coalesce(length(m.content), 0) END,"
        f" CAST(m.tool_calls AS BLOB), m.tool_name, m.tool_call_id, {copy}, {observed}"
        f" FROM messages m{join} WHERE m.session_id = ? AND m.id > ?"
    )


class StoreHistory:
    """A session store, as scanners read it."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._has_copies: bool | None = None

    def position(self) -> HistoryPosition:
        """The current position of the history."""
        return self._engine.read(_position)

    def version(self) -> int:
        """A number that changes with what statistics count; with every commit of a file."""
        if self._engine.database.is_file:
            return self._engine.version()
        row = self._engine.read(lambda reader: reader.row(CHANGES_VERSION, (-RECENT_TRANSACTIONS,)))
        return crc32(repr(row).encode())

    def is_same_history(self, position: HistoryPosition) -> bool:
        """Whether *position* refers to this history, not to a replaced one."""
        return self._engine.read(lambda reader: _is_same(reader, position))

    def session_sizes(self) -> Sequence[tuple[str, int]]:
        """Every session with its number of messages, newest first; then purged sessions."""
        return self._engine.read(_all_sessions)

    def changed_since(self, position: HistoryPosition) -> Sequence[ChangedSession]:
        """Sessions that were written to since *position*."""
        return self._engine.read(lambda reader: _changed_since(reader, position))

    def signatures(self) -> dict[str, str]:
        """Every session with a checksum of its row, to detect changes by other programs.

        They write to files only.
        """
        if not self._engine.database.is_file:
            return {}
        rows = self._engine.read(lambda reader: reader.rows(reader.prepared(_signature_sql)))
        return {row[0]: _signature(row[1:]) for row in rows if isinstance(row[0], str)}

    def session(self, session_id: str) -> ScannedSession | None:
        """The row of a session, or None."""
        return self._engine.read(lambda reader: _session(reader, session_id))

    def read_rows(
        self, session_id: str, read: Callable[[Iterable[MessageColumns]], T], after: int = 0
    ) -> T:
        """The result of *read* for the messages of a session after an ID, in any order.

        It is called again with all messages if the text of one is damaged.
        """
        return self._engine.read(lambda reader: self._read(reader, read, (session_id, after)))

    def map_into_memory(self) -> None:
        """Read through a new memory map from now on, if the engine has one."""
        self._engine.read(lambda reader: reader.map_into_memory())

    def rows(self, session_id: str, after: int = 0) -> Sequence[ScannedMessage]:
        """Like `read_rows`, as a list in the order of IDs."""
        messages = self.read_rows(session_id, list, after)
        return [ScannedMessage._make(row) for row in sorted(messages)]

    def count_rows_through(self, session_id: str, message_id: int) -> int:
        """Number of messages of a session with IDs up to *message_id*."""
        values = (session_id, message_id)
        return int(self._engine.read(lambda reader: reader.value(COUNT_THROUGH, values)))

    def _read(
        self,
        reader: Reader,
        read: Callable[[Iterable[MessageColumns]], T],
        values: tuple[str, int],
    ) -> T:
        if not self._has_copies:  # copies are never deleted completely
            self._has_copies = has_copies(reader)
        sql = _rows_sql(reader.columns, with_copies=self._has_copies)
        try:
            return read(reader.execute(sql, values))
        except InvalidTextError:
            pass  # read again below
        with reader.replacing_invalid_text():
            return read(reader.execute(sql, values))

    def purged_facts(self, session_id: str) -> bytes | None:
        """The facts that were stored when a session was purged, or None."""
        if "hermes_kept" not in self._engine.columns.tables:
            return None
        facts: bytes | None = self._engine.read(
            lambda reader: reader.value(SELECT_FACTS, (session_id,))
        )
        return facts

    def titles(self, session_ids: Iterable[str]) -> dict[str, str]:
        """Titles or previews of sessions."""
        sql = TITLES if self._engine.columns.has_own_tables else TITLES_UNINDEXED

        def look_up(reader: Reader) -> dict[str, str]:
            titles = {session_id: reader.value(sql, (session_id,)) for session_id in session_ids}
            return {
                session_id: title
                for session_id, title in titles.items()
                if isinstance(title, str) and title
            }

        return self._engine.read(look_up)

    def close(self) -> None:
        """Do nothing: the engine belongs to the store."""


def _signature(values: Sequence[Any]) -> str:
    """A checksum of columns."""
    known = tuple("" if value is None else value for value in values)
    return f"{crc32(repr(known).encode(errors='replace')):x}"


def _all_sessions(reader: Reader) -> list[tuple[str, int]]:
    is_indexed = reader.columns.has_own_tables
    rows = reader.rows(ALL_SESSIONS if is_indexed else ALL_SESSIONS_UNINDEXED, (DEFAULT_MESSAGES,))
    if "hermes_kept" in reader.columns.tables:
        rows += reader.rows(PURGED_SESSIONS)
    return [(row[0], row[1]) for row in rows if isinstance(row[0], str)]


def _position(reader: Reader) -> HistoryPosition:
    newest = reader.value("SELECT max(id) FROM messages") or 0
    change = 0
    if "hermes_change" in reader.columns.tables:
        change = reader.value(NEWEST_CHANGE) or 0
    witnesses: dict[int, int] = {}
    for part in range(1, WITNESS_COUNT + 1):
        row = reader.row(NEXT_WITNESS, (newest * part // WITNESS_COUNT,))
        if row is not None:
            witnesses[row[0]] = _witness(row)
    return HistoryPosition(newest, change, tuple(witnesses.items()), _history_id(reader))


def _history_id(reader: Reader) -> str:
    """The ID that the history received when Hermes first opened it, or ''."""
    if not reader.columns.has_own_tables:
        return ""
    return str(reader.value(HISTORY_ID) or "")


def _witness(row: Sequence[Any]) -> int:
    return crc32(f"{row[1]} {row[2]}".encode())


def _is_same(reader: Reader, position: HistoryPosition) -> bool:
    """Compare the IDs of the histories; without an ID, compare the witnesses.

    Missing witnesses are ignored: messages can be deleted.
    """
    history_id = _history_id(reader)
    if position.history and history_id:
        return position.history == history_id
    rows = [
        (checksum, reader.row(SELECT_WITNESS, (row_id,))) for row_id, checksum in position.witnesses
    ]
    return all(_witness(row) == checksum for checksum, row in rows if row is not None)


def _changed_since(reader: Reader, position: HistoryPosition) -> list[ChangedSession]:
    touched: set[str] = set()
    if "hermes_change" in reader.columns.tables:
        touched = {row[0] for row in reader.rows(CHANGED_SESSIONS, (position.change,))}
    longer = [
        row[0]
        for row in reader.rows(SESSIONS_WITH_NEW_ROWS, (position.message,))
        if row[0] not in touched
    ]
    return [
        *(ChangedSession(session_id, False) for session_id in touched),
        *(ChangedSession(session_id, True) for session_id in longer),
    ]


def _session(reader: Reader, session_id: str) -> ScannedSession | None:
    rows = reader.rows(_session_sql(reader.columns), (session_id,))
    if not rows:
        return None
    row = rows[0]
    source, model, started, ended, reason, is_titled = row[:6]
    origin = _origin(row[12])
    if not is_titled and "hermes_trash" in reader.columns.tables:
        is_titled = reader.value(TRASHED_TITLE, (session_id,)) is not None
    parent = row[11] if isinstance(row[11], str) else None
    return ScannedSession(
        session_id,
        _kind(reader, session_id, _text(source), origin),
        _text(source),
        _text(model),
        _number(started),
        None if ended is None else _number(ended),
        _text(reason),
        bool(is_titled),
        int(_number(row[6])),
        int(_number(row[7])),
        int(_number(row[8])),
        int(_number(row[9])),
        _number(row[10]),
        parent or origin,
        project_of(_text(row[13])),
    )


def _text(value: Any) -> str:
    """Valid UTF-8 text; '' for a value that is not text."""
    return value.encode(errors="replace").decode() if isinstance(value, str) else ""


def _number(value: Any) -> float:
    """A usable number; 0 for a value that is not a number, or out of range."""
    is_number = isinstance(value, int | float) and 0 <= value <= MAX_EXACT_INTEGER
    return value if is_number else 0


def _kind(reader: Reader, session_id: str, source: str, origin: str | None) -> SessionKind:
    kind, _ = lineage.kind_of(reader, session_id)
    session_kind = SESSION_KINDS.get(kind, SessionKind.CONVERSATION)
    if session_kind is SessionKind.CONVERSATION and source in SCHEDULED_SOURCES:
        return SessionKind.SCHEDULED
    # A branch remains a branch when its parent is deleted.
    return (
        SessionKind.BRANCH if session_kind is SessionKind.CONVERSATION and origin else session_kind
    )


def _origin(model_config: Any) -> str | None:
    """The session that the branch marker names, or None."""
    if not isinstance(model_config, str) or BRANCH_MARKER not in model_config:
        return None
    config = decode_json(model_config)
    origin = config.get(BRANCH_MARKER) if isinstance(config, dict) else None
    return origin if isinstance(origin, str) else None


class OwnedHistory(StoreHistory):
    """A history that was opened for reading and is closed with this object."""

    def close(self) -> None:
        """Release the engine."""
        ENGINES.release(self._engine)


def open_history(path: str) -> OwnedHistory:
    """Open the history at *path* for reading."""
    engine = ENGINES.acquire(
        Path(path), read_only=True, clock=SystemClock(), settings=StoreSettings.of_home()
    )
    return OwnedHistory(engine)
