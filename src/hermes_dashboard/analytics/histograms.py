"""Conversations by how long they are: counted as the list counts them that a bar leads to.

Each listed conversation whose last activity lies in the days counts once; what lies in the
trash does not. It lasts from its first row's start to its last activity.
"""

from __future__ import annotations

from datetime import date, datetime, timedelta
from datetime import time as clock_time
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from hermes_state.sessions.index import LISTED

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hermes_dashboard.analytics.analysis import Known
    from hermes_dashboard.analytics.charts import Span
    from hermes_state.sessions.totals import SessionNumbers

DASH: Final = "\N{EN DASH}"
LAST_DAY: Final = date(9998, 12, 31)  # clocks know no day behind the next year's
LENGTHS: Final = ((1, 4), (5, 9), (10, 19), (20, 49), (50, 99), (100, 199), (200, None))
DURATIONS: Final = (
    ("< 1 min", 0, 60),
    (f"1{DASH}5 min", 60, 300),
    (f"5{DASH}15 min", 300, 900),
    (f"15{DASH}60 min", 900, 3600),
    (f"1{DASH}4 h", 3600, 14400),
    ("> 4 h", 14400, None),
)


class Size(NamedTuple):
    """How long one conversation is."""

    messages: int
    seconds: float


def bars(known: Known, span: Span) -> dict[str, Any]:
    """Both pictures."""
    sizes = list(_sizes(known, span))
    return {"lengths": _lengths(sizes), "durations": _durations(sizes)}


def _sizes(known: Known, span: Span) -> Iterator[Size]:
    zone = known.calendar.zone
    begin = _midnight(date.fromisoformat(span.first), zone)
    end = _midnight(min(date.fromisoformat(span.last), LAST_DAY) + timedelta(days=1), zone)
    for one in known.numbers.values():
        if one.shown == LISTED and begin <= one.last_active < end and span.wants(one):
            yield Size(one.messages, one.last_active - _began(known, one))


def _midnight(day: date, zone: Any) -> float:
    return datetime.combine(day, clock_time.min, zone).timestamp()


def _began(known: Known, one: SessionNumbers) -> float:
    root = known.numbers.get(one.root_id)
    return (root and root.started_at) or one.started_at


def _lengths(sizes: list[Size]) -> list[dict[str, Any]]:
    return [
        {
            "label": f"{low}{DASH}{high}" if high else f"{low}+",
            "min": low,
            "max": high,
            "sessions": sum(low <= n and (not high or n <= high) for n, _ in sizes),
        }
        for low, high in LENGTHS
    ]


def _durations(sizes: list[Size]) -> list[dict[str, Any]]:
    return [
        {
            "label": label,
            "min_seconds": low,
            "max_seconds": high,
            "sessions": sum(low <= n and (not high or n < high) for _, n in sizes),
        }
        for label, low, high in DURATIONS
    ]
