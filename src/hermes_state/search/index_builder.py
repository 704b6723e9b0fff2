"""Fills the search file from the history in slices, up to a watermark."""

from __future__ import annotations

import contextlib
import json
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from hermes_core.messages import plain_text
from hermes_state.engine.sqlite.side_file import read_meta, write_meta
from hermes_state.engine.values import amount_sql
from hermes_state.messages.rows import decode_content
from hermes_state.search.tokens import IndexWords, index_words

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hermes_state.engine.sqlite.driver import sqlite3
    from hermes_state.engine.transaction import Reader
    from hermes_state.search.index_file import KnownTerms

SLICE_ROWS: Final = 2000
BLOCK_BITS: Final = 10
MESSAGE_ROLES: Final = ("user", "assistant")  # the rest is tool text

# The columns of `IndexedRow`; another program may have stored values of other types.
INDEXED_COLUMNS: Final = f"""
    m.id, m.session_id, CAST(m.role AS TEXT), m.content, CAST(m.tool_name AS TEXT),
    CAST(m.tool_calls AS TEXT), {amount_sql("m.timestamp")}, CAST(s.source AS TEXT)
"""
NEXT_ROWS: Final = f"""
    SELECT {INDEXED_COLUMNS} FROM messages m JOIN sessions s ON s.id = m.session_id
    WHERE m.id > ? AND m.id <= ? AND {{condition}} ORDER BY m.id LIMIT ?
"""  # noqa: S608 - own names
IS_MESSAGE: Final = "m.role IN ('user', 'assistant')"
UPSERT_SPAN: Final = """
    INSERT INTO span (block, low, high) VALUES (?, ?, ?)
    ON CONFLICT (block) DO UPDATE
        SET low = min(low, excluded.low), high = max(high, excluded.high)
"""
INSERT_WORDS: Final = "INSERT INTO body (rowid, words, facets) VALUES (?, ?, ?)"
DELETE_WORDS: Final = "INSERT INTO body (body, rowid, words, facets) VALUES ('delete', ?, ?, ?)"
INSERT_MESSAGE: Final = "INSERT INTO message (id, session, previous, tokens) VALUES (?, ?, ?, ?)"
INSERT_SESSIONS: Final = """
    INSERT OR IGNORE INTO session (id, source, last, messages, tokens)
    SELECT value ->> 0, value ->> 1, 0, 0, 0 FROM json_each(?)
"""
SELECT_SESSIONS: Final = """
    SELECT id, number, last, messages, tokens FROM session
    WHERE id IN (SELECT value ->> 0 FROM json_each(?))
"""
UPDATE_SESSION: Final = "UPDATE session SET last = ?, messages = ?, tokens = ? WHERE number = ?"
SHRINK_SESSION: Final = """
    UPDATE session SET messages = messages - 1, tokens = tokens - ? WHERE number = ?
"""
DELETE_EMPTY: Final = "DELETE FROM session WHERE number = ? AND messages <= 0"
# A file that another program has copied row by row may lack the sequence.
LAST_ASSIGNED_ID: Final = """
    SELECT max(coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'messages'), 0),
        coalesce((SELECT max(id) FROM messages), 0))
"""
SELECT_WITNESS: Final = f"""
    SELECT {amount_sql("timestamp")}, session_id FROM messages WHERE id = ?
"""  # noqa: S608 - own names
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


class WatermarkKeys(NamedTuple):
    """Metadata keys of the last indexed ID, and of a message that was indexed."""

    through: str
    witness: str


MESSAGE_KEYS: Final = WatermarkKeys("indexed_through", "last_indexed")
TOOL_KEYS: Final = WatermarkKeys("tools_indexed_through", "last_indexed_tools")


class TermTables(NamedTuple):
    """Tables with all terms of an index, and with the trigrams of the terms."""

    term: str
    gram: str


MESSAGE_TERMS: Final = TermTables("term", "gram")
TOOL_TERMS: Final = TermTables("tool_term", "tool_gram")


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


def read_watermark(connection: sqlite3.Connection, keys: WatermarkKeys = MESSAGE_KEYS) -> int:
    """ID of the last indexed message."""
    return int(read_meta(connection, keys.through) or 0)


def read_state(connection: sqlite3.Connection) -> list[tuple[int, str | None]]:
    """Watermark and witness of both indexes."""
    values = dict(connection.execute("SELECT name, value FROM meta").fetchall())
    return [
        (int(values.get(keys.through) or 0), values.get(keys.witness))
        for keys in (MESSAGE_KEYS, TOOL_KEYS)
    ]


def write_watermark(
    connection: sqlite3.Connection, next_slice: IndexSlice, keys: WatermarkKeys
) -> None:
    """Advance the watermark to the end of a slice."""
    write_meta(connection, keys.through, next_slice.through)
    if next_slice.rows:
        last = next_slice.rows[-1]
        write_meta(connection, keys.witness, f"{last.id} {last.at!r} {last.session_id}")


def newest_id(reader: Reader) -> int:
    """ID of the last message of the history."""
    return int(reader.value(NEWEST_ID))


def read_slice(
    reader: Reader, after: int, *, condition: str = IS_MESSAGE, limit: int = SLICE_ROWS
) -> IndexSlice:
    """The next messages to index."""
    through = newest_id(reader)
    if through <= after:
        return IndexSlice([], after, after)
    sql = NEXT_ROWS.format(condition=condition)
    rows = [IndexedRow(*row) for row in reader.rows(sql, (after, through, limit))]
    return IndexSlice(rows, after, rows[-1].id if len(rows) == limit else max(through, after))


def indexed_text(row: IndexedRow, *, with_tools: bool) -> str:
    """The searchable text of a message, with tool calls if *with_tools*."""
    text = plain_text(decode_content(row.content))
    if not with_tools:
        return text
    return "\n".join(part for part in (text, row.tool_name, row.tool_calls) if part)


def facet_token(source: str) -> str:
    """A token that represents a source; different sources may share one."""
    return "x" + "".join(c for c in source.lower() if c.isascii() and c.isalnum())


def index_slice(connection: sqlite3.Connection, next_slice: IndexSlice, known: KnownTerms) -> bool:
    """Index a slice and advance the watermark, in one transaction.

    Nothing is done if the watermark has changed: another process was faster, or the file
    was rebuilt. The next slice starts at the current watermark.
    """
    with write_transaction(connection):
        if read_watermark(connection) == next_slice.after:
            vocabulary: set[str] = set()
            found = [
                (row, index_words(indexed_text(row, with_tools=False), vocabulary))
                for row in next_slice.rows
            ]
            facets = {source: facet_token(source) for source in {row.source for row, _ in found}}
            connection.executemany(
                INSERT_WORDS,
                [(row.id, words.text, facets[row.source]) for row, words in found if words.number],
            )
            _insert_messages(connection, found)
            insert_spans(connection, next_slice.rows)
            insert_terms(connection, vocabulary, MESSAGE_TERMS, known)
            write_watermark(connection, next_slice, MESSAGE_KEYS)
    return True


def _insert_messages(
    connection: sqlite3.Connection, found: list[tuple[IndexedRow, IndexWords]]
) -> None:
    """Note the place and the length of messages, and those of their sessions."""
    names = json.dumps(
        list({row.session_id: (row.session_id, row.source) for row, _ in found}.values())
    )
    connection.execute(INSERT_SESSIONS, (names,))
    sessions = {name: rest for name, *rest in connection.execute(SELECT_SESSIONS, (names,))}
    places = []
    for row, words in found:
        session = sessions[row.session_id]
        number, previous, messages, tokens = session
        if words.number:
            places.append((row.id, number, previous, words.number))
        last = row.id if row.content else previous
        session[1:] = last, messages + bool(words.number), tokens + words.number
    connection.executemany(INSERT_MESSAGE, places)
    connection.executemany(UPDATE_SESSION, [(*rest, number) for number, *rest in sessions.values()])


@contextlib.contextmanager
def write_transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """A transaction that is rolled back after an error."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def insert_spans(connection: sqlite3.Connection, rows: list[IndexedRow]) -> None:
    """Add the times of messages to those of their blocks."""
    connection.executemany(UPSERT_SPAN, [(row.id >> BLOCK_BITS, row.at, row.at) for row in rows])


def insert_terms(
    connection: sqlite3.Connection, vocabulary: set[str], tables: TermTables, known: KnownTerms
) -> None:
    """Add terms that are new, and their trigrams."""
    sql = (
        f"INSERT OR IGNORE INTO {tables.term} (text) SELECT value FROM json_each(?)"  # noqa: S608
        " RETURNING id, text"
    )
    unknown = known.unknown(connection, tables.term, vocabulary)
    added = connection.execute(sql, (json.dumps(sorted(unknown)),)).fetchall()
    connection.executemany(
        f"INSERT INTO {tables.gram} (rowid, text) VALUES (?, ?)",  # noqa: S608
        [pair for pair in added if len(pair[1]) > 2],
    )


def delete_rows(connection: sqlite3.Connection, rows: list[IndexedRow]) -> None:
    """Delete messages from the index, and terms that occur nowhere else."""
    vocabulary: set[str] = set()
    for row in rows:
        found = connection.execute(
            "DELETE FROM message WHERE id = ? RETURNING session, tokens", (row.id,)
        ).fetchone()
        if found is None:
            continue
        connection.execute("DELETE FROM vector WHERE id = ?", (row.id,))
        words = index_words(indexed_text(row, with_tools=False), vocabulary)
        connection.execute(DELETE_WORDS, (row.id, words.text, facet_token(row.source)))
        connection.execute(SHRINK_SESSION, (found[1], found[0]))
        connection.execute(DELETE_EMPTY, (found[0],))
    delete_terms(connection, vocabulary, ["body"], MESSAGE_TERMS)


def delete_terms(
    connection: sqlite3.Connection,
    vocabulary: set[str],
    word_tables: Sequence[str],
    tables: TermTables,
) -> None:
    """Delete those terms that no longer occur in any of the tables."""
    find = [f"SELECT 1 FROM {name} WHERE {name} MATCH ? LIMIT 1" for name in word_tables]  # noqa: S608
    forget = f"INSERT INTO {tables.gram} ({tables.gram}, rowid, text) VALUES ('delete', ?, ?)"  # noqa: S608
    write_meta(connection, "purges", int(read_meta(connection, "purges") or 0) + 1)
    for term in vocabulary:
        match = (f'words : "{term}"',)
        if any(connection.execute(sql, match).fetchone() for sql in find):
            continue
        found = connection.execute(
            f"DELETE FROM {tables.term} WHERE text = ? RETURNING id, text",  # noqa: S608
            (term,),
        ).fetchall()
        if len(term) > 2:
            connection.executemany(forget, found)
