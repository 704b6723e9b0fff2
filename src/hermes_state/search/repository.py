"""Search methods of SessionDB; the search modules are loaded at first use."""

from __future__ import annotations

import functools
import itertools
from typing import TYPE_CHECKING

from hermes_state.repository import Repository
from hermes_state.sessions import lineage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes_state.search.candidates import ScanDeadline, SearchFilter
    from hermes_state.search.groups import GroupedHits, GroupOptions
    from hermes_state.search.hits import FoundMessage
    from hermes_state.search.postgres import DatabaseSearcher
    from hermes_state.search.searcher import Searcher
    from hermes_state.search.titles import TitleList


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
        patience: ScanDeadline | None = None,
    ) -> list[FoundMessage]:
        """Messages that match *query*, with a snippet and the positions of the matches in it.

        Words, "phrases", prefix*, one OR two, -not. `sort` is newest (the default), oldest
        or rank. `inside_words` matches parts of words. `with_tools` includes tool calls and
        their results. Undone messages are excluded by default, messages of trashed sessions
        always. `patience` limits the time spent on messages that are not indexed yet.
        """
        search_filter = self._filter(query, session_id, inside_words=inside_words)._replace(
            roles=tuple(role_filter or ()),
            sources=tuple(source_filter or ()),
            exclude_sources=tuple(exclude_sources or ()),
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

    def ids_in_conversation(self, session_id: str, query: str, limit: int = 1000) -> list[int]:
        """The messages of a conversation that match, oldest first; parts of words match, too.

        Tool calls, their results and undone messages are included.
        """
        search_filter = self._filter(query, session_id, inside_words=True)._replace(
            with_tools=True, include_inactive=True, oldest_first=True
        )
        if search_filter.query.is_empty:
            return []
        matches = self._searcher().matches(search_filter, limit)
        return [candidate.row.id for candidate in itertools.islice(matches, limit)]

    def conversations(self, query: str, options: GroupOptions) -> GroupedHits:
        """Conversations that match, by title or by messages, with their latest hits."""
        from hermes_state.search import groups  # noqa: PLC0415 - see above

        search_filter = self._filter(query)._replace(
            sources=options.sources,
            allowed_ids=options.allowed_ids,
            since=options.since,
            until=options.until,
            with_tools=options.with_tools,
            patience=options.patience,
        )
        if search_filter.query.is_empty:
            return groups.NO_HITS
        return groups.find(self.engine, self._searcher(), search_filter, options, self._titles)

    def titles(self, query: str, limit: int) -> list[str]:
        """Conversations whose title or first message contains the words, latest first."""
        from hermes_state.search.query import parse  # noqa: PLC0415 - see above

        parsed = parse(query, is_inside=True)
        return self._titles.find(self.engine, parsed, limit, with_previews=True)

    @functools.cached_property
    def _titles(self) -> TitleList:
        from hermes_state.search.titles import TitleList  # noqa: PLC0415 - see above

        return TitleList()

    def _filter(
        self, query: str, session_id: str | None = None, *, inside_words: bool = False
    ) -> SearchFilter:
        from hermes_state.search.candidates import SearchFilter  # noqa: PLC0415 - see above
        from hermes_state.search.query import parse  # noqa: PLC0415 - see above

        session_ids: list[str] = []
        if session_id is not None:
            session_ids = self.engine.read(
                lambda reader: lineage.conversation_of(reader, session_id)
            )
        parsed = parse(query, is_inside=inside_words)
        return SearchFilter(parsed, session_ids=tuple(session_ids))

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
