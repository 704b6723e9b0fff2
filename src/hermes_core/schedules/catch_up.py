"""What runs when occurrences are due: one on time, or several after a downtime."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

    from hermes_core.schedules.rules import Rule

GRACE_SECONDS: Final = 120.0  # an occurrence that is late by less is on time
MAX_RUNS: Final = 100  # at a time: `all` continues with the rest afterwards
MAX_COUNTED: Final = 1000  # missed occurrences


class CatchUp(StrEnum):
    """The policy for occurrences that were missed."""

    ONCE = "once"  # the latest one runs, for all of them
    ALL = "all"  # each runs
    SKIP = "skip"  # none runs


class DueOccurrences(NamedTuple):
    """What to do with the occurrences that are due."""

    runs: tuple[float, ...]  # the times of those that run
    missed: int  # how many do not run; at most MAX_COUNTED
    last_missed: float | None  # the latest of them
    next_at: float | None  # the next occurrence to look at


def plan(rule: Rule, zone: ZoneInfo, first: float, now: float, policy: CatchUp) -> DueOccurrences:
    """Apply a policy to the occurrences from *first*, which is due, until *now*.

    A rule whose earlier times changed may not occur at *first*; it counts all the same.
    """
    if policy is CatchUp.ALL:
        return _all(rule, zone, first, now)
    last = rule.last_until(now, zone)
    latest = first if last is None or last < first else last
    missed, last_missed = _count_until(rule, zone, first, latest)
    next_at = rule.next_after(max(now, latest), zone)
    if policy is CatchUp.SKIP and now - latest > GRACE_SECONDS:
        return DueOccurrences((), min(missed + 1, MAX_COUNTED), latest, next_at)
    return DueOccurrences((latest,), missed, last_missed, next_at)


def _all(rule: Rule, zone: ZoneInfo, first: float, now: float) -> DueOccurrences:
    runs: list[float] = []
    moment: float | None = first
    while moment is not None and moment <= now and len(runs) < MAX_RUNS:
        runs.append(moment)
        moment = rule.next_after(moment, zone)
    return DueOccurrences(tuple(runs), 0, None, moment)


def _count_until(
    rule: Rule, zone: ZoneInfo, first: float, latest: float
) -> tuple[int, float | None]:
    """The number of occurrences from *first* to before *latest*, and the latest of them."""
    count, moment, last = 0, first, None
    while moment < latest and count < MAX_COUNTED:
        count, last = count + 1, moment
        following = rule.next_after(moment, zone)
        if following is None:
            break
        moment = following
    return count, last
