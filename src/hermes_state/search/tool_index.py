"""The index of tool text: tool calls, tool results and messages of other roles.

It has a watermark of its own and is filled only for searches that include tool text. It covers
the complete text of every message with tool text. Words are in one FTS5 table per range of
message IDs: a search for the newest messages ends in the newest ranges, and a purge merges only
the ranges that it deletes from.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hermes_state.search import index_builder
from hermes_state.search.index_builder import (
    TOOL_KEYS,
    TOOL_TERMS,
    facet_token,
    indexed_text,
)
from hermes_state.search.tokens import index_words

if TYPE_CHECKING:
    from hermes_state.engine.sqlite.driver import sqlite3
    from hermes_state.engine.transaction import Reader
    from hermes_state.search.index_builder import IndexedRow, IndexSlice

SLICE_ROWS: Final = 200
PART_BITS: Final = 15  # message IDs per table: 32,768
HAS_TOOL_TEXT: Final = """(m.role NOT IN ('user', 'assistant')
    OR coalesce(m.tool_name, '') <> '' OR coalesce(m.tool_calls, '') <> '')"""
CREATE_PART: Final = """
    CREATE VIRTUAL TABLE IF NOT EXISTS {name}
    USING fts5(words, facets, content='', contentless_delete=1, tokenize='ascii')
"""


def part_name(number: int) -> str:
    """The table of a range of message IDs."""
    return f"tool_part_{number}"


def part_numbers(connection: sqlite3.Connection) -> list[int]:
    """Numbers of the ranges that have a table."""
    return [row[0] for row in connection.execute("SELECT number FROM tool_part ORDER BY number")]


def role_token(role: str) -> str:
    """A token that represents a role; different roles may share one."""
    return "y" + facet_token(role)


def read_slice(reader: Reader, after: int) -> IndexSlice:
    """The next messages with tool text."""
    return index_builder.read_slice(reader, after, condition=HAS_TOOL_TEXT, limit=SLICE_ROWS)


def index_slice(connection: sqlite3.Connection, next_slice: IndexSlice) -> bool:
    """Index a slice and advance the watermark, unless another process was faster."""
    with index_builder.write_transaction(connection):
        if index_builder.read_watermark(connection, TOOL_KEYS) == next_slice.after:
            _create_parts(connection, next_slice.rows)
            vocabulary: set[str] = set()
            for row in next_slice.rows:
                vocabulary |= _insert_row(connection, row)
            index_builder.insert_spans(connection, next_slice.rows)
            index_builder.insert_terms(connection, vocabulary, TOOL_TERMS)
            index_builder.write_watermark(connection, next_slice, TOOL_KEYS)
    return True


def _create_parts(connection: sqlite3.Connection, rows: list[IndexedRow]) -> None:
    for number in sorted({row.id >> PART_BITS for row in rows}):
        connection.execute(CREATE_PART.format(name=part_name(number)))
        connection.execute("INSERT OR IGNORE INTO tool_part (number) VALUES (?)", (number,))


def _insert_row(connection: sqlite3.Connection, row: IndexedRow) -> set[str]:
    words, vocabulary = index_words(indexed_text(row, with_tools=True))
    if vocabulary:
        name = part_name(row.id >> PART_BITS)
        facets = f"{facet_token(row.source)} {role_token(row.role)}"
        sql = f"INSERT INTO {name} (rowid, words, facets) VALUES (?, ?, ?)"  # noqa: S608
        connection.execute(sql, (row.id, words, facets))
    return vocabulary


def _is_indexed(connection: sqlite3.Connection, row_id: int) -> bool:
    sql = f"SELECT 1 FROM {part_name(row_id >> PART_BITS)} WHERE rowid = ?"  # noqa: S608
    return connection.execute(sql, (row_id,)).fetchone() is not None


def delete_rows(connection: sqlite3.Connection, rows: list[IndexedRow]) -> None:
    """Delete messages from the index, and terms that occur nowhere else."""
    numbers = part_numbers(connection)
    vocabulary: set[str] = set()
    for row in rows:
        number = row.id >> PART_BITS
        if number not in numbers or not _is_indexed(connection, row.id):
            continue
        vocabulary |= index_words(indexed_text(row, with_tools=True))[1]
        connection.execute(f"DELETE FROM {part_name(number)} WHERE rowid = ?", (row.id,))  # noqa: S608
        connection.execute("UPDATE tool_part SET has_deleted = 1 WHERE number = ?", (number,))
    tables = [part_name(number) for number in reversed(numbers)]
    index_builder.delete_terms(connection, vocabulary, tables, TOOL_TERMS)


def merge(connection: sqlite3.Connection, *, is_first: bool, deadline: float) -> bool:
    """Merge the ranges with deleted entries until *deadline*; whether all are merged."""
    rows = connection.execute("SELECT number FROM tool_part WHERE has_deleted").fetchall()
    if not rows:
        return True
    for (number,) in rows:
        name = part_name(number)
        if not index_builder.merge(connection, name, is_first=is_first, deadline=deadline):
            return False
        connection.execute("UPDATE tool_part SET has_deleted = 0 WHERE number = ?", (number,))
    return index_builder.merge(connection, TOOL_TERMS.gram, is_first=is_first, deadline=deadline)
