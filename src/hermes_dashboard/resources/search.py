"""Full-text search of messages, with marked matches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final, Literal

from fastapi import Query
from pydantic import BaseModel, Field

from hermes_dashboard.models.session_query import SearchQuery  # noqa: TC001 - FastAPI reads it
from hermes_dashboard.models.text import MessageId, ProgressView, Text, Timestamp, problems
from hermes_dashboard.resources.sessions import SessionItem, item_of
from hermes_dashboard.routes import ResourceRouter
from hermes_state.search.candidates import ScanDeadline
from hermes_state.search.repository import SearchOptions

if TYPE_CHECKING:
    from hermes_dashboard.context import DashboardContext
    from hermes_state.search.groups import ConversationHits, GroupedHits
    from hermes_state.search.hits import FoundMessage, SearchAnswer
    from hermes_state.store import SessionDB

UNINDEXED_READ_SECONDS: Final = 1.5  # for messages outside the index, per search

SearchText = Annotated[str, Query(max_length=500)]
Names = Annotated[list[str], Query(max_length=50)]


class SearchHit(BaseModel):
    """A search result; `marks` are positions in the snippet, in characters."""

    session_id: Text
    session_title: Text | None
    source: Text
    message_id: MessageId
    role: Text
    timestamp: float
    snippet: Text
    marks: list[tuple[int, int]]
    words_found: int = Field(description="Words of a question that it contains, if it was ranked.")


class CorrectionView(BaseModel):
    """A word that occurs nowhere, and the one that was searched for instead."""

    written: str
    used: str


class HowFound(BaseModel):
    """How the results of a search were found."""

    sort: str = Field(description="The order of the results: newest, oldest or rank.")
    step: str = Field(description="The step that found them: as written, …, any word.")
    words: list[str] = Field(description="The content words, if not all words had to occur.")
    corrections: list[CorrectionView]


class Hits(BaseModel):
    """A page of results; `progress` while the index is being built."""

    items: list[SearchHit]
    found: HowFound
    has_more: bool
    is_partial: bool
    progress: ProgressView | None


class ConversationHitsView(BaseModel):
    """A conversation that matches, with its best or latest hits."""

    session: SessionItem
    is_title_match: bool
    hit_count: int
    hits: list[SearchHit] = Field(description="The first three.")


class GroupedHitsView(BaseModel):
    """A page of conversations, and the numbers of all results."""

    items: list[ConversationHitsView]
    found: HowFound
    hit_count: int
    conversation_count: int
    is_capped: bool = Field(description="There are more than the counted 1,000 hits.")
    has_more: bool
    is_partial: bool
    progress: ProgressView | None


def router(context: DashboardContext) -> ResourceRouter:
    """The route of the search."""
    db = context.db
    routes = ResourceRouter("/api/search", tag="sessions")

    @routes.get("", responses=problems(400, 503))
    def search(
        q: SearchText,
        limit: Annotated[int, Query(ge=1, le=100)] = 30,
        offset: Annotated[int, Query(ge=0, le=10_000)] = 0,
        source: Names = [],  # noqa: B006 - FastAPI copies it
        role: Names = [],  # noqa: B006
        since: Timestamp | None = None,
        until: Timestamp | None = None,
        with_tools: bool = False,
        sort: Literal["newest", "oldest", "rank"] | None = None,
        is_typing: bool = False,
    ) -> Hits:
        """Messages that answer the query: by rank, or one or two words newest first.

        Syntax: words, "phrases", prefix*, one OR two, -not. With `is_typing` the last word may
        be incomplete. While the index is being built,
        `progress` is set and the newest unindexed messages are read directly. Tool output
        outside the index is read for a limited time; `is_partial` is true if some was skipped.
        """
        patience = ScanDeadline(UNINDEXED_READ_SECONDS)
        options = SearchOptions(
            sources=tuple(source),
            roles=tuple(role),
            limit=limit + 1,
            offset=offset,
            since=since,
            until=until,
            with_tools=with_tools,
            sort=sort,
            is_typing=is_typing,
            patience=patience,
        )
        answer = db.search.answer(q, options)
        reads_tools = with_tools or "tool" in role
        return Hits(
            items=_shown(db, answer.hits[:limit]),
            found=_how_found(answer),
            has_more=len(answer.hits) > limit,
            is_partial=patience.has_ended,
            progress=read_progress(with_tools=reads_tools),
        )

    @routes.get("/conversations", responses=problems(400, 503))
    def search_conversations(query: Annotated[SearchQuery, Query()]) -> GroupedHitsView:
        """Conversations that match by title or by messages, with their best or latest hits.

        Those whose title matches come first, then by their first hit. All filters of lists apply.
        At most 1,000 hits are counted.
        """
        active = context.analysis.sessions_with(query) if query.needs_activity else None
        page_filter = query.conversation_filter(active)
        patience = ScanDeadline(UNINDEXED_READ_SECONDS)
        options = SearchOptions(
            sources=tuple(query.source),
            allowed_ids=None if page_filter is None else db.pages.rows_of(page_filter),
            since=query.since,
            until=query.until,
            with_tools=query.with_tools,
            sort=query.sort,
            is_typing=query.is_typing,
            patience=patience,
            limit=query.limit,
            offset=query.offset,
        )
        found = db.search.conversations(query.q, options)
        return GroupedHitsView(
            items=_groups(db, found.items),
            found=_how_found(found),
            hit_count=found.hit_count,
            conversation_count=found.conversation_count,
            is_capped=found.is_capped,
            has_more=found.conversation_count > query.offset + query.limit,
            is_partial=patience.has_ended,
            progress=read_progress(with_tools=query.with_tools),
        )

    @routes.get("/titles", responses=problems(400, 503))
    def search_titles(
        q: SearchText, limit: Annotated[int, Query(ge=1, le=50)] = 10
    ) -> list[SessionItem]:
        """Conversations whose title or first message contains the words, latest first."""
        return [item_of(row) for row in db.pages.items(db.search.titles(q, limit))]

    def read_progress(*, with_tools: bool) -> ProgressView | None:
        progress = db.search.progress(with_tools=with_tools)
        if progress is None:
            return None
        db.search.updater.start(with_tools=with_tools)
        return ProgressView(done=progress[0], total=progress[1])

    return routes


def _how_found(found: SearchAnswer | GroupedHits) -> HowFound:
    corrections = [CorrectionView(**each._asdict()) for each in found.corrections]
    return HowFound(
        sort=found.sort, step=found.step, words=list(found.words), corrections=corrections
    )


def _groups(db: SessionDB, groups: list[ConversationHits]) -> list[ConversationHitsView]:
    sessions = {row.id: row for row in db.pages.items([group.session_id for group in groups])}
    return [
        ConversationHitsView(
            session=item_of(sessions[group.session_id]),
            is_title_match=group.is_title_match,
            hit_count=group.hit_count,
            hits=_shown(db, group.hits),
        )
        for group in groups
        if group.session_id in sessions
    ]


def _shown(db: SessionDB, hits: list[FoundMessage]) -> list[SearchHit]:
    sessions = {hit.session_id for hit in hits}
    titles = {session: db.titles.get_session_title(session) for session in sessions}
    return [
        SearchHit(
            **hit._replace(snippet=hit.snippet_text)._asdict(),
            session_title=titles[hit.session_id],
            message_id=hit.id,
            marks=list(hit.offsets),
        )
        for hit in hits
    ]
