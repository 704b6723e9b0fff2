"""Local times of a zone as moments, also where the clock is changed.

A local time that does not exist is the first moment after the gap. One that exists twice is
the first of the two.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

LONGEST_FOLD: Final = timedelta(hours=25)  # a zone may repeat a whole day


def local_time(moment: float, zone: ZoneInfo) -> datetime:
    """The local time of a moment, without a zone."""
    return datetime.fromtimestamp(moment, zone).replace(tzinfo=None)


def moment_of(local: datetime, zone: ZoneInfo) -> float:
    """The moment of a local time without a zone."""
    first = local.replace(tzinfo=zone, fold=0)
    if _exists(first, zone):
        return first.timestamp()
    # Read with the offset before the gap it lies after it, with the offset after it before it.
    before, after = local.replace(tzinfo=zone, fold=1).timestamp(), first.timestamp()
    return _first_with_offset_of(after, before, zone)


def repeated_seconds(moment: float, zone: ZoneInfo) -> float:
    """How far the clock was set back within the last day; 0 if it was not."""
    now = datetime.fromtimestamp(moment, zone)
    earlier = datetime.fromtimestamp(moment - LONGEST_FOLD.total_seconds(), zone)
    offsets = (earlier.utcoffset() or timedelta(0), now.utcoffset() or timedelta(0))
    return max(0.0, (offsets[0] - offsets[1]).total_seconds())


def _exists(local: datetime, zone: ZoneInfo) -> bool:
    back = local.astimezone(UTC).astimezone(zone)
    return back.replace(tzinfo=None) == local.replace(tzinfo=None)


def _first_with_offset_of(after: float, before: float, zone: ZoneInfo) -> float:
    """The first second in (before, after] with the offset that *after* has."""
    wanted = datetime.fromtimestamp(after, zone).utcoffset()
    low, high = int(before), int(after)
    while high - low > 1:
        middle = (low + high) // 2
        if datetime.fromtimestamp(middle, zone).utcoffset() == wanted:
            high = middle
        else:
            low = middle
    return float(high)
