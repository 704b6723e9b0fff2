"""Query parameters of conversation lists, and page cursors."""

from __future__ import annotations

import base64
import binascii
import json
import math
from datetime import date
from typing import Annotated, Literal

from pydantic import BaseModel, Field, StringConstraints

from hermes_core.errors import UsageError
from hermes_dashboard.models.text import MAX_ROW_ID, Timestamp
from hermes_state.sessions.pages import PagePosition, SessionPageFilter
from hermes_state.sessions.sort_values import PageOrder

ShortText = Annotated[str, StringConstraints(max_length=300)]
Count = Annotated[int, Field(ge=0, le=MAX_ROW_ID)]
MAX_IDS = 500


class SessionQuery(BaseModel):
    """Filters of a list; all given filters must match."""

    state: Literal["active", "archived", "kept", "trash", "all"] = Field(
        "active",
        description="`kept` is active and archived; `all` is everything, the trash included.",
    )
    source: Annotated[list[ShortText], Field(max_length=50)] = Field(
        [], description="Source: cli, telegram, …; any of these."
    )
    model: ShortText | None = Field(None, description="A part of the model's name.")
    name: ShortText | None = Field(None, description="A part of its title.")
    tag: Annotated[list[ShortText], Field(max_length=50)] = Field([], description="All of these.")
    pinned: bool | None = None
    folder: Annotated[str, StringConstraints(max_length=4096)] | None = Field(
        None, description="Its folder, or a parent folder."
    )
    branch: ShortText | None = Field(None, description="The Git branch that it began on.")
    since: Timestamp | None = Field(None, description="Last active at that time or later.")
    until: Timestamp | None = Field(None, description="Last active before that time.")
    day: date | None = Field(None, description="With messages on this day.")
    tool: ShortText | None = Field(None, description="The tool was used.")
    failed_tool: ShortText | None = Field(None, description="A call of the tool failed.")
    hour: Annotated[int, Field(ge=0, le=23)] | None = Field(
        None, description="With messages in this hour of the day."
    )
    weekday: Annotated[int, Field(ge=0, le=6)] | None = Field(
        None, description="With messages on this weekday; Monday is 0."
    )
    min_messages: Count | None = None
    max_messages: Count | None = None
    min_seconds: Count | None = Field(None, description="Minimum duration.")
    max_seconds: Count | None = Field(None, description="Maximum duration.")
    ids: Annotated[str, StringConstraints(max_length=200_000)] | None = Field(
        None, description="Comma-separated IDs, at most 500."
    )
    children: bool = Field(False, description="Include delegated tasks and continued rows.")

    @property
    def needs_activity(self) -> bool:
        """Whether a filter needs the activity statistics."""
        filters = (self.day, self.tool, self.failed_tool, self.hour, self.weekday)
        return any(value is not None for value in filters)

    def to_filter(self, active: frozenset[str] | None) -> SessionPageFilter:
        """The filter for the store; *active* are the sessions with matching activity."""
        return SessionPageFilter(
            state=self.state,
            sources=tuple(self.source),
            model=self.model or None,
            name=self.name or None,
            tags=tuple(self.tag),
            is_pinned=self.pinned,
            folder=self.folder,
            branch=self.branch or None,
            since=self.since,
            until=self.until,
            min_messages=self.min_messages,
            max_messages=self.max_messages,
            min_seconds=self.min_seconds,
            max_seconds=self.max_seconds,
            ids=self._ids(active),
            children=self.children,
        )

    def _ids(self, active: frozenset[str] | None) -> frozenset[str] | None:
        if self.ids is None:
            return active
        ids = frozenset(
            session_id.strip() for session_id in self.ids.split(",") if session_id.strip()
        )
        if len(ids) > MAX_IDS:
            raise UsageError(f"`ids` has more than {MAX_IDS} IDs.")
        return ids if active is None else ids & active


SortKey = Literal["last_active", "started", "messages", "tokens", "cost", "tool_errors"]


class PagedQuery(SessionQuery):
    """Filters, order and the page."""

    sort: SortKey = Field(
        "last_active",
        description="`started` is the start of the conversation, `messages` their number,"
        " `tokens` input and output together.",
    )
    order: Literal["desc", "asc"] = Field("desc", description="Largest or latest first, or last.")
    with_tool_errors: bool = Field(
        False,
        description="Update `tool_errors` from the statistics first; sorting by them does, too.",
    )
    limit: Annotated[int, Field(ge=1, le=500)] = 100
    cursor: Annotated[str, StringConstraints(max_length=2000)] | None = Field(
        None, description="`next` of the previous page, of the same order."
    )

    @property
    def page_order(self) -> PageOrder:
        """The order for the store."""
        return PageOrder(self.sort, is_ascending=self.order == "asc")


class SearchQuery(SessionQuery):
    """A search by conversation; `since` and `until` bound the time of messages."""

    q: Annotated[str, StringConstraints(max_length=500)] = Field(
        description='A question or words, "phrases", prefix*, one OR two, -not.'
    )
    sort: Literal["newest", "oldest", "rank"] | None = Field(
        None, description="The order; what suits the query without it."
    )
    is_typing: bool = Field(False, description="The last word may be incomplete.")
    role: Annotated[list[ShortText], Field(max_length=50)] = Field(
        [], description="Written by: user, assistant, tool; any of these."
    )
    state: Literal["active", "archived", "kept"] = Field(
        "kept", description="`kept` is active and archived. The trash is not searched."
    )
    with_tools: bool = Field(False, description="Include tool arguments and output.")
    limit: Annotated[int, Field(ge=1, le=100)] = 20
    offset: Annotated[int, Field(ge=0, le=10_000)] = Field(0, description="In conversations.")

    def conversation_filter(self, active: frozenset[str] | None) -> SessionPageFilter | None:
        """The filters beyond those of the search itself; None without any."""
        page_filter = self.to_filter(active)._replace(sources=(), since=None, until=None)
        return None if page_filter == SessionPageFilter(state="kept") else page_filter


def cursor_of(position: PagePosition, order: PageOrder) -> str:
    """A page position as a URL-safe text, with the order that it belongs to."""
    text = json.dumps([*order, *position])
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def position_of(cursor: str, order: PageOrder) -> PagePosition:
    """The page position of a cursor; UsageError if it is invalid."""
    try:
        padded = cursor.encode("ascii") + b"=" * (-len(cursor) % 4)
        key, is_ascending, value, session_id = json.loads(
            base64.b64decode(padded, b"-_", validate=True)
        )
        position = PagePosition(float(value), session_id)
    except (ValueError, TypeError, OverflowError, binascii.Error) as error:
        raise UsageError("Invalid cursor. Start with the first page.") from error
    if not isinstance(session_id, str) or not math.isfinite(position.value):
        raise UsageError("Invalid cursor. Start with the first page.")
    if (key, is_ascending) != order:
        raise UsageError("The cursor belongs to another order. Start with the first page.")
    return position
