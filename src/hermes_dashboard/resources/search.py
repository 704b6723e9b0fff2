"""Full-text search of messages, with marked matches."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Annotated, Final, Literal, TypedDict

from fastapi import Query
from pydantic import BaseModel, Field

from hermes_dashboard.caches import CachedValue
from hermes_dashboard.models.session_query import SearchQuery  # noqa: TC001 - FastAPI reads it
from hermes_dashboard.models.text import (
    Identifier,
    MessageId,
    ProgressView,
    Text,
    Timestamp,
    View,
    problems,
)
from hermes_dashboard.resources.sessions import SessionItem, item_of
from hermes_dashboard.routes import ResourceRouter
from hermes_state.search.candidates import ScanDeadline
from hermes_state.search.index_builder import MESSAGE_ROLES
from hermes_state.search.repository import SearchOptions

if TYPE_CHECKING:
    from hermes_dashboard.context import DashboardContext
    from hermes_state.search.groups import ConversationHits, GroupedHits
    from hermes_state.search.hits import FoundMessage, HitContext, SearchAnswer
    from hermes_state.store import SessionDB

UNINDEXED_READ_SECONDS: Final = 1.5  # for messages outside the index, per search
KEEP_SECONDS: Final = 5.0  # the number of vectors; an endpoint that fails is asked that often

SearchText = Annotated[str, Query(max_length=500)]
Names = Annotated[list[str], Query(max_length=50)]


class Neighbour(BaseModel):
    """The beginning of the message before or after a search result."""

    role: Text
    text: Text


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
    before: Neighbour | None
    after: Neighbour | None
    words_found: int = Field(description="Words of a question that it contains, if it was ranked.")


class CorrectionView(View):
    """A word that occurs nowhere, and the one that was searched for instead."""

    written: str
    used: str


class HowFound(BaseModel):
    """How the results of a search were found."""

    sort: str = Field(description="The order of the results: newest, oldest or rank.")
    step: str = Field(description="The step that found them: as written, …, any word.")
    words: list[str] = Field(description="The content words, if not all words had to occur.")
    corrections: list[CorrectionView]


class IndexState(BaseModel):
    """What the results are missing while the indexes are being built."""

    is_partial: bool = Field(description="Some messages that are not indexed were not read.")
    progress: ProgressView | None = Field(description="Indexed messages, until all are.")
    vectors: ProgressView | None = Field(
        description="Messages with a vector for the search by meaning, until all have one."
    )
    has_meaning: bool = Field(description="Search by meaning is set up.")


class Progresses(TypedDict):
    """The part of `IndexState` that does not depend on the search."""

    progress: ProgressView | None
    vectors: ProgressView | None
    has_meaning: bool


class Hits(IndexState):
    """A page of results."""

    items: list[SearchHit]
    found: HowFound
    has_more: bool


class ConversationHitsView(BaseModel):
    """A conversation that matches, with its best or latest hits."""

    session: SessionItem
    is_title_match: bool
    hit_count: int
    hits: list[SearchHit] = Field(description="The first three.")


class DayHitsView(View):
    """The number of hits of a day, in the server's time zone."""

    day: date
    hits: int


class GroupedHitsView(IndexState):
    """A page of conversations, and the numbers of all results."""

    items: list[ConversationHitsView]
    found: HowFound
    hit_count: int
    conversation_count: int
    is_capped: bool = Field(description="There are more than the counted 1,000 hits.")
    has_more: bool
    days: list[DayHitsView] = Field(description="Days with counted hits, in order.")


class SimilarConversationView(BaseModel):
    """A conversation about the same, and its best message."""

    session: SessionItem
    words: list[Text] = Field(description="Characteristic words of both, the rarest first.")
    hit: SearchHit


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
            **read_progress(with_tools=reads_tools),
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
            roles=tuple(query.role),
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
            days=[DayHitsView.model_validate(each) for each in found.days],
            is_partial=patience.has_ended,
            **read_progress(with_tools=query.with_tools or "tool" in query.role),
        )

    @routes.get("/similar/{session_id}", responses=problems(400, 404, 409, 503))
    def show_similar(
        session_id: Identifier, limit: Annotated[int, Query(ge=1, le=20)] = 5
    ) -> list[SimilarConversationView]:
        """Conversations with the same rare words, most similar first.

        The conversation itself, its branches, tasks and copies are excluded.
        """
        patience = ScanDeadline(UNINDEXED_READ_SECONDS)
        found = db.search.similar(db.lookup.resolve(session_id), limit, patience)
        sessions = {row.id: row for row in db.pages.items([each.session_id for each in found])}
        return [
            SimilarConversationView(
                session=item_of(sessions[each.session_id]),
                words=list(each.words),
                hit=_shown(db, [each.hit])[0],
            )
            for each in found
            if each.session_id in sessions
        ]

    def count_vectors() -> tuple[int, int] | None:
        progress = db.search.meaning.progress()
        if progress is not None:
            db.search.updater.start()
        return progress

    vectors = CachedValue(count_vectors, KEEP_SECONDS)

    def read_progress(*, with_tools: bool) -> Progresses:
        """How far the indexes are; what is missing is filled in the background."""
        indexed = db.search.progress(with_tools=with_tools)
        if indexed is not None:
            db.search.updater.start(with_tools=with_tools)
        return {
            "progress": _progress(indexed),
            "vectors": _progress(vectors.get()),
            "has_meaning": bool(db.search.meaning.name),
        }

    return routes


def _progress(pair: tuple[int, int] | None) -> ProgressView | None:
    return None if pair is None else ProgressView(done=pair[0], total=pair[1])


def _how_found(found: SearchAnswer | GroupedHits) -> HowFound:
    corrections = [CorrectionView.model_validate(each) for each in found.corrections]
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
            before=_neighbour(hit.context[: hit.place]),
            after=_neighbour(hit.context[hit.place + 1 :]),
        )
        for hit in hits
    ]


def _neighbour(context: list[HitContext]) -> Neighbour | None:
    """What was said before or after a result; tool output and empty messages are not shown."""
    said = [each for each in context if each.role in MESSAGE_ROLES and each.content.strip()]
    return Neighbour(role=said[0].role, text=said[0].content.strip()) if said else None
