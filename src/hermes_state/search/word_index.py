"""The words of messages, as the ranking reads them: from the search file, and those not in it."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from hermes_state.search.index_builder import indexed_text
from hermes_state.search.ranking import IndexTotals, Posting
from hermes_state.search.tokens import is_single_character_token, token_texts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from hermes_state.engine.sqlite.driver import sqlite3
    from hermes_state.search.candidates import SearchFilter
    from hermes_state.search.index_builder import IndexedRow

PREFIX_CHARACTERS: Final = 3
MAX_PREFIXED_TERMS: Final = 5_000
MAX_NEAR_TERMS: Final = 20_000
MAX_COMPARED_TERMS: Final = 100
HIGHEST: Final = "\U0010ffff"

TOTALS: Final = """
    SELECT coalesce(sum(messages), 0), coalesce(sum(tokens), 0), count(*)
    FROM session WHERE messages > 0
"""
FREQUENCIES: Final = """
    SELECT f.term, f.doc FROM json_each(?) AS t CROSS JOIN frequency f ON f.term = t.value
    WHERE f.col = 'words'
"""
POSTINGS: Final = """
    SELECT o.doc, m.session, m.previous, m.tokens, count(*)
    FROM occurrence o CROSS JOIN message m ON m.id = o.doc
    WHERE o.term = ? AND o.col = 'words' GROUP BY o.doc
"""
NEWEST: Final = """
    SELECT m.id, m.session, m.previous, m.tokens, 1
    FROM (SELECT rowid AS id FROM body
          WHERE body MATCH ?1 AND rowid BETWEEN ?2 AND ?3 ORDER BY rowid DESC) AS found
    CROSS JOIN message m ON m.id = found.id
    WHERE ?4 IS NULL OR m.session IN (SELECT value FROM json_each(?4)) LIMIT ?5
"""
SESSIONS: Final = "SELECT number, id, source FROM session"
SESSION_END: Final = "SELECT number, last FROM session WHERE id = ?"
SESSION_TOKENS: Final = """
    SELECT number, tokens FROM session WHERE number IN (SELECT value FROM json_each(?))
"""
PREFIXED: Final = "SELECT text FROM term WHERE text >= ? AND text < ? LIMIT ?"
NEAR: Final = """
    SELECT text FROM term WHERE id IN
        (SELECT rowid FROM gram WHERE gram MATCH ? LIMIT ?)
"""


class UnindexedMessages(NamedTuple):
    """The words of messages that are not in the index, as far as a question may need them."""

    found: dict[str, list[Posting]]
    sizes: dict[int | str, int]
    size: IndexTotals

    def totals(self) -> IndexTotals:
        """The number and the size of the messages, and of conversations that are new."""
        return self.size

    def frequency(self, terms: Sequence[str]) -> dict[str, int]:
        """How many messages contain each of the terms."""
        return {term: len(self.found.get(term, ())) for term in terms}

    def postings(self, terms: Sequence[str], *, newest: int = 0) -> list[Posting]:
        """The messages with one of the terms."""
        del newest  # all are in memory
        return [each for term in terms for each in self.found.get(term, ())]

    def session_tokens(self, sessions: Sequence[int | str]) -> dict[int | str, int]:
        """The sizes of conversations."""
        del sessions
        return self.sizes

    def with_prefix(self, prefix: str) -> list[str]:
        """The terms that begin with a text."""
        return sorted(term for term in self.found if term.startswith(prefix))

    def near(self, word: str) -> list[str]:
        """Terms that share the most groups of three characters with a word."""
        return most_similar(list(self.found), word)


NO_MESSAGES: Final = UnindexedMessages({}, {}, IndexTotals(0, 0, 0))


def read_unindexed(
    rows: Iterable[IndexedRow], words: Sequence[str], ends: SessionEnds
) -> UnindexedMessages:
    """Read the words that begin like *words*; *ends* has the last messages of indexed sessions."""
    beginnings = {word[:PREFIX_CHARACTERS] for word in words}
    has_pairs = any(" " in word for word in words)
    postings: dict[str, list[Posting]] = defaultdict(list)
    sizes: Counter[int | str] = Counter()
    last: dict[int | str, int] = {}
    count = tokens = 0
    for row in rows:
        texts = token_texts(indexed_text(row, with_tools=False))
        number, end = ends[row.session_id]
        found = Counter(each for each in texts if each[:PREFIX_CHARACTERS] in beginnings)
        if has_pairs:
            found.update(each for each in map(" ".join, pairwise(texts)) if each in words)
        for term, times in found.items():
            posting = Posting(row.id, number, last.get(number, end), len(texts), times)
            postings[term].append(posting)
        if row.content:
            last[number] = row.id
        if texts:
            sizes[number] += len(texts)
            count, tokens = count + 1, tokens + len(texts)
    added = sum(1 for number in sizes if isinstance(number, str))
    return UnindexedMessages(postings, sizes, IndexTotals(count, tokens, added))


class SessionEnds(dict[str, tuple[int | str, int]]):
    """The numbers of indexed sessions and their last messages, read when they are needed."""

    def __init__(self, find: Callable[[str], Sequence[Any] | None]) -> None:
        super().__init__()
        self._find = find

    def __missing__(self, session_id: str) -> tuple[int | str, int]:
        row = self._find(session_id) or (session_id, 0)
        self[session_id] = end = (row[0], row[1])
        return end


class FileWords:
    """The words in a search file, and those of messages that are not in it yet."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        search_filter: SearchFilter,
        ids: tuple[int, int],
        unindexed: UnindexedMessages = NO_MESSAGES,
    ) -> None:
        self._connection = connection
        self._unindexed = unindexed
        self._low, self._high = ids
        self._sessions = self._allowed(search_filter)

    def _allowed(self, search_filter: SearchFilter) -> set[int] | None:
        """Numbers of the sessions that pass the filters; None if all do."""
        if not search_filter.selects_sessions:
            return None
        rows = self._connection.execute(SESSIONS)
        return {number for number, *rest in rows if search_filter.allows_session(*rest)}

    def totals(self) -> IndexTotals:
        """The size of the index."""
        indexed = IndexTotals(*self._connection.execute(TOTALS).fetchone())
        return IndexTotals(*map(sum, zip(indexed, self._unindexed.totals(), strict=True)))

    def frequency(self, terms: Sequence[str]) -> dict[str, int]:
        """How many messages contain each of the terms."""
        numbers: Counter[str] = Counter()
        single = [term for term in terms if " " not in term]
        numbers.update(dict(self._connection.execute(FREQUENCIES, (json.dumps(single),))))
        for term in set(terms).difference(single):
            sql = "SELECT count(*) FROM body WHERE body MATCH ?"
            numbers[term] += self._connection.execute(sql, (_match([term]),)).fetchone()[0]
        numbers.update(self._unindexed.frequency(terms))
        return numbers

    def postings(self, terms: Sequence[str], *, newest: int = 0) -> list[Posting]:
        """The messages with one of the terms; only the *newest*, each counted once, if given."""
        found = self._unindexed.postings(terms)
        rows: list[Any] = []
        phrases = [term for term in terms if " " in term]
        if newest or phrases:
            match = _match(terms if newest else phrases)
            sessions = None if self._sessions is None else json.dumps(sorted(self._sessions))
            values = (match, self._low, self._high, sessions, newest or -1)
            rows += self._connection.execute(NEWEST, values).fetchall()
        if not newest:
            for term in set(terms).difference(phrases):
                rows += self._connection.execute(POSTINGS, (term,)).fetchall()
        return found + [
            Posting(*row)
            for row in rows
            if self._low <= row[0] <= self._high
            and (self._sessions is None or row[1] in self._sessions)
        ]

    def session_tokens(self, sessions: Sequence[int | str]) -> dict[int | str, int]:
        """The sizes of conversations."""
        sizes: Counter[int | str] = Counter(self._unindexed.sizes)
        numbers = json.dumps([each for each in sessions if isinstance(each, int)])
        sizes.update(dict(self._connection.execute(SESSION_TOKENS, (numbers,))))
        return sizes

    def with_prefix(self, prefix: str) -> list[str]:
        """The terms that begin with a text."""
        values = (prefix, prefix + HIGHEST, MAX_PREFIXED_TERMS)
        found = [text for (text,) in self._connection.execute(PREFIXED, values)]
        return sorted({*found, *self._unindexed.with_prefix(prefix)})

    def near(self, word: str) -> list[str]:
        """Terms that share the most groups of three characters with a word."""
        grams = _grams(word)
        match = " OR ".join(f'"{gram}"' for gram in sorted(grams))
        rows = self._connection.execute(NEAR, (match, MAX_NEAR_TERMS))
        found = {text for (text,) in rows}
        return most_similar([*found.union(self._unindexed.near(word))], word)


def most_similar(terms: list[str], word: str) -> list[str]:
    """Those of the terms that share the most groups of three characters with a word."""
    grams = _grams(word)
    terms.sort(key=lambda term: (-len(grams & _grams(term)), len(term), term))
    return terms[:MAX_COMPARED_TERMS]


def _grams(word: str) -> set[str]:
    return {word[at : at + 3] for at in range(len(word) - 2)}


def _match(terms: Sequence[str]) -> str:
    """The FTS5 expression for messages with one of the terms."""
    alternatives = " OR ".join(f'"{term}"' for term in terms)
    return f"words : ({alternatives})"


def query_words(text: str) -> list[str]:
    """The words of a plain query; in scripts without spaces, pairs of characters."""
    tokens = token_texts(text)
    words: list[str] = []
    is_single = [is_single_character_token(token) for token in tokens]
    for number, token in enumerate(tokens):
        if not is_single[number]:
            words.append(token)
            continue
        if number + 1 < len(tokens) and is_single[number + 1]:
            words.append(f"{token} {tokens[number + 1]}")
        elif number == 0 or not is_single[number - 1]:
            words.append(token)
    return words
