"""Export files: a header, one line per session, and a last line with a checksum.

A line has everything that an import needs.
Rows are identified by their position in the session, counted from 0, never by row ID. The
line is written in chunks, so memory use does not depend on the length of a conversation.
"""

from __future__ import annotations

import hashlib
import tempfile
from array import array
from bisect import bisect_left
from itertools import islice
from typing import IO, TYPE_CHECKING, Any, Final, Protocol, Self

from hermes_state.engine.database import DriverError, InvalidTextError
from hermes_state.engine.sqlite import driver
from hermes_state.engine.sqlite.transaction import read_only_uri
from hermes_state.engine.values import amount_of, text_of
from hermes_state.messages.copies import NO_ORIGIN
from hermes_state.messages.rows import column_names, select_list, shared_content
from hermes_state.portable.export_schema import (
    MESSAGE_INTERNAL,
    SESSION_INTERNAL,
    UNKNOWN_COLUMN,
    USAGE_INTERNAL,
    Extras,
    columns_of,
    from_plain,
    row_to_plain,
    to_json,
    without_defaults,
)
from hermes_state.sessions import index, lineage, usage
from hermes_state.sessions.rows import EXISTS, SELECT_PROMPT
from hermes_state.sessions.trash import rows_with_delegates

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from hermes_core.json_values import JsonData, JsonObject
    from hermes_state.engine.database import Row
    from hermes_state.engine.engine import Engine
    from hermes_state.engine.transaction import Reader
    from hermes_state.portable.export_schema import ColumnRow
    from hermes_state.sessions.usage import AnswerUsage


FEW_SESSIONS: Final = 50

FILL_IDENTITIES = """
    INSERT OR REPLACE INTO identity
    SELECT message_id, uid FROM store.hermes_message {narrow} ORDER BY message_id
"""
IN_SESSIONS = "WHERE message_id IN (SELECT id FROM store.messages WHERE session_id IN ({}))"
UID_OF_ROW = "SELECT uid FROM identity WHERE message_id = ?"
NEXT_IDENTITIES = "SELECT message_id, uid FROM hermes_message WHERE uid > ? ORDER BY uid LIMIT 5000"
LATER_IDENTITIES = "SELECT message_id, uid FROM hermes_message WHERE message_id > ?"


class Identities:
    """Message identities of the exported sessions, by row ID."""

    def __init__(self, engine: Engine, session_ids: Sequence[str]) -> None:
        self._later: dict[int, bytes] = {}
        self._through = 0
        self._connection = driver.connect("", engine.settings.busy_seconds, uri=True)
        try:
            self._fill(engine, session_ids)
        except DriverError as error:
            self.close()
            raise engine.database.to_store_error(error) from error

    def _fill(self, engine: Engine, session_ids: Sequence[str]) -> None:
        execute = self._connection.execute
        execute("CREATE TABLE identity (message_id INTEGER PRIMARY KEY, uid BLOB NOT NULL)")
        if not engine.database.is_file:
            self._through = self._fill_from_database(engine)
        elif engine.columns.has_own_tables and session_ids:
            execute("ATTACH ? AS store", (read_only_uri(engine.path),))
            execute("BEGIN")
            self._through = execute("SELECT coalesce(max(id), 0) FROM store.messages").fetchone()[0]
            few = list(session_ids) if len(session_ids) <= FEW_SESSIONS else []
            narrow = IN_SESSIONS.format(", ".join("?" * len(few))) if few else ""
            execute(FILL_IDENTITIES.format(narrow=narrow), few)
            execute("COMMIT")
            execute("DETACH store")

    def _fill_from_database(self, engine: Engine) -> int:
        """Copy the identities in slices; the last row ID they are complete for."""
        through = int(engine.read(lambda r: r.value("SELECT coalesce(max(id), 0) FROM messages")))
        last = b""
        while rows := engine.read(lambda r, last=last: r.rows(NEXT_IDENTITIES, (last,))):  # type: ignore[misc]
            self._connection.executemany("INSERT OR REPLACE INTO identity VALUES (?, ?)", rows)
            last = rows[-1][1]
        return through

    def begin_session(self, reader: Reader, last_id: int) -> None:
        """Read the identities of rows that were added since this object was created."""
        self._later = {}
        if last_id > self._through and reader.columns.has_own_tables:
            self._later = dict(reader.rows(LATER_IDENTITIES, (self._through,)))

    def of_row(self, row_id: int) -> str | None:
        """The identity of the message in a row, or None."""
        if row_id > self._through:
            uid = self._later.get(row_id)
        else:
            row = self._connection.execute(UID_OF_ROW, (row_id,)).fetchone()
            uid = None if row is None else row[0]
        return None if uid is None else bytes(uid).hex()

    def close(self) -> None:
        """Close the temporary database."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()


UID_FIELD: Final = "hermes_uid"
ORIGIN_FIELD: Final = "hermes_origin"
GENERATED: Final = "generated"  # the origin of a summary
USAGE_FIELD: Final = "hermes_usage"
# The values that an import requires; rows of other programs may have others.
SESSION_TYPES: Final = {"source": text_of, "started_at": amount_of}
MESSAGE_TYPES: Final = {"content": shared_content, "role": text_of, "timestamp": amount_of}

ROW_IDS = "SELECT id FROM messages WHERE session_id = ? ORDER BY id"
SESSION_OF = "SELECT session_id FROM messages WHERE id = ?"
COPIES = """
    SELECT c.message_id, c.origin_id FROM messages m JOIN hermes_copy c ON c.message_id = m.id
    WHERE m.session_id = ?
"""
UNDOS = """
    SELECT undo_id, created_at, last_message_id, is_open FROM hermes_undo
    WHERE session_id = ? ORDER BY undo_id
"""
UNDO_ROWS = "SELECT message_id FROM hermes_undo_row WHERE undo_id = ? ORDER BY message_id"
TRASH = """
    SELECT trashed_at, reason, was_archived, was_open, title FROM hermes_trash
    WHERE session_id = ?
"""
SELECT_SESSION = "SELECT * FROM sessions WHERE id = ?"
USAGE = "SELECT * FROM session_model_usage WHERE session_id = ?"


class RowFilter(Protocol):
    """Transforms a row before it is exported."""

    def row(self, row: ColumnRow) -> ColumnRow:
        """The row to export."""
        ...


class UnchangedRows:
    """Exports rows unchanged."""

    def row(self, row: ColumnRow) -> ColumnRow:
        return row


class RowPositions:
    """Positions of rows in their sessions; caches the last session."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._session_id: str | None = None
        self._ids: array[int] = array("q")

    def of(self, row_id: int) -> JsonObject | None:
        """Session and position of a row; None if the row does not exist."""
        session_id = self._reader.value(SESSION_OF, (row_id,))
        if session_id is None:
            return None
        if session_id != self._session_id:
            self._session_id, self._ids = session_id, row_ids(self._reader, session_id)
        return {"row": bisect_left(self._ids, row_id), "session": session_id}


def row_ids(reader: Reader, session_id: str) -> array[int]:
    """Row IDs of a session in order."""
    return array("q", (row[0] for row in reader.execute(ROW_IDS, (session_id,))))


class SessionRecord:
    """A session, read within one transaction."""

    def __init__(
        self, reader: Reader, session_id: str, identities: Identities, row_filter: RowFilter
    ) -> None:
        self._reader = reader
        self._id = session_id
        self._identities = identities
        self._row_filter = row_filter
        self._extras = Extras(reader, session_id)
        self._row_ids = row_ids(reader, session_id)
        self._has_own = reader.columns.has_own_tables
        self._copies: dict[int, int] = {}
        self._answers: dict[int, AnswerUsage] = {}
        if self._has_own:
            self._copies = dict(reader.rows(COPIES, (session_id,)))
            self._answers = usage.of_session(reader, session_id, with_copies=False)
        self.messages = len(self._row_ids)

    def chunks(self) -> Iterator[str]:
        """The line in chunks, without the newline."""
        head: dict[str, JsonData] = {"index": self._index()}
        if self._extras.facts:
            head["extra"] = self._extra_facts()
        tail: dict[str, JsonData] = {
            "session": row_to_plain(self._session()),
            "trash": self._trash(),
            "undo": self._undo(),
            "usage": self._usage(),
        }
        yield to_json({name: part for name, part in head.items() if part})[:-1] + ',"messages":['
        separator = ""
        for message in self._messages():
            yield separator + to_json(message)
            separator = ","
        yield "]," + to_json({name: part for name, part in tail.items() if part})[1:]

    def _session(self) -> ColumnRow:
        row: ColumnRow = self._reader.dicts(SELECT_SESSION, (self._id,))[0]
        _convert(row, SESSION_TYPES)
        if row.get("system_prompt") is None and row.get("system_prompt_hash"):
            row["system_prompt"] = self._reader.value(SELECT_PROMPT, (row["system_prompt_hash"],))
        known = columns_of("sessions")
        for name, text in self._extras.facts.items():
            if name in known and not self._reader.columns.session_has(name):
                row[name] = known[name].from_text(text)
        row = {name: value for name, value in row.items() if name not in SESSION_INTERNAL}
        if row["parent_session_id"] is None:
            row["parent_session_id"] = self._extras.parent
        return self._merge("sessions", row, self._extras.session)

    def _merge(self, table: str, row: ColumnRow, extra: ColumnRow) -> ColumnRow:
        """The values of the row, and the extra values that it cannot hold, transformed."""
        return self._row_filter.row(extra | without_defaults(table, row))

    def _extra_facts(self) -> JsonObject:
        known = columns_of("sessions")
        facts: ColumnRow = {n: v for n, v in self._extras.facts.items() if n not in known}
        return row_to_plain(self._row_filter.row(facts))

    def _index(self) -> dict[str, int]:
        """Lifetime counts and the epoch, computed as in `index.reindex`."""
        tool_calls = self._reader.row(index.SESSION_FACTS, (self._id,)) or (0, None, 0)
        old = (0, 0, 0)
        if self._has_own:
            old = self._reader.row(index.OLD_COUNTS, (self._id,)) or old
        return {
            "epoch": old[2],
            "lifetime_messages": max(self.messages - len(self._copies), old[0]),
            "lifetime_tool_calls": max(tool_calls[2] or 0, old[1]),
        }

    def _messages(self) -> Iterator[JsonObject]:
        self._identities.begin_session(self._reader, self._row_ids[-1] if self._row_ids else 0)
        names = self._reader.prepared(select_list)
        sql = f"SELECT {names} FROM messages WHERE session_id = ? ORDER BY id"  # noqa: S608
        columns = self._reader.prepared(column_names)
        positions = RowPositions(self._reader)
        for position, values in enumerate(self._rows(sql)):
            row = dict(zip(columns, values, strict=True))
            _convert(row, MESSAGE_TYPES)
            yield self._message(position, values[0], row, positions)

    def _rows(self, sql: str) -> Iterator[Row]:
        """The rows one by one; from the first with invalid UTF-8 on, that is replaced."""
        count = 0
        try:
            for row in self._reader.execute(sql, (self._id,)):
                yield row
                count += 1
        except InvalidTextError:
            with self._reader.replacing_invalid_text():
                yield from islice(self._reader.execute(sql, (self._id,)), count, None)

    def _message(
        self, position: int, row_id: int, row: ColumnRow, positions: RowPositions
    ) -> JsonObject:
        row = {name: value for name, value in row.items() if name not in MESSAGE_INTERNAL}
        message = row_to_plain(
            self._merge("messages", row, self._extras.messages.get(position, {}))
        )
        uid = self._identities.of_row(row_id)
        if uid is not None:
            message[UID_FIELD] = uid
        origin_id = self._copies.get(row_id)
        if origin_id is not None:
            message[ORIGIN_FIELD] = (
                GENERATED
                if origin_id == NO_ORIGIN
                else positions.of(origin_id) or self._extras.origins.get(position)
            )
        usage = self._answers.get(row_id)
        if usage is not None:  # as text: an older release keeps it as a column that it lacks
            message[USAGE_FIELD] = to_json(usage._asdict())
        return message

    def _undo(self) -> list[JsonObject]:
        if not self._has_own:
            return []
        return [
            {
                "at": at,
                "is_open": is_open,
                "last": bisect_left(self._row_ids, last_id),
                "rows": [*self._positions_in_undo(undo_id)],
            }
            for undo_id, at, last_id, is_open in self._reader.rows(UNDOS, (self._id,))
        ]

    def _positions_in_undo(self, undo_id: int) -> list[int]:
        known = set(self._row_ids)
        rows = self._reader.rows(UNDO_ROWS, (undo_id,))
        return [bisect_left(self._row_ids, row[0]) for row in rows if row[0] in known]

    def _trash(self) -> JsonObject:
        if not self._has_own:
            return {}
        rows = self._reader.dicts(TRASH, (self._id,))
        return row_to_plain(self._row_filter.row(rows[0])) if rows else {}

    def _usage_row(self, row: JsonObject) -> JsonObject:
        values = {name: from_plain(value) for name, value in row.items()}
        return row_to_plain(self._row_filter.row(values))

    def _usage(self) -> list[JsonObject]:
        rows = [self._usage_row(row) for row in self._extras.usage]
        if "session_model_usage" in self._reader.columns.tables:
            known = columns_of("session_model_usage")
            for row in self._reader.dicts(USAGE, (self._id,)):
                values = {name: v for name, v in row.items() if name not in USAGE_INTERNAL}
                exported = {
                    n: v
                    for n, v in values.items()
                    if not known.get(n, UNKNOWN_COLUMN).is_default(v)
                }
                rows.append(row_to_plain(self._row_filter.row(exported)))
        return sorted(rows, key=to_json)


def _convert(row: ColumnRow, types: Mapping[str, Callable[[Any], Any]]) -> None:
    """Convert some values of a row in place."""
    for name, convert in types.items():
        row[name] = convert(row[name])


SELECT_SESSIONS = "SELECT id, parent_session_id, archived FROM sessions ORDER BY started_at, id"
PARENT = "SELECT parent_session_id FROM sessions WHERE id = ?"
TRASHED = "SELECT session_id FROM hermes_trash"


def all_sessions(reader: Reader, *, archived: bool, trashed: bool) -> list[str]:
    """Every session, optionally including archived and trashed ones."""
    trashed_ids = _trashed(reader)
    return parents_first(
        (session_id, parent)
        for session_id, parent, is_archived in reader.rows(SELECT_SESSIONS)
        if (trashed if session_id in trashed_ids else archived or not is_archived)
    )


def in_order(reader: Reader, session_ids: Collection[str]) -> list[str]:
    """These sessions, parents before children."""
    selected = set(session_ids)
    return parents_first(
        (session_id, parent)
        for session_id, parent, _ in reader.rows(SELECT_SESSIONS)
        if session_id in selected
    )


def conversations(reader: Reader, session_ids: Iterable[str], *, trashed: bool) -> list[str]:
    """These sessions, the rows they continue, and the tasks delegated from them."""
    trashed_ids = set() if trashed else _trashed(reader)
    row_ids: set[str] = set()
    for session_id in session_ids:
        for row_id in lineage.chain_of(reader, session_id):
            if row_id not in row_ids:
                row_ids.update(rows_with_delegates(reader, row_id))
    return in_order(reader, row_ids - trashed_ids)


def relatives(reader: Reader, session_id: str) -> list[str]:
    """A session, its ancestors, and the rows that continue it."""
    chain = lineage.chain_of(reader, lineage.tip_of(reader, session_id))
    row_ids = {session_id, *chain}
    current = reader.value(PARENT, (chain[0],))
    while current is not None and current not in row_ids:
        row_ids.add(current)
        current = reader.value(PARENT, (current,))
    return in_order(reader, row_ids)


def parents_first(rows: Iterable[tuple[str, str | None]]) -> list[str]:
    """IDs in the given order, but each after its parent; cycles are broken."""
    parent_of = dict(rows)
    done: dict[str, None] = {}
    for session_id in parent_of:
        path: dict[str, None] = {}
        current: str | None = session_id
        while current in parent_of and current not in done and current not in path:
            path[current] = None
            current = parent_of[current]
        done.update(dict.fromkeys(reversed(path)))
    return list(done)


def _trashed(reader: Reader) -> set[str]:
    if not reader.columns.has_own_tables:
        return set()
    return {row[0] for row in reader.rows(TRASHED)}


EXPORT_FORMAT: Final = "hermes-export"
EXPORT_VERSION: Final = 1
MAX_MEMORY_BYTES: Final = 4 << 20
CHUNK_BYTES: Final = 1 << 20


def export_chunks(
    engine: Engine, session_ids: Sequence[str], redactor: RowFilter | None = None
) -> Iterator[bytes]:
    """The file in chunks, which do not necessarily end at line ends."""
    digest = hashlib.sha256()
    sessions = messages = 0
    header = {"format": EXPORT_FORMAT, "redacted": redactor is not None, "version": EXPORT_VERSION}
    first = to_json(header).encode() + b"\n"
    digest.update(first)
    yield first
    with Identities(engine, session_ids) as identities:
        for session_id in session_ids:
            with tempfile.SpooledTemporaryFile(MAX_MEMORY_BYTES) as spool:
                # Read completely before it is yielded: a slow consumer must not block checkpoints.
                count = spool_session(engine, session_id, identities, redactor, spool)
                if count is None:
                    continue
                spool.seek(0)
                while chunk := spool.read(CHUNK_BYTES):
                    digest.update(chunk)
                    yield chunk
            sessions += 1
            messages += count
    end = {
        "end": EXPORT_FORMAT,
        "messages": messages,
        "sessions": sessions,
        "sha256": digest.hexdigest(),
    }
    yield to_json(end).encode() + b"\n"


def spool_session(
    engine: Engine,
    session_id: str,
    identities: Identities,
    redactor: RowFilter | None,
    spool: IO[bytes],
) -> int | None:
    """Write the line of a session; returns its number of messages, or None if it was deleted."""

    def write(reader: Reader) -> int | None:
        reader.execute("BEGIN")
        try:
            if not reader.value(EXISTS, (session_id,)):
                return None
            return write_record(reader, session_id, identities, redactor, spool)
        finally:
            reader.execute("ROLLBACK")

    return engine.read(write)


def write_record(
    reader: Reader,
    session_id: str,
    identities: Identities,
    redactor: RowFilter | None,
    spool: IO[bytes],
) -> int:
    """Write the line of an existing session; returns its number of messages."""
    record = SessionRecord(reader, session_id, identities, redactor or UnchangedRows())
    for chunk in record.chunks():
        spool.write(chunk.encode())
    spool.write(b"\n")
    return record.messages
