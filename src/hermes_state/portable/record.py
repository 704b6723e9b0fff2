"""One session as a line of an export: everything that is needed to make it again.

Rows are named by their place in the session, counted from 0, never by their row id. The
line is written piece by piece, so that a conversation of any length fits in memory.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from typing import TYPE_CHECKING, Any, Final, Protocol, Self

from hermes_state.engine import driver
from hermes_state.engine.reader_pool import read_only_uri
from hermes_state.messages.rows import select_list
from hermes_state.portable.export_schema import (
    MESSAGE_INTERNAL,
    SESSION_INTERNAL,
    UNKNOWN_COLUMN,
    USAGE_INTERNAL,
    all_plain,
    columns_of,
    to_json,
    without_defaults,
)
from hermes_state.portable.import_extras import Extras
from hermes_state.sessions import index
from hermes_state.sessions.rows import SELECT_PROMPT, SELECT_SESSION

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import TracebackType

    from hermes_state.engine.engine import Engine
    from hermes_state.engine.transaction import Reader


FEW_SESSIONS: Final = 50

FILL = """
    INSERT OR REPLACE INTO identity
    SELECT message_id, uid FROM store.hermes_message {narrow} ORDER BY message_id
"""
OF_SESSIONS = "WHERE message_id IN (SELECT id FROM store.messages WHERE session_id IN ({}))"
OF_ROW = "SELECT uid FROM identity WHERE message_id = ?"
LATER = "SELECT message_id, uid FROM hermes_message WHERE message_id > ?"


class Identities:
    """The identities of the messages of some sessions, by row."""

    def __init__(self, engine: Engine, session_ids: Sequence[str]) -> None:
        self._later: dict[int, bytes] = {}
        self._through = 0
        self._connection = driver.connect("", engine.busy_seconds, uri=True)
        execute = self._connection.execute
        execute("CREATE TABLE identity (message_id INTEGER PRIMARY KEY, uid BLOB NOT NULL)")
        if engine.columns.has_own_tables and session_ids:
            execute("ATTACH ? AS store", (read_only_uri(engine.path),))
            execute("BEGIN")
            self._through = execute("SELECT coalesce(max(id), 0) FROM store.messages").fetchone()[0]
            few = list(session_ids) if len(session_ids) <= FEW_SESSIONS else []
            narrow = OF_SESSIONS.format(", ".join("?" * len(few))) if few else ""
            execute(FILL.format(narrow=narrow), few)
            execute("COMMIT")
            execute("DETACH store")

    def begin_session(self, reader: Reader, last_id: int) -> None:
        """Look at rows that were added since the way back was made."""
        self._later = {}
        if last_id > self._through and reader.columns.has_own_tables:
            self._later = dict(reader.rows(LATER, (self._through,)))

    def of_row(self, row_id: int) -> str | None:
        """The identity of the message in a row, if it has one of ours."""
        if row_id > self._through:
            found = self._later.get(row_id)
        else:
            row = self._connection.execute(OF_ROW, (row_id,)).fetchone()
            found = None if row is None else row[0]
        return None if found is None else bytes(found).hex()

    def close(self) -> None:
        """Let go of the temporary database."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


UID: Final = "hermes_uid"
ORIGIN: Final = "hermes_origin"

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
USAGE = "SELECT * FROM session_model_usage WHERE session_id = ?"


class Alters(Protocol):
    """What may change a row on its way out."""

    def row(self, row: dict[str, Any]) -> dict[str, Any]:
        """The row as it shall be given out."""
        ...


class AsItIs:
    """Changes nothing."""

    def row(self, row: dict[str, Any]) -> dict[str, Any]:
        return row


class Places:
    """Where a row stands in its session; remembers the session that was asked about last."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._session_id: str | None = None
        self._ids: array[int] = array("q")

    def of(self, row_id: int) -> dict[str, Any] | None:
        """Session and place of a row; None if there is no such row."""
        session_id = self._reader.value(SESSION_OF, (row_id,))
        if session_id is None:
            return None
        if session_id != self._session_id:
            self._session_id, self._ids = session_id, row_ids(self._reader, session_id)
        return {"row": bisect_left(self._ids, row_id), "session": session_id}


def row_ids(reader: Reader, session_id: str) -> array[int]:
    """The rows of a session in order."""
    return array("q", (row[0] for row in reader.execute(ROW_IDS, (session_id,))))


class SessionRecord:
    """One session, read within one transaction."""

    def __init__(
        self, reader: Reader, session_id: str, identities: Identities, alter: Alters
    ) -> None:
        self._reader = reader
        self._id = session_id
        self._identities = identities
        self._alter = alter
        self._extras = Extras(reader, session_id)
        self._row_ids = row_ids(reader, session_id)
        self._has_own = reader.columns.has_own_tables
        self._copies: dict[int, int] = {}
        if self._has_own:
            self._copies = dict(reader.rows(COPIES, (session_id,)))
        self.messages = len(self._row_ids)

    def pieces(self) -> Iterator[str]:
        """The line, without its end."""
        head = {"index": self._index()}
        if self._extras.facts:
            head["extra"] = self._unplaced_facts()
        tail = {
            "session": all_plain(self._session()),
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

    def _session(self) -> dict[str, Any]:
        row = self._reader.dicts(SELECT_SESSION, (self._id,))[0]
        if row.get("system_prompt") is None and row.get("system_prompt_hash"):
            row["system_prompt"] = self._reader.value(SELECT_PROMPT, (row["system_prompt_hash"],))
        known = columns_of("sessions")
        for name, text in self._extras.facts.items():
            if name in known and not self._reader.columns.session_has(name):
                row[name] = known[name].from_text(text)
        row = {name: value for name, value in row.items() if name not in SESSION_INTERNAL}
        if row["parent_session_id"] is None:
            row["parent_session_id"] = self._extras.parent
        return self._finished("sessions", row, self._extras.session)

    def _finished(self, table: str, row: dict[str, Any], kept: dict[str, Any]) -> dict[str, Any]:
        """What the row holds, then what was kept because it holds it not, then altered."""
        return self._alter.row(kept | without_defaults(table, row))

    def _unplaced_facts(self) -> dict[str, Any]:
        known = columns_of("sessions")
        facts = {n: v for n, v in self._extras.facts.items() if n not in known}
        return all_plain(self._alter.row(facts))

    def _index(self) -> dict[str, int]:
        """Counts for life and the epoch; computed as `index.reindex` does."""
        tool_calls = self._reader.row(index.SESSION_FACTS, (self._id,)) or (0, None, 0)
        old = (0, 0, 0)
        if self._has_own:
            old = self._reader.row(index.OLD_COUNTS, (self._id,)) or old
        return {
            "epoch": old[2],
            "lifetime_messages": max(self.messages - len(self._copies), old[0]),
            "lifetime_tool_calls": max(tool_calls[2] or 0, old[1]),
        }

    def _messages(self) -> Iterator[dict[str, Any]]:
        self._identities.begin_session(self._reader, self._row_ids[-1] if self._row_ids else 0)
        names = self._reader.prepared(select_list)
        cursor = self._reader.execute(
            f"SELECT {names} FROM messages WHERE session_id = ? ORDER BY id",  # noqa: S608
            (self._id,),
        )
        columns = [column[0] for column in cursor.description]
        places = Places(self._reader)
        for place, values in enumerate(cursor):
            row = dict(zip(columns, values, strict=True))
            yield self._message(place, row, places)

    def _message(self, place: int, row: dict[str, Any], places: Places) -> dict[str, Any]:
        row_id = row["id"]
        row = {name: value for name, value in row.items() if name not in MESSAGE_INTERNAL}
        message = all_plain(self._finished("messages", row, self._extras.messages.get(place, {})))
        uid = self._identities.of_row(row_id)
        if uid is not None:
            message[UID] = uid
        origin_id = self._copies.get(row_id)
        if origin_id is not None:
            message[ORIGIN] = places.of(origin_id) or self._extras.origins.get(place)
        return message

    def _undo(self) -> list[dict[str, Any]]:
        if not self._has_own:
            return []
        return [
            {
                "at": at,
                "is_open": is_open,
                "last": bisect_left(self._row_ids, last_id),
                "rows": self._places_in_undo(undo_id),
            }
            for undo_id, at, last_id, is_open in self._reader.rows(UNDOS, (self._id,))
        ]

    def _places_in_undo(self, undo_id: int) -> list[int]:
        known = set(self._row_ids)
        rows = self._reader.rows(UNDO_ROWS, (undo_id,))
        return [bisect_left(self._row_ids, row[0]) for row in rows if row[0] in known]

    def _trash(self) -> dict[str, Any]:
        if not self._has_own:
            return {}
        found = self._reader.dicts(TRASH, (self._id,))
        return all_plain(self._alter.row(found[0])) if found else {}

    def _usage(self) -> list[dict[str, Any]]:
        rows = [self._alter.row(row) for row in self._extras.usage]
        if "session_model_usage" in self._reader.columns.tables:
            known = columns_of("session_model_usage")
            for row in self._reader.dicts(USAGE, (self._id,)):
                mine = {name: v for name, v in row.items() if name not in USAGE_INTERNAL}
                kept = {
                    n: v for n, v in mine.items() if not known.get(n, UNKNOWN_COLUMN).is_default(v)
                }
                rows.append(all_plain(self._alter.row(kept)))
        return sorted(rows, key=to_json)
