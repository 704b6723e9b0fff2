"""How long the conversations of a period are, in messages and in time."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from datetime import time as clock_time
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pydantic import BaseModel

from hermes_state.sessions.index import LISTED

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hermes_dashboard.analytics.analysis import AnalyticsData
    from hermes_dashboard.analytics.charts import Span
    from hermes_state.sessions.totals import SessionNumbers

DASH: Final = "\N{EN DASH}"
MAX_DATE: Final = date(9998, 12, 31)  # datetime cannot represent the midnight after year 9999
LENGTH_BUCKETS: Final = ((1, 4), (5, 9), (10, 19), (20, 49), (50, 99), (100, 199), (200, None))
DURATION_BUCKETS: Final = (
    ("< 1 min", 0, 60),
    (f"1{DASH}5 min", 60, 300),
    (f"5{DASH}15 min", 300, 900),
    (f"15{DASH}60 min", 900, 3600),
    (f"1{DASH}4 h", 3600, 14400),
    ("> 4 h", 14400, None),
)


class Length(BaseModel):
    """Conversations by how many messages they have."""

    label: str
    min: int
    max: int | None
    sessions: int


class Duration(BaseModel):
    """Conversations by how long they lasted, from the first row's start to the last activity."""

    label: str
    min_seconds: int
    max_seconds: int | None
    sessions: int


class ConversationSize(NamedTuple):
    """The length of one conversation."""

    messages: int
    seconds: float


def sizes_of(data: AnalyticsData, span: Span) -> Iterator[ConversationSize]:
    """The lengths of the conversations of a period."""
    zone = data.calendar.zone
    begin = _midnight(date.fromisoformat(span.first), zone)
    end = _midnight(min(date.fromisoformat(span.last), MAX_DATE) + timedelta(days=1), zone)
    for session in data.numbers.values():
        if session.shown == LISTED and begin <= session.last_active < end and span.matches(session):
            yield ConversationSize(
                session.messages, session.last_active - _started_at(data, session)
            )


def _midnight(day: date, zone: Any) -> float:
    return datetime.combine(day, clock_time.min, zone).timestamp()


def _started_at(data: AnalyticsData, session: SessionNumbers) -> float:
    root = data.numbers.get(session.root_id)
    return (root and root.started_at) or session.started_at


def lengths(sizes: list[ConversationSize]) -> list[Length]:
    """The distribution of lengths."""
    return [
        Length(
            label=f"{low}{DASH}{high}" if high else f"{low}+",
            min=low,
            max=high,
            sessions=sum(low <= n and (not high or n <= high) for n, _ in sizes),
        )
        for low, high in LENGTH_BUCKETS
    ]


def durations(sizes: list[ConversationSize]) -> list[Duration]:
    """The distribution of durations."""
    return [
        Duration(
            label=label,
            min_seconds=low,
            max_seconds=high,
            sessions=sum(low <= n and (not high or n < high) for _, n in sizes),
        )
        for label, low, high in DURATION_BUCKETS
    ]
