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
from hermes_state.search.tokens import words

if TYPE_CHECKING:
    from collections.abc import Sequence

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
