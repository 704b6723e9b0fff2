"""Conversations about the same: those that have the words which set a conversation apart.

The words that are frequent in a conversation and rare in the history are looked up as the words
of a question are. So the result needs no index of its own and is the same on both engines.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_state.messages.copies import has_copies
from hermes_state.search import groups, language
from hermes_state.search.index_builder import INDEXED_COLUMNS, IS_MESSAGE, IndexedRow, indexed_text
from hermes_state.search.query import Query, Term
from hermes_state.search.ranking import Word, rank
from hermes_state.search.word_index import query_words
from hermes_state.sessions import lineage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes_state.engine.engine import Engine
    from hermes_state.engine.transaction import Reader
    from hermes_state.search.candidates import Candidate, SearchFilter
    from hermes_state.search.hits import FoundMessage
    from hermes_state.search.ladder import Vocabulary
    from hermes_state.search.postgres import DatabaseSearcher
    from hermes_state.search.ranking import Ranking
    from hermes_state.search.searcher import Searcher

READ_MESSAGES: Final = 400  # the latest ones of the conversation
READ_CHARACTERS: Final = 4_000  # of each
MIN_CHARACTERS: Final = 3  # of a word
COMPARED_WORDS: Final = 128  # the most frequent ones, whose number in the history is read
MAX_WORDS: Final = 12  # that are looked up
MIN_SHARED_WORDS: Final = 2
CHUNK_MESSAGES: Final = 200
MAX_MESSAGES: Final = 1_000  # best messages that are read

LATEST_TEXTS: Final = f"""
    SELECT {INDEXED_COLUMNS} FROM messages m JOIN sessions s ON s.id = m.session_id
    WHERE m.session_id IN (SELECT value FROM json_each(?)) AND {IS_MESSAGE}
        AND (coalesce(m.active, 1) = 1 OR m.compacted = 1)
    ORDER BY m.id DESC LIMIT ?
"""  # noqa: S608 - own names
COPIED_FROM: Final = """
    SELECT DISTINCT o.session_id FROM hermes_copy c
    JOIN messages m ON m.id = c.message_id JOIN messages o ON o.id = c.origin_id
    WHERE m.session_id IN (SELECT value FROM json_each(?))
"""


class SimilarConversation(NamedTuple):
    """A conversation with the same words, the rarest first, and its best message."""

    session_id: str
    words: tuple[str, ...]
    hit: FoundMessage


class _Match(NamedTuple):
    first: Candidate  # its best message
    words: set[int]


def find(
    engine: Engine,
    searcher: Searcher | DatabaseSearcher,
    search_filter: SearchFilter,
    session_id: str,
    limit: int,
) -> list[SimilarConversation]:
    """The conversations that are most similar to one, best first; without its copies."""
    rows = engine.read(lambda reader: lineage.conversation_of(reader, session_id))
    copies = engine.read(lambda reader: _copies(reader, rows))
    search_filter = search_filter._replace(excluded_ids=copies)
    counts = engine.read(lambda reader: _count_words(reader, rows))
    frequent = sorted(counts.times, key=lambda word: (-counts.times[word], -len(word), word))
    compared = frequent[:COMPARED_WORDS]

    def work(index: Vocabulary) -> tuple[list[Word], Ranking]:
        words = [Word(each, (each,)) for each in _characteristic(compared, counts, index)]
        return words, rank(words, index)

    words: list[Word]
    ranking: Ranking
    words, ranking = searcher.with_words(search_filter, compared, work)
    matches = _matches(engine, searcher, search_filter, ranking)
    total = sum(ranking.weights)

    def score(match: _Match) -> float:
        return match.first.score * sum(ranking.weights[number] for number in match.words) / total

    least = min(MIN_SHARED_WORDS, len(words))
    similar = [pair for pair in matches.items() if len(pair[1].words) >= least]
    similar.sort(key=lambda pair: (-round(score(pair[1]), 6), -pair[1].first.row.id))
    best = dict(similar[:limit])
    query = Query((tuple(Term(tuple(word.text.split())) for word in words),), ())
    shown = search_filter._replace(query=query)
    hits = searcher.hits(shown, [match.first for match in best.values()])
    return [
        SimilarConversation(
            session_id,
            tuple(
                words[number].text
                for number in sorted(match.words, key=lambda each: (-ranking.weights[each], each))
            ),
            hit,
        )
        for (session_id, match), hit in zip(best.items(), hits, strict=True)
    ]


def _copies(reader: Reader, rows: Sequence[str]) -> frozenset[str]:
    """The conversation with its branches and tasks, and what it was copied from."""
    found = lineage.branches_of(reader, rows[0])
    if has_copies(reader):
        values = (json.dumps(sorted(found)),)
        found = found.union(row[0] for row in reader.rows(COPIED_FROM, values))
    return frozenset(found.union(rows))


class _WordCounts(NamedTuple):
    times: Counter[str]
    messages: Counter[str]  # that contain a word


def _count_words(reader: Reader, rows: Sequence[str]) -> _WordCounts:
    """The content words of the latest messages of a conversation."""
    times: Counter[str] = Counter()
    messages: Counter[str] = Counter()
    values = (json.dumps(list(rows)), READ_MESSAGES)
    for row in map(IndexedRow._make, reader.rows(LATEST_TEXTS, values)):
        words = query_words(indexed_text(row, with_tools=False)[:READ_CHARACTERS])
        times.update(words)
        messages.update(set(words))
    languages = language.languages_of(list(times), lambda terms: dict.fromkeys(terms, 0))
    content = [
        word for word in language.content_words(list(times), languages)
        if len(word) >= MIN_CHARACTERS and not word.isdigit()
    ]  # fmt: skip
    return _WordCounts(Counter({word: times[word] for word in content}), messages)


def _characteristic(words: Sequence[str], counts: _WordCounts, index: Vocabulary) -> list[str]:
    """The words that are frequent in the conversation and rare elsewhere, but occur there."""
    total = index.totals().messages
    weights = {}
    for word, number in index.frequency(words).items():
        if number > counts.messages[word]:
            rarity = math.log(1 + total / number)
            weights[word] = round((1 + math.log(counts.times[word])) * rarity, 6)
    return sorted(weights, key=lambda word: (-weights[word], word))[:MAX_WORDS]


def _matches(
    engine: Engine,
    searcher: Searcher | DatabaseSearcher,
    search_filter: SearchFilter,
    ranking: Ranking,
) -> dict[str, _Match]:
    """The other conversations among the best messages, without copies of this one."""
    found: dict[str, _Match] = {}
    excluded: set[str] = set()
    ranks = {each.id: each for each in ranking.messages[:MAX_MESSAGES]}
    ids = list(ranks)
    for start in range(0, len(ids), CHUNK_MESSAGES):
        candidates = searcher.by_ids(ids[start : start + CHUNK_MESSAGES])
        rows = {each.row.session_id for each in candidates}
        listed = engine.read(lambda reader, rows=rows: groups.listed_rows(reader, rows))  # type: ignore[misc]
        for each in candidates:
            session_id = listed.get(each.row.session_id, each.row.session_id)
            if search_filter.copies_excluded(each):
                excluded.add(session_id)
            if not search_filter.allows(each):
                continue
            ranked = ranks[each.row.id]
            match = found.setdefault(session_id, _Match(each._replace(score=ranked.score), set()))
            match.words.update(ranked.words)
    return {session_id: match for session_id, match in found.items() if session_id not in excluded}
