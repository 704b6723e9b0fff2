"""Words of a question that name a time, such as "last week" or "in March"."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Final, NamedTuple

MONTHS: Final = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september",
    "october", "november", "december",
)  # fmt: skip
DAYS: Final = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
UNIT_DAYS: Final = {"day": 1, "week": 7, "month": 30, "year": 365}

_AGO: Final = re.compile(r"\b(\d{1,3}|an?|two|three|few) (day|week|month|year)s? ago\b")
_LAST: Final = re.compile(r"\b(last|this|past|previous) (day|week|month|year)\b")
_MONTH: Final = re.compile(
    rf"\b(?:in|of|since|during|last|around) ({'|'.join(MONTHS)})\b(?:,? ((?:19|20)\d\d))?"
)
_DAY: Final = re.compile(rf"\b(?:on|last|this|since) ({'|'.join(DAYS)})\b")
_YEAR: Final = re.compile(r"\b(?:in|of|during|since) ((?:19|20)\d\d)\b")
_NUMBERS: Final = {"a": 1, "an": 1, "two": 2, "three": 3, "few": 3}


class TimeRange(NamedTuple):
    """A range of times, in seconds since 1970."""

    since: float
    until: float

    def contains(self, moment: float) -> bool:
        """Whether a moment is in the range."""
        return self.since <= moment < self.until


def period_of(text: str, now: float) -> TimeRange | None:
    """The time that a question names, in the local time zone; None if it names none."""
    lowered = " ".join(text.lower().split())
    moment = datetime.fromtimestamp(now).astimezone()
    today = moment.replace(hour=0, minute=0, second=0, microsecond=0)
    for read in (_near_day, _ago, _last, _month, _week_day, _year):
        if (found := read(lowered, today)) is not None:
            return TimeRange(found[0].timestamp(), found[1].timestamp())
    return None


_Range = tuple[datetime, datetime]


def _near_day(text: str, today: datetime) -> _Range | None:
    for word, days in (("yesterday", 1), ("today", 0), ("this morning", 0), ("last night", 1)):
        if re.search(rf"\b{word}\b", text):
            return today - timedelta(days=days), today + timedelta(days=1 - (word == "yesterday"))
    return None


def _ago(text: str, today: datetime) -> _Range | None:
    if not (match := _AGO.search(text)):
        return None
    number = _NUMBERS.get(match[1]) or int(match[1])
    days = UNIT_DAYS[match[2]]
    middle = today - timedelta(days=number * days)
    margin = timedelta(days=max(days // 2, 0))
    return middle - margin, middle + margin + timedelta(days=1)


def _last(text: str, today: datetime) -> _Range | None:
    if not (match := _LAST.search(text)):
        return None
    unit, is_this = match[2], match[1] == "this"
    if unit == "week":
        start = today - timedelta(days=today.weekday())
    elif unit == "month":
        start = today.replace(day=1)
    elif unit == "year":
        start = today.replace(month=1, day=1)
    else:
        start = today
    tomorrow = today + timedelta(days=1)
    if is_this:
        return start, tomorrow
    if match[1] == "past":
        return today - timedelta(days=UNIT_DAYS[unit]), tomorrow
    if unit == "month":
        return (start - timedelta(days=1)).replace(day=1), start
    if unit == "year":
        return start.replace(year=start.year - 1), start
    # The days of the last seven are often called "last week", too.
    return start - timedelta(days=UNIT_DAYS[unit]), max(start, today - timedelta(days=1))


def _month(text: str, today: datetime) -> _Range | None:
    if not (match := _MONTH.search(text)):
        return None
    number = MONTHS.index(match[1]) + 1
    year = int(match[2]) if match[2] else today.year - (number > today.month)
    start = today.replace(year=year, month=number, day=1)
    return start, _end(match, today, (start + timedelta(days=32)).replace(day=1))


def _week_day(text: str, today: datetime) -> _Range | None:
    if not (match := _DAY.search(text)):
        return None
    days = (today.weekday() - DAYS.index(match[1])) % 7 or 7
    start = today - timedelta(days=days)
    return start, _end(match, today, start + timedelta(days=1))


def _year(text: str, today: datetime) -> _Range | None:
    if not (match := _YEAR.search(text)):
        return None
    start = today.replace(year=int(match[1]), month=1, day=1)
    return start, _end(match, today, start.replace(year=start.year + 1))


def _end(match: re.Match[str], today: datetime, end: datetime) -> datetime:
    """The end of a period; now for one "since" which something happened."""
    return today + timedelta(days=1) if match[0].startswith("since") else end
