"""Derived rows of tool calls: filled by session, newest first, in slices."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_state.calls.edits import DIGEST_BYTES, EditedLine, KnownFiles, base_name
from hermes_state.calls.history import read_calls
from hermes_state.messages.rows import decode_content
from hermes_state.repository import Repository

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hermes_core.messages import Content
    from hermes_state.calls.edits import FileEdit
    from hermes_state.calls.history import ToolCall
    from hermes_state.engine.transaction import Reader, Tx

SLICE_SESSIONS: Final = 20
BLANK: Final = b"\0" * DIGEST_BYTES

BEHIND: Final = """
    SELECT i.session_id FROM hermes_session_index i
    LEFT JOIN hermes_call_mark c ON c.session_id = i.session_id
    WHERE i.shown < 3 AND i.last_message_id > coalesce(c.seen, 0)
    ORDER BY i.last_message_id DESC LIMIT ?
"""
COUNTS: Final = """
    SELECT (SELECT count(*) FROM hermes_session_index WHERE shown < 3),
        (SELECT count(*) FROM hermes_session_index i
            JOIN hermes_call_mark c ON c.session_id = i.session_id
            WHERE i.shown < 3 AND i.last_message_id <= c.seen)
"""
MARK: Final = "SELECT through FROM hermes_call_mark WHERE session_id = ?"
FOLDER: Final = "SELECT cwd FROM sessions WHERE id = ?"
LAST_MESSAGE: Final = "SELECT last_message_id FROM hermes_session_index WHERE session_id = ?"
SET_MARK: Final = """
    INSERT INTO hermes_call_mark (session_id, through, seen) VALUES (?, ?, ?)
    ON CONFLICT (session_id) DO UPDATE SET through = excluded.through, seen = excluded.seen
"""
INSERT_EDIT: Final = """
    INSERT INTO hermes_edit
        (message_id, place, session_id, edited_at, path, name, lines, removed)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING
"""
EDIT_COLUMNS: Final = "message_id, session_id, edited_at, path, lines, removed"
EDITS_OF_NAMES: Final = f"""
    SELECT {EDIT_COLUMNS} FROM hermes_edit
    WHERE name IN (SELECT value ->> 0 FROM json_each(?)) ORDER BY edited_at, message_id, place
"""  # noqa: S608 - own names
EDITS_OF_SESSIONS: Final = f"""
    SELECT {EDIT_COLUMNS} FROM hermes_edit
    WHERE session_id IN (SELECT value ->> 0 FROM json_each(?))
    ORDER BY edited_at, message_id, place
"""  # noqa: S608 - own names
PROMPT_BEFORE: Final = """
    SELECT id, content FROM messages
    WHERE session_id = ? AND id < ? AND role = 'user'
        AND coalesce(finish_reason, '') NOT IN ('hook_feedback', 'summary')
    ORDER BY id DESC LIMIT 1
"""
RECENT_EDITS: Final = f"""
    SELECT {EDIT_COLUMNS} FROM hermes_edit ORDER BY edited_at DESC, message_id DESC LIMIT ?
"""  # noqa: S608 - own names


EditRow = tuple[int, int, str, float, str, str, bytes, bytes]


class StoredEdit(NamedTuple):
    """An edit of a file, and the message that made it."""

    message_id: int
    session_id: str
    at: float
    path: str
    lines: tuple[EditedLine, ...]
    removed: frozenset[bytes]


class CallRepository(Repository):
    """What tool calls did, over the whole history."""

    def fill(self, seconds: float | None = None) -> bool:
        """Read calls that were not read yet, for at most this time; whether all are read."""
        deadline = None if seconds is None else time.monotonic() + seconds
        while behind := self._behind():
            for session_id in behind:
                self.fill_session(session_id)
                if deadline is not None and time.monotonic() >= deadline:
                    return not self._behind()
        return True

    def _behind(self) -> list[str]:
        if not self.is_available:
            return []
        return [row[0] for row in self.engine.read(lambda r: r.rows(BEHIND, (SLICE_SESSIONS,)))]

    @property
    def is_available(self) -> bool:
        """Whether the file has the tables; one that was never opened for writing has not."""
        return "hermes_edit" in self.engine.columns.tables

    def fill_session(self, session_id: str) -> None:
        """Read the new calls of one session."""
        position = self.engine.read(lambda reader: _position(reader, session_id))
        after, seen, folder = position
        known = KnownFiles(folder)
        found = self.engine.read(lambda reader: read_calls(reader, session_id, after))
        edits = _edit_rows(known, found.calls)
        if known.has_guessed and after:  # an earlier call may have read what was written now
            calls = self.engine.read(lambda reader: read_calls(reader, session_id, 0)).calls
            edits = [row for row in _edit_rows(KnownFiles(folder), calls) if row[0] > after]

        def store(tx: Tx) -> None:
            if int(tx.value(MARK, (session_id,)) or 0) == after:  # no other process was faster
                tx.many(INSERT_EDIT, edits)
                tx.run(SET_MARK, (session_id, found.through, max(seen, found.through)))

        self.engine.write_upkeep(store)

    def progress(self) -> tuple[int, int] | None:
        """Sessions whose calls were read, and all; None if that is all of them."""
        if not self.is_available:
            return None
        total, done = self.engine.read(lambda reader: reader.row(COUNTS)) or (0, 0)
        return None if done >= total else (done, total)

    def edits_of(self, paths: list[str]) -> list[StoredEdit]:
        """Edits of files with the names of *paths*, in any folder, oldest first."""
        return self._edits(EDITS_OF_NAMES, _as_rows({base_name(path) for path in paths}))

    def edits_in(self, session_ids: list[str]) -> list[StoredEdit]:
        """The edits that sessions made, oldest first."""
        return self._edits(EDITS_OF_SESSIONS, _as_rows(set(session_ids)))

    def recent_edits(self, limit: int) -> list[StoredEdit]:
        """The latest edits of all agents, newest first."""
        return self._edits(RECENT_EDITS, limit)

    def prompt_before(self, session_id: str, message_id: int) -> tuple[int, Content] | None:
        """The prompt that led to a message: its ID and content."""
        row = self.engine.read(lambda reader: reader.row(PROMPT_BEFORE, (session_id, message_id)))
        return None if row is None else (row[0], decode_content(row[1]))

    def _edits(self, sql: str, value: object) -> list[StoredEdit]:
        if not self.is_available:
            return []

        def read(reader: Reader) -> list[StoredEdit]:
            return [
                StoredEdit(row_id, name, at, path, _lines(lines), frozenset(_unpacked(removed)))
                for row_id, name, at, path, lines, removed in reader.rows(sql, (value,))
            ]

        return self.engine.read(read)


def _as_rows(values: set[str]) -> str:
    """Texts as an argument of `json_each`."""
    return json.dumps([[value] for value in sorted(values)])


def _position(reader: Reader, session_id: str) -> tuple[int, int, str]:
    """The row after which the calls of a session are read, its last row, and its folder."""
    through, seen = (reader.value(sql, (session_id,)) for sql in (MARK, LAST_MESSAGE))
    return int(through or 0), int(seen or 0), reader.value(FOLDER, (session_id,)) or ""


def _edit_rows(known: KnownFiles, calls: list[ToolCall]) -> list[EditRow]:
    return [
        _edit_row(call, place, edit)
        for call in calls
        for place, edit in enumerate(known.edits(call), 100 * call.place)
    ]


def _edit_row(call: ToolCall, place: int, edit: FileEdit) -> EditRow:
    return (
        call.message_id, place, call.session_id, call.at, edit.path, base_name(edit.path),
        _packed(edit.lines), b"".join(sorted(edit.removed)),
    )  # fmt: skip


def _packed(lines: Iterable[EditedLine]) -> bytes:
    """Lines as bytes: whether each is new, and its digest."""
    return b"".join(bytes((line.is_new,)) + (line.digest or BLANK) for line in lines)


def _lines(data: bytes) -> tuple[EditedLine, ...]:
    size = DIGEST_BYTES + 1
    parts = (bytes(data[at : at + size]) for at in range(0, len(data), size))
    return tuple(EditedLine(part[1:].replace(BLANK, b""), bool(part[0])) for part in parts)


def _unpacked(data: bytes) -> tuple[bytes, ...]:
    return tuple(bytes(data[at : at + DIGEST_BYTES]) for at in range(0, len(data), DIGEST_BYTES))
