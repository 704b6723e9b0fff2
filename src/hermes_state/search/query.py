"""Search queries.

    word other        both words, anywhere
    "two words"       a phrase
    wor*              a prefix
    one OR two        alternatives
    -word             an excluded word

A query can be evaluated by the index and against a text, with the same result.
"""

from __future__ import annotations

import collections
import functools
import heapq
import re
from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_core.errors import UsageError
from hermes_state.search.index_builder import MESSAGE_TERMS, TermTables
from hermes_state.search.tokens import (
    MAX_TOKEN_CHARACTERS,
    composed,
    fold,
    is_single_character_token,
    sequence_pattern,
    token_texts,
    tokens_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hermes_state.engine.sqlite.driver import sqlite3
    from hermes_state.search.tokens import Token

_QUERY_PART: Final = re.compile(r'((?:-(?=[^\s-]))?)(?:"([^"]*)"?|(\S+))')


class Term(NamedTuple):
    """Consecutive tokens; the last may be a prefix.

    With `is_inside`, the first may also be a suffix: the term is a substring that may
    start and end within words.
    """

    tokens: tuple[str, ...]
    is_prefix: bool = False
    is_inside: bool = False

    def spans(self, text: Sequence[str]) -> list[tuple[int, int]]:
        """Positions of the term among the tokens of a text, as half-open ranges."""
        count = len(self.tokens)
        return [
            (start, start + count)
            for start in range(len(text) - count + 1)
            if self._matches(text[start : start + count])
        ]

    def _matches(self, text: Sequence[str]) -> bool:
        *before, last = zip(self.tokens, text, strict=True)
        if self.is_inside and not before:
            return last[0] in last[1]
        if self.is_inside and before and not before[0][1].endswith(before[0][0]):
            return False
        middle = before[1:] if self.is_inside else before
        if any(expected != token for expected, token in middle):
            return False
        if self.is_prefix or self.is_inside:
            return last[1].startswith(last[0])
        return last[0] == last[1]

    def character_spans(self, folded: str) -> Iterator[tuple[int, int]]:
        """Positions of the term in a folded text, as half-open ranges, in order."""
        for token in self.tokens:
            if token not in folded:
                return
        if self.is_inside:
            yield from self._inside_spans(folded)
            return
        if len(self.tokens) == 1 and len(self.tokens[0]) < MAX_TOKEN_CHARACTERS:
            yield from self._word_spans(folded)
            return
        pattern = _pattern(self.tokens, self.is_prefix)
        at = folded.find(self.tokens[0])
        while at >= 0:
            if match := pattern.match(folded, at):
                yield match.span()
            at = folded.find(self.tokens[0], at + 1)

    def _word_spans(self, folded: str) -> Iterator[tuple[int, int]]:
        """Positions of the only token; compiling a pattern would take longer than this."""
        token = self.tokens[0]
        is_single = is_single_character_token(token)
        at = folded.find(token)
        while at >= 0:
            end = at + len(token)
            if is_single or (
                _ends_word(folded, at - 1) and (self.is_prefix or _ends_word(folded, end))
            ):
                yield at, end if is_single or not self.is_prefix else _word_end(folded, end)
            at = folded.find(token, at + 1)

    def _inside_spans(self, folded: str) -> Iterator[tuple[int, int]]:
        count = len(self.tokens)
        before = folded.rfind(" ", 0, folded.find(self.tokens[0]))
        window: collections.deque[Token] = collections.deque(maxlen=count)
        for token in tokens_of(folded, before + 1):
            window.append(token)
            if len(window) == count and self._matches([token.text for token in window]):
                yield window[0].start, window[-1].end

    def occurs_in(self, folded: str) -> bool:
        """Whether a folded text contains the term."""
        return next(self.character_spans(folded), None) is not None


def _ends_word(folded: str, at: int) -> bool:
    """Whether no word continues at a position."""
    if at < 0 or at >= len(folded) or folded[at] == " ":
        return True
    return not folded[at].isascii() and is_single_character_token(folded[at])


def _word_end(folded: str, at: int) -> int:
    while not _ends_word(folded, at):
        at += 1
    return at


@functools.lru_cache(maxsize=64)
def _pattern(sequence: tuple[str, ...], is_prefix: bool) -> re.Pattern[str]:
    return sequence_pattern(sequence, is_prefix=is_prefix)


class Query(NamedTuple):
    """Groups of alternatives that must all match, and terms that must not occur."""

    required: tuple[tuple[Term, ...], ...]
    excluded: tuple[Term, ...]

    def matches(self, text: Sequence[str]) -> bool:
        """Whether a text with these tokens matches."""
        return all(any(term.spans(text) for term in group) for group in self.required) and not any(
            term.spans(text) for term in self.excluded
        )

    def matches_text(self, text: str) -> bool:
        """Whether a text matches; faster than `matches` with its tokens."""
        return self.matches_folded(fold(composed(text)))

    def matches_folded(self, folded: str) -> bool:
        """Whether a folded text matches."""
        return all(
            any(term.occurs_in(folded) for term in group) for group in self.required
        ) and not any(term.occurs_in(folded) for term in self.excluded)

    def character_spans(self, folded: str) -> Iterator[tuple[int, int]]:
        """Positions of all wanted terms in a folded text, in order."""
        terms = [term for group in self.required for term in group]
        if len(terms) == 1:
            return terms[0].character_spans(folded)
        return heapq.merge(*(term.character_spans(folded) for term in terms))

    @property
    def is_empty(self) -> bool:
        """Whether the query has no terms."""
        return not self.required


def parse(text: str, *, is_inside: bool = False) -> Query:
    """Parse a query; raises UsageError if it has only excluded terms."""
    groups: list[list[Term]] = []
    excluded: list[Term] = []
    is_alternative = False
    for minus, phrase, word in _QUERY_PART.findall(text):
        if word == "OR" and not minus:
            is_alternative = bool(groups)
            continue
        term = _term(word or phrase, is_prefix=word.endswith("*"), is_inside=is_inside)
        if term is None:
            continue
        if minus:
            excluded.append(term)
        elif is_alternative:
            groups[-1].append(term)
        else:
            groups.append([term])
        is_alternative = False
    if excluded and not groups:
        raise UsageError(
            "a search needs at least one word to find; -word only removes results,"
            " as in `docker -compose`"
        )
    return Query(tuple(tuple(group) for group in groups), tuple(excluded))


def excludes(text: str) -> bool:
    """Whether a query has terms that must not occur; an option such as --amend is none."""
    parts = _QUERY_PART.findall(text)
    return any(minus and token_texts(word or phrase) for minus, phrase, word in parts)


def as_inside(query: Query) -> Query:
    """The same query, with terms that may start and end within words."""
    return Query(
        tuple(tuple(term._replace(is_inside=True) for term in group) for group in query.required),
        query.excluded,
    )


def _term(text: str, *, is_prefix: bool, is_inside: bool) -> Term | None:
    tokens = tuple(token_texts(text))
    return Term(tokens, is_prefix, is_inside) if tokens else None


MAX_EXPANDED_TERMS: Final = 5000
MIN_GRAM_CHARACTERS: Final = 3


class TooManyTermsError(Exception):
    """A substring occurs in too many different terms to look up each of them."""


def match_expression(
    connection: sqlite3.Connection, query: Query, tables: TermTables = MESSAGE_TERMS
) -> str | None:
    """The FTS5 expression for *query*; None if no indexed term can match it."""

    def expressions(terms: Sequence[Term]) -> list[str]:
        return [text for term in terms if (text := _term_expression(connection, term, tables))]

    groups = []
    for group in query.required:
        alternatives = expressions(group)
        if not alternatives:
            return None
        groups.append(_join(" OR ", alternatives))
    required = _join(" AND ", groups)
    excluded = expressions(query.excluded)
    return f"{required} NOT {_join(' OR ', excluded)}" if excluded else required


def restrict_facets(expression: str, facets: Sequence[str]) -> str:
    """The expression restricted to messages with one of the facets, if there are any."""
    if not facets:
        return expression
    alternatives = [f'facets : "{facet}"' for facet in facets]
    return _join(" AND ", [expression, _join(" OR ", alternatives)])


def _join(operator: str, parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"({operator.join(parts)})"


def _term_expression(connection: sqlite3.Connection, term: Term, tables: TermTables) -> str:
    if not term.is_inside:
        return _phrase(term.tokens, is_prefix=term.is_prefix)
    first, *rest = term.tokens
    expansions = _terms_with(connection, first, tables, at_the_end=bool(rest))
    phrases = [_phrase((text, *rest), is_prefix=bool(rest)) for text in expansions]
    return _join(" OR ", phrases) if phrases else ""


def _phrase(tokens: Sequence[str], *, is_prefix: bool) -> str:
    return f'words : "{" ".join(tokens)}"' + ("*" if is_prefix else "")


def _terms_with(
    connection: sqlite3.Connection, piece: str, tables: TermTables, *, at_the_end: bool
) -> list[str]:
    """Indexed terms that contain, or end with, *piece*."""
    if len(piece) >= MIN_GRAM_CHARACTERS:
        grams = {piece[at : at + 3] for at in range(len(piece) - 2)}
        sql = (
            f"SELECT text FROM {tables.term} WHERE id IN"  # noqa: S608
            f" (SELECT rowid FROM {tables.gram} WHERE {tables.gram} MATCH ?)"
        )
        expression = " AND ".join(f'"{gram}"' for gram in sorted(grams))
        rows = connection.execute(sql, (expression,))
    else:
        sql = f"SELECT text FROM {tables.term} WHERE instr(text, ?) > 0"  # noqa: S608
        rows = connection.execute(sql, (piece,))
    terms = [term for (term,) in rows if (term.endswith(piece) if at_the_end else piece in term)]
    if len(terms) > MAX_EXPANDED_TERMS:
        raise TooManyTermsError
    return terms
