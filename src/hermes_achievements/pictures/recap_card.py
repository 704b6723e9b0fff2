"""A look back on one card, to keep or to show around: no conversation is named on it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from hermes_achievements.pictures import heat_map, svg
from hermes_achievements.pictures.medal import definitions, medal
from hermes_achievements.pictures.svg import (
    EDGE,
    FAINT,
    GROUND,
    INK,
    PANEL,
    SOFT,
    box,
    document,
    text,
)
from hermes_achievements.recap.periods import WEEKDAYS
from hermes_achievements.recap.sentences import amount, figures, highlights, plural, summary

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hermes_achievements.catalogue import Catalogue
    from hermes_achievements.pictures.heat_map import Cell
    from hermes_achievements.recap.recap import Recap, RecapCount

WIDTH: Final = 1200
MARGIN: Final = 48
ROOM: Final = WIDTH - 2 * MARGIN
GAP: Final = 16
HALF: Final = (ROOM - GAP) / 2
WARMTH: Final = ("#272b3a", "#1d5247", "#2a7f68", "#42b28e", "#7aeac0")
ACCENT: Final = "#42b28e"
MAX_MEDALS: Final = 8
MAX_RANKED: Final = 6
PRIVATE: Final = frozenset({"cost"})


def recap_card(recap: Recap, name: str, catalogue: Catalogue) -> str:
    """*recap* of the period called *name*, as one picture."""
    canvas = _Canvas()
    canvas.header(name, summary(recap))
    canvas.figures([figure for figure in figures(recap) if figure[0] not in PRIVATE])
    canvas.rhythm(recap)
    canvas.favourites(recap)
    canvas.tier_ups(recap.tier_ups, catalogue)
    canvas.sentences(highlights(recap, is_public=True))
    height = round(canvas.y + MARGIN - GAP)
    ground = [definitions(catalogue), box(0, 0, WIDTH, height, GROUND)]
    return document(WIDTH, height, f"{name}, looked back on", ground + canvas.drawn)


class _Canvas:
    """A card under way: each part is drawn below the last one."""

    def __init__(self) -> None:
        self.drawn: list[str] = []
        self.y = 0.0

    def header(self, name: str, line: str) -> None:
        self.drawn += [
            text(MARGIN - 2, 110, svg.cut(name, 68, ROOM - 160, is_bold=True), 68, weight=700),
            text(MARGIN, 156, line, 24, SOFT),
            text(WIDTH - MARGIN, 100, "Hermes", 28, INK, weight=700, anchor="end"),
        ]
        self.y = 190.0

    def figures(self, shown: list[tuple[str, str]]) -> None:
        columns = 4
        width = (ROOM - GAP * (columns - 1)) / columns
        for number, (label, said) in enumerate(shown):
            row, column = divmod(number, columns)
            x, y = MARGIN + column * (width + GAP), self.y + row * (104 + GAP)
            self.drawn += [
                box(x, y, width, 104, PANEL, radius=16),
                text(x + 22, y + 52, svg.cut(said, 36, width - 40), 36, INK, weight=700),
                text(x + 22, y + 82, label, 18, SOFT),
            ]
        self.y += -(-len(shown) // columns) * (104 + GAP)

    def panel(self, x: float, width: float, height: float, title: str) -> float:
        """A panel; where its content begins."""
        self.drawn += [
            box(x, self.y, width, height, PANEL, radius=16),
            text(x + 22, self.y + 36, title, 19, SOFT, weight=500),
        ]
        return self.y + 58

    def rhythm(self, recap: Recap) -> None:
        """The days, and the hours beside or below them."""
        cells = heat_map.cells(recap.days)
        if heat_map.is_strip(recap.days):
            self._strip(cells)
            self._hours(recap, MARGIN, ROOM, 230)
            self.y += 230 + GAP
            return
        weeks = max(cell.week for cell in cells) + 1
        height = max(250.0, 58 + 30 + weeks * 58 + 18)
        self._calendar(cells, height)
        self._hours(recap, MARGIN + HALF + GAP, HALF, height)
        self.y += height + GAP

    def _strip(self, found: list[Cell]) -> None:
        weeks = max(cell.week for cell in found) + 1
        step = min(40.0, (ROOM - 44) / weeks)
        side = step * 0.84
        height = 58 + 24 + 7 * step + 20
        top = self.panel(MARGIN, ROOM, height, "Messages by day") + 24
        left = MARGIN + 22
        for week, name in heat_map.month_labels(found):
            self.drawn.append(text(left + week * step, top - 10, name, 15, FAINT))
        self.drawn += [
            box(left + c.week * step, top + c.weekday * step, side, side, WARMTH[c.level], radius=3)
            for c in found
        ]
        self.y += height + GAP

    def _calendar(self, found: list[Cell], height: float) -> None:
        top = self.panel(MARGIN, HALF, height, "Messages by day") + 24
        step = (HALF - 44 + 8) / 7
        for number, name in enumerate(WEEKDAYS):
            middle = MARGIN + 22 + number * step + (step - 8) / 2
            self.drawn.append(text(middle, top - 10, name[:3], 15, FAINT, anchor="middle"))
        for cell in found:
            x, y = MARGIN + 22 + cell.weekday * step, top + cell.week * 58
            ink = GROUND if cell.level > 2 else INK if cell.level else SOFT
            day = str(int(cell.day[8:]))
            self.drawn += [
                box(x, y, step - 8, 50, WARMTH[cell.level], radius=8),
                text(x + (step - 8) / 2, y + 31, day, 17, ink, weight=500, anchor="middle"),
            ]

    def _hours(self, recap: Recap, x: float, width: float, height: float) -> None:
        top = self.panel(x, width, height, "Messages by hour")
        bottom = self.y + height - 46
        step = (width - 44) / 24
        most = max(recap.hours) or 1
        for hour, count in enumerate(recap.hours):
            tall = max(3.0, (bottom - top) * count / most)
            fill = WARMTH[4] if count == most else ACCENT if count else EDGE
            left = x + 22 + hour * step
            self.drawn.append(box(left, bottom - tall, step * 0.74, tall, fill, radius=3))
            if hour % 3 == 0:
                middle = left + step * 0.37
                self.drawn.append(text(middle, bottom + 24, f"{hour}", 15, FAINT, anchor="middle"))

    def favourites(self, recap: Recap) -> None:
        lists = [
            (title, counted[:MAX_RANKED])
            for title, counted in (
                ("Tools", recap.tools),
                ("Programs", recap.programs),
                ("Models", recap.models),
            )
            if counted
        ]
        if not lists:
            return
        width = (ROOM - GAP * (len(lists) - 1)) / len(lists)
        height = 58 + max(len(counted) for _, counted in lists) * 42 + 14.0
        for number, (title, counted) in enumerate(lists):
            x = MARGIN + number * (width + GAP)
            self._ranked(counted, x, width, self.panel(x, width, height, title))
        self.y += height + GAP

    def _ranked(self, counted: Sequence[RecapCount], x: float, width: float, y: float) -> None:
        room = width - 44
        for number, item in enumerate(counted):
            line, said = y + number * 42 + 16, amount(item.times)
            free = room - svg.width(said, 17) - 14
            self.drawn += [
                text(x + 22, line, svg.cut(item.name, 17, free), 17, INK),
                text(x + 22 + room, line, said, 17, SOFT, anchor="end"),
                box(x + 22, line + 8, room, 5, EDGE, radius=2.5),
                box(
                    x + 22, line + 8, max(5, room * item.times / counted[0].times), 5,
                    ACCENT, radius=2.5,
                ),
            ]  # fmt: skip

    def tier_ups(self, found: Sequence[Mapping[str, Any]], catalogue: Catalogue) -> None:
        """The highest tiers that were reached."""
        if not found:
            return
        ranks = {tier.id: rank for rank, tier in enumerate(catalogue.tiers)}
        known = [item for item in found if item["tier"] in ranks]
        best = sorted(known, key=lambda item: (-ranks[item["tier"]], -item["at"]))[:MAX_MEDALS]
        more = f" · these and {len(found) - len(best):,} more" if len(found) > len(best) else ""
        title = plural(len(found), "tier") + " reached" + more
        top = self.panel(MARGIN, ROOM, 212, title)
        step = (ROOM - 44) / MAX_MEDALS
        for number, entry in enumerate(best):
            middle = MARGIN + 22 + step * (number + 0.5)
            tier = catalogue.tiers[ranks[entry["tier"]]]
            self.drawn.append(medal(entry["icon"], tier, middle, top + 42, 36))
            name = svg.folded(entry["name"], 15, step - 12, 2)
            self.drawn += [
                text(middle, top + 108 + 19 * place, line, 15, INK, anchor="middle")
                for place, line in enumerate(name)
            ]
        self.y += 212 + GAP

    def sentences(self, found: list[str]) -> None:
        if not found:
            return
        lines = [line for item in found for line in svg.folded(item, 21, ROOM - 44, 2)]
        height = 58 + len(lines) * 34 + 12.0
        top = self.panel(MARGIN, ROOM, height, "Worth remembering")
        self.drawn += [
            text(MARGIN + 22, top + 22 + 34 * number, line, 21, INK)
            for number, line in enumerate(lines)
        ]
        self.y += height + GAP
