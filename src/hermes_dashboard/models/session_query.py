"""What a list of conversations is asked for, and the place where a page begins."""

from __future__ import annotations

import base64
import binascii
import json
import math
from datetime import date
from typing import Annotated, Literal

from pydantic import BaseModel, Field, StringConstraints

from hermes_core.errors import UsageError
from hermes_dashboard.models.text import MAX_ROW_ID, Moment
from hermes_state.sessions.pages import PagePosition, SessionPageFilter

Word = Annotated[str, StringConstraints(max_length=300)]
Amount = Annotated[int, Field(ge=0, le=MAX_ROW_ID)]
MAX_IDS = 500


class SessionQuery(BaseModel):
    """Which conversations are wanted; everything that is said must fit."""

    state: Literal["active", "archived", "kept", "trash", "all"] = Field(
        "active",
        description="`kept` is active and archived; `all` is everything, the trash included.",
    )
    source: Annotated[list[Word], Field(max_length=50)] = Field(
        [], description="Source: cli, telegram, …; any of these."
    )
    model: Word | None = Field(None, description="A part of the model's name.")
    name: Word | None = Field(None, description="A part of its title.")
    tag: Annotated[list[Word], Field(max_length=50)] = Field([], description="All of these.")
    pinned: bool | None = None
    folder: Annotated[str, StringConstraints(max_length=4096)] | None = Field(
        None, description="Its folder, or a parent folder."
    )
    since: Moment | None = Field(None, description="Last active at that time or later.")
    until: Moment | None = Field(None, description="Last active before that time.")
    day: date | None = Field(None, description="With messages on this day.")
    tool: Word | None = Field(None, description="The tool was used.")
    failed_tool: Word | None = Field(None, description="A call of the tool failed.")
    hour: Annotated[int, Field(ge=0, le=23)] | None = Field(
        None, description="With messages in this hour of the day."
    )
    weekday: Annotated[int, Field(ge=0, le=6)] | None = Field(
        None, description="With messages on this weekday; Monday is 0."
    )
    min_messages: Amount | None = None
    max_messages: Amount | None = None
    min_seconds: Amount | None = Field(None, description="Minimum duration.")
    max_seconds: Amount | None = Field(None, description="Maximum duration.")
    ids: Annotated[str, StringConstraints(max_length=200_000)] | None = Field(
        None, description="Comma-separated IDs, at most 500."
    )
    children: bool = Field(False, description="Include delegated tasks and continued rows.")

    @property
    def asks_for_activity(self) -> bool:
        """Whether it takes the statistics to answer."""
        asked = (self.day, self.tool, self.failed_tool, self.hour, self.weekday)
        return any(one is not None for one in asked)

    def choice(self, active: frozenset[str] | None) -> SessionPageFilter:
        """The same for the store; *active* are the sessions that activity leaves."""
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
        named = frozenset(one.strip() for one in self.ids.split(",") if one.strip())
        if len(named) > MAX_IDS:
            raise UsageError(f"at most {MAX_IDS} ids can be asked for at once")
        return named if active is None else named & active


class PagedQuery(SessionQuery):
    """The same, and which page of it."""

    limit: Annotated[int, Field(ge=1, le=500)] = 100
    cursor: Annotated[str, StringConstraints(max_length=2000)] | None = Field(
        None, description="`next` of the previous page."
    )


def cursor_of(place: PagePosition) -> str:
    """A place as it travels in an address."""
    return base64.urlsafe_b64encode(json.dumps([*place]).encode()).decode().rstrip("=")


def place_of(cursor: str) -> PagePosition:
    """The place that a cursor stands for; UsageError if it is none of ours."""
    try:
        padded = cursor.encode("ascii") + b"=" * (-len(cursor) % 4)
        last_active, session_id = json.loads(base64.b64decode(padded, b"-_", validate=True))
        place = PagePosition(float(last_active), session_id)
    except (ValueError, TypeError, OverflowError, binascii.Error) as error:
        raise UsageError("this cursor is none of ours; begin with the first page") from error
    if not isinstance(session_id, str) or not math.isfinite(place.last_active):
        raise UsageError("this cursor is none of ours; begin with the first page")
    return place
