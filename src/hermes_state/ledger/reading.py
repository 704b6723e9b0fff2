"""The history as statistics read it: short transactions, and only the columns that matter."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final
from zlib import crc32

from hermes_core.history_rows import Changed, Kind, Mark, MessageRow, SessionRow
from hermes_state import lineage
from hermes_state.codec import decode_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from hermes_state.columns import Columns
    from hermes_state.engine import Engine
    from hermes_state.transaction import Reader

CONTENT_BYTES: Final = 200
WITNESSES: Final = 8
NO_SIZE: Final = 50  # messages, for sessions that are not indexed yet

KINDS: Final = {
    lineage.DELEGATE: Kind.SUBAGENT,
    lineage.BRANCH: Kind.BRANCH,
    lineage.CONTINUATION: Kind.CONTINUATION,
}
BRANCH_MARK: Final = "_branched_from"
SCHEDULED_SOURCES: Final = frozenset({"cron", "cronjob", "schedule"})

WITNESS: Final = """
    SELECT id, session_id, timestamp FROM messages WHERE id >= ? ORDER BY id LIMIT 1
"""
SAME: Final = "SELECT id, session_id, timestamp FROM messages WHERE id = ?"
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
    names = ("model", "ended_at", "end_reason", "title", "input_tokens", "output_tokens")
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
        rows = self._engine.read(lambda reader: reader.rows(reader.prepared(_signature_sql)))
        return {row[0]: f"{crc32(repr(row[1:]).encode()):x}" for row in rows}

    def session(self, session_id: str) -> SessionRow | None:
        """A session's row; None when it is gone."""
        return self._engine.read(lambda reader: _session(reader, session_id))

    def rows(self, session_id: str, after: int = 0) -> Sequence[MessageRow]:
        """A session's messages with ids above *after*, in the order of their ids."""
        return self._engine.read(lambda reader: self._rows(reader, session_id, after))

    def _rows(self, reader: Reader, session_id: str, after: int) -> list[MessageRow]:
        if not self._has_copies:  # once there are copies, there always are
            self._has_copies = (
                "hermes_copy" in reader.columns.tables and reader.value(HAS_COPIES) is not None
            )
        sql = _rows_sql(reader.columns, with_copies=self._has_copies)
        rows = list(map(MessageRow._make, reader.execute(sql, (session_id, after))))
        rows.sort()  # by id; SQLite would carry all contents through a sorter of its own
        return rows

    def kept(self, session_id: str) -> bytes | None:
        """Facts that were taken of a session before its messages were removed."""
        if "hermes_kept" not in self._engine.columns.tables:
            return None
        found: bytes | None = self._engine.read(lambda reader: reader.value(KEPT, (session_id,)))
        return found

    def titles(self, session_ids: Iterable[str]) -> dict[str, str]:
        """Titles or first words, for showing where something was earned."""
        if not self._engine.columns.has_own_tables:
            return {}

        def look_up(reader: Reader) -> dict[str, str]:
            found = {one: reader.value(TITLES, (one,)) for one in session_ids}
            return {one: title for one, title in found.items() if title}

        return self._engine.read(look_up)

    def close(self) -> None:
        """The engine belongs to the store that made this."""


def _everything(reader: Reader) -> list[tuple[str, int]]:
    is_indexed = reader.columns.has_own_tables
    found = reader.rows(EVERYTHING if is_indexed else EVERYTHING_FOREIGN, (NO_SIZE,))
    if "hermes_kept" in reader.columns.tables:
        found += reader.rows(ONLY_KEPT)
    return [(row[0], row[1]) for row in found]


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
    return Mark(newest, change, tuple(found.items()))


def _witness(row: Sequence[Any]) -> int:
    return crc32(f"{row[1]} {row[2]}".encode())


def _is_same(reader: Reader, mark: Mark) -> bool:
    """A witness that says otherwise decides; that some have been deleted does not."""
    if not mark.witnesses:
        return True
    rows = [(print_, reader.row(SAME, (row_id,))) for row_id, print_ in mark.witnesses]
    present = [(print_, row) for print_, row in rows if row is not None]
    return bool(present) and all(_witness(row) == print_ for print_, row in present)


def _changed_since(reader: Reader, mark: Mark) -> list[Changed]:
    touched: set[str] = set()
    if "hermes_change" in reader.columns.tables:
        touched = {row[0] for row in reader.rows(CHANGED, (mark.change,))}
    longer = [row[0] for row in reader.rows(GREW, (mark.message,)) if row[0] not in touched]
    return [*(Changed(one, False) for one in touched), *(Changed(one, True) for one in longer)]


def _session(reader: Reader, session_id: str) -> SessionRow | None:
    row = reader.row(_session_sql(reader.columns), (session_id,))
    if row is None:
        return None
    source, model, started, ended, reason, is_titled = row[:6]
    origin = _origin(row[-1])
    if not is_titled and "hermes_trash" in reader.columns.tables:
        is_titled = reader.value(TRASHED_TITLE, (session_id,)) is not None
    return SessionRow(
        session_id,
        _kind(reader, session_id, source, origin),
        source or "",
        model,
        started or 0.0,
        ended,
        reason,
        bool(is_titled),
        row[6],
        row[7],
        row[8],
        row[9],
        row[10],
        row[11] or origin,
    )


def _kind(reader: Reader, session_id: str, source: str, origin: str | None) -> Kind:
    kind, _ = lineage.kind_of(reader, session_id)
    found = KINDS.get(kind, Kind.CONVERSATION)
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
