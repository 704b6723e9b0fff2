"""Search methods of SessionDB; the search modules are loaded at first use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_state.repository import Repository
from hermes_state.sessions import lineage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes_state.search.candidates import Patience
    from hermes_state.search.hits import FoundMessage
    from hermes_state.search.postgres import DatabaseSearcher
    from hermes_state.search.searcher import Searcher


class SearchRepository(Repository):
    """Full-text search of messages."""

    def find(
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
    ) -> list[FoundMessage]:
        """Messages that match *query*, with a snippet and the positions of the matches in it.

        Words, "phrases", prefix*, one OR two, -not. `sort` is newest (the default), oldest
        or rank. `inside_words` matches parts of words. `with_tools` includes tool calls and
        their results. Undone messages are excluded by default, messages of trashed sessions
        always. `patience` limits the time spent on messages that are not indexed yet.
        """
        from hermes_state.search.candidates import SearchFilter  # noqa: PLC0415 - see above
        from hermes_state.search.query import parse  # noqa: PLC0415 - see above

        session_ids: list[str] = []
        if session_id is not None:
            session_ids = self.engine.read(
                lambda reader: lineage.conversation_of(reader, session_id)
            )
        search_filter = SearchFilter(
            parse(query, is_inside=inside_words),
            roles=tuple(role_filter or ()),
            sources=tuple(source_filter or ()),
            exclude_sources=tuple(exclude_sources or ()),
            session_ids=tuple(session_ids),
            since=since,
            until=until,
            with_tools=with_tools or "tool" in (role_filter or ()),
            include_inactive=include_inactive,
            oldest_first=sort == "oldest",
            patience=patience,
        )
        if search_filter.query.is_empty:
            return []
        return self._searcher().find(
            search_filter, by_rank=sort == "rank", limit=limit, offset=offset
        )

    def fill(self, seconds: float | None = None, *, with_tools: bool = False) -> bool:
        """Update the search index, for at most this time; returns whether it is complete.

        The index of tool text is filled only if *with_tools*.
        """
        return self._searcher().fill(seconds, with_tools=with_tools)

    def progress(self, *, with_tools: bool = False) -> tuple[int, int] | None:
        """Progress of the search index: indexed message IDs and total; None when complete."""
        return self._searcher().progress(with_tools=with_tools)

    def rebuild(self) -> None:
        """Discard the search index; it is rebuilt."""
        if self.engine.database.is_file:
            self.engine.search.remove()
        else:
            self.engine.write(lambda tx: tx.run("SELECT hermes_rebuild_search()"))

    def _searcher(self) -> Searcher | DatabaseSearcher:
        if not self.engine.database.is_file:
            from hermes_state.search.postgres import DatabaseSearcher  # noqa: PLC0415 - see above

            return DatabaseSearcher(self.engine)
        from hermes_state.search.searcher import Searcher  # noqa: PLC0415 - see above

        return Searcher(self.engine)
