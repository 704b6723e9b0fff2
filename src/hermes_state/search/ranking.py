"""The order of messages for a question: how well a message, its neighbours and its conversation
answer it.

Each of the three gets a score by BM25 over the words of the question, as a share of the best
score; the sum of the three is the score of the message. Both engines use this module, so the
order is the same.
"""

from __future__ import annotations

import math
from collections import defaultdict
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

_Key = TypeVar("_Key")

SATURATION: Final = 0.9  # k1 of BM25
LENGTH_WEIGHT: Final = 0.4  # b of BM25
MAX_POSTINGS: Final = 8_000  # read for a question; rarer words first


class Word(NamedTuple):
    """A word of a question, with the terms of the index that are its forms."""

    text: str
    terms: tuple[str, ...]


class Posting(NamedTuple):
    """A message with a word: its conversation, the message before it, and their sizes."""

    id: int
    session: int | str
    previous: int
    tokens: int
    times: int


class IndexTotals(NamedTuple):
    """The size of the index."""

    messages: int
    tokens: int
    sessions: int


class WordIndex(Protocol):
    """What the ranking asks of an index."""

    def totals(self) -> IndexTotals:
        """The size of the index."""

    def frequency(self, terms: Sequence[str]) -> dict[str, int]:
        """How many messages contain each of the terms."""

    def postings(self, terms: Sequence[str], *, newest: int = 0) -> list[Posting]:
        """The messages with one of the terms; only the *newest*, each counted once, if given."""

    def session_tokens(self, sessions: Sequence[int | str]) -> dict[int | str, int]:
        """The sizes of conversations."""


class Ranked(NamedTuple):
    """A message that contains words of the question."""

    id: int
    score: float
    words: frozenset[int]  # numbers of the words that were looked up in the index


class Ranking(NamedTuple):
    """Messages, best first, and the words that are too frequent to be looked up."""

    messages: list[Ranked]
    frequent: tuple[int, ...]
    weights: tuple[float, ...]  # of all words
    best: float  # the score of the message that answers the question best alone


class _Message:
    """A message while its score is computed."""

    __slots__ = ("counts", "previous", "session", "tokens")

    def __init__(self, posting: Posting) -> None:
        self.session = posting.session
        self.previous = posting.previous
        self.tokens = posting.tokens
        self.counts: dict[int, int] = {}


def rank(words: Sequence[Word], index: WordIndex) -> Ranking:
    """The messages that contain any of the words, best first."""
    totals = index.totals()
    numbers = index.frequency([term for word in words for term in word.terms])
    found = [sum(numbers.get(term, 0) for term in word.terms) for word in words]
    weights = tuple(
        math.log(1 + max(totals.messages - number, 0.5) / (number + 0.5)) for number in found
    )
    messages: dict[int, _Message] = {}
    frequent: list[int] = []
    read = 0
    for number in sorted(range(len(words)), key=lambda each: (found[each], each)):
        # A rarer word may occur only where the filters exclude it.
        if messages and read + found[number] > MAX_POSTINGS:
            frequent.append(number)
            continue
        newest = MAX_POSTINGS if found[number] > MAX_POSTINGS else 0
        for posting in index.postings(words[number].terms, newest=newest):
            message = messages.get(posting.id)
            if message is None:
                message = messages[posting.id] = _Message(posting)
            message.counts[number] = message.counts.get(number, 0) + posting.times
        read += found[number]
    average = max(totals.tokens / max(totals.messages, 1), 1.0)
    scores = {
        row_id: bm25(each.counts, weights, each.tokens / average)
        for row_id, each in messages.items()
    }
    best = max(scores.values(), default=0.0) or 1.0
    windows = _shares(_window_scores(messages, weights, average))
    sessions = _shares(_session_scores(messages, index, totals, weights))
    ranked = [
        Ranked(
            row_id,
            (scores[row_id] / best + windows[row_id] + sessions[each.session]) / 3,
            frozenset(each.counts),
        )
        for row_id, each in messages.items()
    ]
    ranked.sort(key=lambda each: (-round(each.score, 6), -each.id))
    return Ranking(ranked, tuple(frequent), weights, best)


def _shares(scores: dict[_Key, float]) -> dict[_Key, float]:
    """Scores as shares of the best one."""
    best = max(scores.values(), default=0.0) or 1.0
    return {key: score / best for key, score in scores.items()}


def bm25(counts: Mapping[int, int], weights: Sequence[float], length: float) -> float:
    """The score of a text with these counts of words; its length as a share of the average."""
    norm = SATURATION * (1 - LENGTH_WEIGHT + LENGTH_WEIGHT * length)
    return sum(
        weights[number] * count * (SATURATION + 1) / (count + norm)
        for number, count in counts.items()
    )


def _window_scores(
    messages: dict[int, _Message], weights: Sequence[float], average: float
) -> dict[int, float]:
    """Scores of each message together with the one before and the one after it."""
    following: dict[int, _Message] = {}
    for each in messages.values():
        if each.previous in messages:
            following[each.previous] = each
    scores = {}
    for row_id, each in messages.items():
        counts, tokens = each.counts, float(each.tokens)
        for other in (messages.get(each.previous), following.get(row_id)):
            if other is None:
                tokens += average
                continue
            tokens += other.tokens
            counts = _sum((counts, other.counts))
        scores[row_id] = bm25(counts, weights, tokens / (3 * average))
    return scores


def _session_scores(
    messages: dict[int, _Message],
    index: WordIndex,
    totals: IndexTotals,
    weights: Sequence[float],
) -> dict[int | str, float]:
    """Scores of conversations, each as one text."""
    counts: dict[int | str, dict[int, int]] = defaultdict(dict)
    for each in messages.values():
        session = counts[each.session]
        for number, count in each.counts.items():
            session[number] = session.get(number, 0) + count
    sizes = index.session_tokens(list(counts))
    average = max(totals.tokens / max(totals.sessions, 1), 1.0)
    return {
        session: bm25(each, weights, sizes.get(session, average) / average)
        for session, each in counts.items()
    }


def _sum(counts: Iterable[Mapping[int, int]]) -> dict[int, int]:
    result: dict[int, int] = {}
    for each in counts:
        for number, count in each.items():
            result[number] = result.get(number, 0) + count
    return result
