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


class PagedQuery(SessionQuery):
    """Filters and the page."""

    limit: Annotated[int, Field(ge=1, le=500)] = 100
    cursor: Annotated[str, StringConstraints(max_length=2000)] | None = Field(
        None, description="`next` of the previous page."
    )


def cursor_of(position: PagePosition) -> str:
    """A page position as a URL-safe text."""
    return base64.urlsafe_b64encode(json.dumps([*position]).encode()).decode().rstrip("=")


def position_of(cursor: str) -> PagePosition:
    """The page position of a cursor; UsageError if it is invalid."""
    try:
        padded = cursor.encode("ascii") + b"=" * (-len(cursor) % 4)
        last_active, session_id = json.loads(base64.b64decode(padded, b"-_", validate=True))
        position = PagePosition(float(last_active), session_id)
    except (ValueError, TypeError, OverflowError, binascii.Error) as error:
        raise UsageError("Invalid cursor. Start with the first page.") from error
    if not isinstance(session_id, str) or not math.isfinite(position.last_active):
        raise UsageError("Invalid cursor. Start with the first page.")
    return position
