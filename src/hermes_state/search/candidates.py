"""Finding messages: by the index as far as it reaches, by reading where it does not."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from hermes_state.search.index_builder import BLOCK_BITS, Row, mark_of, searched_text
from hermes_state.search.query import TooManyWordsError, expression, narrowed
from hermes_state.search.tokens import composed, tokens, words

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from hermes_state.engine.driver import sqlite3
    from hermes_state.engine.transaction import Reader
    from hermes_state.search.query import Query

BEFORE_CHARACTERS: Final = 60
SNIPPET_CHARACTERS: Final = 200
OPENING: Final = ">>>"
CLOSING: Final = "<<<"
MORE: Final = "…"


class Snippet(NamedTuple):
    """A piece of a message, and where in it the hits are."""

    text: str
    offsets: tuple[tuple[int, int], ...]

    def marked(self) -> str:
        """The text with every hit >>>so<<<."""
        pieces, end = [], 0
        for start, stop in self.offsets:
            pieces += [self.text[end:start], OPENING, self.text[start:stop], CLOSING]
            end = stop
        return "".join([*pieces, self.text[end:]])


def snippet(content: str, query: Query) -> Snippet:
    """The piece of *content* around its first hit; its beginning if there is none."""
    text = composed(content)
    places = list(tokens(text))
    spans = query.spans([token.text for token in places])
    hits = _merged([(places[first].start, places[stop - 1].end) for first, stop in spans])
    begin = max(0, hits[0][0] - BEFORE_CHARACTERS) if hits else 0
    end = min(len(text), max(begin + SNIPPET_CHARACTERS, hits[0][1] if hits else 0))
    head = MORE if begin else ""
    tail = MORE if end < len(text) else ""
    shift = len(head) - begin
    inside = tuple((start + shift, min(stop, end) + shift) for start, stop in hits if start < end)
    piece = "".join(" " if character.isspace() else character for character in text[begin:end])
    return Snippet(head + piece + tail, inside)


def _merged(hits: list[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for start, stop in sorted(hits):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(stop, merged[-1][1]))
        else:
            merged.append((start, stop))
    return merged


CHUNK_IDS: Final = 200
CHUNK_ROWS: Final = 1000
BEYOND: Final = 2**62

FACTS: Final = """
    SELECT m.id, m.session_id, m.role, m.content, m.tool_name, m.tool_calls, m.timestamp,
           s.source, s.model, s.started_at, coalesce(m.active, 1), m.compacted
    FROM messages m JOIN sessions s ON s.id = m.session_id
"""
NOT_IN_TRASH: Final = (
    " AND NOT EXISTS (SELECT 1 FROM hermes_trash t WHERE t.session_id = m.session_id)"
)


class Patience:
    """How long messages may be read that the index does not cover; then the rest is left."""

    def __init__(self, seconds: float) -> None:
        self.has_ended = False  # whether something was left
        self._until = time.monotonic() + seconds

    def is_left(self) -> bool:
        """Whether there is time to read on."""
        self.has_ended = self.has_ended or time.monotonic() >= self._until
        return not self.has_ended


class SearchFilter(NamedTuple):
    """What is looked for, and where."""

    query: Query
    roles: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    exclude_sources: tuple[str, ...] = ()
    session_ids: tuple[str, ...] = ()  # the rows of one conversation
    first_id: int = 0  # of them, if any are given
    last_id: int = BEYOND
    since: float | None = None
    until: float | None = None
    with_tools: bool = False
    include_inactive: bool = False
    oldest_first: bool = False
    patience: Patience | None = None

    def allows(self, candidate: Candidate) -> bool:
        """Whether a message may be an answer, whatever it says."""
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
    """A message that may be an answer, with what is said about it in a result."""

    row: Row
    model: str | None
    session_started: float
    is_live: bool

    def says(self, query: Query, *, with_tools: bool) -> bool:
        """Whether its words are an answer."""
        return query.matches(words(searched_text(self.row, with_tools=with_tools)))

    def as_hit(self, query: Query, *, with_tools: bool) -> dict[str, Any]:
        """The result that stands for it."""
        piece = snippet(searched_text(self.row, with_tools=with_tools), query)
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
    """Messages by a condition, without those of trashed sessions."""
    trash = NOT_IN_TRASH if reader.columns.has_own_tables else ""
    sql = f"{FACTS} WHERE {where}{trash} {tail}"
    return [
        Candidate(Row(*row[:8]), row[8], row[9], bool(row[10] or row[11]))
        for row in reader.rows(sql, tuple(values))
    ]


def by_ids(reader: Reader, ids: list[int]) -> list[Candidate]:
    """Messages by their ids, in that order; those that are gone are left out."""
    marks = ", ".join("?" * len(ids))
    found = {one.row.id: one for one in candidates(reader, f"m.id IN ({marks})", ids)}
    return [found[number] for number in ids if number in found]


def scan(
    read: Callable[[Callable[[Reader], list[Candidate]]], list[Candidate]],
    wish: SearchFilter,
    *,
    above: int,
    below: int,
) -> Iterator[Candidate]:
    """Answers among the messages between two ids, found by reading them all."""
    above, below = max(above, wish.first_id - 1), min(below, wish.last_id + 1)
    position = above if wish.oldest_first else below
    comparison, direction = (">", "ASC") if wish.oldest_first else ("<", "DESC")
    where = f"m.id {comparison} ? AND m.id > ? AND m.id < ?"
    if not wish.with_tools:
        where += " AND m.role IN ('user', 'assistant')"
    tail = f"ORDER BY m.id {direction} LIMIT {CHUNK_ROWS}"
    while True:
        values = (position, above, below)
        chunk = read(lambda reader, v=values: candidates(reader, where, v, tail))  # type: ignore[misc]
        for one in chunk:
            if wish.allows(one) and one.says(wish.query, with_tools=wish.with_tools):
                yield one
        if len(chunk) < CHUNK_ROWS or (wish.patience and not wish.patience.is_left()):
            return
        position = chunk[-1].row.id


class IndexAnswer(NamedTuple):
    """Ids that the index gives, best first, and how far it reaches."""

    ids: list[int]
    through: int
    is_all: bool


def ask_index(
    connection: sqlite3.Connection, wish: SearchFilter, *, position: int, limit: int, by_rank: bool
) -> IndexAnswer | None:
    """The next ids; None if the index cannot answer this query."""
    through = mark_of(connection)
    try:
        wanted = expression(connection, wish.query)
    except TooManyWordsError:
        return None
    if wanted is None:
        return IndexAnswer([], through, is_all=True)
    match = narrowed(wanted, wish.sources)
    low, high = _range(connection, wish)
    if by_rank:
        sql = (
            "SELECT rowid FROM body WHERE body MATCH ? AND rowid BETWEEN ? AND ?"
            " ORDER BY bm25(body, 1.0, 0.0), rowid DESC LIMIT ? OFFSET ?"
        )
        rows = connection.execute(sql, (match, low, high, limit, position)).fetchall()
    else:
        if wish.oldest_first:
            low = max(low, position + 1)
        else:
            high = min(high, position - 1)
        direction = "ASC" if wish.oldest_first else "DESC"
        sql = (
            "SELECT rowid FROM body WHERE body MATCH ? AND rowid BETWEEN ? AND ?"  # noqa: S608
            f" ORDER BY rowid {direction} LIMIT ?"
        )
        rows = connection.execute(sql, (match, low, high, limit)).fetchall()
    return IndexAnswer([row[0] for row in rows], through, len(rows) < limit)


def _range(connection: sqlite3.Connection, wish: SearchFilter) -> tuple[int, int]:
    """The ids between which answers lie."""
    if wish.since is None and wish.until is None:
        return wish.first_id, wish.last_id
    low, high = connection.execute(
        "SELECT min(block), max(block) FROM span WHERE high >= ? AND low < ?",
        (wish.since or 0.0, BEYOND if wish.until is None else wish.until),
    ).fetchone()
    if low is None:
        return 1, 0
    last = ((high + 1) << BLOCK_BITS) - 1
    return max(wish.first_id, low << BLOCK_BITS), min(wish.last_id, last)
