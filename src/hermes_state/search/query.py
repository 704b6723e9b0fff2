"""What somebody searches for.

    word other        both words, anywhere
    "two words"       side by side
    wor*              words that begin so
    one OR two        either
    -word             not this one

A query can be put to the index and to a text; both answer alike.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_core.errors import UsageError
from hermes_state.search.index_builder import facet
from hermes_state.search.tokens import words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes_state.engine.driver import sqlite3

_PIECE: Final = re.compile(r'(-?)(?:"([^"]*)"?|(\S+))')


class Term(NamedTuple):
    """Words side by side; the last may be the beginning of one.

    With `is_inside`, the first may also be the end of one: the term is a piece of text
    that may begin and end within words.
    """

    tokens: tuple[str, ...]
    is_prefix: bool = False
    is_inside: bool = False

    def spans(self, text: Sequence[str]) -> list[tuple[int, int]]:
        """Where the term stands among the words of a text: first and one past the last."""
        count = len(self.tokens)
        return [
            (start, start + count)
            for start in range(len(text) - count + 1)
            if self._fits(text[start : start + count])
        ]

    def _fits(self, found: Sequence[str]) -> bool:
        *before, last = zip(self.tokens, found, strict=True)
        if self.is_inside and not before:
            return last[0] in last[1]
        if self.is_inside and before and not before[0][1].endswith(before[0][0]):
            return False
        middle = before[1:] if self.is_inside else before
        if any(wanted != word for wanted, word in middle):
            return False
        if self.is_prefix or self.is_inside:
            return last[1].startswith(last[0])
        return last[0] == last[1]


class Query(NamedTuple):
    """Groups of alternatives, all of which must be met; and terms that must not occur."""

    wanted: tuple[tuple[Term, ...], ...]
    unwanted: tuple[Term, ...]

    def matches(self, text: Sequence[str]) -> bool:
        """Whether a text with these words is an answer."""
        return all(any(term.spans(text) for term in group) for group in self.wanted) and not any(
            term.spans(text) for term in self.unwanted
        )

    def spans(self, text: Sequence[str]) -> list[tuple[int, int]]:
        """Every place of a wanted term among the words of a text, in order."""
        return sorted(
            {span for group in self.wanted for term in group for span in term.spans(text)}
        )

    @property
    def is_empty(self) -> bool:
        """Whether nothing is looked for."""
        return not self.wanted


def parse(text: str, *, is_inside: bool = False) -> Query:
    """Read a query; UsageError if it only says what is not wanted."""
    groups: list[list[Term]] = []
    unwanted: list[Term] = []
    is_alternative = False
    for minus, phrase, word in _PIECE.findall(text):
        if word == "OR" and not minus:
            is_alternative = bool(groups)
            continue
        term = _term(word or phrase, is_prefix=word.endswith("*"), is_inside=is_inside)
        if term is None:
            continue
        if minus:
            unwanted.append(term)
        elif is_alternative:
            groups[-1].append(term)
        else:
            groups.append([term])
        is_alternative = False
    if unwanted and not groups:
        raise UsageError("a search needs at least one word that is wanted, beside -unwanted ones")
    return Query(tuple(tuple(group) for group in groups), tuple(unwanted))


def _term(text: str, *, is_prefix: bool, is_inside: bool) -> Term | None:
    found = tuple(words(text))
    return Term(found, is_prefix, is_inside) if found else None


MAX_EXPANSIONS: Final = 5000
MIN_GRAM: Final = 3


class TooManyWordsError(Exception):
    """A piece of text occurs in too many different words to look each of them up."""


def expression(connection: sqlite3.Connection, query: Query) -> str | None:
    """What the index is asked for *query*; None if no indexed word can answer it."""
    groups = []
    for group in query.wanted:
        alternatives = [text for term in group if (text := _term_expression(connection, term))]
        if not alternatives:
            return None
        groups.append(_joined(" OR ", alternatives))
    wanted = _joined(" AND ", groups)
    unwanted = [text for term in query.unwanted if (text := _term_expression(connection, term))]
    return f"{wanted} NOT {_joined(' OR ', unwanted)}" if unwanted else wanted


def narrowed(wanted: str, sources: Sequence[str]) -> str:
    """The same, within some sources; a little more may come through."""
    if not sources:
        return wanted
    facets = [f'facets : "{facet(source)}"' for source in sources]
    return _joined(" AND ", [wanted, _joined(" OR ", facets)])


def _joined(word: str, parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"({word.join(parts)})"


def _term_expression(connection: sqlite3.Connection, term: Term) -> str:
    if not term.is_inside:
        return _phrase(term.tokens, is_prefix=term.is_prefix)
    first, *rest = term.tokens
    expansions = _words_with(connection, first, at_the_end=bool(rest))
    return _joined(" OR ", [_phrase((word, *rest), is_prefix=bool(rest)) for word in expansions]) \
        if expansions else ""  # fmt: skip


def _phrase(tokens: Sequence[str], *, is_prefix: bool) -> str:
    return f'words : "{" ".join(tokens)}"' + ("*" if is_prefix else "")


def _words_with(connection: sqlite3.Connection, piece: str, *, at_the_end: bool) -> list[str]:
    """The indexed words that contain, or end with, a piece of text."""
    if len(piece) >= MIN_GRAM:
        grams = {piece[at : at + 3] for at in range(len(piece) - 2)}
        sql = "SELECT text FROM term WHERE id IN (SELECT rowid FROM gram WHERE gram MATCH ?)"
        wanted = " AND ".join(f'"{gram}"' for gram in sorted(grams))
        rows = connection.execute(sql, (wanted,))
    else:
        rows = connection.execute("SELECT text FROM term WHERE instr(text, ?) > 0", (piece,))
    found = [word for (word,) in rows if (word.endswith(piece) if at_the_end else piece in word)]
    if len(found) > MAX_EXPANSIONS:
        raise TooManyWordsError
    return found
