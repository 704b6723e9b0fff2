"""A slide of a recap as a picture for sharing, in the format of a phone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hermes_achievements.pictures import svg
from hermes_achievements.pictures.recap_card import ACCENT_COLOUR
from hermes_achievements.pictures.svg import (
    BACKGROUND_COLOUR,
    EDGE_COLOUR,
    PANEL_COLOUR,
    SOFT_COLOUR,
    TEXT_COLOUR,
    box,
    document,
    text,
)

if TYPE_CHECKING:
    from hermes_achievements.recap.slides import Slide

WIDTH: Final = 1080
HEIGHT: Final = 1350
MARGIN: Final = 90
CONTENT_WIDTH: Final = WIDTH - 2 * MARGIN
FIGURE_SIZES: Final = (150, 112, 84)  # the largest that fits one line
BAR_STEP: Final = 84


def slide_card(slide: Slide, name: str) -> str:
    """*slide* of the recap of the period called *name*."""
    shapes = [
        box(0, 0, WIDTH, HEIGHT, BACKGROUND_COLOUR),
        box(MARGIN / 2, MARGIN / 2, WIDTH - MARGIN, HEIGHT - MARGIN, PANEL_COLOUR, radius=48),
        box(MARGIN, 190, 96, 10, ACCENT_COLOUR, radius=5),
        text(MARGIN, 164, svg.truncate_text(slide.heading, 44, CONTENT_WIDTH), 44, SOFT_COLOUR),
    ]
    shapes += _figure(slide.figure)
    y = 620.0
    for line in slide.lines:
        for part in svg.wrap_text(line, 42, CONTENT_WIDTH, 2):
            shapes.append(text(MARGIN, y, part, 42, TEXT_COLOUR))
            y += 60
        y += 12
    shapes += _bars(slide, y)
    shapes += [
        text(MARGIN, HEIGHT - 96, svg.truncate_text(name, 32, 600), 32, SOFT_COLOUR),
        text(WIDTH - MARGIN, HEIGHT - 96, "Hermes", 32, TEXT_COLOUR, weight=700, anchor="end"),
    ]
    return document(WIDTH, HEIGHT, f"{slide.heading}: {slide.figure}", shapes)


def _figure(figure: str) -> list[str]:
    for size in FIGURE_SIZES:
        if svg.text_width(figure, size, is_bold=True) <= CONTENT_WIDTH:
            return [text(MARGIN - 4, 440, figure, size, ACCENT_COLOUR, weight=700)]
    lines = svg.wrap_text(figure, FIGURE_SIZES[-1], CONTENT_WIDTH, 2, is_bold=True)
    return [
        text(MARGIN - 4, 380 + 100 * number, line, FIGURE_SIZES[-1], ACCENT_COLOUR, weight=700)
        for number, line in enumerate(lines)
    ]


def _bars(slide: Slide, top: float) -> list[str]:
    shapes: list[str] = []
    for number, bar in enumerate(slide.bars):
        y = top + number * BAR_STEP
        free = CONTENT_WIDTH - svg.text_width(bar.value, 34) - 24
        shapes += [
            text(MARGIN, y, svg.truncate_text(bar.name, 34, free), 34, TEXT_COLOUR),
            text(WIDTH - MARGIN, y, bar.value, 34, SOFT_COLOUR, anchor="end"),
            box(MARGIN, y + 16, CONTENT_WIDTH, 10, EDGE_COLOUR, radius=5),
            box(MARGIN, y + 16, max(10, CONTENT_WIDTH * bar.share), 10, ACCENT_COLOUR, radius=5),
        ]
    return shapes
