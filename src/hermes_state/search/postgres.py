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
import time
from collections import Counter
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from hermes_state.engine.database import DriverError
from hermes_state.search.candidates import (
    CHUNK_IDS,
    MAX_ROW_ID,
    Candidate,
    by_ids,
)
from hermes_state.search.index_builder import MESSAGE_ROLES, IndexedRow, indexed_text
from hermes_state.search.ranking import IndexTotals, Posting
from hermes_state.search.searcher import CATCH_UP_SECONDS, MIN_CHUNK_IDS, hits
from hermes_state.search.tokens import is_single_character_token, token_texts
from hermes_state.search.word_index import (
    MAX_NEAR_TERMS,
    MAX_PREFIXED_TERMS,
    SessionEnds,
    most_similar,
    read_unindexed,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from hermes_state.engine.engine import Engine
    from hermes_state.engine.transaction import Reader, Tx
    from hermes_state.search.candidates import SearchFilter
    from hermes_state.search.hits import FoundMessage
    from hermes_state.search.ladder import Vocabulary
    from hermes_state.search.meaning import MeaningIndex
    from hermes_state.search.query import Term
    from hermes_state.search.word_index import UnindexedMessages

T = TypeVar("T")
log = logging.getLogger(__name__)

SLICE_MESSAGES: Final = 200
GRAM_CHARACTERS: Final = 3
MAX_SHORT_CHARACTERS: Final = 4
MAX_EXPANDED_TERMS: Final = 2000
MAX_COUNT: Final = 32_767  # of a word in a message
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
PREVIOUS_IDS: Final = """
    SELECT m.id, (SELECT p.id FROM messages p
        WHERE p.session_id = m.session_id AND p.id < m.id AND p.role IN ('user', 'assistant')
            AND p.content <> ''
        ORDER BY p.id DESC LIMIT 1)
    FROM messages m WHERE m.id = ANY(?)
"""
INSERT_WORDS: Final = """
    INSERT INTO hermes_search_words
        (message_id, is_tool, words, counts, session_id, previous_id, tokens)
    VALUES (?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (message_id, is_tool) DO NOTHING
"""
ADD_TO_SESSION: Final = """
    INSERT INTO hermes_search_session AS s (session_id, last_id, messages, tokens)
    VALUES (?, ?, ?, ?)
    ON CONFLICT (session_id) DO UPDATE SET last_id = greatest(s.last_id, excluded.last_id),
        messages = s.messages + excluded.messages, tokens = s.tokens + excluded.tokens
"""
REMOVE_SESSION: Final = "DELETE FROM hermes_search_session WHERE session_id = ?"
TOTALS: Final = """
    SELECT coalesce(sum(messages), 0), coalesce(sum(tokens), 0), count(*)
    FROM hermes_search_session WHERE messages > 0
"""
SESSION_END: Final = """
    SELECT session_id, last_id FROM hermes_search_session WHERE session_id = ?
"""
SESSION_TOKENS: Final = """
    SELECT session_id, tokens FROM hermes_search_session WHERE session_id = ANY(?)
"""
SOURCES: Final = "SELECT id, source FROM sessions WHERE id = ANY(?)"
ALL_SOURCES: Final = "SELECT id, source FROM sessions"
FREQUENCIES: Final = """
    SELECT t.term, (SELECT count(*) FROM hermes_search_words w
        WHERE w.words @> ARRAY[t.term] AND w.is_tool = 0)
    FROM unnest(?::text[]) AS t (term)
"""
POSTINGS: Final = """
    SELECT w.message_id, w.session_id, w.previous_id, w.tokens,
        w.counts[array_position(w.words, t.term COLLATE "C")]
    FROM unnest(?::text[]) AS t (term)
    JOIN hermes_search_words w ON w.words @> ARRAY[t.term] AND w.is_tool = 0
"""
NEWEST_POSTINGS: Final = """
    SELECT message_id, session_id, previous_id, tokens, 1 FROM hermes_search_words
    WHERE words && ?::text[] AND is_tool = 0 AND (?::text[] IS NULL OR session_id = ANY(?))
    ORDER BY message_id DESC LIMIT ?
"""
TERMS_NEAR: Final = "SELECT term FROM hermes_search_term WHERE grams && ? LIMIT ?"
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

    def __init__(self, engine: Engine, meaning: Callable[[], MeaningIndex]) -> None:
        self._engine = engine
        self._meaning = meaning

    def hits(self, search_filter: SearchFilter, found: list[Candidate]) -> list[FoundMessage]:
        """Search results, each with the messages before and after it."""
        return self._engine.read(lambda reader: hits(reader, search_filter, found))

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
        self.fill(search_filter.fill_seconds, with_tools=False)

        def run(reader: Reader) -> T:
            ids = [row[0] for row in reader.rows(PENDING_IDS)]
            ends = SessionEnds(lambda name: reader.row(SESSION_END, (name,)))
            pending = _pending_rows(reader, search_filter, ids)
            unindexed = read_unindexed(pending, words, ends)
            return work(DatabaseWords(reader, search_filter, unindexed))

        return self._engine.read(run)

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
            if not search_filter.has_patience:
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


def _pending_rows(
    reader: Reader, search_filter: SearchFilter, ids: list[int]
) -> Iterator[IndexedRow]:
    """Messages that are not indexed, without those of excluded sessions."""
    for start in range(0, len(ids), CHUNK_IDS):
        for row in itertools.starmap(
            IndexedRow, reader.rows(SELECT_ROWS, (ids[start : start + CHUNK_IDS],))
        ):
            is_message = row.role in MESSAGE_ROLES
            if is_message and search_filter.allows_session(row.session_id, row.source):
                yield row
        if not search_filter.has_patience:
            return


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
    previous: dict[int, int | None] = dict(tx.rows(PREVIOUS_IDS, (ids,)))
    found = [
        IndexedWords.of(row, text, is_tool=is_tool, previous=previous.get(row.id) or 0)
        for row in (IndexedRow(*row) for row in tx.rows(SELECT_ROWS, (ids,)))
        for is_tool, text in _texts(row)
    ]
    tx.many(INSERT_WORDS, found)
    _add_to_sessions(tx, [each for each in found if not each.is_tool])
    every_word: set[str] = set().union(*(each.words for each in found))
    vocabulary = {word for word in every_word if " " not in word}  # without pairs of words
    known = {row[0] for row in tx.rows(KNOWN_TERMS, (sorted(vocabulary),))}
    # In order, so that two processes do not wait for each other.
    tx.many(INSERT_TERM, [(term, _grams(term)) for term in sorted(vocabulary - known)])
    tx.run(DELETE_PENDING, (ids,))
    return len(ids)


def _add_to_sessions(tx: Tx, found: list[IndexedWords]) -> None:
    sizes: dict[str, tuple[int, int, int]] = {}
    for each in found:
        last, messages, tokens = sizes.get(each.session_id, (0, 0, 0))
        sizes[each.session_id] = (
            max(last, each.message_id), messages + bool(each.tokens), tokens + each.tokens
        )  # fmt: skip
    tx.many(ADD_TO_SESSION, [(name, *sizes[name]) for name in sorted(sizes)])


def remove_session(tx: Tx, session_id: str) -> None:
    """Remove the messages of a session from the index, and terms that occur nowhere else."""
    tx.run(REMOVE_PENDING, (session_id,))
    words = [row[0] for row in tx.rows(REMOVE_WORDS, (session_id,))]
    tx.run(REMOVE_TERMS, (sorted(set(words)),))
    tx.run(REMOVE_SESSION, (session_id,))


def _texts(row: IndexedRow) -> Iterator[tuple[bool, str]]:
    """The texts of a message: its own, and with tool calls and results."""
    if row.role in {"user", "assistant"}:
        yield False, indexed_text(row, with_tools=False)
    if row.role not in {"user", "assistant"} or row.tool_calls:
        yield True, indexed_text(row, with_tools=True)


class IndexedWords(NamedTuple):
    """A row of the index."""

    message_id: int
    is_tool: int
    words: list[str]
    counts: list[int]
    session_id: str
    previous_id: int
    tokens: int

    @classmethod
    def of(cls, row: IndexedRow, text: str, *, is_tool: bool, previous: int) -> IndexedWords:
        """The words of a message, the pairs of neighbours that are frequent, and their numbers."""
        tokens = token_texts(text)[:MAX_INDEXED_TOKENS]
        counts = Counter(tokens)
        counts.update(set(_pairs(tokens)) - counts.keys())
        words = sorted(counts)
        numbers = [min(counts[word], MAX_COUNT) for word in words]
        return cls(row.id, int(is_tool), words, numbers, row.session_id, previous, len(tokens))


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


class DatabaseWords:
    """The words in the index, and those of messages that are not in it yet."""

    def __init__(
        self, reader: Reader, search_filter: SearchFilter, unindexed: UnindexedMessages
    ) -> None:
        self._reader = reader
        self._unindexed = unindexed
        self._filter = search_filter
        self._sources: dict[str, str] = {}

    def totals(self) -> IndexTotals:
        """The size of the index."""
        indexed = IndexTotals(*map(int, self._reader.rows(TOTALS)[0]))
        return IndexTotals(*map(sum, zip(indexed, self._unindexed.totals(), strict=True)))

    def frequency(self, terms: Sequence[str]) -> dict[str, int]:
        """How many messages contain each of the terms."""
        stored = {_stored(term): term for term in terms}
        rows = self._reader.rows(FREQUENCIES, (list(stored),))
        numbers = Counter({stored[term]: count for term, count in rows})
        numbers.update(self._unindexed.frequency(terms))
        return numbers

    def postings(self, terms: Sequence[str], *, newest: int = 0) -> list[Posting]:
        """The messages with one of the terms; only the *newest*, each counted once, if given."""
        stored = [_stored(term) for term in terms]
        if newest:
            sessions = self._allowed_sessions()
            rows = self._reader.rows(NEWEST_POSTINGS, (stored, sessions, sessions, newest))
        else:
            rows = self._reader.rows(POSTINGS, (stored,))
        return [
            *self._unindexed.postings(terms),
            *(Posting(*row) for row in self._allowed(rows)),
        ]

    def _allowed_sessions(self) -> list[str] | None:
        """The sessions that pass the filters; None if all do."""
        if not self._filter.selects_sessions:
            return None
        rows = self._reader.rows(ALL_SOURCES)
        return [name for name, source in rows if self._filter.allows_session(name, source)]

    def _allowed(self, rows: list[Any]) -> list[Any]:
        if not self._filter.selects_sessions:
            return rows
        new = sorted({row[1] for row in rows}.difference(self._sources))
        self._sources.update(self._reader.rows(SOURCES, (new,)))
        allowed = {
            name for name, source in self._sources.items()
            if self._filter.allows_session(name, source)
        }  # fmt: skip
        return [row for row in rows if row[1] in allowed]

    def session_tokens(self, sessions: Sequence[int | str]) -> dict[int | str, int]:
        """The sizes of conversations."""
        sizes: Counter[int | str] = Counter(self._unindexed.sizes)
        sizes.update(dict(self._reader.rows(SESSION_TOKENS, (list(sessions),))))
        return sizes

    def with_prefix(self, prefix: str) -> list[str]:
        """The terms that begin with a text."""
        values = (prefix, prefix + chr(0x10FFFF), MAX_PREFIXED_TERMS)
        found = (row[0] for row in self._reader.rows(TERMS_WITH_PREFIX, values))
        return sorted({*found, *self._unindexed.with_prefix(prefix)})

    def near(self, word: str) -> list[str]:
        """Terms that share the most groups of three characters with a word."""
        rows = self._reader.rows(TERMS_NEAR, (_grams(word), MAX_NEAR_TERMS))
        return most_similar([*{row[0] for row in rows}.union(self._unindexed.near(word))], word)


def _stored(term: str) -> str:
    """A term as the index has it: pairs of characters are one word."""
    return term.replace(" ", "")
