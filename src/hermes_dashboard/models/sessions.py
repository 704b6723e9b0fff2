"""Models of conversations, messages and search results."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import BaseModel, Field, StringConstraints

from hermes_dashboard.models.text import Identifier, MessageId, Text

if TYPE_CHECKING:
    from hermes_state.sessions.records import PagedSession

Tag = Annotated[str, StringConstraints(max_length=80)]


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
    pinned: bool
    archived: bool
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


class ToolCallView(BaseModel):
    """A tool call; the arguments are JSON text."""

    id: Text
    name: Text
    arguments: Text


class AnswerUsageView(BaseModel):
    """What an answer took."""

    model: Text
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    reasoning_tokens: int
    cost_usd: float | None = Field(description="Null if no price is known.")
    cost_status: Text = Field(description="actual, estimated, included or unknown")
    seconds: float


class MessageView(BaseModel):
    """One message of a conversation."""

    id: int
    session_id: Text
    role: Text
    text: Text
    reasoning: Text | None
    tool_calls: list[ToolCallView]
    tool_call_id: Text | None
    tool_name: Text | None
    is_failure: bool | None
    timestamp: float
    finish_reason: Text | None
    token_count: int | None
    usage: AnswerUsageView | None = Field(
        description="Of answers since this is recorded; that of a copy is its origin's."
    )
    state: Literal["active", "undone", "compacted"]
    images: list[Text]


class MessagePageView(BaseModel):
    """Messages in order, and whether there are more on either side."""

    items: list[MessageView]
    has_before: bool
    has_after: bool


class SessionChange(BaseModel):
    """Fields to change; omitted fields are unchanged."""

    title: Annotated[str, StringConstraints(max_length=1000)] | None = None
    pinned: bool | None = None
    archived: bool | None = None
    tags: Annotated[list[Tag], Field(max_length=50)] | None = None
    is_read: Literal[True] | None = None

    def has_field(self, name: str) -> bool:
        """Whether the request has this field."""
        return name in self.model_fields_set


class BulkChange(BaseModel):
    """One change of many conversations."""

    ids: Annotated[list[Identifier], Field(max_length=1000)]
    action: Literal["pin", "unpin", "archive", "unarchive", "trash", "restore", "tag", "untag"]
    tag: Tag | None = None


class NotDone(BaseModel):
    """A conversation that was not changed, with the reason."""

    id: Text
    detail: Text


class BulkReport(BaseModel):
    """Result of a bulk change."""

    done: list[Text] = Field(description="Conversations in the requested state.")
    changed: list[Text] = Field(description="Those of them that were changed.")
    failed: list[NotDone]


class Trashed(BaseModel):
    """Sessions moved to the trash."""

    trashed: list[Text]


class Purged(BaseModel):
    """Number of permanently deleted sessions."""

    purged: int


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


class ProgressView(BaseModel):
    """Progress of an operation."""

    done: int
    total: int


class Hits(BaseModel):
    """A page of results; `progress` while the index is being built."""

    items: list[SearchHit]
    has_more: bool
    is_partial: bool
    progress: ProgressView | None


class ConversationHitsView(BaseModel):
    """A conversation that matches, with its latest hits."""

    session: SessionItem
    is_title_match: bool
    hit_count: int
    hits: list[SearchHit] = Field(description="The latest three.")


class GroupedHitsView(BaseModel):
    """A page of conversations, and the numbers of all results."""

    items: list[ConversationHitsView]
    hit_count: int
    conversation_count: int
    is_capped: bool = Field(description="There are more than the counted 1,000 hits.")
    has_more: bool
    is_partial: bool
    progress: ProgressView | None


class PromptView(BaseModel):
    """The beginning of a user message, on one line."""

    id: int
    timestamp: float
    text: Text


class OutlineView(BaseModel):
    """The user messages of a conversation, in order."""

    items: list[PromptView]


class MatchesView(BaseModel):
    """Messages of a conversation that match, oldest first."""

    message_ids: list[int]
    is_capped: bool = Field(description="There are more than these 1,000.")


def item_of(row: PagedSession) -> SessionItem:
    """A row of the store as a list item."""
    session = row.session
    cost = session.actual_cost_usd
    return SessionItem(
        id=session.id,
        title=session.title,
        preview=row.preview,
        source=session.source,
        model=session.model,
        started_at=session.started_at,
        last_active=row.last_active,
        ended_at=session.ended_at,
        end_reason=session.end_reason,
        message_count=session.message_count,
        tool_call_count=session.tool_call_count,
        tool_errors=row.tool_errors,
        input_tokens=session.input_tokens,
        output_tokens=session.output_tokens,
        cost_usd=session.estimated_cost_usd if cost is None else cost,
        cwd=session.cwd,
        git_branch=session.git_branch,
        pinned=bool(session.pinned),
        archived=bool(session.archived),
        unread=row.unread,
        tags=row.tags,
        kind=row.kind,
        parent_id=session.parent_session_id,
        is_open=session.ended_at is None,
        is_running=row.is_running,
        trashed_at=row.trashed_at,
    )
