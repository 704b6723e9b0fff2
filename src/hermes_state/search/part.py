"""Searching the history, for those who hold a SessionDB; loaded when it is first done."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hermes_state.part import StorePart
from hermes_state.sessions import lineage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes_state.search.candidates import Patience
    from hermes_state.search.searcher import Searcher


class SearchPart(StorePart):
    """Finding messages."""

    def search_messages(
        self,
        query: str,
        source_filter: Sequence[str] | None = None,
        exclude_sources: Sequence[str] | None = None,
        role_filter: Sequence[str] | None = None,
        limit: int = 20,
        offset: int = 0,
        sort: str | None = None,
        include_inactive: bool = False,
        *,
        session_id: str | None = None,
        since: float | None = None,
        until: float | None = None,
        with_tools: bool = False,
        inside_words: bool = False,
        patience: Patience | None = None,
    ) -> list[dict[str, Any]]:
        """Messages that answer *query*, with a snippet and the places of the hits in it.

        Words, "phrases", beginn*, one OR two, -not. `sort` is newest, oldest or rank;
        without it, newest. `inside_words` finds pieces of words. Tool calls and their
        results are looked at `with_tools`. Undone messages are left out unless asked
        for, those of trashed sessions always. `patience` bounds the time in which
        messages are read that the index does not cover.
        """
        from hermes_state.search.candidates import SearchFilter  # noqa: PLC0415 - see above
        from hermes_state.search.query import parse  # noqa: PLC0415 - see above

        rows: list[str] = []
        if session_id is not None:
            rows = self.engine.read(lambda reader: lineage.conversation_of(reader, session_id))
        wish = SearchFilter(
            parse(query, is_inside=inside_words),
            roles=tuple(role_filter or ()),
            sources=tuple(source_filter or ()),
            exclude_sources=tuple(exclude_sources or ()),
            session_ids=tuple(rows),
            since=since,
            until=until,
            with_tools=with_tools or "tool" in (role_filter or ()),
            include_inactive=include_inactive,
            oldest_first=sort == "oldest",
            patience=patience,
        )
        if wish.query.is_empty:
            return []
        return self._searcher().find(wish, by_rank=sort == "rank", limit=limit, offset=offset)

    def fill_search(self, seconds: float | None = None) -> bool:
        """Bring the search index up to date, for so long at most; whether it is."""
        return self._searcher().fill(seconds)

    def search_progress(self) -> tuple[int, int] | None:
        """How far the search index is: message ids done and in all; None when complete."""
        return self._searcher().progress()

    def rebuild_search(self) -> None:
        """Throw the search index away; it is filled again."""
        self.engine.search.remove()

    def _searcher(self) -> Searcher:
        from hermes_state.search.searcher import Searcher  # noqa: PLC0415 - see above

        return Searcher(self.engine)
