"""The share card of an achievement: 1200 by 630 pixels, the size of link previews."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hermes_achievements.pictures import svg
from hermes_achievements.pictures.badges import unlock_date
from hermes_achievements.pictures.medal import definitions, medal
from hermes_achievements.pictures.svg import (
    BACKGROUND_COLOUR,
    EDGE_COLOUR,
    FAINT_COLOUR,
    SOFT_COLOUR,
    TEXT_COLOUR,
    box,
    document,
    text,
)
from hermes_core.errors import UsageError

if TYPE_CHECKING:
    from hermes_achievements.catalogue import Catalogue, Tier
    from hermes_achievements.evaluation.snapshot import AchievementView

CARD_WIDTH: Final = 1200
CARD_HEIGHT: Final = 630
TEXT_LEFT: Final = 450  # the medal is left of the text
TEXT_WIDTH: Final = CARD_WIDTH - TEXT_LEFT - 70
NAME_FONT_SIZES: Final = (72.0, 60.0, 50.0)


def card(shown: AchievementView, catalogue: Catalogue) -> str:
    """The card of an unlocked achievement of a snapshot."""
    tier = next((item for item in catalogue.tiers if item.id == shown["tier"]), None)
    if tier is None:
        raise UsageError(f"{shown['name']} is not unlocked yet; its card cannot be shared.")
    size, name = _name(shown["name"])
    words = svg.wrap_text(shown["description"], 28, TEXT_WIDTH, 3)
    top = 318 - (len(name) * size * 1.12 + len(words) * 38 + 100) / 2
    body = [
        definitions(catalogue),
        _glow(tier),
        box(0, 0, CARD_WIDTH, CARD_HEIGHT, BACKGROUND_COLOUR),
        box(0, 0, CARD_WIDTH, CARD_HEIGHT, "url(#glow)"),
        box(0, 0, CARD_WIDTH, 8, tier.glow),
        medal(shown["icon"], tier, 236, 300, 158),
        *_ladder(shown, catalogue),
        *_texts(tier, size, name, words, top),
        *_foot(shown),
    ]
    return document(CARD_WIDTH, CARD_HEIGHT, f"{shown['name']}, {tier.name}", body)


def _name(name: str) -> tuple[float, list[str]]:
    """The largest font size that fits the name, and its lines."""
    for size in NAME_FONT_SIZES:
        lines = svg.wrap_text(name, size, TEXT_WIDTH, 2, is_bold=True)
        if svg.ELLIPSIS not in lines[-1]:
            return size, lines
    return NAME_FONT_SIZES[-1], svg.wrap_text(
        name, NAME_FONT_SIZES[-1], TEXT_WIDTH, 2, is_bold=True
    )


def _glow(tier: Tier) -> str:
    return (
        '<defs><radialGradient id="glow" cx="0.2" cy="0.45" r="0.75">'
        f'<stop offset="0" stop-color="{tier.glow}" stop-opacity="0.30"/>'
        f'<stop offset="1" stop-color="{tier.glow}" stop-opacity="0"/>'
        "</radialGradient></defs>"
    )


def _texts(tier: Tier, size: float, name: list[str], words: list[str], top: float) -> list[str]:
    label = f"{tier.name} unlocked".upper()
    pill = svg.text_width(label, 20, is_bold=True) + 2 * len(label) + 40
    results = [
        box(TEXT_LEFT, top, pill, 42, tier.glow, radius=21),
        text(
            TEXT_LEFT + 21,
            top + 28,
            label,
            20,
            BACKGROUND_COLOUR,
            weight=700,
            attributes=' letter-spacing="2"',
        ),
    ]
    y = top + 50
    for line in name:
        y += size * 1.12
        results.append(text(TEXT_LEFT - size / 24, y, line, size, TEXT_COLOUR, weight=700))
    y += 22
    for line in words:
        y += 38
        results.append(text(TEXT_LEFT, y, line, 28, SOFT_COLOUR))
    return results


def _ladder(shown: AchievementView, catalogue: Catalogue) -> list[str]:
    """A dot per tier; unlocked tiers are coloured."""
    tiers = {tier.id: tier for tier in catalogue.tiers}
    steps = [tier["name"] for tier in shown["tiers"] if tier["name"] in tiers]
    if len(steps) < 2:
        return []
    earned = steps.index(shown["tier"]) if shown["tier"] in steps else 0
    x = 236 - (len(steps) - 1) * 17.0
    return [
        f'<circle cx="{x + 34 * number:g}" cy="498" r="9" '
        f'fill="{tiers[step].glow if number <= earned else FAINT_COLOUR}"/>'
        for number, step in enumerate(steps)
    ]


def _foot(shown: AchievementView) -> list[str]:
    """The progress, the date and the program name."""
    took = f"{shown['progress']:,} {shown['unit']}" if shown["progress"] > 1 else ""
    caption = " · ".join(item for item in (took, unlock_date(shown)) if item)
    return [
        box(TEXT_LEFT, 538, TEXT_WIDTH, 1.5, EDGE_COLOUR),
        text(TEXT_LEFT, 580, svg.truncate_text(caption, 24, TEXT_WIDTH - 130), 24, SOFT_COLOUR),
        text(CARD_WIDTH - 70, 580, "Hermes", 24, TEXT_COLOUR, weight=700, anchor="end"),
    ]
