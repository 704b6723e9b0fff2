"""Fills the search file from the history in slices, up to a watermark."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from hermes_core.messages import plain_text
from hermes_state.engine.side_file import read_meta, write_meta
from hermes_state.messages.rows import decode_content
from hermes_state.search.tokens import token_texts

if TYPE_CHECKING:
    from hermes_state.engine.driver import sqlite3
    from hermes_state.engine.transaction import Reader

SLICE_ROWS: Final = 400
MERGE_PAGES: Final = 200
BLOCK_BITS: Final = 10
WATERMARK_KEY: Final = "indexed_through"
WITNESS_KEY: Final = "last_indexed"
INDEXED_ROLES: Final = ("user", "assistant")

NEXT_ROWS: Final = """
    SELECT m.id, m.session_id, m.role, m.content, m.tool_name, m.tool_calls, m.timestamp, s.source
    FROM messages m JOIN sessions s ON s.id = m.session_id
    WHERE m.id > ? AND m.id <= ? {roles} ORDER BY m.id LIMIT ?
"""
ROWS_OF_SESSION: Final = """
    SELECT m.id, m.session_id, m.role, m.content, m.tool_name, m.tool_calls, m.timestamp, s.source
    FROM messages m JOIN sessions s ON s.id = m.session_id
    WHERE m.session_id = ? AND m.id > ? ORDER BY m.id LIMIT ?
"""
UPSERT_SPAN: Final = """
    INSERT INTO span (block, low, high) VALUES (?, ?, ?)
    ON CONFLICT (block) DO UPDATE
        SET low = min(low, excluded.low), high = max(high, excluded.high)
"""
LAST_ASSIGNED_ID: Final = "SELECT seq FROM sqlite_sequence WHERE name = 'messages'"
SELECT_WITNESS: Final = "SELECT timestamp, session_id FROM messages WHERE id = ?"
NEWEST_ID: Final = "SELECT coalesce(max(id), 0) FROM messages"


class IndexedRow(NamedTuple):
    """The columns of a message that are indexed."""

    id: int
    session_id: str
    role: str
    content: Any
    tool_name: str | None
    tool_calls: str | None
    at: float
    source: str


class IndexSlice(NamedTuple):
    """Messages to index, and the watermark before and after them."""

    rows: list[IndexedRow]
    after: int
    through: int


def matches_history(reader: Reader, watermark: int, witness: str | None) -> bool:
    """Whether an index with this watermark was built from this history.

    IDs are never reused within a history, so a watermark above the last assigned ID, or a
    different message with the ID of the last indexed one, belongs to another history.
    """
    if watermark > int(reader.value(LAST_ASSIGNED_ID) or 0):
        return False
    if not witness:
        return True
    row_id, _, expected = witness.partition(" ")
    row = reader.row(SELECT_WITNESS, (int(row_id),))
    return row is None or f"{row[0]!r} {row[1]}" == expected


def read_watermark(connection: sqlite3.Connection) -> int:
    """ID of the last indexed message."""
    return int(read_meta(connection, WATERMARK_KEY) or 0)


def newest_id(reader: Reader) -> int:
    """ID of the last message of the history."""
    return int(reader.value(NEWEST_ID))


def read_slice(
    reader: Reader, after: int, *, with_tools: bool, limit: int = SLICE_ROWS
) -> IndexSlice:
    """The next messages to index."""
    through = newest_id(reader)
    roles = "" if with_tools else "AND m.role IN ('user', 'assistant')"
    rows = [
        IndexedRow(*row)
        for row in reader.rows(NEXT_ROWS.format(roles=roles), (after, through, limit))
    ]
    return IndexSlice(rows, after, rows[-1].id if len(rows) == limit else max(through, after))


def read_session(
    reader: Reader, session_id: str, after: int, limit: int = SLICE_ROWS
) -> list[IndexedRow]:
    """The next messages of one session."""
    return [IndexedRow(*row) for row in reader.rows(ROWS_OF_SESSION, (session_id, after, limit))]


def indexed_text(row: IndexedRow, *, with_tools: bool) -> str:
    """The searchable text of a message, with tool calls if *with_tools*."""
    text = plain_text(decode_content(row.content))
    if not with_tools:
        return text
    return "\n".join(part for part in (text, row.tool_name, row.tool_calls) if part)


def facet_token(source: str) -> str:
    """A token that represents a source; different sources may share one."""
    return "x" + "".join(c for c in source.lower() if c.isascii() and c.isalnum())


def index_slice(
    connection: sqlite3.Connection, next_slice: IndexSlice, *, with_tools: bool
) -> bool:
    """Index a slice and advance the watermark, in one transaction.

    Nothing is done if the watermark has changed: another process was faster, or the file
    was rebuilt. The next slice starts at the current watermark.
    """
    connection.execute("BEGIN IMMEDIATE")
    try:
        if read_watermark(connection) == next_slice.after:
            vocabulary: set[str] = set()
            for row in next_slice.rows:
                texts = token_texts(indexed_text(row, with_tools=with_tools))
                vocabulary.update(texts)
                _insert_row(connection, row, texts)
            _insert_spans(connection, next_slice.rows)
            _insert_terms(connection, vocabulary)
            write_meta(connection, WATERMARK_KEY, next_slice.through)
            if next_slice.rows:
                last = next_slice.rows[-1]
                write_meta(connection, WITNESS_KEY, f"{last.id} {last.at!r} {last.session_id}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    return True


def _insert_row(connection: sqlite3.Connection, row: IndexedRow, texts: list[str]) -> None:
    if texts:
        values = (row.id, " ".join(texts), facet_token(row.source))
        connection.execute("INSERT INTO body (rowid, words, facets) VALUES (?, ?, ?)", values)


def _insert_spans(connection: sqlite3.Connection, rows: list[IndexedRow]) -> None:
    for row in rows:
        connection.execute(UPSERT_SPAN, (row.id >> BLOCK_BITS, row.at, row.at))


def _insert_terms(connection: sqlite3.Connection, vocabulary: set[str]) -> None:
    for term in sorted(vocabulary):
        cursor = connection.execute("INSERT OR IGNORE INTO term (text) VALUES (?)", (term,))
        if cursor.rowcount > 0 and len(term) > 2:
            connection.execute(
                "INSERT INTO gram (rowid, text) VALUES (?, ?)", (cursor.lastrowid, term)
            )


def delete_rows(
    connection: sqlite3.Connection, rows: list[IndexedRow], *, with_tools: bool
) -> bool:
    """Delete messages from the index, and terms that occur nowhere else."""
    connection.execute("BEGIN IMMEDIATE")
    vocabulary: set[str] = set()
    for row in rows:
        vocabulary.update(token_texts(indexed_text(row, with_tools=with_tools)))
        connection.execute("DELETE FROM body WHERE rowid = ?", (row.id,))
    for term in vocabulary:
        occurs = connection.execute(
            "SELECT 1 FROM body WHERE body MATCH ? LIMIT 1", (f'words : "{term}"',)
        ).fetchone()
        term_id = connection.execute("SELECT id FROM term WHERE text = ?", (term,)).fetchone()
        if occurs is None and term_id is not None:
            connection.execute("DELETE FROM term WHERE id = ?", term_id)
            connection.execute("DELETE FROM gram WHERE rowid = ?", term_id)
    connection.execute("COMMIT")
    return True


def merge(connection: sqlite3.Connection, *, is_first: bool, seconds: float = 0.05) -> bool:
    """Merge the index for at most *seconds* to drop deleted entries; whether it is complete."""
    deadline = time.monotonic() + seconds
    for table in ("body", "gram"):
        sql = f"INSERT INTO {table} ({table}, rank) VALUES ('merge', ?)"  # noqa: S608
        if is_first:
            connection.execute(sql, (-MERGE_PAGES,))  # starts a merge of all segments
        while True:
            before = connection.total_changes
            connection.execute(sql, (MERGE_PAGES,))
            if connection.total_changes - before < 2:
                break
            if time.monotonic() >= deadline and not is_first:
                return False
    connection.execute("PRAGMA incremental_vacuum").fetchall()
    return True
