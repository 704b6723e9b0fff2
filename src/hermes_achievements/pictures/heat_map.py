"""Days on a grid, and how warm each of them is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_achievements.recap.periods import MONTHS, weekday

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes_achievements.recap.recap import DayOf

LEVELS: Final = 5
CALENDAR_DAYS: Final = 42  # more than that is drawn as a strip of weeks


class Cell(NamedTuple):
    """A day's place: `week` counts from the first week, `weekday` from Monday."""

    week: int
    weekday: int
    day: str
    messages: int
    level: int


def cells(days: Sequence[DayOf]) -> list[Cell]:
    """Every day with its place and its level: 0 for nothing, 4 for the busiest quarter."""
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
    """What a day has to exceed for each level; quarters of the active days, not of the best."""
    if not counts:
        return [0]
    ranked = sorted(counts)
    return [0, *(ranked[(len(ranked) - 1) * part // 4] for part in (1, 2, 3))]


def is_strip(days: Sequence[DayOf]) -> bool:
    """Whether so many days are better drawn as a strip of weeks than as a calendar."""
    return len(days) > CALENDAR_DAYS


def month_labels(found: Sequence[Cell]) -> list[tuple[int, str]]:
    """The weeks in which months begin, with their names."""
    labels = [
        (cell.week, MONTHS[int(cell.day[5:7]) - 1][:3])
        for cell in found
        if cell.day.endswith("-01")
    ]
    return labels or [(0, MONTHS[int(found[0].day[5:7]) - 1][:3])] if found else []
