"""Conversation lists, facets for filters, and single conversations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from fastapi import Query
from pydantic import BaseModel, BeforeValidator, Field

from hermes_core.command_name import terminal_command
from hermes_core.errors import SessionNotFoundError
from hermes_dashboard.models.session_query import PagedQuery, cursor_of, position_of
from hermes_dashboard.models.text import Identifier, Text, problems
from hermes_dashboard.routes import ResourceRouter
from hermes_state.sessions.sort_values import TOOL_ERRORS

if TYPE_CHECKING:
    from hermes_dashboard.context import DashboardContext
    from hermes_state.sessions.records import PagedSession
    from hermes_state.store import SessionDB

Flag = Annotated[bool, BeforeValidator(bool)]  # another program may have stored any value


class SessionItem(BaseModel):
    """A conversation in a list; one that was continued is shown as its last row."""

    id: Text
    title: Text | None
    preview: Text
    source: Text
    model: Text | None
    started_at: float
    last_active: float
    ended_at: float | None
    end_reason: Text | None
    message_count: int
    tool_call_count: int
    tool_errors: int | None = Field(description="Failed tool calls; null until counted.")
    input_tokens: int
    output_tokens: int
    cost_usd: float | None
    cwd: Text | None
    git_branch: Text | None
    pinned: Flag
    archived: Flag
    unread: bool
    tags: list[Text]
    kind: str
    parent_id: Text | None
    is_open: bool
    is_running: bool
    trashed_at: float | None


class SessionDetail(SessionItem):
    """All data of a conversation except its messages."""

    root_id: Text
    system_prompt: Text | None
    cache_read_tokens: int
    cache_write_tokens: int
    reasoning_tokens: int
    api_call_count: int
    session_key: Text | None
    resume_command: Text
    rows: list[Text]


class SessionPageView(BaseModel):
    """A page of a list, and the cursor of the next one."""

    items: list[SessionItem]
    next: str | None
    total: int | None


class FacetCount(BaseModel):
    """A name and its number of conversations."""

    name: Text
    count: int


class StateCounts(BaseModel):
    """Number of conversations by state."""

    active: int
    archived: int
    trash: int


class FacetsView(BaseModel):
    """Values for filters."""

    sources: list[FacetCount]
    models: list[FacetCount]
    tags: list[FacetCount]
    folders: list[FacetCount] = Field(
        description="Folders of repositories, else working folders; the 200 most frequent."
    )
    branches: list[FacetCount] = Field(description="Git branches; the 200 most frequent.")
    counts: StateCounts


class Relative(BaseModel):
    """One session of a family."""

    id: Text
    title: Text | None
    preview: Text
    kind: str
    parent_id: Text | None
    started_at: float
    last_active: float
    message_count: int
    is_current: bool
    trashed_at: float | None


class SessionFamily(BaseModel):
    """All sessions with the same root, parents first."""

    nodes: list[Relative]


def item_of(row: PagedSession) -> SessionItem:
    """A row of the store as a list item."""
    session = row.session
    cost = session.actual_cost_usd
    return SessionItem(
        **session._asdict(),
        **row._asdict(),
        cost_usd=session.estimated_cost_usd if cost is None else cost,
        parent_id=session.parent_session_id,
        is_open=session.ended_at is None,
    )


def router(context: DashboardContext) -> ResourceRouter:
    """The read-only routes below /api/sessions."""
    routes = ResourceRouter("/api/sessions", tag="sessions")
    db = context.db

    @routes.get("", responses=problems(400, 503))
    def list_sessions(query: Annotated[PagedQuery, Query()]) -> SessionPageView:
        """A page of conversations, by default the most recently active first.

        `next` is the cursor of the next page; only the first page has `total`.
        """
        active = context.analysis.sessions_with(query) if query.needs_activity else None
        page_filter, order = query.to_filter(active), query.page_order
        after = None if query.cursor is None else position_of(query.cursor, order)
        if query.with_tool_errors or query.sort == TOOL_ERRORS:
            context.tool_errors.update()
        page = db.pages.page(page_filter, query.limit, after, order)
        return SessionPageView(
            items=[item_of(row) for row in page.rows],
            next=None if page.next is None else cursor_of(page.next, order),
            total=None if after else db.pages.count(page_filter),
        )

    @routes.get("/facets", responses=problems(503))
    def list_facets() -> FacetsView:
        """Values to filter by, with the number of conversations of each."""
        facets = db.facets.facets()
        return FacetsView(
            sources=_facet_counts(facets.sources),
            models=_facet_counts(facets.models),
            tags=_facet_counts(facets.tags),
            folders=_facet_counts(facets.folders),
            branches=_facet_counts(facets.branches),
            counts=StateCounts(active=facets.active, archived=facets.archived, trash=facets.trash),
        )

    @routes.get("/{session_id}", responses=problems(400, 404, 409, 503))
    def show_session(session_id: Identifier) -> SessionDetail:
        """One conversation, by ID, the beginning of its ID, or title."""
        return detail_of(db, db.lookup.resolve(session_id))

    @routes.get("/{session_id}/tree", responses=problems(400, 404, 409, 503))
    def show_family(session_id: Identifier) -> SessionFamily:
        """All sessions with the same root: branches, delegated tasks."""
        resolved = db.lookup.resolve(session_id)
        rows = db.facets.family(resolved)
        nodes = [Relative(**row._asdict(), is_current=row.id == resolved) for row in rows]
        return SessionFamily(nodes=nodes)

    return routes


def _facet_counts(counts: dict[str, int]) -> list[FacetCount]:
    return [FacetCount(name=name, count=number) for name, number in counts.items()]


def session_item(db: SessionDB, session_id: str) -> SessionItem:
    """A conversation as a list item."""
    return item_of(_row(db, session_id))


def _row(db: SessionDB, session_id: str) -> PagedSession:
    rows = db.pages.items([session_id])
    if not rows:
        raise SessionNotFoundError(f"session not found: {session_id}")
    return rows[0]


def detail_of(db: SessionDB, session_id: str) -> SessionDetail:
    """All data of a conversation except its messages."""
    row = _row(db, session_id)
    session = db.sessions.find(session_id)
    return SessionDetail.model_validate(
        {
            **row.session._asdict(),
            **dict(item_of(row)),
            "root_id": row.root_id,
            "system_prompt": None if session is None else session.system_prompt,
            "resume_command": terminal_command("chat", "--resume", session_id),
            "rows": db.lookup.conversation_rows(session_id),
        }
    )
