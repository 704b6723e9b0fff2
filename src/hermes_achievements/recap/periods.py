"""Years, months and weeks, date formats, and days on a grid."""

from __future__ import annotations

import calendar
import re
from datetime import date, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_core.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from hermes_achievements.recap.recap import RecapDay


YEAR: Final = "year"
MONTH: Final = "month"
WEEK: Final = "week"
PERIOD_EXAMPLES: Final = {YEAR: "2026", MONTH: "2026-09", WEEK: "2026-W37"}
PERIOD_PATTERNS: Final = {
    YEAR: re.compile(r"(\d{4})"),
    MONTH: re.compile(r"(\d{4})-(\d\d?)"),
    WEEK: re.compile(r"(\d{4})-?W(\d\d?)", re.IGNORECASE),
}
MONTH_NAMES: Final = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September",
    "October", "November", "December",
)  # fmt: skip
WEEKDAY_NAMES: Final = (
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
    "Sunday",
)


class Period(NamedTuple):
    """A range of days as `YYYY-MM-DD`, both inclusive; `id` is the text that users enter."""

    kind: str
    id: str
    name: str
    first: str
    last: str

    def contains(self, day: str) -> bool:
        """Whether *day* is in the period."""
        return self.first <= day <= self.last

    def clip(self, day: str) -> Period:
        """The part of the period up to *day*."""
        return self._replace(last=max(self.first, min(self.last, day)))


def parse(kind: str, text: str) -> Period:
    """Parse a period such as `2026`, `2026-09` or `2026-W37`."""
    match = PERIOD_PATTERNS[kind].fullmatch(text.strip())
    try:
        if match is None:
            raise ValueError(text)
        return _make_period(kind, [int(number) for number in match.groups()])
    except ValueError as error:
        example = PERIOD_EXAMPLES[kind]
        raise UsageError(f"invalid {kind} {text!r}: use {example}") from error


def _make_period(kind: str, numbers: list[int]) -> Period:
    year = numbers[0]
    if not 1970 <= year <= 9997:
        raise ValueError(year)
    if kind == YEAR:
        return Period(YEAR, f"{year}", f"{year}", f"{year}-01-01", f"{year}-12-31")
    if kind == MONTH:
        first = date(year, numbers[1], 1)
        last = first.replace(day=calendar.monthrange(year, numbers[1])[1])
        name = f"{MONTH_NAMES[numbers[1] - 1]} {year}"
        return Period(MONTH, f"{first:%Y-%m}", name, first.isoformat(), last.isoformat())
    first = date.fromisocalendar(year, numbers[1], 1)
    last = first + timedelta(days=6)
    name = f"Week {numbers[1]} of {year}"
    return Period(WEEK, f"{year}-W{numbers[1]:02}", name, first.isoformat(), last.isoformat())


def period_of_day(kind: str, day: str) -> Period:
    """The year, month or week that contains *day*."""
    date_value = date.fromisoformat(day)
    if kind == WEEK:
        year, week, _ = date_value.isocalendar()
        return _make_period(WEEK, [year, week])
    return _make_period(kind, [date_value.year, date_value.month])


def latest_period(kind: str, days: Iterable[str], today: str) -> Period:
    """The current period if it has activity, else the last one with activity."""
    now = period_of_day(kind, today)
    ordered = sorted(days)
    if not ordered or any(now.contains(day) for day in ordered):
        return now
    earlier = [day for day in ordered if day <= today]
    return period_of_day(kind, (earlier or ordered)[-1])


def long_date(day: str, *, with_year: bool = True) -> str:
    """A day in long form: '12 March 2026'."""
    year, month, number = day.split("-")
    text = f"{int(number)} {MONTH_NAMES[int(month) - 1]}"
    return f"{text} {year}" if with_year else text


def short_date(day: str) -> str:
    """A day in short form: '12 Mar 2026'."""
    year, month, number = day.split("-")
    return f"{int(number)} {MONTH_NAMES[int(month) - 1][:3]} {year}"


@lru_cache(maxsize=20_000)  # days repeat for every session
def weekday(day: str) -> int:
    """The weekday, with Monday as 0."""
    return date.fromisoformat(day).weekday()


def list_days(first: str, last: str) -> list[str]:
    """All days from *first* to *last*."""
    begin, end = date.fromisoformat(first), date.fromisoformat(last)
    return [
        (begin + timedelta(days=number)).isoformat() for number in range((end - begin).days + 1)
    ]


CALENDAR_DAYS: Final = 42  # longer periods are drawn as a strip of weeks


class Cell(NamedTuple):
    """A day on the grid: `week` counts from the first week, `weekday` from Monday."""

    week: int
    weekday: int
    day: str
    messages: int
    level: int


def cells(days: Sequence[RecapDay]) -> list[Cell]:
    """Every day with its position and level: 0 without messages, 4 for the busiest quarter."""
    limits = _limits([day.messages for day in days if day.messages])
    offset = weekday(days[0].day) if days else 0
    return [
        Cell(
            (offset + number) // 7,
            (offset + number) % 7,
            item.day,
            item.messages,
            sum(item.messages > limit for limit in limits),
        )
        for number, item in enumerate(days)
    ]


def _limits(counts: list[int]) -> list[int]:
    """The number of messages to exceed for each level: quartiles of the active days."""
    if not counts:
        return [0]
    ranked = sorted(counts)
    return [0, *(ranked[(len(ranked) - 1) * part // 4] for part in (1, 2, 3))]


def is_strip(days: Sequence[RecapDay]) -> bool:
    """Whether the days are drawn as a strip of weeks instead of a calendar."""
    return len(days) > CALENDAR_DAYS


def month_labels(grid: Sequence[Cell]) -> list[tuple[int, str]]:
    """The weeks in which months start, with month names."""
    labels = [
        (cell.week, MONTH_NAMES[int(cell.day[5:7]) - 1][:3])
        for cell in grid
        if cell.day.endswith("-01")
    ]
    return labels or [(0, MONTH_NAMES[int(grid[0].day[5:7]) - 1][:3])] if grid else []
