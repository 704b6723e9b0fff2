"""Imports an export file: verifies it completely, then stores each session atomically."""

from __future__ import annotations

import functools
import io
import json
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Literal

from hermes_core.errors import UsageError
from hermes_core.json_values import object_in, text_in
from hermes_state.messages.copies import NO_ORIGIN, UNKNOWN_ORIGIN
from hermes_state.messages.edits import INSERT_COPY, INSERT_UNDO_ROW
from hermes_state.messages.history import INSERT_UID, ROW_BY_UID, derive_identity
from hermes_state.portable.export_reader import ExportFile, RowOrigin, parse_usage
from hermes_state.portable.export_schema import (
    MESSAGE_INTERNAL,
    MESSAGE_PREFIX,
    ORIGIN_PREFIX,
    PARENT_NAME,
    PENDING_LINKS,
    SESSION_INTERNAL,
    SESSION_PREFIX,
    USAGE_NAME,
    columns_of,
    delete_extra,
    from_plain,
    save_extra,
    save_json,
)
from hermes_state.portable.record import (
    GENERATED,
    ORIGIN_FIELD,
    UID_FIELD,
    USAGE_FIELD,
    Identities,
    row_ids,
    write_record,
)
from hermes_state.sessions import index, labels, lineage, usage
from hermes_state.sessions.records import EXTRA_COLUMNS
from hermes_state.sessions.rows import EXISTS, UPSERT_EXTRA, prompt_columns
from hermes_state.sessions.trash import INSERT_TRASH, TITLE_TAKEN

if TYPE_CHECKING:
    from array import array
    from collections.abc import Callable, Mapping, Sequence

    from hermes_core.json_values import JsonObject
    from hermes_state.engine.engine import Engine
    from hermes_state.engine.transaction import Reader, Tx
    from hermes_state.engine.values import SqlValue
    from hermes_state.portable.export_reader import ExportLine, ExportRecord
    from hermes_state.portable.export_schema import ColumnRow

    Progress = Callable[[int, int], object]


INSERT_UNDO = """
    INSERT INTO hermes_undo (session_id, created_at, last_message_id, is_open) VALUES (?, ?, ?, ?)
"""
WAS_PURGED = "SELECT epoch FROM hermes_session_index WHERE session_id = ? AND shown = 3"
RAISE_COUNTS = """
    UPDATE hermes_session_index SET epoch = max(epoch, ?),
        lifetime_messages = max(lifetime_messages, ?),
        lifetime_tool_calls = max(lifetime_tool_calls, ?)
    WHERE session_id = ?
"""
SET_PARENT = "UPDATE sessions SET parent_session_id = ? WHERE id = ?"
SET_ORIGIN = "UPDATE hermes_copy SET origin_id = ? WHERE message_id = ?"


class ImportedSession:
    """A session that is being stored.

    *names* maps the IDs of sessions that were stored under another ID.
    """

    def __init__(
        self, tx: Tx, session_id: str, record: ExportRecord, names: Mapping[str, str]
    ) -> None:
        self._tx = tx
        self._id = session_id
        self._record = record
        self._names = names
        self._rows_by_session: dict[str, array[int]] = {}
        self.title: str | None = None

    def store(self) -> None:
        """Insert all rows of the session."""
        purged = self._tx.value(WAS_PURGED, (self._id,))
        self._session()
        for name, value in self._record.extra.items():
            if name == labels.TAGS_EXPORT_NAME:
                labels.import_tags(self._tx, self._id, from_plain(value))
            else:
                self._tx.execute(UPSERT_EXTRA, (self._id, name, from_plain(value)))
        self._usage()
        rows = [self._message(*item) for item in enumerate(self._record.messages)]
        self._undo(rows)
        trash = self._record.trash
        if trash is not None:
            names = ("trashed_at", "reason", "was_archived", "was_open", "title")
            self._tx.execute(INSERT_TRASH, (self._id, *[from_plain(trash[name]) for name in names]))
        self._index(purged, rows)

    def _session(self) -> None:
        facts: ColumnRow = {
            name: from_plain(value)
            for name, value in self._record.session.items()
            if name not in SESSION_INTERNAL
        }
        facts["id"] = self._id
        stored_parent = facts.pop("parent_session_id", None)
        parent = self._names.get(str(stored_parent), stored_parent)
        if parent is not None and self._tx.value(EXISTS, (parent,)):
            facts["parent_session_id"] = parent
        prompt = facts.get("system_prompt")
        if isinstance(prompt, str):
            del facts["system_prompt"]
            facts |= prompt_columns(self._tx, prompt)
        title = facts.get("title")
        if title is not None:
            self.title = facts["title"] = self._free_title(str(title))
        self._insert("sessions", self._tx.columns.sessions, facts)
        for name in facts.keys() - set(self._tx.columns.sessions):
            self._store_extra(name, facts[name])
        if parent is not None and "parent_session_id" not in facts:
            save_extra(self._tx, self._id, PARENT_NAME, parent)

    def _store_extra(self, name: str, value: SqlValue) -> None:
        """Store a value for which the file has no column."""
        if name in EXTRA_COLUMNS:
            text = repr(value) if isinstance(value, float) else value
            self._tx.execute(UPSERT_EXTRA, (self._id, name, text))
        else:
            save_extra(self._tx, self._id, SESSION_PREFIX + name, value)

    def _free_title(self, title: str) -> str:
        name, number = title, 2
        while self._tx.value(TITLE_TAKEN, (name,)):
            name, number = f"{title} #{number}", number + 1
        return name

    def _insert(self, table: str, columns: tuple[str, ...], values: Mapping[str, SqlValue]) -> None:
        names = [name for name in columns if name in values]
        self._tx.execute(_insert_statement(table, names), [values[name] for name in names])

    def _usage(self) -> None:
        rows = self._record.usage
        if rows and "session_model_usage" not in self._tx.columns.tables:
            save_json(self._tx, self._id, USAGE_NAME, rows)
            return
        known = tuple(columns_of("session_model_usage"))
        for row in rows:
            values = {name: from_plain(value) for name, value in row.items()}
            self._insert("session_model_usage", known, {**values, "session_id": self._id})

    def _message(self, position: int, message: JsonObject) -> int:
        columns = self._tx.columns.messages
        values = {
            name: from_plain(value)
            for name, value in message.items()
            if name not in MESSAGE_INTERNAL and name not in {UID_FIELD, ORIGIN_FIELD, USAGE_FIELD}
        }
        row = {**values, "session_id": self._id}
        names = [name for name in columns if name in row]
        statement = _insert_statement("messages", names)
        row_id = self._tx.insert(statement, [row[name] for name in names], "id")
        for name in values.keys() - set(columns):
            save_extra(self._tx, self._id, f"{MESSAGE_PREFIX}{position}.{name}", values[name])
        if UID_FIELD in message:
            self._tx.execute(
                INSERT_UID, (self._free_uid(bytes.fromhex(text_in(message, UID_FIELD))), row_id)
            )
        if ORIGIN_FIELD in message:
            if message[ORIGIN_FIELD] == GENERATED:
                self._tx.execute(INSERT_COPY, (row_id, NO_ORIGIN))
            else:
                origin = object_in(message, ORIGIN_FIELD)
                self._copy(position, row_id, RowOrigin.parse(origin) if origin else None)
        if USAGE_FIELD in message:
            usage.record(self._tx, row_id, parse_usage(message[USAGE_FIELD]))
        return row_id

    def _free_uid(self, key: bytes) -> bytes:
        """The identity, or one derived from it if another conversation uses it."""
        while self._tx.value(ROW_BY_UID, (key,)) is not None:
            key = derive_identity(self._id, key)
        return key

    def _copy(self, position: int, row_id: int, origin: RowOrigin | None) -> None:
        origin_id = None
        if origin is not None:
            session_id = self._names.get(origin.session, origin.session)
            origin_id = self._row_at(session_id, origin.row)
            if origin_id is None:
                pending: JsonObject = {"row": origin.row, "session": session_id}
                save_json(self._tx, self._id, f"{ORIGIN_PREFIX}{position}", pending)
        self._tx.execute(INSERT_COPY, (row_id, UNKNOWN_ORIGIN if origin_id is None else origin_id))

    def _row_at(self, session_id: str, position: int) -> int | None:
        if session_id == self._id:
            return None  # a session is never the origin of its own rows
        if session_id not in self._rows_by_session:
            self._rows_by_session[session_id] = row_ids(self._tx, session_id)
        rows = self._rows_by_session[session_id]
        return rows[position] if position < len(rows) else None

    def _undo(self, rows: list[int]) -> None:
        for entry in self._record.undo:
            values = (self._id, from_plain(entry.at), rows[entry.last], entry.is_open)
            undo_id = self._tx.insert(INSERT_UNDO, values, "undo_id")
            self._tx.many(INSERT_UNDO_ROW, [(undo_id, rows[position]) for position in entry.rows])

    def _index(self, purged: int | None, rows: list[int]) -> None:
        tx, counts = self._tx, self._record.counts
        # A session that was purged before starts a new epoch.
        epoch = counts.epoch if purged is None else max(counts.epoch, purged + 1)
        index.reindex(tx, self._id)
        index.update_family_positions(tx, self._id)
        lifetime = (counts.lifetime_messages, counts.lifetime_tool_calls)
        tx.execute(RAISE_COUNTS, (epoch, *lifetime, self._id))
        tx.newest_uid = None  # imported identities may have any age
        if rows and not tx.is_behind:
            tx.covered = max(tx.covered, rows[-1])


def link_pending(tx: Tx) -> int:
    """Link sessions and copies whose parent or origin exists now; returns their number."""
    rows_of = functools.cache(lambda session_id: row_ids(tx, session_id))
    linked = 0
    for session_id, name, text in tx.rows(PENDING_LINKS):
        target = json.loads(text)
        if name == PARENT_NAME:
            is_linked = _link_parent(tx, session_id, target)
        else:
            position = int(name.removeprefix(ORIGIN_PREFIX))
            origin = RowOrigin.parse(target)
            is_linked = _link_origin(
                tx, rows_of(session_id), position, rows_of(origin.session), origin.row
            )
        if is_linked:
            delete_extra(tx, session_id, name)
            linked += 1
    return linked


def _link_parent(tx: Tx, session_id: str, parent: str | None) -> bool:
    if not tx.value(EXISTS, (parent,)):
        return False
    tx.execute(SET_PARENT, (parent, session_id))
    current: str | None = session_id
    for _ in range(lineage.MAX_CHAIN_ROWS):
        if current is None:
            break
        index.update_family_positions(tx, current)
        current = lineage.continuation_of(tx, current)
    return True


def _link_origin(
    tx: Tx, row_ids: array[int], position: int, origin_ids: array[int], origin_row: int
) -> bool:
    if origin_row >= len(origin_ids) or position >= len(row_ids):
        return False
    tx.execute(SET_ORIGIN, (origin_ids[origin_row], row_ids[position]))
    return True


OnConflict = Literal["skip", "rename", "fail"]


@dataclass
class ImportReport:
    """The result of an import."""

    imported: int = 0
    messages: int = 0
    unchanged: int = 0
    skipped: list[str] = field(default_factory=list)
    renamed: dict[str, str] = field(default_factory=dict)
    retitled: dict[str, str] = field(default_factory=dict)
    is_redacted: bool = False
    is_dry_run: bool = False


class Import:
    """The import of a file."""

    def __init__(self, engine: Engine, on_conflict: OnConflict, *, is_dry_run: bool) -> None:
        self._engine = engine
        self._on_conflict = on_conflict
        self._report = ImportReport(is_dry_run=is_dry_run)

    def run(self, file: IO[bytes], name: str, progress: Progress | None) -> ImportReport:
        """Verify the file, then store its sessions."""
        source = ExportFile(file, name)
        existing: list[str] = []
        summary = source.verify(lambda line: self._record_existing(line, existing))
        self._report.is_redacted = summary.is_redacted
        if existing and self._on_conflict == "fail":
            raise UsageError(
                f"{len(existing)} of {summary.sessions} sessions are here already, the first is "
                f"{existing[0]}. Nothing was changed; choose --on-conflict skip or rename."
            )
        to_compare = existing if self._on_conflict == "rename" else []
        with Identities(self._engine, to_compare) as identities:
            for done, line in enumerate(source.sessions()):
                if progress is not None:
                    progress(done, summary.sessions)
                self._import_session(line, identities)
        if not self._report.is_dry_run:
            self._engine.write_upkeep(link_pending)
        return self._report

    def _record_existing(self, line: ExportLine, existing: list[str]) -> None:
        if self._engine.read(lambda reader: reader.value(EXISTS, (line.session_id,))):
            existing.append(line.session_id)

    def _import_session(self, line: ExportLine, identities: Identities) -> None:
        if self._report.is_dry_run:
            session_id = self._engine.read(lambda reader: self._target_id(reader, line, identities))
            self._count(line, session_id, None)
            return

        def store(tx: Tx) -> tuple[str | None, str | None]:
            session_id = self._target_id(tx, line, identities)
            if session_id is None:
                return None, None
            session = ImportedSession(tx, session_id, line.record, self._report.renamed)
            session.store()
            return session_id, session.title

        self._count(line, *self._engine.write_upkeep(store))

    def _target_id(self, reader: Reader, line: ExportLine, identities: Identities) -> str | None:
        """The ID under which a session is stored; None if it is skipped."""
        session_id = line.session_id
        if not reader.value(EXISTS, (session_id,)):
            return session_id
        if self._on_conflict != "rename":
            return None  # with "fail", it was created after the check
        if self._is_identical(reader, line, identities):
            return None
        number = 2
        while reader.value(EXISTS, (f"{session_id}-{number}",)):
            number += 1
        return f"{session_id}-{number}"

    @staticmethod
    def _is_identical(reader: Reader, line: ExportLine, identities: Identities) -> bool:
        """Whether the stored session with this ID is identical."""
        stored = io.BytesIO()
        write_record(reader, line.session_id, identities, None, stored)
        return stored.getvalue() == line.raw

    def _count(self, line: ExportLine, session_id: str | None, title: str | None) -> None:
        report, original_id = self._report, line.session_id
        if session_id is None:
            if self._on_conflict == "rename":
                report.unchanged += 1
            else:
                report.skipped.append(original_id)
            return
        report.imported += 1
        report.messages += len(line.record.messages)
        if session_id != original_id:
            report.renamed[original_id] = session_id
        original_title = line.record.session.get("title")
        if title is not None and title != original_title:
            report.retitled[session_id] = title


def _insert_statement(table: str, names: Sequence[str]) -> str:
    placeholders = ", ".join("?" * len(names))
    return f"INSERT INTO {table} ({', '.join(names)}) VALUES ({placeholders})"  # noqa: S608
