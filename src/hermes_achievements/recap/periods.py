"""Years, months and weeks to look back on, and how people say a day."""

from __future__ import annotations

import calendar
import re
from datetime import date, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_core.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable

YEAR: Final = "year"
MONTH: Final = "month"
WEEK: Final = "week"
EXAMPLES: Final = {YEAR: "2026", MONTH: "2026-09", WEEK: "2026-W37"}
FORMS: Final = {
    YEAR: re.compile(r"(\d{4})"),
    MONTH: re.compile(r"(\d{4})-(\d\d?)"),
    WEEK: re.compile(r"(\d{4})-?W(\d\d?)", re.IGNORECASE),
}
MONTHS: Final = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September",
    "October", "November", "December",
)  # fmt: skip
WEEKDAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


class Period(NamedTuple):
    """A stretch of days, both ends included, as `YYYY-MM-DD`; `id` is how a user asks for it."""

    kind: str
    id: str
    name: str
    first: str
    last: str

    def has(self, day: str) -> bool:
        """Whether *day* lies in it."""
        return self.first <= day <= self.last

    def until(self, day: str) -> Period:
        """The part of it up to *day*."""
        return self._replace(last=max(self.first, min(self.last, day)))


def parse(kind: str, text: str) -> Period:
    """The period that *text* names, such as `2026`, `2026-09` or `2026-W37`."""
    match = FORMS[kind].fullmatch(text.strip())
    try:
        if match is None:
            raise ValueError(text)
        return _of_numbers(kind, [int(number) for number in match.groups()])
    except ValueError as error:
        example = EXAMPLES[kind]
        raise UsageError(f"{text!r} is no {kind}; write it as {example}.") from error


def _of_numbers(kind: str, numbers: list[int]) -> Period:
    year = numbers[0]
    if not 1970 <= year <= 9997:
        raise ValueError(year)
    if kind == YEAR:
        return Period(YEAR, f"{year}", f"{year}", f"{year}-01-01", f"{year}-12-31")
    if kind == MONTH:
        first = date(year, numbers[1], 1)
        last = first.replace(day=calendar.monthrange(year, numbers[1])[1])
        name = f"{MONTHS[numbers[1] - 1]} {year}"
        return Period(MONTH, f"{first:%Y-%m}", name, first.isoformat(), last.isoformat())
    first = date.fromisocalendar(year, numbers[1], 1)
    last = first + timedelta(days=6)
    name = f"Week {numbers[1]} of {year}"
    return Period(WEEK, f"{year}-W{numbers[1]:02}", name, first.isoformat(), last.isoformat())


def around(kind: str, day: str) -> Period:
    """The year, month or week in which *day* lies."""
    item = date.fromisoformat(day)
    if kind == WEEK:
        year, week, _ = item.isocalendar()
        return _of_numbers(WEEK, [year, week])
    return _of_numbers(kind, [item.year, item.month])


def latest(kind: str, days: Iterable[str], today: str) -> Period:
    """The period of today, if anything happened in it; else the last one with something."""
    now = around(kind, today)
    result = sorted(days)
    if not result or any(now.has(day) for day in result):
        return now
    earlier = [day for day in result if day <= today]
    return around(kind, (earlier or result)[-1])


def spoken(day: str, *, with_year: bool = True) -> str:
    """A day as people say it: '12 March 2026'."""
    year, month, number = day.split("-")
    said = f"{int(number)} {MONTHS[int(month) - 1]}"
    return f"{said} {year}" if with_year else said


def short(day: str) -> str:
    """A day where there is little room: '12 Mar 2026'."""
    year, month, number = day.split("-")
    return f"{int(number)} {MONTHS[int(month) - 1][:3]} {year}"


@lru_cache(maxsize=20_000)  # the same days come for every session
def weekday(day: str) -> int:
    """The day of the week, Monday as 0."""
    return date.fromisoformat(day).weekday()


def every_day(first: str, last: str) -> list[str]:
    """All days from *first* to *last*."""
    begin, end = date.fromisoformat(first), date.fromisoformat(last)
    return [
        (begin + timedelta(days=number)).isoformat() for number in range((end - begin).days + 1)
    ]
