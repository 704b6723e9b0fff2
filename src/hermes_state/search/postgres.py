"""Search in PostgreSQL: an index in tables of the database, shared by all machines.

A trigger notes each new message in `hermes_search_pending`; indexing moves it to
`hermes_search_words`. So a message is found from the moment it is committed: in the index, or
among the pending ones. The index selects candidates that contain all tokens; whether a
candidate matches is decided on its text, with the same code as elsewhere.
"""

from __future__ import annotations

import heapq
import itertools
import logging
import math
import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from hermes_state.engine.database import DriverError
from hermes_state.search.candidates import (
    CHUNK_IDS,
    MAX_ROW_ID,
    Candidate,
    by_ids,
)
from hermes_state.search.index_builder import IndexedRow, indexed_text
from hermes_state.search.searcher import CATCH_UP_SECONDS, MIN_CHUNK_IDS, hits
from hermes_state.search.tokens import composed, fold, is_single_character_token, token_texts

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hermes_state.engine.engine import Engine
    from hermes_state.engine.transaction import Reader, Tx
    from hermes_state.search.candidates import SearchFilter
    from hermes_state.search.hits import FoundMessage
    from hermes_state.search.query import Term

log = logging.getLogger(__name__)

SLICE_MESSAGES: Final = 200
GRAM_CHARACTERS: Final = 3
MAX_SHORT_CHARACTERS: Final = 4
MAX_EXPANDED_TERMS: Final = 2000
MAX_RANKED: Final = 2000
MANY_MESSAGES: Final = 5000
MAX_INDEXED_TOKENS: Final = 20_000  # of one message

TAKE_PENDING: Final = """
    SELECT message_id FROM hermes_search_pending ORDER BY message_id LIMIT ?
    FOR UPDATE SKIP LOCKED
"""
PENDING_IDS: Final = "SELECT message_id FROM hermes_search_pending ORDER BY message_id"
COUNT_PENDING: Final = "SELECT count(*) FROM hermes_search_pending"
COUNT_WORDS: Final = "SELECT count(*) FROM hermes_search_words"
SELECT_ROWS: Final = """
    SELECT m.id, m.session_id, m.role, m.content, m.tool_name, m.tool_calls, m.timestamp, s.source
    FROM messages m JOIN sessions s ON s.id = m.session_id WHERE m.id = ANY(?)
"""
INSERT_WORDS: Final = """
    INSERT INTO hermes_search_words (message_id, is_tool, words) VALUES (?, ?, ?)
    ON CONFLICT (message_id, is_tool) DO UPDATE SET words = excluded.words
"""
INSERT_TERM: Final = """
    INSERT INTO hermes_search_term (term, grams) VALUES (?, ?) ON CONFLICT DO NOTHING
"""
KNOWN_TERMS: Final = "SELECT term FROM hermes_search_term WHERE term = ANY(?)"
DELETE_PENDING: Final = "DELETE FROM hermes_search_pending WHERE message_id = ANY(?)"
TERMS_WITH_GRAMS: Final = "SELECT term FROM hermes_search_term WHERE grams @> ? LIMIT ?"
TERMS_WITH_PIECE: Final = "SELECT term FROM hermes_search_term WHERE strpos(term, ?) > 0 LIMIT ?"
TERMS_WITH_PREFIX: Final = """
    SELECT term FROM hermes_search_term WHERE term >= ? AND term < ? LIMIT ?
"""
REMOVE_PENDING: Final = """
    DELETE FROM hermes_search_pending
    WHERE message_id IN (SELECT id FROM messages WHERE session_id = ?)
"""
REMOVE_WORDS: Final = """
    WITH removed AS (
        DELETE FROM hermes_search_words
        WHERE message_id IN (SELECT id FROM messages WHERE session_id = ?) RETURNING words
    )
    SELECT DISTINCT unnest(words) FROM removed
"""
REMOVE_TERMS: Final = """
    DELETE FROM hermes_search_term t WHERE term = ANY(?) AND NOT EXISTS (
        SELECT 1 FROM hermes_search_words w WHERE w.words @> ARRAY[t.term])
"""
MATCHING_IDS: Final = """
    SELECT message_id FROM hermes_search_words w /* plan each time */
    WHERE {condition} AND message_id > ? AND message_id < ? AND is_tool = ?
    ORDER BY message_id {direction} LIMIT ?
"""


class Condition(NamedTuple):
    """A condition on the words of a message, with its parameters."""

    sql: str
    values: tuple[Any, ...]


TRUE_CONDITION: Final = Condition("TRUE", ())
FALSE_CONDITION: Final = Condition("FALSE", ())


class DatabaseSearcher:
    """Searches the history of a database."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def find(
        self, search_filter: SearchFilter, *, by_rank: bool, limit: int, offset: int
    ) -> list[FoundMessage]:
        """Matching messages, starting at *offset*."""
        count = None if limit < 0 else offset + limit
        matches = self.matches(search_filter, -1 if by_rank else count or -1)
        if by_rank:
            ranked = _ranked(list(itertools.islice(matches, MAX_RANKED)), search_filter)
            matches = iter(ranked)
        found = list(itertools.islice(matches, offset, count))
        return self._engine.read(lambda reader: hits(reader, search_filter, found))

    def matches(self, search_filter: SearchFilter, count: int) -> Iterator[Candidate]:
        """Matching messages in order, of which the first *count* are needed; -1 for all."""
        is_complete = self.fill(CATCH_UP_SECONDS, with_tools=search_filter.with_tools)
        chunk_ids = CHUNK_IDS if count < 0 else min(max(count, MIN_CHUNK_IDS), CHUNK_IDS)
        streams = self._streams(search_filter, chunk_ids, with_pending=not is_complete)
        return _in_order(streams, search_filter)

    def fill(self, seconds: float | None = None, *, with_tools: bool) -> bool:
        """Index pending messages for at most *seconds*; whether none is left."""
        del with_tools  # tool text is indexed with the rest
        deadline = None if seconds is None else time.monotonic() + seconds
        indexed = 0
        while self._has_pending():
            if deadline is not None and time.monotonic() >= deadline:
                return False
            count = self._index_slice()
            if not count:
                return False  # other processes have the rest
            indexed += count
        if indexed > MANY_MESSAGES and not self._engine.read_only:
            self._engine.write_upkeep(lambda tx: tx.update_planner())
        return True

    def _index_slice(self) -> int:
        """Index some messages, also for a command that only reads: the index is derived."""
        if not self._engine.read_only:
            return self._engine.write_upkeep(_index_slice)
        writer = self._engine.database.open_writer(self._engine.clock)
        try:
            return writer.submit(_index_slice)
        except DriverError as error:  # a role that may only read
            log.info("messages not indexed by this process: %s", error)
            return 0
        finally:
            writer.close()

    def progress(self, *, with_tools: bool) -> tuple[int, int] | None:
        """Indexed and total messages; None when the index is complete."""
        del with_tools
        pending = int(self._engine.read(lambda reader: reader.value(COUNT_PENDING)))
        if not pending:
            return None
        indexed = int(self._engine.read(lambda reader: reader.value(COUNT_WORDS)))
        return indexed, indexed + pending

    def _has_pending(self) -> bool:
        sql = "SELECT 1 FROM hermes_search_pending LIMIT 1"
        return self._engine.read(lambda reader: reader.value(sql)) is not None

    def _streams(
        self, search_filter: SearchFilter, chunk_ids: int, *, with_pending: bool
    ) -> list[Iterator[Candidate]]:
        """Matching messages of each source, in the order of their IDs."""
        streams = [self._indexed(search_filter, chunk_ids, is_tool=False)]
        if search_filter.with_tools:
            streams.append(self._indexed(search_filter, chunk_ids, is_tool=True))
        return [self._pending(search_filter), *streams] if with_pending else streams

    def _pending(self, search_filter: SearchFilter) -> Iterator[Candidate]:
        ids = [row[0] for row in self._engine.read(lambda reader: reader.rows(PENDING_IDS))]
        if not search_filter.oldest_first:
            ids.reverse()
        for start in range(0, len(ids), CHUNK_IDS):
            yield from self._checked(search_filter, ids[start : start + CHUNK_IDS])
            if search_filter.patience and not search_filter.patience.is_left():
                return

    def _indexed(
        self, search_filter: SearchFilter, chunk_ids: int, *, is_tool: bool
    ) -> Iterator[Candidate]:
        condition = self._engine.read(lambda reader: _condition(reader, search_filter))
        direction = "ASC" if search_filter.oldest_first else "DESC"
        sql = MATCHING_IDS.format(condition=condition.sql, direction=direction)
        low, high = 0, MAX_ROW_ID
        while True:
            values = (*condition.values, low, high, int(is_tool), chunk_ids)
            ids = [row[0] for row in self._engine.read(lambda r, v=values: r.rows(sql, v))]  # type: ignore[misc]
            yield from self._checked(search_filter, ids)
            if len(ids) < chunk_ids:
                return
            chunk_ids = min(2 * chunk_ids, CHUNK_IDS)
            low, high = (ids[-1], high) if search_filter.oldest_first else (low, ids[-1])

    def _checked(self, search_filter: SearchFilter, ids: list[int]) -> Iterator[Candidate]:
        if not ids:
            return
        for candidate in self._engine.read(lambda reader: by_ids(reader, ids)):
            if search_filter.allows(candidate) and candidate.matches(
                search_filter.query, with_tools=search_filter.with_tools
            ):
                yield candidate


def _in_order(
    streams: list[Iterator[Candidate]], search_filter: SearchFilter
) -> Iterator[Candidate]:
    """The candidates of all streams in the order of their IDs, each once."""
    merged = heapq.merge(
        *streams, key=lambda each: each.row.id, reverse=not search_filter.oldest_first
    )
    last = None
    for candidate in merged:
        if candidate.row.id != last:
            last = candidate.row.id
            yield candidate


def _index_slice(tx: Tx) -> int:
    """Index some pending messages; their number."""
    ids = [row[0] for row in tx.rows(TAKE_PENDING, (SLICE_MESSAGES,))]
    if not ids:
        return 0
    found = [
        (row[0], int(is_tool), indexed_words(text))
        for row in tx.rows(SELECT_ROWS, (ids,))
        for is_tool, text in _texts(IndexedRow(*row))
    ]
    tx.many(INSERT_WORDS, [(row_id, is_tool, sorted(words)) for row_id, is_tool, words in found])
    every_word: set[str] = set().union(*(words for _, _, words in found))
    vocabulary = {word for word in every_word if " " not in word}  # without pairs of words
    known = {row[0] for row in tx.rows(KNOWN_TERMS, (sorted(vocabulary),))}
    # In order, so that two processes do not wait for each other.
    tx.many(INSERT_TERM, [(term, _grams(term)) for term in sorted(vocabulary - known)])
    tx.run(DELETE_PENDING, (ids,))
    return len(ids)


def remove_session(tx: Tx, session_id: str) -> None:
    """Remove the messages of a session from the index, and terms that occur nowhere else."""
    tx.run(REMOVE_PENDING, (session_id,))
    words = [row[0] for row in tx.rows(REMOVE_WORDS, (session_id,))]
    tx.run(REMOVE_TERMS, (sorted(set(words)),))


def _texts(row: IndexedRow) -> Iterator[tuple[bool, str]]:
    """The texts of a message: its own, and with tool calls and results."""
    if row.role in {"user", "assistant"}:
        yield False, indexed_text(row, with_tools=False)
    if row.role not in {"user", "assistant"} or row.tool_calls:
        yield True, indexed_text(row, with_tools=True)


def indexed_words(text: str) -> set[str]:
    """The tokens of a text, and the pairs of neighbours that are frequent."""
    tokens = token_texts(text)[:MAX_INDEXED_TOKENS]
    return {*tokens, *_pairs(tokens)}


def _pairs(tokens: Sequence[str]) -> Iterator[str]:
    """Neighbouring short tokens: each of them alone selects too many messages.

    These are characters of scripts without spaces, and words such as "to the".
    """
    for one, two in itertools.pairwise(tokens):
        if is_single_character_token(one) and is_single_character_token(two):
            yield one + two
        elif len(one) <= MAX_SHORT_CHARACTERS and len(two) <= MAX_SHORT_CHARACTERS:
            yield f"{one} {two}"


def _grams(term: str) -> list[str]:
    """The groups of three characters of a term."""
    return sorted({term[at : at + GRAM_CHARACTERS] for at in range(len(term) - 2)})


def _condition(reader: Reader, search_filter: SearchFilter) -> Condition:
    """What the index can say about the required terms of a query."""
    parts = [
        _joined(" OR ", [_term_condition(reader, term) for term in group])
        for group in search_filter.query.required
    ]
    return _joined(" AND ", parts)


def _joined(operator: str, parts: list[Condition]) -> Condition:
    sql = operator.join(part.sql for part in parts)
    return Condition(f"({sql})", tuple(value for part in parts for value in part.values))


def _term_condition(reader: Reader, term: Term) -> Condition:
    tokens = list(term.tokens)
    if term.is_inside:
        inner = tokens[1:-1] if len(tokens) > 1 else []
        return _joined(
            " AND ",
            [_contains([*inner, *_pairs(tokens)]), *_inside_conditions(reader, tokens)],
        )
    if not term.is_prefix or is_single_character_token(tokens[-1]):
        return _contains([*tokens, *_pairs(tokens)])
    whole = tokens[:-1]
    return _joined(
        " AND ", [_contains([*whole, *_pairs(whole)]), _any_of(_with_prefix(reader, tokens[-1]))]
    )


def _inside_conditions(reader: Reader, tokens: list[str]) -> list[Condition]:
    """The first token may start, the last may end, within a word."""
    if len(tokens) == 1:
        return [_any_of(_with_piece(reader, tokens[0]))]
    return [_any_of(_with_piece(reader, tokens[0])), _any_of(_with_prefix(reader, tokens[-1]))]


def _contains(words: list[str]) -> Condition:
    return Condition("words @> ?::text[]", (words,)) if words else TRUE_CONDITION


def _any_of(terms: list[str] | None) -> Condition:
    """Messages with one of the terms; None stands for too many."""
    if terms is None:
        return TRUE_CONDITION
    return Condition("words && ?::text[]", (terms,)) if terms else FALSE_CONDITION


def _with_prefix(reader: Reader, prefix: str) -> list[str] | None:
    values = (prefix, prefix + chr(0x10FFFF), MAX_EXPANDED_TERMS + 1)
    return _few([row[0] for row in reader.rows(TERMS_WITH_PREFIX, values)])


def _with_piece(reader: Reader, piece: str) -> list[str] | None:
    limit = MAX_EXPANDED_TERMS + 1
    if len(piece) >= GRAM_CHARACTERS:
        rows = reader.rows(TERMS_WITH_GRAMS, (_grams(piece), limit))
    else:
        rows = reader.rows(TERMS_WITH_PIECE, (piece, limit))
    return _few([row[0] for row in rows])


def _few(terms: list[str]) -> list[str] | None:
    return None if len(terms) > MAX_EXPANDED_TERMS else terms


def _ranked(found: list[Candidate], search_filter: SearchFilter) -> list[Candidate]:
    """Candidates by relevance: many matches in a short text come first."""

    def score(candidate: Candidate) -> float:
        text = fold(composed(indexed_text(candidate.row, with_tools=search_filter.with_tools)))
        matches = sum(1 for _ in search_filter.query.character_spans(text))
        return -matches / (matches + 1.2 * (0.25 + 0.75 * math.log1p(len(text)) / 6))

    return sorted(found, key=lambda each: (score(each), -each.row.id))
