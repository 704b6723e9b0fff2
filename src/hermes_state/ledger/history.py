"""The history as statistics read it: short transactions, and only the columns that matter."""

from __future__ import annotations

import contextlib
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from zlib import crc32

from hermes_core.clock import SystemClock
from hermes_core.history_rows import Changed, Kind, Mark, MessageRow, SessionRow
from hermes_state.engine.driver import sqlite3
from hermes_state.engine.engine import ENGINES
from hermes_state.messages.rows import decode_json
from hermes_state.sessions import lineage
from hermes_state.store_settings import StoreSettings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from hermes_state.engine.columns import Columns
    from hermes_state.engine.engine import Engine
    from hermes_state.engine.transaction import Reader

CONTENT_BYTES: Final = 200
WITNESSES: Final = 8
NO_SIZE: Final = 50  # messages, for sessions that are not indexed yet

SESSION_KINDS: Final = {
    lineage.DELEGATE: Kind.SUBAGENT,
    lineage.BRANCH: Kind.BRANCH,
    lineage.CONTINUATION: Kind.CONTINUATION,
}
BRANCH_MARK: Final = "_branched_from"
SCHEDULED_SOURCES: Final = frozenset({"cron", "cronjob", "schedule"})

WITNESS: Final = """
    SELECT id, session_id, timestamp FROM messages WHERE id >= ? ORDER BY id LIMIT 1
"""
SELECT_WITNESS: Final = "SELECT id, session_id, timestamp FROM messages WHERE id = ?"
# Left to itself, SQLite walks the whole index of sessions to find the different ones.
GREW: Final = "SELECT DISTINCT session_id FROM messages NOT INDEXED WHERE id > ?"
CHANGED: Final = "SELECT session_id FROM hermes_change WHERE sequence > ?"
EVERYTHING: Final = """
    SELECT s.id, coalesce(i.lifetime_messages, ?) FROM sessions s
    LEFT JOIN hermes_session_index i ON i.session_id = s.id ORDER BY s.started_at DESC
"""
EVERYTHING_FOREIGN: Final = "SELECT id, ? FROM sessions ORDER BY started_at DESC"
ONLY_KEPT: Final = """
    SELECT session_id, 0 FROM hermes_kept k
    WHERE NOT EXISTS (SELECT 1 FROM sessions s WHERE s.id = k.session_id)
"""
TRASHED_TITLE: Final = "SELECT title FROM hermes_trash WHERE session_id = ?"
KEPT: Final = "SELECT facts FROM hermes_kept WHERE session_id = ?"
HAS_COPIES: Final = "SELECT 1 FROM hermes_copy LIMIT 1"
TITLES: Final = """
    SELECT coalesce(s.title, i.preview) FROM sessions s
    LEFT JOIN hermes_session_index i ON i.session_id = s.id WHERE s.id = ?
"""


TITLES_FOREIGN: Final = "SELECT title FROM sessions WHERE id = ?"
THROUGH: Final = "SELECT count(*) FROM messages WHERE session_id = ? AND id <= ?"
HISTORY: Final = "SELECT value FROM hermes_layout WHERE name = 'history'"
MAX_EXACT_INTEGER: Final = 2**53
DECODING: Final = "Could not decode"


@cache
def _session_sql(columns: Columns) -> str:
    def column(name: str) -> str:
        return name if columns.session_has(name) else "NULL"

    costs = f"coalesce({column('actual_cost_usd')}, {column('estimated_cost_usd')}, 0.0)"
    return (
        "SELECT source, coalesce(model, ''), started_at, ended_at, coalesce(end_reason, ''),"  # noqa: S608
        f" {column('title')} IS NOT NULL, coalesce({column('input_tokens')}, 0),"
        f" coalesce({column('output_tokens')}, 0), coalesce({column('cache_read_tokens')}, 0),"
        f" coalesce({column('reasoning_tokens')}, 0), {costs}, parent_session_id, model_config"
        " FROM sessions WHERE id = ?"
    )


@cache
def _signature_sql(columns: Columns) -> str:
    names = (
        "model", "ended_at", "end_reason", "title", "input_tokens", "output_tokens",
        "cache_read_tokens", "reasoning_tokens", "actual_cost_usd", "estimated_cost_usd",
    )  # fmt: skip
    known = [name for name in names if columns.session_has(name)]
    parts = ", ".join(f"coalesce({name}, '')" for name in known)
    return f"SELECT id, {parts} FROM sessions"  # noqa: S608 - columns of the file


@cache
def _rows_sql(columns: Columns, *, with_copies: bool) -> str:
    """Whole results, the beginnings of everything else, and how much a user typed."""
    observed = "coalesce(m.observed, 0)" if "observed" in columns.messages else "0"
    copy, join = "0", ""
    if with_copies:
        copy = "c.message_id IS NOT NULL"
        join = " LEFT JOIN hermes_copy c ON c.message_id = m.id"
    return (
        "SELECT m.id, m.role, m.timestamp,"  # noqa: S608 - columns of the file
        " CASE m.role WHEN 'tool' THEN CAST(m.content AS BLOB)"
        f" ELSE CAST(substr(m.content, 1, {CONTENT_BYTES}) AS BLOB) END,"
        " CASE m.role WHEN 'user' THEN coalesce(length(m.content), 0) ELSE 0 END,"
        f" CAST(m.tool_calls AS BLOB), m.tool_name, m.tool_call_id, {copy}, {observed}"
        f" FROM messages m{join} WHERE m.session_id = ? AND m.id > ?"
    )


class StoreHistory:
    """One session store, as a scanner sees it."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._has_copies: bool | None = None

    def mark(self) -> Mark:
        """Where the history stands now."""
        return self._engine.read(_mark)

    def version(self) -> int:
        """A number that stays the same as long as nobody has written anything."""
        return self._engine.version()

    def is_same(self, mark: Mark) -> bool:
        """Whether *mark* was made of this history, not of another one in its place."""
        return self._engine.read(lambda reader: _is_same(reader, mark))

    def everything(self) -> Sequence[tuple[str, int]]:
        """Every session with its size in messages, the newest first; then those only kept."""
        return self._engine.read(_everything)

    def changed_since(self, mark: Mark) -> Sequence[Changed]:
        """Sessions that were written to since *mark*."""
        return self._engine.read(lambda reader: _changed_since(reader, mark))

    def signatures(self) -> dict[str, str]:
        """Every session with a signature of what its row says, to find silent changes."""
        rows = self._engine.read(
            lambda reader: _lenient(reader, reader.prepared(_signature_sql), ())
        )
        return {
            row[0]: f"{crc32(repr(row[1:]).encode(errors='replace')):x}"
            for row in rows
            if isinstance(row[0], str)
        }

    def session(self, session_id: str) -> SessionRow | None:
        """A session's row; None when it is gone."""
        return self._engine.read(lambda reader: _session(reader, session_id))

    def each_row(
        self, session_id: str, take: Callable[[MessageRow], object], after: int = 0
    ) -> None:
        """Hand over a session's messages with ids above *after*, one at a time, in any order."""
        self._engine.read(lambda reader: self._each_row(reader, session_id, take, after))

    def rows(self, session_id: str, after: int = 0) -> Sequence[MessageRow]:
        """As `each_row`, all at once and in the order of their ids."""
        found: list[MessageRow] = []
        self.each_row(session_id, found.append, after)
        return sorted(found)

    def rows_through(self, session_id: str, message_id: int) -> int:
        """How many messages of a session have ids up to *message_id*."""
        values = (session_id, message_id)
        return int(self._engine.read(lambda reader: reader.value(THROUGH, values)))

    def _each_row(
        self, reader: Reader, session_id: str, take: Callable[[MessageRow], object], after: int
    ) -> None:
        if not self._has_copies:  # once there are copies, there always are
            self._has_copies = (
                "hermes_copy" in reader.columns.tables and reader.value(HAS_COPIES) is not None
            )
        sql = _rows_sql(reader.columns, with_copies=self._has_copies)
        taken: set[int] = set()
        try:
            for row in reader.execute(sql, (session_id, after)):
                take(MessageRow._make(row))
                taken.add(row[0])
        except sqlite3.OperationalError as error:
            if DECODING not in str(error):
                raise
            with _forgiving(reader):
                for row in reader.execute(sql, (session_id, after)):
                    if row[0] not in taken:
                        take(MessageRow._make(row))

    def kept(self, session_id: str) -> bytes | None:
        """Facts that were taken of a session before its messages were removed."""
        if "hermes_kept" not in self._engine.columns.tables:
            return None
        found: bytes | None = self._engine.read(lambda reader: reader.value(KEPT, (session_id,)))
        return found

    def titles(self, session_ids: Iterable[str]) -> dict[str, str]:
        """Titles or first words, for showing where something was earned."""
        sql = TITLES if self._engine.columns.has_own_tables else TITLES_FOREIGN

        def look_up(reader: Reader) -> dict[str, str]:
            found = {one: reader.value(sql, (one,)) for one in session_ids}
            return {one: title for one, title in found.items() if isinstance(title, str) and title}

        return self._engine.read(look_up)

    def close(self) -> None:
        """The engine belongs to the store that made this."""


def _everything(reader: Reader) -> list[tuple[str, int]]:
    is_indexed = reader.columns.has_own_tables
    found = reader.rows(EVERYTHING if is_indexed else EVERYTHING_FOREIGN, (NO_SIZE,))
    if "hermes_kept" in reader.columns.tables:
        found += reader.rows(ONLY_KEPT)
    return [(row[0], row[1]) for row in found if isinstance(row[0], str)]


def _mark(reader: Reader) -> Mark:
    newest = reader.value("SELECT max(id) FROM messages") or 0
    change = 0
    if "hermes_change" in reader.columns.tables:
        change = reader.value("SELECT max(sequence) FROM hermes_change") or 0
    found: dict[int, int] = {}
    for part in range(1, WITNESSES + 1):
        row = reader.row(WITNESS, (newest * part // WITNESSES,))
        if row is not None:
            found[row[0]] = _witness(row)
    return Mark(newest, change, tuple(found.items()), _name(reader))


def _name(reader: Reader) -> str:
    """The name that the history was given when it was first opened, if it was."""
    if not reader.columns.has_own_tables:
        return ""
    return str(reader.value(HISTORY) or "")


def _witness(row: Sequence[Any]) -> int:
    return crc32(f"{row[1]} {row[2]}".encode())


def _is_same(reader: Reader, mark: Mark) -> bool:
    """Its name decides; without one, a witness that says otherwise does.

    That witnesses are gone says nothing: messages can be deleted.
    """
    name = _name(reader)
    if mark.history and name:
        return mark.history == name
    rows = [(print_, reader.row(SELECT_WITNESS, (row_id,))) for row_id, print_ in mark.witnesses]
    return all(_witness(row) == print_ for print_, row in rows if row is not None)


def _changed_since(reader: Reader, mark: Mark) -> list[Changed]:
    touched: set[str] = set()
    if "hermes_change" in reader.columns.tables:
        touched = {row[0] for row in reader.rows(CHANGED, (mark.change,))}
    longer = [row[0] for row in reader.rows(GREW, (mark.message,)) if row[0] not in touched]
    return [*(Changed(one, False) for one in touched), *(Changed(one, True) for one in longer)]


def _session(reader: Reader, session_id: str) -> SessionRow | None:
    rows = _lenient(reader, _session_sql(reader.columns), (session_id,))
    if not rows:
        return None
    row = rows[0]
    source, model, started, ended, reason, is_titled = row[:6]
    origin = _origin(row[12])
    if not is_titled and "hermes_trash" in reader.columns.tables:
        is_titled = reader.value(TRASHED_TITLE, (session_id,)) is not None
    parent = row[11] if isinstance(row[11], str) else None
    return SessionRow(
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
    )


def _text(value: Any) -> str:
    """Text that can be stored again; what is no text is none."""
    return value.encode(errors="replace").decode() if isinstance(value, str) else ""


def _number(value: Any) -> float:
    """A number that can be added up; what is none, or absurd, is 0."""
    is_number = isinstance(value, int | float) and 0 <= value <= MAX_EXACT_INTEGER
    return value if is_number else 0


def _lenient(reader: Reader, sql: str, values: Sequence[Any]) -> list[Any]:
    """Rows of *sql*; text that is no UTF-8 is read as well as it goes."""
    try:
        return reader.rows(sql, values)
    except sqlite3.OperationalError as error:
        if DECODING not in str(error):
            raise
    with _forgiving(reader):
        return reader.rows(sql, values)


@contextlib.contextmanager
def _forgiving(reader: Reader) -> Iterator[None]:
    """Read text that is no UTF-8, for a while."""
    connection = reader.connection
    strict = connection.text_factory
    connection.text_factory = lambda data: data.decode(errors="replace")
    try:
        yield
    finally:
        connection.text_factory = strict


def _kind(reader: Reader, session_id: str, source: str, origin: str | None) -> Kind:
    try:
        kind, _ = lineage.kind_of(reader, session_id)
    except sqlite3.OperationalError as error:
        if DECODING not in str(error):
            raise
        with _forgiving(reader):
            kind, _ = lineage.kind_of(reader, session_id)
    found = SESSION_KINDS.get(kind, Kind.CONVERSATION)
    if found is Kind.CONVERSATION and source in SCHEDULED_SOURCES:
        return Kind.SCHEDULED
    # A branch stays one when what it branched off is gone.
    return Kind.BRANCH if found is Kind.CONVERSATION and origin else found


def _origin(model_config: Any) -> str | None:
    """What a session says it branched off."""
    if not isinstance(model_config, str) or BRANCH_MARK not in model_config:
        return None
    marks = decode_json(model_config)
    found = marks.get(BRANCH_MARK) if isinstance(marks, dict) else None
    return found if isinstance(found, str) else None


class OpenedHistory(StoreHistory):
    """A history that was opened to be read, and is closed with this object."""

    def close(self) -> None:
        """Let go of the file."""
        ENGINES.release(self._engine)


def open_history(path: str) -> OpenedHistory:
    """The history at *path*, to be read."""
    engine = ENGINES.acquire(
        Path(path), read_only=True, clock=SystemClock(), settings=StoreSettings.of_home()
    )
    return OpenedHistory(engine)
