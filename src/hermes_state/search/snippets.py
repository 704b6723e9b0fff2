"""The surroundings of a hit, with the places of the hits in them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_state.search.tokens import composed, tokens

if TYPE_CHECKING:
    from hermes_state.search.query import Query

BEFORE_CHARACTERS: Final = 60
SNIPPET_CHARACTERS: Final = 200
OPENING: Final = ">>>"
CLOSING: Final = "<<<"
MORE: Final = "…"


class Snippet(NamedTuple):
    """A piece of a message, and where in it the hits are."""

    text: str
    offsets: tuple[tuple[int, int], ...]

    def marked(self) -> str:
        """The text with every hit >>>so<<<."""
        pieces, end = [], 0
        for start, stop in self.offsets:
            pieces += [self.text[end:start], OPENING, self.text[start:stop], CLOSING]
            end = stop
        return "".join([*pieces, self.text[end:]])


def snippet(content: str, query: Query) -> Snippet:
    """The piece of *content* around its first hit; its beginning if there is none."""
    text = composed(content)
    places = list(tokens(text))
    spans = query.spans([token.text for token in places])
    hits = _merged([(places[first].start, places[stop - 1].end) for first, stop in spans])
    begin = max(0, hits[0][0] - BEFORE_CHARACTERS) if hits else 0
    end = min(len(text), max(begin + SNIPPET_CHARACTERS, hits[0][1] if hits else 0))
    head = MORE if begin else ""
    tail = MORE if end < len(text) else ""
    shift = len(head) - begin
    inside = tuple((start + shift, min(stop, end) + shift) for start, stop in hits if start < end)
    piece = "".join(" " if character.isspace() else character for character in text[begin:end])
    return Snippet(head + piece + tail, inside)


def _merged(hits: list[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for start, stop in sorted(hits):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(stop, merged[-1][1]))
        else:
            merged.append((start, stop))
    return merged
