"""Rules: when a scheduled job occurs, in a form that is stored.

`cron FIELDS`          the local times that five cron fields describe
`every SECONDS from T` regular intervals from a moment on, regardless of the clock
`at T`                 one moment

T is a Unix time. A cron rule with `*` as its hour follows real time: while the clock is set
back it occurs in both hours. Any other cron rule occurs once for each local time; see
`local_times` for times that are missing or repeated.
"""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from cronsim import CronSim, CronSimError

from hermes_core.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator
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


CRON_FIELDS: Final = 5
EVERY_HOUR: Final = "*"
SHORTEST_INTERVAL_SECONDS: Final = 60
INTERVAL_FORM: Final = re.compile(r"every (\d+) from (\d+(?:\.\d+)?)")
AT_FORM: Final = re.compile(r"at (\d+(?:\.\d+)?)")


class Rule(Protocol):
    """When something occurs."""

    def next_after(self, moment: float, zone: ZoneInfo) -> float | None:
        """The first occurrence after a moment; None if there is none."""

    def last_until(self, moment: float, zone: ZoneInfo) -> float | None:
        """The last occurrence at or before a moment; None if there is none."""


class CronRule(NamedTuple):
    """Five cron fields."""

    fields: str

    def __str__(self) -> str:
        return f"cron {self.fields}"

    @property
    def is_in_real_time(self) -> bool:
        """Whether it occurs in every hour, so that the clock does not matter."""
        return self.fields.split()[1] == EVERY_HOUR

    def next_after(self, moment: float, zone: ZoneInfo) -> float | None:
        """The first occurrence after a moment."""
        if self.is_in_real_time:
            start = datetime.fromtimestamp(moment, zone)
            return next((each.timestamp() for each in CronSim(self.fields, start)), None)
        for local in CronSim(self.fields, local_time(moment, zone)):
            occurrence = moment_of(local, zone)
            if occurrence > moment:
                return occurrence
        return None

    def last_until(self, moment: float, zone: ZoneInfo) -> float | None:
        """The last occurrence at or before a moment."""
        for occurrence in self._backwards(math.floor(moment) + 1, zone):
            if occurrence <= moment:
                return occurrence
        return None

    def _backwards(self, moment: float, zone: ZoneInfo) -> Iterator[float]:
        if self.is_in_real_time:
            start = datetime.fromtimestamp(moment, zone)
            yield from (each.timestamp() for each in CronSim(self.fields, start, reverse=True))
            return
        # A later local time may have been earlier, before the clock was set back.
        start = local_time(moment, zone) + timedelta(seconds=repeated_seconds(moment, zone))
        for local in CronSim(self.fields, start, reverse=True):
            yield moment_of(local, zone)


class IntervalRule(NamedTuple):
    """Regular intervals from a moment on, which is not an occurrence itself."""

    seconds: int
    start: float

    def __str__(self) -> str:
        return f"every {self.seconds} from {_number(self.start)}"

    def next_after(self, moment: float, zone: ZoneInfo) -> float | None:
        """The first occurrence after a moment."""
        del zone
        steps = math.floor((moment - self.start) / self.seconds) + 1
        return self.start + max(1, steps) * self.seconds

    def last_until(self, moment: float, zone: ZoneInfo) -> float | None:
        """The last occurrence at or before a moment."""
        del zone
        steps = math.floor((moment - self.start) / self.seconds)
        return self.start + steps * self.seconds if steps >= 1 else None


class OnceRule(NamedTuple):
    """One moment."""

    at: float

    def __str__(self) -> str:
        return f"at {_number(self.at)}"

    def next_after(self, moment: float, zone: ZoneInfo) -> float | None:
        """The moment, unless it has passed."""
        del zone
        return self.at if self.at > moment else None

    def last_until(self, moment: float, zone: ZoneInfo) -> float | None:
        """The moment, if it has passed."""
        del zone
        return self.at if self.at <= moment else None


def _number(moment: float) -> str:
    """A moment without an exponent and without a needless fraction."""
    return f"{moment:.6f}".rstrip("0").rstrip(".")


def cron_rule(fields: str) -> CronRule:
    """The rule of five cron fields; UsageError if they are invalid or never match."""
    words = fields.split()
    if len(words) != CRON_FIELDS:
        raise UsageError(f"{fields!r} does not have the five fields of a cron expression.")
    try:
        first = next(CronSim(fields, datetime(2024, 1, 1)), None)  # noqa: DTZ001 - local by design
    except (CronSimError, ValueError) as error:  # also a number with thousands of digits
        raise UsageError(f"Invalid cron expression {fields!r}: {error}.") from error
    if first is None:
        raise UsageError(f"The cron expression {fields!r} matches no date.")
    return CronRule(" ".join(words))


def interval_rule(seconds: float, start: float) -> IntervalRule:
    """The rule of an interval; UsageError if it is shorter than a minute.

    It starts at a full second: sums with a fraction would differ from those after it was stored.
    """
    if seconds < SHORTEST_INTERVAL_SECONDS:
        raise UsageError("The shortest interval is one minute.")
    return IntervalRule(int(seconds), float(math.floor(start)))


def once_rule(moment: float) -> OnceRule:
    """The rule of a moment, at a full second."""
    return OnceRule(float(math.ceil(moment)))


def read_rule(text: str) -> Rule:
    """The rule with a stored form."""
    if text.startswith("cron "):
        return CronRule(text.removeprefix("cron "))
    if match := INTERVAL_FORM.fullmatch(text):
        return IntervalRule(int(match[1]), float(match[2]))
    if match := AT_FORM.fullmatch(text):
        return OnceRule(float(match[1]))
    raise UsageError(f"Unreadable schedule {text!r}.")


def upcoming(rule: Rule, zone: ZoneInfo, after: float, count: int) -> list[float]:
    """The next occurrences after a moment."""
    occurrences: list[float] = []
    moment: float | None = after
    while len(occurrences) < count:
        moment = rule.next_after(moment, zone) if moment is not None else None
        if moment is None:
            break
        occurrences.append(moment)
    return occurrences
