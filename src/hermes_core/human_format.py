"""Human-readable times, sizes and numbers."""

from __future__ import annotations

import math
import time

UNKNOWN_TEXT = "-"
_DAY_SECONDS = 86_400


def ago(then: float | None, now: float) -> str:
    """*then* relative to *now*: '3 min ago', 'yesterday', or a date if it is older."""
    if then is None:
        return UNKNOWN_TEXT
    seconds = now - then
    if not 0 <= seconds < 30 * _DAY_SECONDS:
        # Stored times may be in the future if the clock was set back; show the date.
        return "just now" if -60 < seconds < 0 else date(then)
    for limit, unit, name in ((60, 1, ""), (3600, 60, "min"), (_DAY_SECONDS, 3600, "h")):
        if seconds < limit:
            return f"{int(seconds // unit)} {name} ago" if name else "just now"
    days = int(seconds // _DAY_SECONDS)
    return "yesterday" if days == 1 else f"{days} days ago"


def duration(seconds: float) -> str:
    """A time span: '8 s', '2 min 5 s', '1 h 30 min'."""
    total = math.ceil(seconds)
    if total < 60:
        return f"{total} s"
    large, small, names = (total // 60, total % 60, ("min", "s"))
    if total >= 3600:
        large, small, names = (total // 3600, total % 3600 // 60, ("h", "min"))
    return f"{large} {names[0]}" + (f" {small} {names[1]}" if small else "")


def date(then: float | None) -> str:
    """The day of *then* in the local time zone."""
    return _local(then, "%Y-%m-%d")


def local(then: float | None) -> str:
    """*then* in the local time zone, to the second."""
    return _local(then, "%Y-%m-%d %H:%M:%S")


def _local(then: float | None, form: str) -> str:
    if then is None:
        return UNKNOWN_TEXT
    try:
        return time.strftime(form, time.localtime(then))
    except (OverflowError, ValueError, OSError):  # a stored number that is not a valid time
        return UNKNOWN_TEXT


def size(count: int | None) -> str:
    """Bytes in a suitable unit."""
    if count is None:
        return UNKNOWN_TEXT
    if count < 1000:
        return f"{count} B"
    unit, divisor = next(
        (pair for pair in (("kB", 10**3), ("MB", 10**6)) if count < pair[1] * 1000), ("GB", 10**9)
    )
    return f"{count / divisor:.1f} {unit}"


def number(count: float | None) -> str:
    """A number with thousands separators."""
    return UNKNOWN_TEXT if count is None else f"{count:,}"


def plural(count: int, noun: str) -> str:
    """'1 message', '2 messages'."""
    return f"{number(count)} {noun}" if count == 1 else f"{number(count)} {noun}s"
