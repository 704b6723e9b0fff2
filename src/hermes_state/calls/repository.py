"""Derived rows of tool calls: filled by session, newest first, in slices."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_state.calls.edits import DIGEST_BYTES, EditedLine, KnownFiles, base_name
from hermes_state.calls.history import read_calls
from hermes_state.calls.outcomes import EDIT, Outcome, file_key, find_outcomes
from hermes_state.engine.dialect import DIALECT, substring_pattern
from hermes_state.messages.rows import decode_content
from hermes_state.repository import Repository

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hermes_core.messages import Content
    from hermes_state.calls.edits import FileEdit
    from hermes_state.calls.history import RecordedCall
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
    WHERE name IN (SELECT value FROM json_each(?)) ORDER BY edited_at, message_id, place
"""  # noqa: S608 - own names
EDITS_OF_SESSIONS: Final = f"""
    SELECT {EDIT_COLUMNS} FROM hermes_edit
    WHERE session_id IN (SELECT value FROM json_each(?))
    ORDER BY edited_at, message_id, place
"""  # noqa: S608 - own names
PROMPT_BEFORE: Final = """
    SELECT id, content FROM messages
    WHERE session_id = ? AND id < ? AND role = 'user'
        AND coalesce(finish_reason, '') NOT IN ('hook_feedback', 'summary')
    ORDER BY id DESC LIMIT 1
"""
OUTCOME_COLUMNS: Final = (
    "message_id, place, session_id, happened_at, kind, subject, folder, exit_code, state,"
    " fingerprint, line, inverse, error, fix, fix_id"
)
SET_OUTCOME: Final = f"""
    INSERT INTO hermes_outcome ({OUTCOME_COLUMNS})
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (message_id, place) DO UPDATE SET state = excluded.state, fix = excluded.fix,
        fix_id = excluded.fix_id WHERE hermes_outcome.fix_id IS NULL
"""  # noqa: S608 - own names
FIRST_OPEN: Final = (
    "SELECT min(message_id) FROM hermes_outcome WHERE session_id = ? AND state = 'open'"
)
# A change is reverted by the opposite one after a later prompt, or in another conversation.
REVERT: Final = """
    UPDATE hermes_outcome SET fix_id = (
        SELECT min(b.message_id) FROM hermes_outcome b
        WHERE b.line = hermes_outcome.inverse AND b.fingerprint = hermes_outcome.fingerprint
            AND b.happened_at > hermes_outcome.happened_at AND (
                b.session_id <> hermes_outcome.session_id OR EXISTS (
                    SELECT 1 FROM messages m
                    WHERE m.session_id = b.session_id AND m.role = 'user'
                        AND m.id > hermes_outcome.message_id AND m.id < b.message_id)))
    WHERE kind = 'edit' AND fix_id IS NULL AND line IN (SELECT value FROM json_each(?))
"""
MARK_REVERTED: Final = """
    UPDATE hermes_outcome SET state = 'reverted'
    WHERE kind = 'edit' AND fix_id IS NOT NULL
        AND line IN (SELECT value FROM json_each(?))
"""
READABLE: Final = """
    NOT EXISTS (SELECT 1 FROM hermes_trash t WHERE t.session_id = o.session_id)
    AND EXISTS (SELECT 1 FROM messages k WHERE k.id = o.message_id)
"""
OUTCOMES_BY: Final = f"""
    SELECT {", ".join(f"o.{name.strip()}" for name in OUTCOME_COLUMNS.split(","))}
    FROM hermes_outcome o
    WHERE {{condition}} AND {READABLE} ORDER BY o.happened_at DESC LIMIT ?
"""  # noqa: S608 - own names
# Without those that a conversation contains, also as copies.
FIXES: Final = OUTCOMES_BY.format(
    condition="""o.fingerprint = ? AND o.fix_id IS NOT NULL AND o.session_id <> ?
        AND NOT EXISTS (
            SELECT 1 FROM hermes_copy c JOIN messages m ON m.id = c.message_id
            WHERE c.origin_id = o.fix_id AND m.session_id = ?)"""
)
FIXES_OF_LINES: Final = OUTCOMES_BY.format(
    condition="o.line IN (SELECT value FROM json_each(?)) AND o.kind = 'command'"
    " AND o.fix_id IS NOT NULL"
)
FIXES_LIKE: Final = OUTCOMES_BY.format(
    condition="o.kind = 'command' AND o.fix_id IS NOT NULL"
    f" AND o.error {DIALECT.like} ? ESCAPE '\\'"
)
RECENT_CHANGES: Final = 100  # of a file
# Changes that were reverted, or whose turn was undone, among the latest of a file.
REVERTED_CHANGES: Final = f"""
    SELECT {OUTCOME_COLUMNS} FROM (
        SELECT {OUTCOME_COLUMNS} FROM hermes_outcome
        WHERE fingerprint = ? AND kind = 'edit'
        ORDER BY happened_at DESC LIMIT {RECENT_CHANGES}) o
    WHERE (o.fix_id IS NOT NULL OR EXISTS (
            SELECT 1 FROM messages m WHERE m.id = o.message_id AND m.active = 0
                AND coalesce(m.compacted, 0) = 0))
        AND {READABLE} ORDER BY o.happened_at DESC LIMIT ?
"""  # noqa: S608 - own names
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
        if self.engine.read_only:
            return not self._behind()
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
        return "hermes_outcome" in self.engine.columns.tables

    def fill_session(self, session_id: str) -> None:
        """Read the new calls of one session."""
        after, seen, first, folder = self.engine.read(lambda r: _position(r, session_id))
        found = self.engine.read(lambda reader: read_calls(reader, session_id, first))
        known = KnownFiles(folder)
        edits = _edits_by_call(known, found.calls)
        if known.has_guessed and first:  # an earlier call may have read what was written now
            calls = self.engine.read(lambda reader: read_calls(reader, session_id, 0)).calls
            edits = _edits_by_call(KnownFiles(folder), calls)
        rows = [
            _edit_row(call, place, edit)
            for call in found.calls
            for place, edit in enumerate(edits[call.message_id, call.place], 100 * call.place)
        ]
        outcomes = find_outcomes(found.calls, folder, edits)
        changes = [each for each in outcomes if each.kind == EDIT]
        keys = _as_rows({key for each in changes for key in (each.line, each.inverse)})

        def store(tx: Tx) -> None:
            if int(tx.value(MARK, (session_id,)) or 0) == after:  # no other process was faster
                tx.many(INSERT_EDIT, rows)
                tx.many(SET_OUTCOME, outcomes)
                if changes:
                    tx.run(REVERT, (keys,))
                    tx.run(MARK_REVERTED, (keys,))
                through = max(after, found.through)
                tx.run(SET_MARK, (session_id, through, max(seen, through)))

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

    def fixes(self, fingerprint: str, limit: int, *, beside: str = "") -> list[Outcome]:
        """Failures with this fingerprint after which something worked, newest first.

        Those that the session *beside* contains are left out.
        """
        return self._outcomes(FIXES, fingerprint, beside, beside, limit)

    def fixes_of_lines(self, lines: list[str], limit: int) -> list[Outcome]:
        """Such failures by the digests of lines that their error may begin with."""
        return self._outcomes(FIXES_OF_LINES, _as_rows(set(lines)), limit)

    def fixes_like(self, text: str, limit: int) -> list[Outcome]:
        """Such failures whose error contains a text; reads all of them."""
        return self._outcomes(FIXES_LIKE, substring_pattern(text), limit)

    def reverted_changes(self, path: str, limit: int) -> list[Outcome]:
        """Changes of a file that were reverted or undone, newest first."""
        return self._outcomes(REVERTED_CHANGES, file_key(path), limit)

    def _outcomes(self, sql: str, *values: str | int) -> list[Outcome]:
        if not self.is_available:
            return []
        return self.engine.read(lambda r: [Outcome(*row) for row in r.rows(sql, values)])

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
    return json.dumps(sorted(values))


class _Position(NamedTuple):
    """How far the calls of a session were read; *first* is before failures without an end."""

    after: int
    seen: int
    first: int
    folder: str


def _position(reader: Reader, session_id: str) -> _Position:
    through, seen, first, folder = (
        reader.value(sql, (session_id,)) for sql in (MARK, LAST_MESSAGE, FIRST_OPEN, FOLDER)
    )
    after = int(through or 0)
    return _Position(after, int(seen or 0), min(after, int(first or after + 1) - 1), folder or "")


def _edits_by_call(
    known: KnownFiles, calls: list[RecordedCall]
) -> dict[tuple[int, int], list[FileEdit]]:
    return {(call.message_id, call.place): known.edits(call) for call in calls}


def _edit_row(call: RecordedCall, place: int, edit: FileEdit) -> EditRow:
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
