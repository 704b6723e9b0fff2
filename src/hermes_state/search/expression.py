"""A query in the words of the index."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hermes_state.search.index_builder import facet

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes_state.engine.driver import sqlite3
    from hermes_state.search.query import Query, Term

MOST_EXPANSIONS: Final = 5000
SHORTEST_GRAM: Final = 3


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
    if len(piece) >= SHORTEST_GRAM:
        grams = {piece[at : at + 3] for at in range(len(piece) - 2)}
        sql = "SELECT text FROM term WHERE id IN (SELECT rowid FROM gram WHERE gram MATCH ?)"
        wanted = " AND ".join(f'"{gram}"' for gram in sorted(grams))
        rows = connection.execute(sql, (wanted,))
    else:
        rows = connection.execute("SELECT text FROM term WHERE instr(text, ?) > 0", (piece,))
    found = [word for (word,) in rows if (word.endswith(piece) if at_the_end else piece in word)]
    if len(found) > MOST_EXPANSIONS:
        raise TooManyWordsError
    return found
