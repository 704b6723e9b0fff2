"""A recap and its slides as pictures for sharing; they contain no session titles."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hermes_achievements.pictures import svg
from hermes_achievements.pictures.svg import (
    BACKGROUND_COLOUR,
    EDGE_COLOUR,
    FAINT_COLOUR,
    PANEL_COLOUR,
    SOFT_COLOUR,
    TEXT_COLOUR,
    box,
    definitions,
    document,
    medal,
    text,
)
from hermes_achievements.recap import periods
from hermes_achievements.recap.periods import WEEKDAY_NAMES
from hermes_achievements.recap.sentences import figures, format_count, highlights, plural, summary

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes_achievements.catalogue import Catalogue
    from hermes_achievements.recap.periods import Cell
    from hermes_achievements.recap.recap import Recap, RecapCount, RecapTier
    from hermes_achievements.recap.slides import Slide


CARD_WIDTH: Final = 1200
CARD_MARGIN: Final = 48
CONTENT_WIDTH: Final = CARD_WIDTH - 2 * CARD_MARGIN
PANEL_GAP: Final = 16
HALF_WIDTH: Final = (CONTENT_WIDTH - PANEL_GAP) / 2
HEAT_COLOURS: Final = ("#272b3a", "#1d5247", "#2a7f68", "#42b28e", "#7aeac0")
ACCENT_COLOUR: Final = "#42b28e"
MAX_MEDALS: Final = 8
MAX_RANKED: Final = 6
PRIVATE_FIGURES: Final = frozenset({"cost"})


def recap_card(recap: Recap, name: str, catalogue: Catalogue) -> str:
    """*recap* of the period called *name*, as one picture."""
    canvas = _Canvas()
    canvas.header(name, summary(recap))
    canvas.figures([figure for figure in figures(recap) if figure[0] not in PRIVATE_FIGURES])
    canvas.rhythm(recap)
    canvas.favourites(recap)
    canvas.tier_ups(recap.tier_ups, catalogue)
    canvas.sentences(highlights(recap, is_public=True))
    height = round(canvas.y + CARD_MARGIN - PANEL_GAP)
    ground = [definitions(catalogue), box(0, 0, CARD_WIDTH, height, BACKGROUND_COLOUR)]
    return document(CARD_WIDTH, height, f"Recap of {name}", ground + canvas.shapes)


class _Canvas:
    """Draws the parts of the card from top to bottom."""

    def __init__(self) -> None:
        self.shapes: list[str] = []
        self.y = 0.0

    def header(self, name: str, line: str) -> None:
        self.shapes += [
            text(
                CARD_MARGIN - 2,
                110,
                svg.truncate_text(name, 68, CONTENT_WIDTH - 160, is_bold=True),
                68,
                weight=700,
            ),
            text(CARD_MARGIN, 156, line, 24, SOFT_COLOUR),
            text(
                CARD_WIDTH - CARD_MARGIN, 100, "Hermes", 28, TEXT_COLOUR, weight=700, anchor="end"
            ),
        ]
        self.y = 190.0

    def figures(self, shown: list[tuple[str, str]]) -> None:
        columns = 4
        width = (CONTENT_WIDTH - PANEL_GAP * (columns - 1)) / columns
        for number, (label, value) in enumerate(shown):
            row, column = divmod(number, columns)
            x, y = CARD_MARGIN + column * (width + PANEL_GAP), self.y + row * (104 + PANEL_GAP)
            self.shapes += [
                box(x, y, width, 104, PANEL_COLOUR, radius=16),
                text(
                    x + 22,
                    y + 52,
                    svg.truncate_text(value, 36, width - 40),
                    36,
                    TEXT_COLOUR,
                    weight=700,
                ),
                text(x + 22, y + 82, label, 18, SOFT_COLOUR),
            ]
        self.y += -(-len(shown) // columns) * (104 + PANEL_GAP)

    def panel(self, x: float, width: float, height: float, title: str) -> float:
        """Draw a panel; returns the top of its content."""
        self.shapes += [
            box(x, self.y, width, height, PANEL_COLOUR, radius=16),
            text(x + 22, self.y + 36, title, 19, SOFT_COLOUR, weight=500),
        ]
        return self.y + 58

    def rhythm(self, recap: Recap) -> None:
        """The days, with the hours beside or below."""
        cells = periods.cells(recap.days)
        if periods.is_strip(recap.days):
            self._strip(cells)
            self._hours(recap, CARD_MARGIN, CONTENT_WIDTH, 230)
            self.y += 230 + PANEL_GAP
            return
        weeks = max(cell.week for cell in cells) + 1
        height = max(250.0, 58 + 30 + weeks * 58 + 18)
        self._calendar(cells, height)
        self._hours(recap, CARD_MARGIN + HALF_WIDTH + PANEL_GAP, HALF_WIDTH, height)
        self.y += height + PANEL_GAP

    def _strip(self, cells: list[Cell]) -> None:
        weeks = max(cell.week for cell in cells) + 1
        step = min(40.0, (CONTENT_WIDTH - 44) / weeks)
        side = step * 0.84
        height = 58 + 24 + 7 * step + 20
        top = self.panel(CARD_MARGIN, CONTENT_WIDTH, height, "Messages by day") + 24
        left = CARD_MARGIN + 22
        for week, name in periods.month_labels(cells):
            self.shapes.append(text(left + week * step, top - 10, name, 15, FAINT_COLOUR))
        self.shapes += [
            box(
                left + c.week * step,
                top + c.weekday * step,
                side,
                side,
                HEAT_COLOURS[c.level],
                radius=3,
            )
            for c in cells
        ]
        self.y += height + PANEL_GAP

    def _calendar(self, cells: list[Cell], height: float) -> None:
        top = self.panel(CARD_MARGIN, HALF_WIDTH, height, "Messages by day") + 24
        step = (HALF_WIDTH - 44 + 8) / 7
        for number, name in enumerate(WEEKDAY_NAMES):
            middle = CARD_MARGIN + 22 + number * step + (step - 8) / 2
            self.shapes.append(text(middle, top - 10, name[:3], 15, FAINT_COLOUR, anchor="middle"))
        for cell in cells:
            x, y = CARD_MARGIN + 22 + cell.weekday * step, top + cell.week * 58
            ink = (
                BACKGROUND_COLOUR if cell.level > 2 else TEXT_COLOUR if cell.level else SOFT_COLOUR
            )
            day = str(int(cell.day[8:]))
            self.shapes += [
                box(x, y, step - 8, 50, HEAT_COLOURS[cell.level], radius=8),
                text(x + (step - 8) / 2, y + 31, day, 17, ink, weight=500, anchor="middle"),
            ]

    def _hours(self, recap: Recap, x: float, width: float, height: float) -> None:
        top = self.panel(x, width, height, "Messages by hour")
        bottom = self.y + height - 46
        step = (width - 44) / 24
        maximum = max(recap.hours) or 1
        for hour, count in enumerate(recap.hours):
            tall = max(3.0, (bottom - top) * count / maximum)
            fill = HEAT_COLOURS[4] if count == maximum else ACCENT_COLOUR if count else EDGE_COLOUR
            left = x + 22 + hour * step
            self.shapes.append(box(left, bottom - tall, step * 0.74, tall, fill, radius=3))
            if hour % 3 == 0:
                middle = left + step * 0.37
                self.shapes.append(
                    text(middle, bottom + 24, f"{hour}", 15, FAINT_COLOUR, anchor="middle")
                )

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
        width = (CONTENT_WIDTH - PANEL_GAP * (len(lists) - 1)) / len(lists)
        height = 58 + max(len(counted) for _, counted in lists) * 42 + 14.0
        for number, (title, counted) in enumerate(lists):
            x = CARD_MARGIN + number * (width + PANEL_GAP)
            self._ranked(counted, x, width, self.panel(x, width, height, title))
        self.y += height + PANEL_GAP

    def _ranked(self, counted: Sequence[RecapCount], x: float, width: float, y: float) -> None:
        room = width - 44
        for number, item in enumerate(counted):
            line, value = y + number * 42 + 16, format_count(item.times)
            free = room - svg.text_width(value, 17) - 14
            self.shapes += [
                text(x + 22, line, svg.truncate_text(item.name, 17, free), 17, TEXT_COLOUR),
                text(x + 22 + room, line, value, 17, SOFT_COLOUR, anchor="end"),
                box(x + 22, line + 8, room, 5, EDGE_COLOUR, radius=2.5),
                box(
                    x + 22, line + 8, max(5, room * item.times / counted[0].times), 5,
                    ACCENT_COLOUR, radius=2.5,
                ),
            ]  # fmt: skip

    def tier_ups(self, tier_ups: Sequence[RecapTier], catalogue: Catalogue) -> None:
        """The highest tiers reached in the period."""
        if not tier_ups:
            return
        ranks = {tier.id: rank for rank, tier in enumerate(catalogue.tiers)}
        ranked = [item for item in tier_ups if item["tier"] in ranks]
        best = sorted(ranked, key=lambda item: (-ranks[item["tier"]], -item["at"]))[:MAX_MEDALS]
        more = (
            f" · these and {len(tier_ups) - len(best):,} more" if len(tier_ups) > len(best) else ""
        )
        title = plural(len(tier_ups), "tier") + " reached" + more
        top = self.panel(CARD_MARGIN, CONTENT_WIDTH, 212, title)
        step = (CONTENT_WIDTH - 44) / MAX_MEDALS
        for number, entry in enumerate(best):
            middle = CARD_MARGIN + 22 + step * (number + 0.5)
            tier = catalogue.tiers[ranks[entry["tier"]]]
            self.shapes.append(medal(entry["icon"], tier, middle, top + 42, 36))
            name = svg.wrap_text(entry["name"], 15, step - 12, 2)
            self.shapes += [
                text(middle, top + 108 + 19 * place, line, 15, TEXT_COLOUR, anchor="middle")
                for place, line in enumerate(name)
            ]
        self.y += 212 + PANEL_GAP

    def sentences(self, sentences: list[str]) -> None:
        if not sentences:
            return
        lines = [
            line for item in sentences for line in svg.wrap_text(item, 21, CONTENT_WIDTH - 44, 2)
        ]
        height = 58 + len(lines) * 34 + 12.0
        top = self.panel(CARD_MARGIN, CONTENT_WIDTH, height, "Worth remembering")
        self.shapes += [
            text(CARD_MARGIN + 22, top + 22 + 34 * number, line, 21, TEXT_COLOUR)
            for number, line in enumerate(lines)
        ]
        self.y += height + PANEL_GAP


SLIDE_WIDTH: Final = 1080
SLIDE_HEIGHT: Final = 1350
SLIDE_MARGIN: Final = 90
SLIDE_CONTENT_WIDTH: Final = SLIDE_WIDTH - 2 * SLIDE_MARGIN
SLIDE_FIGURE_SIZES: Final = (150, 112, 84)  # the largest that fits one line
SLIDE_BAR_STEP: Final = 84


def slide_card(slide: Slide, name: str) -> str:
    """*slide* of the recap of the period called *name*."""
    shapes = [
        box(0, 0, SLIDE_WIDTH, SLIDE_HEIGHT, BACKGROUND_COLOUR),
        box(
            SLIDE_MARGIN / 2,
            SLIDE_MARGIN / 2,
            SLIDE_WIDTH - SLIDE_MARGIN,
            SLIDE_HEIGHT - SLIDE_MARGIN,
            PANEL_COLOUR,
            radius=48,
        ),
        box(SLIDE_MARGIN, 190, 96, 10, ACCENT_COLOUR, radius=5),
        text(
            SLIDE_MARGIN,
            164,
            svg.truncate_text(slide.heading, 44, SLIDE_CONTENT_WIDTH),
            44,
            SOFT_COLOUR,
        ),
    ]
    shapes += _slide_figure(slide.figure)
    y = 620.0
    for line in slide.lines:
        for part in svg.wrap_text(line, 42, SLIDE_CONTENT_WIDTH, 2):
            shapes.append(text(SLIDE_MARGIN, y, part, 42, TEXT_COLOUR))
            y += 60
        y += 12
    shapes += _slide_bars(slide, y)
    shapes += [
        text(SLIDE_MARGIN, SLIDE_HEIGHT - 96, svg.truncate_text(name, 32, 600), 32, SOFT_COLOUR),
        text(
            SLIDE_WIDTH - SLIDE_MARGIN,
            SLIDE_HEIGHT - 96,
            "Hermes",
            32,
            TEXT_COLOUR,
            weight=700,
            anchor="end",
        ),
    ]
    return document(SLIDE_WIDTH, SLIDE_HEIGHT, f"{slide.heading}: {slide.figure}", shapes)


def _slide_figure(figure: str) -> list[str]:
    for size in SLIDE_FIGURE_SIZES:
        if svg.text_width(figure, size, is_bold=True) <= SLIDE_CONTENT_WIDTH:
            return [text(SLIDE_MARGIN - 4, 440, figure, size, ACCENT_COLOUR, weight=700)]
    lines = svg.wrap_text(figure, SLIDE_FIGURE_SIZES[-1], SLIDE_CONTENT_WIDTH, 2, is_bold=True)
    return [
        text(
            SLIDE_MARGIN - 4,
            380 + 100 * number,
            line,
            SLIDE_FIGURE_SIZES[-1],
            ACCENT_COLOUR,
            weight=700,
        )
        for number, line in enumerate(lines)
    ]


def _slide_bars(slide: Slide, top: float) -> list[str]:
    shapes: list[str] = []
    for number, bar in enumerate(slide.bars):
        y = top + number * SLIDE_BAR_STEP
        free = SLIDE_CONTENT_WIDTH - svg.text_width(bar.value, 34) - 24
        shapes += [
            text(SLIDE_MARGIN, y, svg.truncate_text(bar.name, 34, free), 34, TEXT_COLOUR),
            text(SLIDE_WIDTH - SLIDE_MARGIN, y, bar.value, 34, SOFT_COLOUR, anchor="end"),
            box(SLIDE_MARGIN, y + 16, SLIDE_CONTENT_WIDTH, 10, EDGE_COLOUR, radius=5),
            box(
                SLIDE_MARGIN,
                y + 16,
                max(10, SLIDE_CONTENT_WIDTH * bar.share),
                10,
                ACCENT_COLOUR,
                radius=5,
            ),
        ]
    return shapes
