"""Conversations by title: the folded titles of a history, read again after a change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_state.engine.dialect import DIALECT
from hermes_state.search.tokens import composed, fold

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hermes_state.engine.engine import Engine
    from hermes_state.engine.transaction import Reader
    from hermes_state.search.query import Query

# The latest conversation first.
LISTED_TITLES: Final = f"""
    SELECT i.session_id, coalesce(s.title, ''), coalesce(i.preview, '')
    FROM hermes_session_index i {DIALECT.join_in_order} sessions s ON s.id = i.session_id
    WHERE i.shown = 1 ORDER BY i.last_activity DESC, i.session_id DESC
"""  # noqa: S608 - own names


class FoldedTitle(NamedTuple):
    """A conversation, and its title and first message as searches compare them."""

    session_id: str
    title: str
    preview: str


class TitleList:
    """The titles of the listed conversations at a version of the history."""

    def __init__(self) -> None:
        self._latest: tuple[int, list[FoldedTitle]] | None = None

    def find(
        self, engine: Engine, query: Query, limit: int, *, with_previews: bool = False
    ) -> list[str]:
        """Conversations whose title matches, latest first."""
        found: list[str] = []
        for title in self._titles(engine):
            texts = (title.title, title.preview) if with_previews else (title.title,)
            if any(text and query.matches_folded(text) for text in texts):
                found.append(title.session_id)
                if len(found) == limit:
                    break
        return found

    def _titles(self, engine: Engine) -> list[FoldedTitle]:
        version = engine.version()
        if self._latest is None or self._latest[0] != version:
            self._latest = version, engine.read(lambda reader: list(_read(reader)))
        return self._latest[1]


def _read(reader: Reader) -> Iterator[FoldedTitle]:
    if not reader.columns.has_own_tables:
        return
    for session_id, title, preview in reader.rows(LISTED_TITLES):
        yield FoldedTitle(session_id, fold(composed(title)), fold(composed(preview)))
