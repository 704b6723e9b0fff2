"""Runs searches: on the index, and by scanning messages that are not indexed yet."""

from __future__ import annotations

import heapq
import itertools
import json
import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, TypeVar

from hermes_core.messages import plain_text
from hermes_state.messages.rows import HOOK_ROLE, decode_content
from hermes_state.search import index_builder, tool_index
from hermes_state.search.candidates import (
    CHUNK_IDS,
    CHUNK_ROWS,
    MAX_ROW_ID,
    by_ids,
    id_range,
    last_states,
    query_messages,
    query_tools,
    scan,
)
from hermes_state.search.hits import HitContext
from hermes_state.search.index_builder import (
    INDEXED_COLUMNS,
    IS_MESSAGE,
    MESSAGE_KEYS,
    MESSAGE_ROLES,
    TOOL_KEYS,
    IndexedRow,
)
from hermes_state.search.word_index import (
    SESSION_END,
    FileWords,
    SessionEnds,
    read_unindexed,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from hermes_state.engine.engine import Engine
    from hermes_state.engine.sqlite.driver import sqlite3
    from hermes_state.engine.transaction import Reader
    from hermes_state.search.candidates import Candidate, IndexResult, SearchFilter
    from hermes_state.search.hits import FoundMessage
    from hermes_state.search.index_builder import IndexSlice, WatermarkKeys
    from hermes_state.search.index_file import KnownTerms
    from hermes_state.search.ladder import Vocabulary
    from hermes_state.search.meaning import MeaningIndex

T = TypeVar("T")

CONTEXT_CHARACTERS: Final = 200
CATCH_UP_SECONDS: Final = 0.3
MIN_CHUNK_IDS: Final = 10

UNINDEXED: Final = f"""
    SELECT {INDEXED_COLUMNS} FROM messages m JOIN sessions s ON s.id = m.session_id
    WHERE m.id > ? AND m.id <= ? AND {IS_MESSAGE} ORDER BY m.id LIMIT ?
"""  # noqa: S608 - own names
ID_RANGE: Final = """
    SELECT coalesce(min(id), 1), coalesce(max(id), 0) FROM messages WHERE session_id = ?
"""
NEIGHBOUR_IDS: Final = """
    SELECT (SELECT id FROM messages
            WHERE session_id = hit.value ->> 0 AND id < CAST(hit.value ->> 1 AS BIGINT) {live}
            ORDER BY id DESC LIMIT 1),
           (SELECT id FROM messages
            WHERE session_id = hit.value ->> 0 AND id > CAST(hit.value ->> 1 AS BIGINT) {live}
            ORDER BY id LIMIT 1)
    FROM json_each(?) AS hit ORDER BY hit.key
"""
IS_LIVE: Final = """
    AND (compacted = 1 OR coalesce(active, 1) = 1)
    AND NOT (role = 'user' AND coalesce(finish_reason, '') = 'deleted')
"""
# The beginning of a text is enough. A zero character ends it for SQLite, and structured content
# starts with one: such content is read completely.
NEIGHBOURS: Final = """
    SELECT id, CASE WHEN finish_reason = 'hook_feedback' THEN 'hook' ELSE role END,
           CASE WHEN length(substr(content, 1, 200)) < 200 THEN content
               ELSE substr(content, 1, 200) END
    FROM messages WHERE id IN (SELECT CAST(value AS BIGINT) FROM json_each(?))
"""


class IndexQuery(Protocol):
    """A query of one of the indexes."""

    def __call__(
        self,
        connection: sqlite3.Connection,
        search_filter: SearchFilter,
        /,
        *,
        position: int,
        limit: int,
    ) -> IndexResult | None:
        """The next row IDs after a position."""


class IndexPart(NamedTuple):
    """How one of the indexes is filled."""

    keys: WatermarkKeys
    read_slice: Callable[[Reader, int], IndexSlice]
    index_slice: Callable[[sqlite3.Connection, IndexSlice, KnownTerms], bool]


MESSAGES: Final = IndexPart(MESSAGE_KEYS, index_builder.read_slice, index_builder.index_slice)
TOOLS: Final = IndexPart(TOOL_KEYS, tool_index.read_slice, tool_index.index_slice)


class Searcher:
    """Searches one history."""

    def __init__(self, engine: Engine, meaning: Callable[[], MeaningIndex]) -> None:
        self._engine = engine
        self._meaning = meaning
        self._file = engine.search
        self._covers_tools = engine.settings.search_tools

    def hits(self, search_filter: SearchFilter, found: list[Candidate]) -> list[FoundMessage]:
        """Search results, each with the messages before and after it."""
        return self._engine.read(lambda reader: hits(reader, search_filter, found))

    def matches(self, search_filter: SearchFilter, count: int) -> Iterator[Candidate]:
        """Matching messages in order, of which the first *count* are needed; -1 for all."""
        return self._candidates(self._in_range(search_filter), count)

    def by_ids(self, ids: list[int]) -> list[Candidate]:
        """Messages by ID, in this order; deleted messages are omitted."""
        return self._engine.read(lambda reader: by_ids(reader, ids))

    def nearest(self, text: str) -> list[tuple[int, float]]:
        """Messages with the most similar meaning, and how similar; none without a model."""
        return self._meaning().nearest(text)

    def with_words(
        self, search_filter: SearchFilter, words: Sequence[str], work: Callable[[Vocabulary], T]
    ) -> T:
        """The result of *work* on the words of the history, those not indexed yet included."""
        search_filter = self._in_range(search_filter)
        self.fill(search_filter.fill_seconds, with_tools=False)
        through = self._watermark(MESSAGES) or 0

        def run(connection: sqlite3.Connection) -> T:
            ends = SessionEnds(lambda name: connection.execute(SESSION_END, (name,)).fetchone())
            unindexed = read_unindexed(self._unindexed(search_filter, through), words, ends)
            ids = id_range(connection, search_filter)
            return work(FileWords(connection, search_filter, ids, unindexed))

        done = self._file.use(lambda connection: [run(connection)]) if through else None
        if done:
            return done[0]
        ends = SessionEnds(lambda _name: None)
        return work(read_unindexed(self._unindexed(search_filter, 0), words, ends))

    def _unindexed(self, search_filter: SearchFilter, through: int) -> Iterator[IndexedRow]:
        """The messages after the last indexed one, without those of excluded sessions."""
        after = max(through, search_filter.first_id - 1)
        while True:
            values = (after, search_filter.last_id, CHUNK_ROWS)
            rows = self._engine.read(lambda reader, v=values: reader.rows(UNINDEXED, v))  # type: ignore[misc]
            for row in itertools.starmap(IndexedRow, rows):
                if search_filter.allows_session(row.session_id, row.source):
                    yield row
            if len(rows) < CHUNK_ROWS or not search_filter.has_patience:
                return
            after = rows[-1][0]

    def _in_range(self, search_filter: SearchFilter) -> SearchFilter:
        if not search_filter.session_ids:
            return search_filter
        return self._engine.read(lambda reader: _with_id_range(reader, search_filter))

    def _check_history(self) -> None:
        """Delete an index that belongs to another history, or to another copy of this one."""
        state = self._file.use(index_builder.read_state)
        if state is not None and not self._engine.read(
            lambda r: all(index_builder.matches_history(r, *pair) for pair in state)
        ):
            self._file.remove()

    def fill(self, seconds: float | None = None, *, with_tools: bool) -> bool:
        """Update the index for at most *seconds*; whether it is complete."""
        self._check_history()
        deadline = None if seconds is None else time.monotonic() + seconds
        for part in self._parts(with_tools=with_tools):
            while (has_more := self._fill_slice(part)) is not False:
                if has_more is None or (deadline is not None and time.monotonic() >= deadline):
                    return False
        return True

    def progress(self, *, with_tools: bool) -> tuple[int, int] | None:
        """Indexed and total message IDs; None when the index is complete."""
        newest = self._engine.read(index_builder.newest_id)
        for part in self._parts(with_tools=with_tools):
            if (watermark := self._watermark(part)) != newest:
                return watermark or 0, newest
        return None

    def _parts(self, *, with_tools: bool) -> list[IndexPart]:
        return [MESSAGES, TOOLS] if with_tools and self._covers_tools else [MESSAGES]

    def _watermark(self, part: IndexPart) -> int | None:
        return self._file.use(lambda c: index_builder.read_watermark(c, part.keys))

    def _fill_slice(self, part: IndexPart) -> bool | None:
        """Index a slice: whether more messages are left; None if the file is unusable."""
        watermark = self._watermark(part)
        if watermark is None:
            return None
        next_slice = self._engine.read(lambda reader: part.read_slice(reader, watermark))
        if next_slice.through == watermark:
            return False
        done = self._file.use(lambda c: part.index_slice(c, next_slice, self._file.known))
        if not done:
            self._file.known.clear()
        return done or None

    def _candidates(self, search_filter: SearchFilter, count: int) -> Iterator[Candidate]:
        """Matching messages in the order of the results, of which the first *count* are needed."""
        self.fill(CATCH_UP_SECONDS, with_tools=search_filter.with_tools)
        through = self._indexed_through(search_filter)
        indexed = search_filter._replace(last_id=min(search_filter.last_id, through))
        streams = self._streams(indexed, count) if through else None
        if streams is None:
            yield from scan(self._engine.read, search_filter, above=0, below=MAX_ROW_ID)
            return
        tail = scan(self._engine.read, search_filter, above=through, below=MAX_ROW_ID)
        if not search_filter.oldest_first:
            yield from tail
        yield from _combined(streams, search_filter)
        if search_filter.oldest_first:
            yield from tail

    def _indexed_through(self, search_filter: SearchFilter) -> int:
        """The last message ID up to which the indexes of a search are complete; 0 for none."""
        if search_filter.with_tools and not self._covers_tools:
            return 0
        parts = self._parts(with_tools=search_filter.with_tools)
        return min(self._watermark(part) or 0 for part in parts)

    def _streams(self, search_filter: SearchFilter, count: int) -> list[Iterator[Candidate]] | None:
        """Candidates from each index; None if an index cannot evaluate the query."""
        queries: list[IndexQuery] = []
        if not search_filter.roles or {*MESSAGE_ROLES, HOOK_ROLE} & set(search_filter.roles):
            queries.append(query_messages)
        if search_filter.with_tools:
            queries.append(query_tools)
        chunk_ids = CHUNK_IDS if count < 0 else min(max(count, MIN_CHUNK_IDS), CHUNK_IDS)
        start = 0 if search_filter.oldest_first else MAX_ROW_ID
        streams = []
        for query in queries:
            first = self._query(query, search_filter, start, chunk_ids)
            if first is None:
                return None
            streams.append(self._stream(query, search_filter, first))
        return streams

    def _query(
        self, query: IndexQuery, search_filter: SearchFilter, position: int, limit: int
    ) -> IndexResult | None:
        return self._file.use(lambda c: query(c, search_filter, position=position, limit=limit))

    def _stream(
        self, query: IndexQuery, search_filter: SearchFilter, result: IndexResult | None
    ) -> Iterator[Candidate]:
        count = 0
        while result is not None:
            ids = result.ids
            yield from filter(search_filter.allows, self.by_ids(ids))
            if result.is_all:
                return
            count += len(ids)
            result = self._query(query, search_filter, ids[-1], min(count, CHUNK_IDS))


def _combined(
    streams: list[Iterator[Candidate]], search_filter: SearchFilter
) -> Iterator[Candidate]:
    """Candidates of both indexes, each once."""
    is_descending = not search_filter.oldest_first
    ordered = heapq.merge(*streams, key=lambda c: c.row.id, reverse=is_descending)
    seen: set[int] = set()
    needs_check = search_filter.with_tools and bool(search_filter.query.excluded)
    for candidate in ordered:
        row_id = candidate.row.id
        if row_id in seen:
            continue
        # An excluded term may be in the tool calls, which the index of messages does not cover.
        if needs_check and not candidate.matches(search_filter.query, with_tools=True):
            continue
        seen.add(row_id)
        yield candidate


def hits(reader: Reader, search_filter: SearchFilter, found: list[Candidate]) -> list[FoundMessage]:
    """Search results, each with the messages before and after it."""
    rows = [candidate.row for candidate in found]
    sql = NEIGHBOUR_IDS.format(live="" if search_filter.include_inactive else IS_LIVE)
    pairs = reader.rows(sql, (json.dumps([(row.session_id, row.id) for row in rows]),))
    ids = [row_id for pair in pairs for row_id in pair if row_id is not None]
    if not search_filter.include_inactive:
        states = last_states(reader, ids)
        ids = [row_id for row_id in ids if states.get(row_id, True)]
    messages = {
        row_id: (role, content)
        for row_id, role, content in reader.rows(NEIGHBOURS, (json.dumps(ids),))
    }
    hits = []
    for candidate, row, (before, after) in zip(found, rows, pairs, strict=True):
        around = [messages.get(before), (candidate.shown_role, row.content), messages.get(after)]
        context = [
            HitContext(role, plain_text(decode_content(content))[:CONTEXT_CHARACTERS])
            for role, content in filter(None, around)
        ]
        with_tools = search_filter.with_tools
        hit = candidate.as_hit(search_filter.query, context, with_tools=with_tools)
        hits.append(hit._replace(place=int(before in messages)))
    return hits


def _with_id_range(reader: Reader, search_filter: SearchFilter) -> SearchFilter:
    """The filter with the ID range of the conversation's rows."""
    ranges: list[Any] = [
        reader.row(ID_RANGE, (session_id,)) for session_id in search_filter.session_ids
    ]
    return search_filter._replace(
        first_id=min(low for low, _ in ranges), last_id=max(high for _, high in ranges)
    )
