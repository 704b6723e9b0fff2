"""Filling the search file from the history, in slices, up to a mark."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from hermes_core.messages import plain_text
from hermes_state.engine.side_file import read_meta, write_meta
from hermes_state.messages.rows import decode_content
from hermes_state.search.tokens import words

if TYPE_CHECKING:
    from hermes_state.engine.driver import sqlite3
    from hermes_state.engine.transaction import Reader

SLICE_ROWS: Final = 400
MERGED_PAGES: Final = 200
BLOCK_BITS: Final = 10
MARK: Final = "indexed_through"
WITNESS: Final = "last_indexed"
TALK: Final = ("user", "assistant")

ROWS: Final = """
    SELECT m.id, m.session_id, m.role, m.content, m.tool_name, m.tool_calls, m.timestamp, s.source
    FROM messages m JOIN sessions s ON s.id = m.session_id
    WHERE m.id > ? AND m.id <= ? {roles} ORDER BY m.id LIMIT ?
"""
ROWS_OF_SESSION: Final = """
    SELECT m.id, m.session_id, m.role, m.content, m.tool_name, m.tool_calls, m.timestamp, s.source
    FROM messages m JOIN sessions s ON s.id = m.session_id
    WHERE m.session_id = ? AND m.id > ? ORDER BY m.id LIMIT ?
"""
PUT_SPAN: Final = """
    INSERT INTO span (block, low, high) VALUES (?, ?, ?)
    ON CONFLICT (block) DO UPDATE
        SET low = min(low, excluded.low), high = max(high, excluded.high)
"""
LAST_GIVEN: Final = "SELECT seq FROM sqlite_sequence WHERE name = 'messages'"
WITNESSED: Final = "SELECT timestamp, session_id FROM messages WHERE id = ?"
NEWEST: Final = "SELECT coalesce(max(id), 0) FROM messages"


class Row(NamedTuple):
    """A message as the index takes it."""

    id: int
    session_id: str
    role: str
    content: Any
    tool_name: str | None
    tool_calls: str | None
    at: float
    source: str


class Slice(NamedTuple):
    """Messages to index, and from where to where they bring the mark."""

    rows: list[Row]
    after: int
    through: int


def belongs(reader: Reader, mark: int, witness: str | None) -> bool:
    """Whether an index with this mark was made from this history.

    Ids are never used twice in one history, so a mark beyond the last one ever given, or
    another message under the id of one that was indexed, tells that it was not.
    """
    if mark > int(reader.value(LAST_GIVEN) or 0):
        return False
    if not witness:
        return True
    row_id, _, seen = witness.partition(" ")
    row = reader.row(WITNESSED, (int(row_id),))
    return row is None or f"{row[0]!r} {row[1]}" == seen


def mark_of(connection: sqlite3.Connection) -> int:
    """The last message that is in the index."""
    return int(read_meta(connection, MARK) or 0)


def newest(reader: Reader) -> int:
    """The last message of the history."""
    return int(reader.value(NEWEST))


def read_slice(reader: Reader, after: int, *, with_tools: bool, limit: int = SLICE_ROWS) -> Slice:
    """The next messages to index."""
    through = newest(reader)
    roles = "" if with_tools else "AND m.role IN ('user', 'assistant')"
    rows = [Row(*row) for row in reader.rows(ROWS.format(roles=roles), (after, through, limit))]
    return Slice(rows, after, rows[-1].id if len(rows) == limit else max(through, after))


def read_session(reader: Reader, session_id: str, after: int, limit: int = SLICE_ROWS) -> list[Row]:
    """The next messages of one session."""
    return [Row(*row) for row in reader.rows(ROWS_OF_SESSION, (session_id, after, limit))]


def searched_text(row: Row, *, with_tools: bool) -> str:
    """The words of a message that can be found: what was said, and with tools what was done."""
    text = plain_text(decode_content(row.content))
    if not with_tools:
        return text
    return "\n".join(part for part in (text, row.tool_name, row.tool_calls) if part)


def facet(source: str) -> str:
    """A made-up word for a source; different sources may share one."""
    return "x" + "".join(c for c in source.lower() if c.isascii() and c.isalnum())


def put(connection: sqlite3.Connection, part: Slice, *, with_tools: bool) -> bool:
    """Index a slice and move the mark, in one transaction.

    Nothing happens if the mark is elsewhere: another process was quicker, or the file
    was made anew. The next slice begins at the mark that is there.
    """
    connection.execute("BEGIN IMMEDIATE")
    try:
        if mark_of(connection) == part.after:
            vocabulary: set[str] = set()
            for row in part.rows:
                found = words(searched_text(row, with_tools=with_tools))
                vocabulary.update(found)
                _put_row(connection, row, found)
            _put_spans(connection, part.rows)
            _put_terms(connection, vocabulary)
            write_meta(connection, MARK, part.through)
            if part.rows:
                last = part.rows[-1]
                write_meta(connection, WITNESS, f"{last.id} {last.at!r} {last.session_id}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    return True


def _put_row(connection: sqlite3.Connection, row: Row, found: list[str]) -> None:
    if found:
        values = (row.id, " ".join(found), facet(row.source))
        connection.execute("INSERT INTO body (rowid, words, facets) VALUES (?, ?, ?)", values)


def _put_spans(connection: sqlite3.Connection, rows: list[Row]) -> None:
    for row in rows:
        connection.execute(PUT_SPAN, (row.id >> BLOCK_BITS, row.at, row.at))


def _put_terms(connection: sqlite3.Connection, vocabulary: set[str]) -> None:
    for term in sorted(vocabulary):
        cursor = connection.execute("INSERT OR IGNORE INTO term (text) VALUES (?)", (term,))
        if cursor.rowcount > 0 and len(term) > 2:
            connection.execute(
                "INSERT INTO gram (rowid, text) VALUES (?, ?)", (cursor.lastrowid, term)
            )


def forget(connection: sqlite3.Connection, rows: list[Row], *, with_tools: bool) -> bool:
    """Take messages out of the index without a trace, and words that occur no more."""
    connection.execute("BEGIN IMMEDIATE")
    vocabulary: set[str] = set()
    for row in rows:
        vocabulary.update(words(searched_text(row, with_tools=with_tools)))
        connection.execute("DELETE FROM body WHERE rowid = ?", (row.id,))
    for term in vocabulary:
        occurs = connection.execute(
            "SELECT 1 FROM body WHERE body MATCH ? LIMIT 1", (f'words : "{term}"',)
        ).fetchone()
        known = connection.execute("SELECT id FROM term WHERE text = ?", (term,)).fetchone()
        if occurs is None and known is not None:
            connection.execute("DELETE FROM term WHERE id = ?", known)
            connection.execute("DELETE FROM gram WHERE rowid = ?", known)
    connection.execute("COMMIT")
    return True


def merge(connection: sqlite3.Connection, *, is_first: bool, seconds: float = 0.05) -> bool:
    """Work for a moment on writing the index without its deleted entries; whether it is done."""
    deadline = time.monotonic() + seconds
    for table in ("body", "gram"):
        sql = f"INSERT INTO {table} ({table}, rank) VALUES ('merge', ?)"  # noqa: S608
        if is_first:
            connection.execute(sql, (-MERGED_PAGES,))  # begin to merge everything
        while True:
            before = connection.total_changes
            connection.execute(sql, (MERGED_PAGES,))
            if connection.total_changes - before < 2:
                break
            if time.monotonic() >= deadline and not is_first:
                return False
    connection.execute("PRAGMA incremental_vacuum").fetchall()
    return True
