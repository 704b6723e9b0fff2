"""Answers a search as people type it: from all its words down to any of them.

A query with operators ("phrase", -word, OR, prefix*) means what it says. Another query is tried in
steps until one finds something. A sentence, or three content words or more, are answered by rank,
from the messages that contain any of them.
"""

from __future__ import annotations

import itertools
import logging
import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from hermes_core.errors import EmbeddingError
from hermes_state.search import language
from hermes_state.search.hits import (
    ANY_FORM,
    ANY_WORD,
    AS_PREFIX,
    AS_WRITTEN,
    BY_MEANING,
    WITHOUT_FUNCTION_WORDS,
    Correction,
)
from hermes_state.search.query import Query, Term, excludes, parse
from hermes_state.search.ranking import Word, WordIndex, bm25, rank
from hermes_state.search.tokens import composed, fold, folded_texts
from hermes_state.search.word_index import query_words

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from hermes_state.search.candidates import Candidate, SearchFilter
    from hermes_state.search.ranking import Ranked, Ranking
    from hermes_state.search.time_words import TimeRange

log = logging.getLogger(__name__)

MIN_RANKED_WORDS: Final = 3  # content words of a query that is answered by rank
MIN_SENTENCE_WORDS: Final = 4  # words of one that is a sentence, such as "what is it about"
MIN_COVERAGE: Final = 0.5  # of the words by the best message; below, meaning is searched, too
MIN_CORRECTED_CHARACTERS: Final = 4
MAX_RANKED_MATCHES: Final = 2_000  # newest messages that match a query with operators
COUNTED_MESSAGES: Final = 1_000  # with a word that may replace a misspelled one
READ_MESSAGES: Final = 300  # best messages whose text is read for the final order
CHUNK_MESSAGES: Final = 200
PERIOD_WEIGHT: Final = 1.15  # of messages from the time that a question names
SORTS: Final = ("newest", "oldest", "rank")

_OPERATORS: Final = re.compile(r'"|(?:^|\s)OR\s|\w\*(?:\s|$)')
_PHRASE: Final = re.compile(r'"[^"]*"?')


class Asked(NamedTuple):
    """A query as it was typed; *sort* None stands for the order that suits it."""

    text: str
    sort: str | None = None
    period: TimeRange | None = None
    is_typing: bool = False
    is_exact: bool = False  # only what matches as it is written
    by_meaning: bool = False  # also if the words are found


class Found(NamedTuple):
    """Messages in the order of the results."""

    candidates: Iterator[Candidate]
    query: Query  # for the positions of matches
    sort: str
    step: str
    words: tuple[str, ...] = ()
    corrections: tuple[Correction, ...] = ()


class Vocabulary(WordIndex, Protocol):
    """The words of a history."""

    def with_prefix(self, prefix: str) -> list[str]:
        """The terms that begin with a text."""

    def near(self, word: str) -> list[str]:
        """Terms that share the most groups of three characters with a word."""


class Search(Protocol):
    """What the ladder asks of the search of an engine."""

    def matches(self, search_filter: SearchFilter, count: int) -> Iterator[Candidate]:
        """Matching messages by time."""

    def with_words(
        self,
        search_filter: SearchFilter,
        words: Sequence[str],
        work: Callable[[Vocabulary], Any],
    ) -> Any:
        """The result of *work* on the words of the history."""

    def by_ids(self, ids: list[int]) -> list[Candidate]:
        """Messages in the order of their IDs in the list."""

    def nearest(self, text: str) -> list[tuple[int, float]]:
        """Messages with the most similar meaning, and how similar; none without a model."""


class PlainQuery(NamedTuple):
    """A query without operators."""

    words: list[str]
    content: list[str]
    sort: str
    period: TimeRange | None
    is_typing: bool
    phrases: tuple[tuple[Term, ...], ...] = ()  # quoted in a sentence


class Reading(NamedTuple):
    """How a plain query was understood."""

    words: list[Word]
    corrections: tuple[Correction, ...]
    ranking: Ranking | None


def has_operators(text: str) -> bool:
    """Whether a query uses the syntax of searches; a sentence may quote something."""
    if excludes(text):
        return True
    around = _PHRASE.sub(" ", text)
    if len(query_words(around)) >= MIN_SENTENCE_WORDS:
        text = around
    return _OPERATORS.search(text) is not None


def find(search: Search, asked: Asked, search_filter: SearchFilter, count: int) -> Found:
    """The messages that answer a query, of which the first *count* are needed."""
    if asked.is_exact or has_operators(asked.text):
        return _as_written(search, search_filter, count, asked.sort)
    words = query_words(asked.text)
    content = language.content_words(words, _all_languages(words))
    is_question = len(content) >= MIN_RANKED_WORDS or len(words) >= MIN_SENTENCE_WORDS
    order = asked.sort or ("rank" if is_question else "newest")
    phrases = parse(" ".join(_PHRASE.findall(asked.text))).required
    plain = PlainQuery(words, content, order, asked.period, asked.is_typing, phrases)
    if asked.by_meaning:
        ranked = _in_any_form(search, search_filter, plain._replace(sort="rank"), count)
        return _with_meaning(search, asked.text, search_filter, ranked)
    if order != "rank":
        for step, tried in _steps(asked.text, plain):
            if found := _by_time(search, search_filter._replace(query=tried), count, order, step):
                return found
    answer = _in_any_form(search, search_filter, plain, count)
    if answer.step == ANY_FORM:
        return answer
    answer = _unless_covered(search, asked.text, search_filter, answer)
    return answer if asked.sort in {None, "rank"} else _best_by_time(answer, order)


def _best_by_time(found: Found, order: str) -> Found:
    """The best messages in the order that was asked for, without those with few of the words."""
    best = list(itertools.islice(found.candidates, READ_MESSAGES))
    least = MIN_COVERAGE * max((each.words_found for each in best), default=0)
    kept = [each for each in best if each.words_found >= least or not each.words_found]
    kept.sort(key=lambda each: each.row.id, reverse=order == "newest")
    return found._replace(candidates=iter(kept), sort=order)


def _unless_covered(search: Search, text: str, search_filter: SearchFilter, found: Found) -> Found:
    """The result, with what is similar in meaning if its best message has few of the words."""
    first = next(found.candidates, None)
    rest = itertools.chain([] if first is None else [first], found.candidates)
    found = found._replace(candidates=rest)
    if first is not None and first.words_found >= MIN_COVERAGE * len(found.words):
        return found
    try:
        return _with_meaning(search, text, search_filter, found)
    except EmbeddingError as error:
        log.warning("searched by words only: %s", error)
        return found


def _with_meaning(search: Search, text: str, search_filter: SearchFilter, found: Found) -> Found:
    """The best messages by words and meaning: the share of the words and the similarity add up."""
    nearest = dict(search.nearest(text))
    if not nearest:
        return found
    by_words = list(itertools.islice(found.candidates, READ_MESSAGES))
    coverage = by_words[0].words_found / max(len(found.words), 1) if by_words else 0.0
    least = min(nearest.values())
    scores = {
        each.row.id: coverage * each.score + nearest.get(each.row.id, least) for each in by_words
    }
    seen = {each.row.id: each for each in by_words}
    for each in search.by_ids([row_id for row_id in nearest if row_id not in seen]):
        if search_filter.allows(each):
            seen[each.row.id] = each
            scores[each.row.id] = nearest[each.row.id]
    ordered = sorted(scores, key=lambda row_id: (-scores[row_id], -row_id))
    candidates = itertools.chain(map(seen.__getitem__, ordered), found.candidates)
    return found._replace(candidates=candidates, sort="rank", step=BY_MEANING)


def _all_languages(words: Sequence[str]) -> tuple[str, ...]:
    return language.languages_of(words, lambda terms: dict.fromkeys(terms, 0))


def _as_written(search: Search, search_filter: SearchFilter, count: int, sort: str | None) -> Found:
    order = sort or "newest"
    if order != "rank":
        return Found(search.matches(search_filter, count), search_filter.query, order, AS_WRITTEN)
    newest = itertools.islice(search.matches(search_filter, MAX_RANKED_MATCHES), MAX_RANKED_MATCHES)
    ranked = sorted(newest, key=lambda each: (-_density(each, search_filter), -each.row.id))
    return Found(iter(ranked), search_filter.query, order, AS_WRITTEN)


def _density(candidate: Candidate, search_filter: SearchFilter) -> float:
    """Many matches in a short text come first."""
    text = fold(composed(candidate.text(with_tools=search_filter.with_tools)))
    number = sum(1 for _ in search_filter.query.character_spans(text))
    return bm25({0: number}, (1.0,), len(text) / 400)


def _steps(text: str, plain: PlainQuery) -> Iterator[tuple[str, Query]]:
    """The steps that need no list of words, strictest first."""
    exact = parse(text)
    prefix = _with_open_end(exact)
    yield AS_WRITTEN, prefix if plain.is_typing else exact
    if len(plain.content) < len(plain.words):
        yield WITHOUT_FUNCTION_WORDS, _all_of([(word,) for word in plain.content])
    if not plain.is_typing:
        yield AS_PREFIX, prefix


def _with_open_end(query: Query) -> Query:
    *groups, last = query.required
    return query._replace(required=(*groups, tuple(term._replace(is_prefix=True) for term in last)))


def _all_of(groups: Sequence[Sequence[str]]) -> Query:
    """A query for one term of each group."""
    return Query(tuple(tuple(Term(tuple(term.split())) for term in group) for group in groups), ())


def _by_time(
    search: Search, search_filter: SearchFilter, count: int, order: str, step: str
) -> Found | None:
    matches = search.matches(search_filter, count)
    first = next(matches, None)
    if first is None:
        return None
    return Found(itertools.chain([first], matches), search_filter.query, order, step)


def _in_any_form(
    search: Search, search_filter: SearchFilter, plain: PlainQuery, count: int
) -> Found:
    """Messages with all of the words in any form, by time; else those with any, by rank."""
    is_ranked = plain.sort == "rank"
    hidden: set[str] = set()

    def read(index: Vocabulary) -> Reading:
        words, corrections = _read_words(index, plain, hidden)
        return Reading(words, corrections, rank(words, index) if is_ranked else None)

    reading: Reading = search.with_words(search_filter, plain.content, read)
    while excluded := _excluded_corrections(search, search_filter, reading.corrections):
        hidden |= excluded
        reading = search.with_words(search_filter, plain.content, read)
    every = _all_of([word.terms for word in reading.words])
    if not is_ranked:
        matches = search_filter._replace(query=every)
        if found := _by_time(search, matches, count, plain.sort, ANY_FORM):
            return found._replace(words=tuple(plain.content), corrections=reading.corrections)
    ranking: Ranking = reading.ranking or search.with_words(
        search_filter, plain.content, lambda index: rank(reading.words, index)
    )
    any_of = _all_of([[term for word in reading.words for term in word.terms]])
    any_filter = search_filter._replace(query=any_of)
    ranked = _in_order(search, any_filter, reading.words, ranking, plain.period)
    ranked = _or_by_time(search, ranked, any_filter._replace(with_tools=False), count)
    if plain.phrases:
        ranked = _with_phrases(ranked, Query(plain.phrases, ()))
    if search_filter.with_tools:
        ranked = _with_tool_text(search, ranked, (search_filter._replace(query=every), any_filter))
    return Found(ranked, any_of, "rank", ANY_WORD, tuple(plain.content), reading.corrections)


def _excluded_corrections(
    search: Search, search_filter: SearchFilter, corrections: Sequence[Correction]
) -> set[str]:
    """The words used instead of others that occur only where the search may not look."""
    used = [each.used for each in corrections]
    filters = ((word, search_filter._replace(query=_all_of([[word]]))) for word in used)
    return {word for word, one in filters if next(search.matches(one, 1), None) is None}


def _or_by_time(
    search: Search, ranked: Iterator[Candidate], search_filter: SearchFilter, count: int
) -> Iterator[Candidate]:
    """Ranked messages; if the filters exclude all of them, those that match, by time.

    Of frequent words, only the newest messages are ranked.
    """
    first = next(ranked, None)
    if first is None:
        return search.matches(search_filter, count)
    return itertools.chain([first], ranked)


def _with_phrases(ranked: Iterator[Candidate], phrases: Query) -> Iterator[Candidate]:
    """Ranked messages with the phrases; all of the ranked messages if none has them."""
    best = list(itertools.islice(ranked, READ_MESSAGES))
    having = [each for each in best if each.matches(phrases, with_tools=False)]
    return iter(having) if having else itertools.chain(best, ranked)


def _with_tool_text(
    search: Search, ranked: Iterator[Candidate], filters: Sequence[SearchFilter]
) -> Iterator[Candidate]:
    """Ranked messages, then tool text: by the first filter that something matches."""
    seen = set()
    for candidate in ranked:
        seen.add(candidate.row.id)
        yield candidate
    for search_filter in filters:
        before = len(seen)
        for candidate in search.matches(search_filter, -1):
            if candidate.row.id not in seen:
                seen.add(candidate.row.id)
                yield candidate
        if len(seen) > before:
            return


def _read_words(
    index: Vocabulary, plain: PlainQuery, hidden: Collection[str]
) -> tuple[list[Word], tuple[Correction, ...]]:
    """The words of a query with their forms; unknown ones are corrected, but to no *hidden* one."""

    def count(terms: Sequence[str]) -> dict[str, int]:
        """In the conversations that may be searched: a word of others must not be named."""
        return {term: len(index.postings([term], newest=COUNTED_MESSAGES)) for term in terms}

    languages = language.languages_of(plain.words, index.frequency)
    words, corrections = [], []
    for number, word in enumerate(plain.content):
        terms = [word] if " " in word else language.forms(word, languages, index.with_prefix)
        if plain.is_typing and number == len(plain.content) - 1:
            terms = list(dict.fromkeys([*terms, *index.with_prefix(word)]))
        if not any(index.frequency(terms).values()) and len(word) >= MIN_CORRECTED_CHARACTERS:
            near = [term for term in index.near(word) if term not in hidden]
            used = language.corrected(word, near, count)
            if used:
                corrections.append(Correction(word, used))
                terms = language.forms(used, languages, index.with_prefix)
        words.append(Word(word, tuple(terms)))
    return words, tuple(corrections)


def _in_order(
    search: Search,
    search_filter: SearchFilter,
    words: Sequence[Word],
    ranking: Ranking,
    period: TimeRange | None,
) -> Iterator[Candidate]:
    """The messages that pass the filters, best first; the best ones are read for frequent words."""
    best, rest = ranking.messages[:READ_MESSAGES], ranking.messages[READ_MESSAGES:]
    yield from _read_best(search, search_filter, words, ranking, best, period)
    for start in range(0, len(rest), CHUNK_MESSAGES):
        chunk = {each.id: each for each in rest[start : start + CHUNK_MESSAGES]}
        for candidate in search.by_ids(list(chunk)):
            if search_filter.allows(candidate):
                ranked = chunk[candidate.row.id]
                yield candidate._replace(words_found=len(ranked.words), score=ranked.score)


def _read_best(
    search: Search,
    search_filter: SearchFilter,
    words: Sequence[Word],
    ranking: Ranking,
    best: list[Ranked],
    period: TimeRange | None,
) -> Iterator[Candidate]:
    ranks = {each.id: each for each in best}
    scored: list[tuple[float, Candidate]] = []
    for candidate in search.by_ids(list(ranks)):
        if not search_filter.allows(candidate):
            continue
        ranked = ranks[candidate.row.id]
        counts = _frequent_counts(candidate, words, ranking.frequent)
        score = ranked.score + bm25(counts, ranking.weights, 1.0) / ranking.best / 3
        if period is not None and period.contains(candidate.row.at):
            score *= PERIOD_WEIGHT
        number = len(ranked.words.union(counts))
        scored.append((score, candidate._replace(words_found=number, score=score)))
    scored.sort(key=lambda pair: (-round(pair[0], 6), -pair[1].row.id))
    yield from (candidate for _, candidate in scored)


def _frequent_counts(
    candidate: Candidate, words: Sequence[Word], frequent: Sequence[int]
) -> dict[int, int]:
    """How often a message contains the words that are too frequent for the ranking."""
    if not frequent:
        return {}
    texts = folded_texts(fold(composed(candidate.text(with_tools=False))))
    numbers = {number: sum(map(texts.count, words[number].terms)) for number in frequent}
    return {number: count for number, count in numbers.items() if count}
