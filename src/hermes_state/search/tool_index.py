"""The index of tool text: tool calls, tool results and messages of other roles.

It has a watermark of its own and is filled only for searches that include tool text. It covers
the complete text of every message with tool text. Words are in one FTS5 table per range of
message IDs: a search for the newest messages ends in the newest ranges, and a purge merges only
the ranges that it deletes from.
"""

from __future__ import annotations

import itertools
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
    from hermes_state.search.index_file import KnownTerms

SLICE_ROWS: Final = 400
PART_BITS: Final = 15  # message IDs per table: 32,768
HAS_TOOL_TEXT: Final = """(m.role NOT IN ('user', 'assistant')
    OR coalesce(m.tool_name, '') <> '' OR coalesce(m.tool_calls, '') <> '')"""
CREATE_PART: Final = """
    CREATE VIRTUAL TABLE IF NOT EXISTS {name}
    USING fts5(words, facets, content='', tokenize='ascii')
"""
SECURE_DELETE: Final = "INSERT INTO {name} ({name}, rank) VALUES ('secure-delete', 1)"


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


def index_slice(connection: sqlite3.Connection, next_slice: IndexSlice, known: KnownTerms) -> bool:
    """Index a slice and advance the watermark, unless another process was faster."""
    with index_builder.write_transaction(connection):
        if index_builder.read_watermark(connection, TOOL_KEYS) == next_slice.after:
            _create_parts(connection, next_slice.rows)
            vocabulary = _insert_rows(connection, next_slice.rows)
            index_builder.insert_spans(connection, next_slice.rows)
            index_builder.insert_terms(connection, vocabulary, TOOL_TERMS, known)
            index_builder.write_watermark(connection, next_slice, TOOL_KEYS)
    return True


def _create_parts(connection: sqlite3.Connection, rows: list[IndexedRow]) -> None:
    for number in sorted({row.id >> PART_BITS for row in rows} - set(part_numbers(connection))):
        connection.execute(CREATE_PART.format(name=part_name(number)))
        connection.execute(SECURE_DELETE.format(name=part_name(number)))
        connection.execute("INSERT INTO tool_part (number) VALUES (?)", (number,))


def _insert_rows(connection: sqlite3.Connection, rows: list[IndexedRow]) -> set[str]:
    """Add the words of messages to their parts; returns the vocabulary."""
    vocabulary: set[str] = set()
    for number, part in itertools.groupby(rows, key=lambda row: row.id >> PART_BITS):
        found = [(row, index_words(indexed_text(row, with_tools=True), vocabulary)) for row in part]
        sql = f"INSERT INTO {part_name(number)} (rowid, words, facets) VALUES (?, ?, ?)"  # noqa: S608
        values = [(row.id, words.text, _facets(row)) for row, words in found if words.number]
        connection.executemany(sql, values)
    return vocabulary


def _facets(row: IndexedRow) -> str:
    return f"{facet_token(row.source)} {role_token(row.role)}"


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
        words = index_words(indexed_text(row, with_tools=True), vocabulary)
        name = part_name(number)
        sql = f"INSERT INTO {name} ({name}, rowid, words, facets) VALUES ('delete', ?, ?, ?)"  # noqa: S608
        connection.execute(sql, (row.id, words.text, _facets(row)))
    tables = [part_name(number) for number in reversed(numbers)]
    index_builder.delete_terms(connection, vocabulary, tables, TOOL_TERMS)
