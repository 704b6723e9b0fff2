"""Candidates of a search, from the index or by scanning, and snippets of matches."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from hermes_state.search.index_builder import BLOCK_BITS, IndexedRow, indexed_text, read_watermark
from hermes_state.search.query import TooManyTermsError, match_expression, restrict_sources
from hermes_state.search.tokens import composed, token_texts, tokens

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from hermes_state.engine.driver import sqlite3
    from hermes_state.engine.transaction import Reader
    from hermes_state.search.query import Query

BEFORE_CHARACTERS: Final = 60
SNIPPET_CHARACTERS: Final = 200
MATCH_START: Final = ">>>"
MATCH_END: Final = "<<<"
ELLIPSIS: Final = "…"


class Snippet(NamedTuple):
    """An excerpt of a message, and the positions of the matches in it."""

    text: str
    offsets: tuple[tuple[int, int], ...]

    def marked(self) -> str:
        """The text with every match enclosed in >>> and <<<."""
        pieces, end = [], 0
        for start, stop in self.offsets:
            pieces += [self.text[end:start], MATCH_START, self.text[start:stop], MATCH_END]
            end = stop
        return "".join([*pieces, self.text[end:]])


def snippet(content: str, query: Query) -> Snippet:
    """The excerpt of *content* around its first match; its beginning if there is none."""
    text = composed(content)
    text_tokens = list(tokens(text))
    spans = query.spans([token.text for token in text_tokens])
    hits = _merge_overlapping(
        [(text_tokens[first].start, text_tokens[stop - 1].end) for first, stop in spans]
    )
    begin = max(0, hits[0][0] - BEFORE_CHARACTERS) if hits else 0
    end = min(len(text), max(begin + SNIPPET_CHARACTERS, hits[0][1] if hits else 0))
    head = ELLIPSIS if begin else ""
    tail = ELLIPSIS if end < len(text) else ""
    shift = len(head) - begin
    inside = tuple((start + shift, min(stop, end) + shift) for start, stop in hits if start < end)
    piece = "".join(" " if character.isspace() else character for character in text[begin:end])
    return Snippet(head + piece + tail, inside)


def _merge_overlapping(hits: list[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for start, stop in sorted(hits):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(stop, merged[-1][1]))
        else:
            merged.append((start, stop))
    return merged


CHUNK_IDS: Final = 200
CHUNK_ROWS: Final = 1000
MAX_ROW_ID: Final = 2**62

SELECT_CANDIDATES: Final = """
    SELECT m.id, m.session_id, m.role, m.content, m.tool_name, m.tool_calls, m.timestamp,
           s.source, s.model, s.started_at, coalesce(m.active, 1), m.compacted
    FROM messages m JOIN sessions s ON s.id = m.session_id
"""
NOT_IN_TRASH: Final = (
    " AND NOT EXISTS (SELECT 1 FROM hermes_trash t WHERE t.session_id = m.session_id)"
)


class Patience:
    """Time limit for scanning messages that are not indexed."""

    def __init__(self, seconds: float) -> None:
        self.has_ended = False  # whether messages were skipped
        self._until = time.monotonic() + seconds

    def is_left(self) -> bool:
        """Whether there is time left."""
        self.has_ended = self.has_ended or time.monotonic() >= self._until
        return not self.has_ended


class SearchFilter(NamedTuple):
    """Query and filters of a search."""

    query: Query
    roles: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    exclude_sources: tuple[str, ...] = ()
    session_ids: tuple[str, ...] = ()  # the rows of one conversation
    first_id: int = 0  # range of the conversation's rows
    last_id: int = MAX_ROW_ID
    since: float | None = None
    until: float | None = None
    with_tools: bool = False
    include_inactive: bool = False
    oldest_first: bool = False
    patience: Patience | None = None

    def allows(self, candidate: Candidate) -> bool:
        """Whether a message passes the filters, regardless of its text."""
        row = candidate.row
        return (
            (not self.roles or row.role in self.roles)
            and (self.with_tools or row.role in ("user", "assistant"))
            and (not self.sources or row.source in self.sources)
            and row.source not in self.exclude_sources
            and (not self.session_ids or row.session_id in self.session_ids)
            and (self.since is None or row.at >= self.since)
            and (self.until is None or row.at < self.until)
            and (candidate.is_live or self.include_inactive)
        )


class Candidate(NamedTuple):
    """A message that may match, with the data of a search result."""

    row: IndexedRow
    model: str | None
    session_started: float
    is_live: bool

    def matches(self, query: Query, *, with_tools: bool) -> bool:
        """Whether its text matches the query."""
        return query.matches(token_texts(indexed_text(self.row, with_tools=with_tools)))

    def as_hit(self, query: Query, *, with_tools: bool) -> dict[str, Any]:
        """The search result for the message."""
        piece = snippet(indexed_text(self.row, with_tools=with_tools), query)
        return {
            "id": self.row.id,
            "session_id": self.row.session_id,
            "role": self.row.role,
            "snippet": piece.marked(),
            "snippet_text": piece.text,
            "offsets": [list(span) for span in piece.offsets],
            "timestamp": self.row.at,
            "tool_name": self.row.tool_name,
            "source": self.row.source,
            "model": self.model,
            "session_started": self.session_started,
        }


def candidates(
    reader: Reader, where: str, values: Iterable[Any], tail: str = ""
) -> list[Candidate]:
    """Messages that meet a condition, without those of trashed sessions."""
    trash = NOT_IN_TRASH if reader.columns.has_own_tables else ""
    sql = f"{SELECT_CANDIDATES} WHERE {where}{trash} {tail}"
    return [
        Candidate(IndexedRow(*row[:8]), row[8], row[9], bool(row[10] or row[11]))
        for row in reader.rows(sql, tuple(values))
    ]


def by_ids(reader: Reader, ids: list[int]) -> list[Candidate]:
    """Messages by ID, in this order; deleted messages are omitted."""
    placeholders = ", ".join("?" * len(ids))
    rows = candidates(reader, f"m.id IN ({placeholders})", ids)
    by_id = {candidate.row.id: candidate for candidate in rows}
    return [by_id[row_id] for row_id in ids if row_id in by_id]


def scan(
    read: Callable[[Callable[[Reader], list[Candidate]]], list[Candidate]],
    search_filter: SearchFilter,
    *,
    above: int,
    below: int,
) -> Iterator[Candidate]:
    """Matching messages between two IDs, found by reading all of them."""
    above, below = max(above, search_filter.first_id - 1), min(below, search_filter.last_id + 1)
    position = above if search_filter.oldest_first else below
    comparison, direction = (">", "ASC") if search_filter.oldest_first else ("<", "DESC")
    where = f"m.id {comparison} ? AND m.id > ? AND m.id < ?"
    if not search_filter.with_tools:
        where += " AND m.role IN ('user', 'assistant')"
    tail = f"ORDER BY m.id {direction} LIMIT {CHUNK_ROWS}"
    while True:
        values = (position, above, below)
        chunk = read(lambda reader, v=values: candidates(reader, where, v, tail))  # type: ignore[misc]
        for candidate in chunk:
            if search_filter.allows(candidate) and candidate.matches(
                search_filter.query, with_tools=search_filter.with_tools
            ):
                yield candidate
        if len(chunk) < CHUNK_ROWS or (
            search_filter.patience and not search_filter.patience.is_left()
        ):
            return
        position = chunk[-1].row.id


class IndexResult(NamedTuple):
    """Row IDs from the index, best first, and its watermark."""

    ids: list[int]
    through: int
    is_all: bool


def query_index(
    connection: sqlite3.Connection,
    search_filter: SearchFilter,
    *,
    position: int,
    limit: int,
    by_rank: bool,
) -> IndexResult | None:
    """The next row IDs; None if the index cannot evaluate this query."""
    through = read_watermark(connection)
    try:
        expression = match_expression(connection, search_filter.query)
    except TooManyTermsError:
        return None
    if expression is None:
        return IndexResult([], through, is_all=True)
    match = restrict_sources(expression, search_filter.sources)
    low, high = _id_range(connection, search_filter)
    if by_rank:
        sql = (
            "SELECT rowid FROM body WHERE body MATCH ? AND rowid BETWEEN ? AND ?"
            " ORDER BY bm25(body, 1.0, 0.0), rowid DESC LIMIT ? OFFSET ?"
        )
        rows = connection.execute(sql, (match, low, high, limit, position)).fetchall()
    else:
        if search_filter.oldest_first:
            low = max(low, position + 1)
        else:
            high = min(high, position - 1)
        direction = "ASC" if search_filter.oldest_first else "DESC"
        sql = (
            "SELECT rowid FROM body WHERE body MATCH ? AND rowid BETWEEN ? AND ?"  # noqa: S608
            f" ORDER BY rowid {direction} LIMIT ?"
        )
        rows = connection.execute(sql, (match, low, high, limit)).fetchall()
    return IndexResult([row[0] for row in rows], through, len(rows) < limit)


def _id_range(connection: sqlite3.Connection, search_filter: SearchFilter) -> tuple[int, int]:
    """Lowest and highest row ID that can match."""
    if search_filter.since is None and search_filter.until is None:
        return search_filter.first_id, search_filter.last_id
    low, high = connection.execute(
        "SELECT min(block), max(block) FROM span WHERE high >= ? AND low < ?",
        (
            search_filter.since or 0.0,
            MAX_ROW_ID if search_filter.until is None else search_filter.until,
        ),
    ).fetchone()
    if low is None:
        return 1, 0
    last = ((high + 1) << BLOCK_BITS) - 1
    return max(search_filter.first_id, low << BLOCK_BITS), min(search_filter.last_id, last)
