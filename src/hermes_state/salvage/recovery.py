"""Recovers what is readable of a damaged history into a new file."""

from __future__ import annotations

import contextlib
import os
import time
from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_core.atomic_files import sync_folder
from hermes_core.errors import StoreError
from hermes_state.engine.sqlite import driver
from hermes_state.engine.sqlite.driver import sqlite3
from hermes_state.engine.sqlite.transaction import read_only_uri
from hermes_state.portable.restore import refuse_if_open
from hermes_state.salvage.pages import TABLE_LEAF, PageFile, Record
from hermes_state.schema.base import BASE_TABLES
from hermes_state.store import SessionDB

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from hermes_state.salvage.pages import Value

ROLES: Final = frozenset({"user", "assistant", "tool", "system", "developer", "function"})
BATCH_ROWS: Final = 500
PROGRESS_PAGES: Final = 2000
# Rows that belong to running processes, describe the file, or are derived from other rows.
NOT_COPIED: Final = frozenset(
    {"schema_version", "compression_locks", "session_turn_leases", "hermes_layout",
     "hermes_migration", "hermes_session_index", "hermes_process", "hermes_owner",
     "hermes_participant", "hermes_lease", "hermes_change", "hermes_session_sort",
     "hermes_call_mark", "hermes_edit", "hermes_outcome"}
)  # fmt: skip
# Messages whose session is lost get a new session row.
ADD_SESSIONS: Final = """
    INSERT INTO sessions (id, source, started_at, message_count)
    SELECT session_id, 'salvaged', min(timestamp), count(*) FROM messages
    WHERE session_id NOT IN (SELECT id FROM sessions) GROUP BY session_id
"""


# Tables of schema 16, whose order of columns differs from that of newer files.
OLD_TABLES: Final = (
    """
    CREATE TABLE sessions (
        id TEXT, source TEXT, user_id TEXT, model TEXT, model_config TEXT, system_prompt TEXT,
        parent_session_id TEXT, started_at REAL, ended_at REAL, end_reason TEXT,
        message_count INTEGER, tool_call_count INTEGER, input_tokens INTEGER,
        output_tokens INTEGER, cache_read_tokens INTEGER, cache_write_tokens INTEGER,
        reasoning_tokens INTEGER, cwd TEXT, billing_provider TEXT, billing_base_url TEXT,
        billing_mode TEXT, estimated_cost_usd REAL, actual_cost_usd REAL, cost_status TEXT,
        cost_source TEXT, pricing_version TEXT, title TEXT, api_call_count INTEGER,
        handoff_state TEXT, handoff_platform TEXT, handoff_error TEXT, rewind_count INTEGER,
        archived INTEGER
    )
    """,
    """
    CREATE TABLE messages (
        id INTEGER PRIMARY KEY, session_id TEXT, role TEXT, content TEXT, tool_call_id TEXT,
        tool_calls TEXT, tool_name TEXT, timestamp REAL, token_count INTEGER,
        finish_reason TEXT, reasoning TEXT, reasoning_content TEXT, reasoning_details TEXT,
        codex_reasoning_items TEXT, codex_message_items TEXT, platform_message_id TEXT,
        observed INTEGER, active INTEGER, compacted INTEGER
    )
    """,
)
VALUE_TYPES: Final[dict[str, tuple[type, ...]]] = {
    "TEXT": (str, type(None)),
    "INTEGER": (int, type(None)),
    "REAL": (int, float, type(None)),
}


class SalvageReport(NamedTuple):
    """What was recovered."""

    sessions: int
    messages: int
    added_sessions: int  # of messages whose session row is lost
    unreadable_pages: int
    has_free_list: bool


class TableShape(NamedTuple):
    """The name of a table and its columns in stored order."""

    name: str
    columns: tuple[str, ...]
    types: tuple[str, ...]
    id_column: str | None  # an alias of the row ID, stored as NULL


def damage_of(path: Path) -> str | None:
    """What is wrong with the file at *path*; None if it is intact."""
    if not path.stat().st_size:
        return "the file is empty"
    try:
        with contextlib.closing(driver.connect(read_only_uri(path), 10, uri=True)) as connection:
            problem = str(connection.execute("PRAGMA quick_check(1)").fetchone()[0])
    except sqlite3.DatabaseError as error:
        return str(error)
    return None if problem == "ok" else problem


def replace_damaged(
    path: Path, report_progress: Callable[[str], None]
) -> tuple[SalvageReport, Path]:
    """Replace a damaged history by what is readable of it; the damaged file is kept aside."""
    refuse_if_open(path)
    new = path.with_name(f"{path.name}.salvaged")
    for suffix in ("", "-wal", "-shm"):
        new.with_name(new.name + suffix).unlink(missing_ok=True)  # of an interrupted run
    report = salvage(path, new, report_progress)
    kept = _free_name(path)
    # A store exists at any time, so that no other process creates an empty one.
    os.link(path, kept)
    for suffix in ("-wal", "-shm", "-journal"):
        with contextlib.suppress(FileNotFoundError):
            path.with_name(path.name + suffix).rename(kept.with_name(kept.name + suffix))
    new.replace(path)
    sync_folder(path.parent)
    return report, kept


def _free_name(path: Path) -> Path:
    stamp = time.strftime("%Y%m%d-%H%M%S")
    names = (f"{path.name}.damaged-{stamp}{end}" for end in ("", *(f"-{n}" for n in range(2, 99))))
    return next(kept for name in names if not (kept := path.with_name(name)).exists())


def salvage(damaged: Path, target: Path, report_progress: Callable[[str], None]) -> SalvageReport:
    """Write everything readable in *damaged* to the new file *target*."""
    SessionDB(target).close()
    pages = PageFile(damaged)
    with contextlib.closing(pages), contextlib.closing(driver.connect(str(target), 10)) as new:
        new.execute("PRAGMA foreign_keys = OFF")
        copier = _RowCopier(new)
        unreadable = _copy(pages, copier, report_progress)
        added = new.execute(ADD_SESSIONS).rowcount
        problems = new.execute("PRAGMA quick_check(1)").fetchone()[0]
    if problems != "ok":
        raise StoreError(f"{target} could not be written correctly: {problems}")
    report_progress("Indexing…")
    with SessionDB(target) as db:
        db.statistics.repair_index()
        db.wait_for_index(600)
        sessions = db.engine.read(lambda r: r.value("SELECT count(*) FROM sessions"))
        messages = db.engine.read(lambda r: r.value("SELECT count(*) FROM messages"))
    return SalvageReport(sessions, messages, added, unreadable, pages.has_header)


def _copy(pages: PageFile, copier: _RowCopier, report_progress: Callable[[str], None]) -> int:
    """Copy the rows of all known tables, then of pages that no tree reaches."""
    reached: set[int] = set()
    for shape, root in _tables(pages):
        if shape is not None:
            copier.use_shape(shape)
        for number in pages.tree_pages(root):
            reached.add(number)
            if shape is not None:
                copier.add(shape, pages.records(number))
    free = pages.free_pages()
    unreadable = 0
    for number in range(1, pages.count + 1):
        if number % PROGRESS_PAGES == 0:
            report_progress(f"Reading: {100 * number // pages.count} %")
        if number in reached or number in free:
            continue
        kind = pages.kind(number)
        if kind == TABLE_LEAF:
            copier.add_lost(pages.records(number))
        elif not any(pages.page(number)):
            unreadable += 1
    copier.flush()
    return unreadable


def _tables(pages: PageFile) -> Iterator[tuple[TableShape | None, int]]:
    """The shape and root page of every tree; None for those whose rows are not copied."""
    for number in pages.tree_pages(1):
        for record in pages.records(number):
            if len(record.values) < len(("type", "name", "table", "root", "sql")):
                continue
            kind, name, _, root, sql = record.values[:5]
            if isinstance(root, int) and root > 0:
                is_copied = kind == "table" and name not in NOT_COPIED
                yield (_shape(str(name), str(sql)) if is_copied else None), root


def _shape(name: str, sql: str) -> TableShape | None:
    """The columns of a table by its CREATE statement; None if it cannot be read."""
    with contextlib.closing(sqlite3.connect(":memory:")) as connection:
        try:
            connection.execute(sql)
            columns = connection.execute(f'PRAGMA table_info("{name}")').fetchall()
        except sqlite3.Error:
            return None
    if not columns:
        return None
    keys = sorted((column for column in columns if column[5]), key=lambda column: column[5])
    is_clustered = "WITHOUT ROWID" in sql.upper()
    if is_clustered:
        columns = [*keys, *(column for column in columns if not column[5])]
    is_alias = len(keys) == 1 and keys[0][2].upper() == "INTEGER" and not is_clustered
    return TableShape(
        name,
        tuple(column[1] for column in columns),
        tuple(column[2].upper() for column in columns),
        keys[0][1] if is_alias else None,
    )


class _RowCopier:
    """Inserts rows into the new file, in batches."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._known: dict[str, frozenset[str]] = {}
        self._pending: list[tuple[TableShape, Record]] = []
        self._lost_shapes = [
            shape
            for sql in (*BASE_TABLES, *OLD_TABLES)
            for name in ("sessions", "messages")
            if f"CREATE TABLE {name} " in sql and (shape := _shape(name, sql))
        ]

    def add(self, shape: TableShape, records: Iterator[Record]) -> None:
        if self._columns(shape.name):
            self._pending += [(shape, record) for record in records]
            if len(self._pending) >= BATCH_ROWS:
                self.flush()

    def add_lost(self, records: Iterator[Record]) -> None:
        """Add the rows of a page that belongs to an unknown table."""
        for record in records:
            shape = next((each for each in self._lost_shapes if _is_row_of(each, record)), None)
            if shape is not None:
                self.add(shape, iter([record]))

    def use_shape(self, shape: TableShape) -> None:
        """Prefer the shape of the file itself for rows of unknown tables."""
        if shape.name in {"sessions", "messages"}:
            self._lost_shapes.insert(0, shape)

    def flush(self) -> None:
        self._connection.execute("BEGIN")
        for shape, record in self._pending:
            self._insert(shape, record)
        self._connection.execute("COMMIT")
        self._pending = []

    def _columns(self, table: str) -> frozenset[str]:
        if table not in self._known:
            rows = self._connection.execute("SELECT name FROM pragma_table_info(?)", (table,))
            self._known[table] = frozenset(name for (name,) in rows)
        return self._known[table]

    def _insert(self, shape: TableShape, record: Record) -> None:
        row: dict[str, Value] = dict(zip(shape.columns, record.values, strict=False))
        if shape.id_column is not None:
            row[shape.id_column] = record.rowid
        row = {name: value for name, value in row.items() if name in self._columns(shape.name)}
        try:
            self._write(shape.name, row)
        except sqlite3.IntegrityError:
            if row.pop("title", None) is not None:  # another session has this title
                with contextlib.suppress(sqlite3.IntegrityError):
                    self._write(shape.name, row)

    def _write(self, table: str, row: dict[str, Value]) -> None:
        names = ", ".join(f'"{name}"' for name in row)
        marks = ", ".join("?" * len(row))
        sql = f'INSERT INTO "{table}" ({names}) VALUES ({marks})'  # noqa: S608 - names of the file
        self._connection.execute(sql, tuple(row.values()))


def _is_row_of(shape: TableShape, record: Record) -> bool:
    """Whether a row has the values that a session or a message must have."""
    if len(record.values) > len(shape.columns):
        return False
    types = zip(shape.types, record.values, strict=False)
    if not all(isinstance(value, VALUE_TYPES.get(kind, (object,))) for kind, value in types):
        return False
    row: dict[str, Value] = dict(zip(shape.columns, record.values, strict=False))
    if shape.name == "messages":
        required: tuple[str, ...] = ("session_id", "timestamp")
        return row.get("role") in ROLES and all(row.get(name) is not None for name in required)
    return all(row.get(name) is not None for name in ("id", "source", "started_at"))
