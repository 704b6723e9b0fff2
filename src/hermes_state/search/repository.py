"""Search methods of SessionDB; the search modules are loaded at first use."""

from __future__ import annotations

import functools
import itertools
from typing import TYPE_CHECKING, NamedTuple

from hermes_state.repository import Repository
from hermes_state.search.hits import NOTHING, SearchAnswer
from hermes_state.sessions import lineage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes_state.search.candidates import ScanDeadline, SearchFilter
    from hermes_state.search.groups import GroupedHits
    from hermes_state.search.hits import FoundMessage
    from hermes_state.search.ladder import Found
    from hermes_state.search.meaning import MeaningIndex
    from hermes_state.search.postgres import DatabaseSearcher
    from hermes_state.search.searcher import Searcher
    from hermes_state.search.similar import SimilarConversation
    from hermes_state.search.titles import TitleList
    from hermes_state.search.updater import IndexUpdater


class SearchOptions(NamedTuple):
    """Filters and order of a search, and the page of its results."""

    sources: tuple[str, ...] = ()
    exclude_sources: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()
    session_id: str | None = None
    allowed_ids: frozenset[str] | None = None
    since: float | None = None
    until: float | None = None
    with_tools: bool = False
    include_inactive: bool = False
    inside_words: bool = False
    is_exact: bool = False  # only messages that match the query as it is written
    by_meaning: bool = False  # also if the words are found
    sort: str | None = None  # newest, oldest or rank; None stands for what suits the query
    is_typing: bool = False  # the last word may be incomplete
    patience: ScanDeadline | None = None
    limit: int = 20
    offset: int = 0


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
        """Messages that match *query* as it is written: all words, in any order.

        Words, "phrases", prefix*, one OR two, -not. Each result has a snippet and the positions
        of the matches in it. `sort` is newest (the default), oldest or rank. `inside_words`
        matches parts of words. `with_tools` includes tool calls and their results. Undone
        messages are excluded by default, messages of trashed sessions always. `patience` limits
        the time spent on messages that are not indexed yet.
        """
        options = SearchOptions(
            sources=tuple(source_filter or ()),
            exclude_sources=tuple(exclude_sources or ()),
            roles=tuple(role_filter or ()),
            session_id=session_id,
            since=since,
            until=until,
            with_tools=with_tools,
            include_inactive=include_inactive,
            inside_words=inside_words,
            is_exact=True,
            sort=sort,
            patience=patience,
            limit=limit,
            offset=offset,
        )
        return self.answer(query, options).hits

    def answer(self, query: str, options: SearchOptions | None = None) -> SearchAnswer:
        """Messages that answer *query*, and how they were found.

        A query without operators is answered in steps, down to messages with any of its words.
        """
        options = options or SearchOptions()
        count = -1 if options.limit < 0 else options.offset + options.limit
        found = self._found(query, options, count)
        if found is None:
            return NOTHING
        page = itertools.islice(found.candidates, options.offset, None if count < 0 else count)
        shown = self._filter(query, options)._replace(query=found.query)
        hits = self._searcher().hits(shown, list(page))
        return SearchAnswer(hits, found.sort, found.step, found.words, found.corrections)

    def _found(self, query: str, options: SearchOptions, count: int) -> Found | None:
        from hermes_state.search import ladder, time_words  # noqa: PLC0415 - see above

        search_filter = self._filter(query, options)
        if search_filter.query.is_empty:
            return None
        asked = ladder.Asked(
            query,
            options.sort,
            time_words.period_of(query, self.clock.now()),
            is_typing=options.is_typing,
            is_exact=options.is_exact or options.inside_words,
            by_meaning=options.by_meaning,
        )
        return ladder.find(self._searcher(), asked, search_filter, count)

    def ids_in_conversation(self, session_id: str, query: str, limit: int = 1000) -> list[int]:
        """The messages of a conversation that match, oldest first; parts of words match, too.

        Tool calls, their results and undone messages are included.
        """
        options = SearchOptions(
            session_id=session_id, inside_words=True, with_tools=True, include_inactive=True,
            sort="oldest",
        )  # fmt: skip
        search_filter = self._filter(query, options)
        if search_filter.query.is_empty:
            return []
        matches = self._searcher().matches(search_filter, limit)
        return [candidate.row.id for candidate in itertools.islice(matches, limit)]

    def conversations(self, query: str, options: SearchOptions) -> GroupedHits:
        """Conversations that answer *query*, by title or by messages, with their best hits."""
        from hermes_state.search import groups  # noqa: PLC0415 - see above

        found = self._found(query, options, groups.MAX_COUNTED_HITS + 1)
        if found is None:
            return groups.NO_HITS
        search_filter = self._filter(query, options)
        return groups.find(
            self.engine, self._searcher(), search_filter, found, options, self._titles
        )

    def similar(
        self, session_id: str, limit: int = 5, patience: ScanDeadline | None = None
    ) -> list[SimilarConversation]:
        """Conversations with the words that set this one apart, without its copies and branches."""
        from hermes_state.search import similar  # noqa: PLC0415 - see above

        search_filter = self._filter("", SearchOptions(patience=patience))
        return similar.find(self.engine, self._searcher(), search_filter, session_id, limit)

    def titles(self, query: str, limit: int) -> list[str]:
        """Conversations whose title or first message contains the words, latest first."""
        from hermes_state.search.query import parse  # noqa: PLC0415 - see above

        parsed = parse(query, is_inside=True)
        return self._titles.find(self.engine, parsed, limit, with_previews=True)

    @functools.cached_property
    def _titles(self) -> TitleList:
        from hermes_state.search.titles import TitleList  # noqa: PLC0415 - see above

        return TitleList()

    def _filter(self, query: str, options: SearchOptions) -> SearchFilter:
        from hermes_state.search.candidates import SearchFilter  # noqa: PLC0415 - see above
        from hermes_state.search.query import parse  # noqa: PLC0415 - see above

        session_ids: list[str] = []
        if options.session_id is not None:
            session_id = options.session_id
            session_ids = self.engine.read(
                lambda reader: lineage.conversation_of(reader, session_id)
            )
        return SearchFilter(
            parse(query, is_inside=options.inside_words),
            roles=options.roles,
            sources=options.sources,
            exclude_sources=options.exclude_sources,
            session_ids=tuple(session_ids),
            allowed_ids=options.allowed_ids,
            since=options.since,
            until=options.until,
            with_tools=options.with_tools or "tool" in options.roles,
            include_inactive=options.include_inactive,
            oldest_first=options.sort == "oldest",
            patience=options.patience,
        )

    def fill(self, seconds: float | None = None, *, with_tools: bool = False) -> bool:
        """Update the search index, for at most this time; returns whether it is complete.

        The index of tool text is filled only if *with_tools*.
        """
        return self._searcher().fill(seconds, with_tools=with_tools)

    @functools.cached_property
    def updater(self) -> IndexUpdater:
        """Fills the index in the background, once it is started."""
        from hermes_state.calls.repository import CallRepository  # noqa: PLC0415 - see above
        from hermes_state.search.updater import IndexUpdater  # noqa: PLC0415 - see above

        return IndexUpdater(self, CallRepository(self.context))

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

            return DatabaseSearcher(self.engine, lambda: self.meaning)
        from hermes_state.search.searcher import Searcher  # noqa: PLC0415 - see above

        return Searcher(self.engine, lambda: self.meaning)

    @functools.cached_property
    def meaning(self) -> MeaningIndex:
        """Vectors of messages, for a model that is installed or an endpoint that is named."""
        from hermes_state.search.meaning import MeaningIndex  # noqa: PLC0415 - see above

        return MeaningIndex(self.engine, self._searcher())
