"""Copies a whole history into another database, in slices that can be continued.

The target is new, or holds the beginning of an earlier copy of the same history. Derived data
and what belongs to running processes is not copied.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple
from zlib import crc32

from hermes_core.errors import StoreError, UsageError
from hermes_state.messages.rows import JSON_PREFIX, PORTABLE_JSON_PREFIX, shared_content
from hermes_state.schema.own import ADD_LAYOUT, REMOVE_LAYOUT, UNFINISHED_COPY

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from hermes_state.engine.database import Database, DatabaseReader, Row, Writer
    from hermes_state.engine.transaction import Reader, Tx, ValueKind

    Progress = Callable[[str, int, int], object]

SLICE_ROWS: Final = 200
MAX_SLICE_BYTES: Final = 8_000_000  # fewer rows are read at once if they are long
COPY_OF: Final = "copy_of"
HISTORY: Final = "SELECT value FROM hermes_layout WHERE name = 'history'"
NEWEST_MESSAGE: Final = "SELECT max(id) FROM messages"
COPIED_HISTORY: Final = "SELECT value FROM hermes_layout WHERE name = 'copy_of'"


class CopiedTable(NamedTuple):
    """A table, the columns of its key, and columns that are set or left out."""

    name: str
    key: tuple[str, ...]
    cleared: tuple[str, ...] = ()  # set to NULL: they name processes
    later: tuple[str, ...] = ()  # set when all rows are there: they refer to rows of the table
    identity: bool = False  # the database numbers new rows
    is_extended: bool = False  # the copy has more rows: files of the home are added


# In an order in which every row that is referred to comes first.
TABLES: Final = (
    CopiedTable("system_prompts", ("hash",)),
    CopiedTable("sessions", ("id",), later=("parent_session_id",)),
    CopiedTable("messages", ("id",), identity=True),
    CopiedTable(
        "session_model_usage",
        ("session_id", "model", "billing_provider", "billing_base_url", "billing_mode", "task"),
    ),
    CopiedTable("state_meta", ("key",)),
    CopiedTable("gateway_routing", ("scope", "session_key")),
    CopiedTable("hermes_message", ("uid",)),
    CopiedTable("hermes_copy", ("message_id",)),
    CopiedTable("hermes_answer_usage", ("message_id",)),
    CopiedTable("hermes_session_index", ("session_id",)),
    CopiedTable("hermes_session_extra", ("session_id", "name")),
    CopiedTable("hermes_lease", ("session_id",), cleared=("process_id", "holder")),
    CopiedTable("hermes_inbox", ("inbox_id",), cleared=("process_id",), identity=True),
    CopiedTable("hermes_outbox", ("outbox_id",), cleared=("process_id",), identity=True),
    CopiedTable("hermes_boundary", ("sequence",), cleared=("process_id",), identity=True),
    CopiedTable("hermes_delivery", ("event_id", "consumer")),
    CopiedTable("hermes_undo", ("undo_id",), identity=True),
    CopiedTable("hermes_undo_row", ("undo_id", "message_id")),
    CopiedTable("hermes_trash", ("session_id",)),
    CopiedTable("hermes_tag", ("session_id", "folded")),
    CopiedTable("hermes_route", ("place",)),
    CopiedTable("hermes_spending", ("platform", "user_id", "day")),
    CopiedTable("hermes_shown", ("inbox_id",)),
    CopiedTable("hermes_mark", ("name",)),
    CopiedTable("hermes_interruption", ("kind", "number")),
    CopiedTable("hermes_allowed", ("platform", "user_id")),
    CopiedTable("hermes_pairing", ("platform", "user_id")),
    CopiedTable("hermes_guess", ("guess_id",), identity=True),
    CopiedTable("hermes_kept", ("session_id",)),
    CopiedTable("hermes_person_role", ("platform", "user_id")),
    CopiedTable("hermes_api_key", ("name",)),
    CopiedTable("hermes_file", ("name",), is_extended=True),
    CopiedTable("hermes_fact", ("fact_id",), identity=True),
    CopiedTable("hermes_fact_evidence", ("fact_id", "message_id", "start")),
    CopiedTable("hermes_fact_change", ("change_id",), identity=True),
    CopiedTable("hermes_scheduled_job", ("job_id",), identity=True),
    CopiedTable("hermes_occurrence", ("occurrence_id",), identity=True),
    CopiedTable("hermes_token_use", ("platform", "user_id", "day")),
    CopiedTable("hermes_paused_place", ("session_key",)),
    CopiedTable("hermes_api_request", ("request_id",), identity=True),
    CopiedTable("hermes_import_unit", ("agent", "unit_id")),
    CopiedTable("hermes_imported_session", ("session_id",)),
    CopiedTable("hermes_imported_usage", ("usage_key",)),
)
# Derived, or of running processes: not copied.
LEFT_OUT: Final = frozenset(
    {
        "schema_version", "hermes_layout", "hermes_migration", "hermes_process", "hermes_owner",
        "hermes_participant", "hermes_draft", "hermes_change", "compression_locks",
        "session_turn_leases", "hermes_commit", "hermes_search_pending",
        "hermes_search_words", "hermes_search_term", "hermes_search_session",
        "hermes_search_vector", "hermes_bound_place",
        "hermes_ledger_note", "hermes_open_question", "hermes_ledger_session",
        "hermes_session_sort", "hermes_call_mark", "hermes_edit", "hermes_outcome",
    }
)  # fmt: skip


class CopyReport(NamedTuple):
    """The rows of each table that was copied, and the number of files."""

    tables: dict[str, int]
    files: int = 0

    @property
    def rows(self) -> int:
        """The number of rows."""
        return sum(self.tables.values())


class StoreCopy:
    """A copy from one database to another."""

    def __init__(self, source: DatabaseReader, target: Database, writer: Writer) -> None:
        self._source = source
        self._target = target
        self._writer = writer
        self._tables = [table for table in TABLES if table.name in source.columns.tables]

    def run(self, progress: Progress, copy_files: Callable[[], int] = lambda: 0) -> CopyReport:
        """Copy what is missing, compare both sides, and run *copy_files*.

        Until all of it is done, the target cannot be opened as a history.
        """
        self._check_target()
        counts = {table.name: self._count(self._source, table) for table in self._tables}
        total, done = sum(counts.values()), 0
        for table in self._tables:
            for copied in self._copy_rows(table):
                progress("Copying", done + copied, total)
            done += counts[table.name]
        for table in self._tables:
            self._set_references(table)
            if table.identity:
                self._writer.submit(lambda tx, t=table: tx.continue_numbers(t.name, t.key[0]))  # type: ignore[misc]
        self._writer.submit(lambda tx: tx.update_planner())
        self._verify(counts, progress)
        files = copy_files()
        self._writer.submit(lambda tx: tx.run(REMOVE_LAYOUT, (UNFINISHED_COPY,)))
        return CopyReport(counts, files)

    def _check_target(self) -> None:
        history = self._source.read(lambda reader: reader.value(HISTORY))
        if self._target.read(lambda reader: reader.value(HISTORY)) == history:
            raise UsageError(
                f"{self._target.place} is the history that would be copied. Name another database "
                "or file."
            )
        copied = self._target.read(lambda reader: reader.value(COPIED_HISTORY))
        has_rows = self._target.read(lambda r: r.value("SELECT 1 FROM sessions LIMIT 1"))
        if has_rows is not None and copied != history:
            raise UsageError(
                f"{self._target.place} already holds another history. Choose an empty database."
            )
        newest, newest_copied = (
            database.read(lambda reader: reader.value(NEWEST_MESSAGE) or 0)
            for database in (self._source, self._target)
        )
        if newest_copied > newest:
            raise UsageError(
                f"{self._target.place} was copied from this history and used since: it has newer "
                "messages, which another copy would damage. Choose an empty database."
            )
        self._writer.submit(lambda tx: _mark_unfinished(tx, str(history)))

    def _copy_rows(self, table: CopiedTable, *, replaces: bool = False) -> Iterator[int]:
        """Copy the rows after the last one that is there, or all; the number of rows so far."""
        names = self._columns(table)
        cleared = [names.index(name) for name in (*table.cleared, *table.later) if name in names]
        insert = _upsert(table, names) if replaces else _insert(table, names)
        kinds = self._kinds(table, names)
        position = None if replaces else self._target.read(lambda r: _last_key(r, table))
        copied = 0 if position is None else self._count(self._target, table)
        for rows in _slices(self._source, table, names, position):
            values = [
                tuple(map(shared_content, _with_none(_fitting(row, kinds), cleared)))
                for row in rows
            ]
            self._writer.submit(lambda tx, values=values: tx.many(insert, values))  # type: ignore[misc]
            copied += len(rows)
            yield copied

    def _columns(self, table: CopiedTable) -> list[str]:
        """The columns that both sides have."""
        wanted = self._target.read(lambda reader: _column_names(reader, table))
        present = set(self._source.read(lambda reader: _column_names(reader, table)))
        return [name for name in wanted if name in present]

    def _kinds(self, table: CopiedTable, names: list[str]) -> list[ValueKind | None]:
        """The kind of value that each column of the target takes; None for any."""
        kinds = self._target.read(lambda reader: reader.column_kinds(table.name))
        return [kinds.get(name) for name in names]

    def _set_references(self, table: CopiedTable) -> None:
        for name in table.later:
            key = table.key[0]
            sql = f"SELECT {name}, {key} FROM {table.name} WHERE {name} IS NOT NULL"  # noqa: S608
            update = f"UPDATE {table.name} SET {name} = ? WHERE {key} = ? AND {name} IS NULL"  # noqa: S608
            rows = self._source.read(lambda reader, sql=sql: reader.rows(sql))  # type: ignore[misc]
            for start in range(0, len(rows), SLICE_ROWS):
                part = rows[start : start + SLICE_ROWS]
                self._writer.submit(lambda tx, part=part, update=update: tx.many(update, part))  # type: ignore[misc]

    def _verify(self, counts: dict[str, int], progress: Progress) -> None:
        total, done = sum(counts.values()), 0
        for table in self._tables:
            if not table.is_extended and not self._is_equal(table):
                # Rows were changed after an interrupted copy had copied them.
                for _ in self._copy_rows(table, replaces=True):
                    progress("Copying changed rows", done, total)
                self._set_references(table)
                if not self._is_equal(table):
                    raise StoreError(
                        f"the copy of {table.name} differs from the original: rows were deleted "
                        f"since the copy was begun. Copy into another, empty database."
                    )
            done += counts[table.name]
            progress("Comparing", done, total)

    def _is_equal(self, table: CopiedTable) -> bool:
        """Whether both sides have the same rows."""
        names = [name for name in self._columns(table) if name not in table.cleared]
        kinds = self._kinds(table, names)
        source, target = (
            _checksum(database, table, names, kinds) for database in (self._source, self._target)
        )
        return source == target

    def _count(self, database: DatabaseReader, table: CopiedTable) -> int:
        sql = f"SELECT count(*) FROM {table.name}"  # noqa: S608 - a table of ours
        return int(database.read(lambda reader: reader.value(sql)))


class Checksum(NamedTuple):
    """Number of rows, and the sum of their checksums."""

    rows: int
    total: int


def _checksum(
    database: DatabaseReader, table: CopiedTable, names: list[str], kinds: list[ValueKind | None]
) -> Checksum:
    rows = total = 0
    for part in _slices(database, table, names, None):
        rows += len(part)
        for row in part:
            total += crc32(repr([_comparable(value) for value in _fitting(row, kinds)]).encode())
    return Checksum(rows, total)


def _slices(
    database: DatabaseReader, table: CopiedTable, names: list[str], position: Row | None
) -> Iterator[list[Row]]:
    """The rows after a position, in slices whose texts fit into memory."""
    keys = [names.index(name) for name in table.key]
    limit = SLICE_ROWS
    while True:
        sql, values = _select(table, names, position, limit)
        rows, size = database.read(lambda reader, s=sql, v=values: _read_slice(reader, s, v))  # type: ignore[misc]
        if not rows:
            return
        limit = min(SLICE_ROWS, max(1, len(rows) * MAX_SLICE_BYTES // max(size, 1)))
        position = tuple(rows[-1][at] for at in keys)
        yield rows


def _read_slice(reader: Reader, sql: str, values: Row) -> tuple[list[Row], int]:
    """Rows of a statement up to the size of a slice, at least one; and their size."""
    rows: list[Row] = []
    size = 0
    for row in reader.execute(sql, values):
        rows.append(row)
        size += sum(len(value) for value in row if isinstance(value, (str, bytes)))
        if size >= MAX_SLICE_BYTES:
            break
    return rows, size


def _comparable(value: object) -> object:
    """A value as every database returns it."""
    if isinstance(value, str):
        value = value.encode(errors="replace").decode()
        if value.startswith(JSON_PREFIX):
            value = PORTABLE_JSON_PREFIX + value[len(JSON_PREFIX) :]
        return value.replace("\0", "\\x00")
    if isinstance(value, (int, float)):
        return float(value)
    return bytes(value) if isinstance(value, (bytes, memoryview)) else value


def _select(
    table: CopiedTable, names: list[str], position: Row | None, limit: int
) -> tuple[str, Row]:
    keys = ", ".join(table.key)
    where = ""
    if position is not None:
        where = f" WHERE ({keys}) > ({', '.join('?' * len(table.key))})"
    sql = f"SELECT {', '.join(names)} FROM {table.name}{where} ORDER BY {keys} LIMIT {limit}"  # noqa: S608
    return sql, position or ()


def _mark_unfinished(tx: Tx, history: str) -> None:
    tx.run(ADD_LAYOUT, (COPY_OF, history))
    tx.run(ADD_LAYOUT, (UNFINISHED_COPY, "1"))


def _insert(table: CopiedTable, names: list[str]) -> str:
    placeholders = ", ".join("?" * len(names))
    return (
        f"INSERT INTO {table.name} ({', '.join(names)}) VALUES ({placeholders})"  # noqa: S608
        " ON CONFLICT DO NOTHING"
    )


def _upsert(table: CopiedTable, names: list[str]) -> str:
    others = [f"{name} = excluded.{name}" for name in names if name not in table.key]
    if not others:
        return _insert(table, names)
    change = f"ON CONFLICT ({', '.join(table.key)}) DO UPDATE SET {', '.join(others)}"
    return _insert(table, names).replace("ON CONFLICT DO NOTHING", change)


def _last_key(reader: Reader, table: CopiedTable) -> Row | None:
    keys = ", ".join(table.key)
    descending = ", ".join(f"{name} DESC" for name in table.key)
    return reader.row(f"SELECT {keys} FROM {table.name} ORDER BY {descending} LIMIT 1")  # noqa: S608


def _column_names(reader: Reader, table: CopiedTable) -> list[str]:
    cursor = reader.execute(f"SELECT * FROM {table.name} LIMIT 0")  # noqa: S608 - a table of ours
    return [column[0] for column in cursor.description]


def _fitting(row: Row, kinds: list[ValueKind | None]) -> Row:
    """A row whose values have the types of their columns; SQLite stores any type anywhere."""
    return tuple(
        value if value is None or kind is None else _as_kind(value, kind)
        for value, kind in zip(row, kinds, strict=True)
    )


def _as_kind(value: object, kind: ValueKind) -> object:
    if kind == "text":
        if isinstance(value, (bytes, memoryview)):
            return bytes(value).decode(errors="replace")
        return value if isinstance(value, str) else str(value)
    if kind == "bytes":
        return value.encode() if isinstance(value, str) else value
    if isinstance(value, (bytes, memoryview)):
        value = bytes(value).decode(errors="replace")
    try:
        number = float(str(value)) if kind == "float" else _integer(value)
    except (ValueError, OverflowError):
        return None  # not a number, in a column of numbers
    return number


def _integer(value: object) -> int:
    return value if isinstance(value, int) else int(float(str(value)))


def _with_none(row: Row, positions: list[int]) -> Row:
    if not positions:
        return row
    return tuple(None if at in positions else value for at, value in enumerate(row))
