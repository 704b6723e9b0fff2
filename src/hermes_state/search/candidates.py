"""Candidates of a search, from the index or by scanning, and snippets of matches."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from hermes_state.engine.values import amount_sql
from hermes_state.messages.copies import has_copies
from hermes_state.search.hits import FoundMessage, HitContext
from hermes_state.search.index_builder import (
    BLOCK_BITS,
    INDEXED_COLUMNS,
    TOOL_TERMS,
    IndexedRow,
    facet_token,
    indexed_text,
)
from hermes_state.search.query import TooManyTermsError, match_expression, restrict_facets
from hermes_state.search.tokens import composed, fold
from hermes_state.search.tool_index import PART_BITS, part_name, part_numbers, role_token

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from hermes_state.engine.sqlite.driver import sqlite3
    from hermes_state.engine.transaction import Reader
    from hermes_state.search.query import Query

BEFORE_CHARACTERS: Final = 60
SNIPPET_CHARACTERS: Final = 200
MATCH_START: Final = ">>>"
MATCH_END: Final = "<<<"
ELLIPSIS: Final = "…"
# One space for each character of white space, so that positions stay.
SPACES: Final = {code: " " for code in range(0x3001) if chr(code).isspace()}


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
    hits = _first_hits(query.character_spans(fold(text)))
    begin = max(0, hits[0][0] - BEFORE_CHARACTERS) if hits else 0
    end = min(len(text), _window_end(hits[0]) if hits else SNIPPET_CHARACTERS)
    head = ELLIPSIS if begin else ""
    tail = ELLIPSIS if end < len(text) else ""
    shift = len(head) - begin
    inside = [(start + shift, min(stop, end) + shift) for start, stop in hits if start < end]
    return Snippet(f"{head}{text[begin:end].translate(SPACES)}{tail}", tuple(inside))


def _window_end(hit: tuple[int, int]) -> int:
    """End of the excerpt around the first match."""
    return max(max(0, hit[0] - BEFORE_CHARACTERS) + SNIPPET_CHARACTERS, hit[1])


def _first_hits(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Matches in the excerpt around the first one; overlapping matches are merged."""
    hits: list[tuple[int, int]] = []
    for start, stop in spans:
        if hits and start <= hits[-1][1]:
            hits[-1] = (hits[-1][0], max(stop, hits[-1][1]))
        elif hits and start >= _window_end(hits[0]):
            break
        else:
            hits.append((start, stop))
    return hits


CHUNK_IDS: Final = 200
MAX_FILL_SECONDS: Final = 30.0  # before a question; what is left is read
CHUNK_ROWS: Final = 1000
MAX_ROW_ID: Final = 2**62

SELECT_CANDIDATES: Final = f"""
    SELECT {INDEXED_COLUMNS}, CAST(s.model AS TEXT), {amount_sql("s.started_at")},
           CASE WHEN m.role = 'user' AND m.finish_reason = 'deleted' THEN 0
               WHEN m.compacted = 1 THEN 1 ELSE coalesce(m.active, 1) END,
           CASE WHEN m.finish_reason = 'hook_feedback' THEN 'hook' ELSE CAST(m.role AS TEXT) END
    FROM messages m JOIN sessions s ON s.id = m.session_id
"""  # noqa: S608 - own names
NOT_IN_TRASH: Final = (
    " AND NOT EXISTS (SELECT 1 FROM hermes_trash t WHERE t.session_id = m.session_id)"
)


# The rows that a copy repeats: the original, and the first one in its own conversation.
ORIGINS: Final = """
    SELECT c.message_id, c.origin_id,
        (SELECT min(d.message_id) FROM hermes_copy d JOIN messages e ON e.id = d.message_id
            WHERE d.origin_id = c.origin_id AND d.origin_id > 0 AND e.session_id = m.session_id)
    FROM hermes_copy c JOIN messages m ON m.id = c.message_id
    WHERE c.origin_id > 0 AND c.message_id IN ({places})
"""
# Whether the last row of a message that a compaction has repeated is not undone.
LAST_STATES: Final = """
    SELECT o.id, coalesce(m.active, 1) = 1 OR m.compacted = 1
    FROM messages o JOIN hermes_copy c ON c.origin_id = o.id
    JOIN messages m ON m.id = c.message_id AND m.session_id = o.session_id
    WHERE o.id IN ({places}) AND c.origin_id > 0 ORDER BY m.id
"""


class ScanDeadline:
    """Time limit for scanning messages that are not indexed."""

    def __init__(self, seconds: float) -> None:
        self.has_ended = False  # whether messages were skipped
        self._until = time.monotonic() + seconds

    @property
    def seconds_left(self) -> float:
        """The time that is left, at least none."""
        return max(0.0, self._until - time.monotonic())

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
    allowed_ids: frozenset[str] | None = None  # the rows of conversations that pass a filter
    excluded_ids: frozenset[str] = frozenset()
    first_id: int = 0  # range of the conversation's rows
    last_id: int = MAX_ROW_ID
    since: float | None = None
    until: float | None = None
    with_tools: bool = False
    include_inactive: bool = False
    oldest_first: bool = False
    patience: ScanDeadline | None = None

    def allows(self, candidate: Candidate) -> bool:
        """Whether a message passes the filters, regardless of its text.

        A message is found once: where it was written, if that is searched.
        """
        return self._passes(candidate) and not any(map(self._passes, candidate.originals))

    @property
    def selects_sessions(self) -> bool:
        """Whether some sessions are excluded."""
        names = self.sources, self.exclude_sources, self.session_ids, self.excluded_ids
        return any(names) or self.allowed_ids is not None

    @property
    def fill_seconds(self) -> float:
        """How long the index may be filled: that costs less than reading the messages once."""
        return MAX_FILL_SECONDS if self.patience is None else self.patience.seconds_left

    @property
    def has_patience(self) -> bool:
        """Whether more messages that are not indexed may be read."""
        return self.patience is None or self.patience.is_left()

    def allows_session(self, session_id: str, source: str) -> bool:
        """Whether messages of a session may pass."""
        return (
            (not self.sources or source in self.sources)
            and source not in self.exclude_sources
            and (not self.session_ids or session_id in self.session_ids)
            and (self.allowed_ids is None or session_id in self.allowed_ids)
            and session_id not in self.excluded_ids
        )

    def copies_excluded(self, candidate: Candidate) -> bool:
        """Whether a message repeats one of an excluded session."""
        return any(each.row.session_id in self.excluded_ids for each in candidate.originals)

    def _passes(self, candidate: Candidate) -> bool:
        row = candidate.row
        return (
            (not self.roles or candidate.shown_role in self.roles)
            and (self.with_tools or row.role in ("user", "assistant"))
            and self.allows_session(row.session_id, row.source)
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
    shown_role: str  # that of feedback of hooks is `hook`
    originals: tuple[Candidate, ...] = ()  # the rows that this one repeats
    words_found: int = 0  # how many words of a question it contains, if it was ranked
    score: float = 0.0  # 1 is the best of a ranking

    def text(self, *, with_tools: bool) -> str:
        """Its searchable text."""
        return indexed_text(self.row, with_tools=with_tools)

    def matches(self, query: Query, *, with_tools: bool) -> bool:
        """Whether its text matches the query."""
        return query.matches_text(self.text(with_tools=with_tools))

    def as_hit(self, query: Query, context: list[HitContext], *, with_tools: bool) -> FoundMessage:
        """The search result for the message."""
        piece = snippet(self.text(with_tools=with_tools), query)
        return FoundMessage(
            id=self.row.id,
            session_id=self.row.session_id,
            role=self.shown_role,
            snippet=piece.marked(),
            snippet_text=piece.text,
            offsets=piece.offsets,
            timestamp=self.row.at,
            tool_name=self.row.tool_name,
            source=self.row.source,
            model=self.model,
            session_started=self.session_started,
            context=context,
            words_found=self.words_found,
        )


def candidates(
    reader: Reader, where: str, values: Iterable[Any], tail: str = ""
) -> list[Candidate]:
    """Messages that meet a condition, without those of trashed sessions."""
    found = _candidates(reader, where, values, tail)
    if not found or not has_copies(reader):
        return found
    ids = [candidate.row.id for candidate in found]
    states = last_states(reader, ids)
    if not all(states.values()):
        found = [
            each._replace(is_live=each.is_live and bool(states.get(each.row.id, True)))
            for each in found
        ]
    repeated = {row[0]: row[1:] for row in reader.rows(ORIGINS.format(places=_places(ids)), ids)}
    if not repeated:
        return found
    rows = sorted({row_id for pair in repeated.values() for row_id in pair})
    originals = {
        each.row.id: each for each in _candidates(reader, f"m.id IN ({_places(rows)})", rows)
    }
    return [
        each._replace(
            originals=tuple(
                originals[row_id]
                for row_id in repeated.get(each.row.id, ())
                if row_id in originals and row_id != each.row.id
            )
        )
        for each in found
    ]


def last_states(reader: Reader, ids: list[int]) -> dict[int, bool]:
    """Of messages that a compaction has repeated, whether the last row is not undone."""
    if not ids or not has_copies(reader):
        return {}
    rows = reader.rows(LAST_STATES.format(places=_places(ids)), ids)
    return {row_id: bool(is_live) for row_id, is_live in rows}


def _places(values: Sequence[object]) -> str:
    return ", ".join("?" * len(values))


def _candidates(
    reader: Reader, where: str, values: Iterable[Any], tail: str = ""
) -> list[Candidate]:
    trash = NOT_IN_TRASH if reader.columns.has_own_tables else ""
    sql = f"{SELECT_CANDIDATES} WHERE {where}{trash} {tail}"
    return [
        Candidate(IndexedRow(*row[:8]), row[8], row[9], bool(row[10]), row[11])
        for row in reader.rows(sql, tuple(values))
    ]


def by_ids(reader: Reader, ids: list[int]) -> list[Candidate]:
    """Messages by ID, in this order; deleted messages are omitted."""
    if not ids:
        return []
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
        if len(chunk) < CHUNK_ROWS or not search_filter.has_patience:
            return
        position = chunk[-1].row.id


class IndexResult(NamedTuple):
    """Row IDs from the index, in the order of the results."""

    ids: list[int]
    is_all: bool


def query_messages(
    connection: sqlite3.Connection,
    search_filter: SearchFilter,
    *,
    position: int,
    limit: int,
) -> IndexResult | None:
    """The next row IDs; None if the index cannot evaluate this query."""
    try:
        expression = match_expression(connection, search_filter.query)
    except TooManyTermsError:
        return None
    if expression is None:
        return IndexResult([], is_all=True)
    match = restrict_facets(expression, [facet_token(name) for name in search_filter.sources])
    low, high = _beyond(search_filter, position, *id_range(connection, search_filter))
    sql = _select_by_id("body", search_filter)
    rows = connection.execute(sql, (match, low, high, limit)).fetchall()
    return IndexResult([row[0] for row in rows], len(rows) < limit)


def query_tools(
    connection: sqlite3.Connection, search_filter: SearchFilter, *, position: int, limit: int
) -> IndexResult | None:
    """The next row IDs of messages with tool text; None if the index cannot evaluate this."""
    try:
        expression = match_expression(connection, search_filter.query, TOOL_TERMS)
    except TooManyTermsError:
        return None
    if expression is None:
        return IndexResult([], is_all=True)
    match = restrict_facets(expression, [facet_token(name) for name in search_filter.sources])
    match = restrict_facets(match, [role_token(role) for role in search_filter.roles])
    low, high = _beyond(search_filter, position, *id_range(connection, search_filter))
    numbers = part_numbers(connection)
    ids: list[int] = []
    for number in numbers if search_filter.oldest_first else reversed(numbers):
        if low >> PART_BITS <= number <= high >> PART_BITS:
            sql = _select_by_id(part_name(number), search_filter)
            values = (match, low, high, limit - len(ids))
            ids += [row[0] for row in connection.execute(sql, values)]
        if len(ids) == limit:
            break
    return IndexResult(ids, len(ids) < limit)


def _beyond(search_filter: SearchFilter, position: int, low: int, high: int) -> tuple[int, int]:
    """The range of row IDs after *position*, in the order of the results."""
    if search_filter.oldest_first:
        return max(low, position + 1), high
    return low, min(high, position - 1)


def _select_by_id(table: str, search_filter: SearchFilter) -> str:
    direction = "ASC" if search_filter.oldest_first else "DESC"
    return (
        f"SELECT rowid FROM {table} WHERE {table} MATCH ? AND rowid BETWEEN ? AND ?"  # noqa: S608
        f" ORDER BY rowid {direction} LIMIT ?"
    )


def id_range(connection: sqlite3.Connection, search_filter: SearchFilter) -> tuple[int, int]:
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
