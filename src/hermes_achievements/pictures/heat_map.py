"""Days on a grid with activity levels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_achievements.recap.periods import MONTH_NAMES, weekday

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes_achievements.recap.recap import RecapDay

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
