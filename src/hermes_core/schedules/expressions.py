"""Schedule expressions as people write them: words, cron fields, dates.

Repeating: `every weekday 8:00`, `daily 7:30`, `every monday and friday 9:00`, `every 2 hours`,
`every month on day 1 9:00`, `0 8 * * 1-5`.
Once: `in 20 minutes`, `20m`, `tomorrow 9:00`, `friday 18:30`, `2026-12-24 18:00`.
"""

from __future__ import annotations

import re
from datetime import date, datetime, time, timedelta
from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_core.errors import UsageError
from hermes_core.schedules.rules import (
    CRON_FIELDS,
    OnceRule,
    cron_rule,
    interval_rule,
    local_time,
    moment_of,
    once_rule,
)

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

    from hermes_core.schedules.rules import CronRule, IntervalRule

    AnyRule = CronRule | IntervalRule | OnceRule

EXAMPLES: Final = (
    '"every weekday 8:00", "every 2 hours", "daily 7:30", "every monday 9:00", "in 20 minutes", '
    '"tomorrow 9:00", "2026-12-24 18:00" or five cron fields such as "0 8 * * 1-5"'
)
SECONDS_PER_UNIT: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
UNITS: Final = {
    **dict.fromkeys(("s", "sec", "second", "seconds"), "s"),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), "m"),
    **dict.fromkeys(("h", "hour", "hours"), "h"),
    **dict.fromkeys(("d", "day", "days"), "d"),
    **dict.fromkeys(("w", "week", "weeks"), "w"),
}
WEEKDAYS: Final = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
DAY_FIELDS: Final = {
    "day": "*",
    "weekday": "1-5",
    "weekdays": "1-5",
    "weekend": "6,0",
    "weekends": "6,0",
}
DAY_WORDS: Final = {"daily": "day", "weekdays": "weekday"}
DURATION: Final = re.compile(r"(\d{1,10})\s*([a-z]+)")
CLOCK_TIME: Final = re.compile(r"(\d{1,2})(?::(\d{2}))?\s*(am|pm)?")
ISO_DATE: Final = re.compile(r"\d{4}-\d{2}-\d{2}")
MAX_DURATION_SECONDS: Final = 100 * 366 * 86400  # longer durations are mistakes


class ScheduleTimeError(UsageError):
    """The time of a schedule has passed or is too far away."""


class DayTime(NamedTuple):
    """A time of day."""

    hour: int
    minute: int


def parse_schedule(text: str, now: float, zone: ZoneInfo) -> AnyRule:
    """The rule of an expression; UsageError with examples if it cannot be read."""
    original = " ".join(text.split())
    words = original.lower()
    if not words:
        raise UsageError(f"The schedule is empty. Examples: {EXAMPLES}.")
    if len(words.split()) == CRON_FIELDS and re.match(r"[\d*]", words) and not _is_date(words):
        return cron_rule(original)
    rule = _repeating(words, now) or _once(words, now, zone)
    if rule is None:
        raise UsageError(f"Unknown schedule {original!r}. Examples: {EXAMPLES}.")
    if isinstance(rule, OnceRule) and rule.at <= now:
        raise ScheduleTimeError(f"The time of {original!r} has passed.")
    if isinstance(rule, OnceRule) and rule.at > now + MAX_DURATION_SECONDS:
        raise ScheduleTimeError(f"The time of {original!r} is more than 100 years away.")
    return rule


def _is_date(words: str) -> bool:
    return ISO_DATE.match(words) is not None


# Repeating schedules


def _repeating(words: str, now: float) -> AnyRule | None:
    if words in {"hourly", "every hour"}:
        return cron_rule("0 * * * *")
    first, _, rest = words.partition(" ")
    if first in {"daily", "weekdays"}:
        first, rest = "every", f"{DAY_WORDS[first]} {rest}"
    if first != "every":
        return None
    if interval := _interval(rest):
        return interval_rule(interval, now)
    if match := re.fullmatch(r"month on (?:the |day )*(\d{1,2})(?:st|nd|rd|th)? (.+)", rest):
        return _monthly(int(match[1]), match[2])
    days, _, clock = _split_days(rest).partition("|")
    return _at_days(days, clock) if days else None


def _interval(text: str) -> float | None:
    """The seconds of `2 hours`, or of `minute`."""
    if text in {"minute", "week"}:
        text = f"1 {text}"
    return _duration(text)


def _split_days(text: str) -> str:
    """`monday and friday 9:00` as `1,5|9:00`; empty if it does not start with days."""
    names = re.split(r",\s*|\s+and\s+|\s+", text)
    fields: list[str] = []
    for name in names:
        field = _day_field(name)
        if not field:
            break
        fields.append(field)
    if not fields:
        return ""
    clock = " ".join(names[len(fields) :])
    return f"{'*' if '*' in fields else ','.join(fields)}|{clock}"


def _day_field(name: str) -> str:
    weekday = _weekday(name.removesuffix("s")) if len(name) > 3 else _weekday(name)
    if weekday is not None:
        return str((weekday + 1) % 7)
    return DAY_FIELDS.get(name, "")


def _weekday(name: str) -> int | None:
    """The number of a weekday, Monday first; by its name or at least three letters of it."""
    is_long_enough = len(name) >= 3
    matching = [day for day in WEEKDAYS if day.startswith(name)] if is_long_enough else []
    return WEEKDAYS.index(matching[0]) if len(matching) == 1 else None


def _at_days(days: str, clock: str) -> CronRule | None:
    at = _clock_time(clock)
    return None if at is None else cron_rule(f"{at.minute} {at.hour} * * {days}")


def _monthly(day: int, clock: str) -> CronRule | None:
    at = _clock_time(clock)
    return None if at is None else cron_rule(f"{at.minute} {at.hour} {day} * *")


# Single occurrences


def _once(words: str, now: float, zone: ZoneInfo) -> OnceRule | None:
    seconds = _duration(words.removeprefix("in "))
    if seconds is not None:
        return once_rule(now + seconds)
    return _iso(words, zone) or _named_day(words, now, zone)


def _duration(text: str) -> float | None:
    """The seconds of `20 minutes`, `2h` or `1h 30m`."""
    position, total, count = 0, 0, 0
    stripped = text.strip()
    while match := DURATION.match(stripped, position):
        unit = UNITS.get(match[2])
        if unit is None:
            return None
        total += int(match[1]) * SECONDS_PER_UNIT[unit]
        position, count = match.end(), count + 1
        while stripped[position : position + 1] == " ":
            position += 1
    is_valid = count > 0 and position == len(stripped) and 0 < total <= MAX_DURATION_SECONDS
    return float(total) if is_valid else None


def _iso(words: str, zone: ZoneInfo) -> OnceRule | None:
    if not _is_date(words):
        return None
    day, _, clock = words.replace("t", " ", 1).partition(" ")
    at = _clock_time(clock)
    try:
        if at is not None:
            local = datetime.combine(date.fromisoformat(day), time(at.hour, at.minute))
            return once_rule(moment_of(local, zone))
        moment = datetime.fromisoformat(words.upper())
    except (ValueError, OverflowError):
        return None
    if len(words) == len("2026-01-01"):
        return None  # a day without a time
    return once_rule(moment.timestamp() if moment.tzinfo is not None else moment_of(moment, zone))


def _named_day(words: str, now: float, zone: ZoneInfo) -> OnceRule | None:
    """`tomorrow 9:00`, `friday at 18:30`, `18:30`: the next such time."""
    first, _, rest = words.removeprefix("on ").removeprefix("next ").partition(" ")
    today = local_time(now, zone).date()
    weekday = _weekday(first)
    if first in {"today", "tomorrow"}:
        day = today + timedelta(days=first == "tomorrow")
        at = _clock_time(rest)
        return None if at is None else once_rule(_moment(day, at, zone))
    if weekday is not None:
        at = _clock_time(rest)
        ahead = (weekday - today.weekday()) % 7
        step = 7
    else:
        at, ahead, step = _clock_time(words), 0, 1
    if at is None:
        return None
    moment = _moment(today + timedelta(days=ahead), at, zone)
    later = _moment(today + timedelta(days=ahead + step), at, zone)
    return once_rule(moment if moment > now else later)


def _moment(day: date, at: DayTime, zone: ZoneInfo) -> float:
    return moment_of(datetime.combine(day, time(at.hour, at.minute)), zone)


def _clock_time(text: str) -> DayTime | None:
    """`8:00`, `at 8`, `8 pm`, `noon`; a bare number needs `at` or am/pm."""
    words = text.strip()
    is_marked = words.startswith("at ")
    words = words.removeprefix("at ").strip()
    if words in {"noon", "midnight"}:
        return DayTime(12 if words == "noon" else 0, 0)
    match = CLOCK_TIME.fullmatch(words)
    if match is None or not (is_marked or match[2] or match[3]):
        return None
    hour, minute = int(match[1]), int(match[2] or 0)
    if match[3]:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + (12 if match[3] == "pm" else 0)
    return DayTime(hour, minute) if hour <= 23 and minute <= 59 else None


def split_reminder(text: str, now: float, zone: ZoneInfo) -> tuple[AnyRule, str, str]:
    """The rule, the schedule and the text of `20m call Ada` or `tomorrow 9:00 call Ada`.

    The schedule is the longest beginning that is one.
    """
    words = text.split(" ")
    for count in range(min(len(words) - 1, 8), 0, -1):
        schedule = " ".join(words[:count])
        try:
            rule = parse_schedule(schedule, now, zone)
        except ScheduleTimeError:
            raise
        except UsageError:
            continue
        return rule, schedule.strip(), " ".join(words[count:]).strip()
    raise UsageError(
        "Start with the time, then the text: /remind 20m call Ada, or "
        "/remind tomorrow 9:00 call Ada."
    )
