"""The share card of one achievement: 1200 by 630, as previews of links have it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from hermes_achievements.pictures import svg
from hermes_achievements.pictures.badges import dated
from hermes_achievements.pictures.medal import definitions, medal
from hermes_achievements.pictures.svg import EDGE, FAINT, GROUND, INK, SOFT, box, document, text
from hermes_core.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hermes_achievements.catalogue import Catalogue, Tier

WIDTH: Final = 1200
HEIGHT: Final = 630
LEFT: Final = 450  # where the words begin; the medal has the room before
ROOM: Final = WIDTH - LEFT - 70
SIZES: Final = (72.0, 60.0, 50.0)


def card(shown: Mapping[str, Any], catalogue: Catalogue) -> str:
    """The card of an achievement as a snapshot shows it; it has to be unlocked."""
    tier = next((item for item in catalogue.tiers if item.id == shown["tier"]), None)
    if tier is None:
        raise UsageError(f"{shown['name']} is not unlocked yet; its card cannot be shared.")
    size, name = _name(shown["name"])
    words = svg.folded(shown["description"], 28, ROOM, 3)
    top = 318 - (len(name) * size * 1.12 + len(words) * 38 + 100) / 2
    body = [
        definitions(catalogue),
        _glow(tier),
        box(0, 0, WIDTH, HEIGHT, GROUND),
        box(0, 0, WIDTH, HEIGHT, "url(#glow)"),
        box(0, 0, WIDTH, 8, tier.glow),
        medal(shown["icon"], tier, 236, 300, 158),
        *_ladder(shown, catalogue),
        *_words(tier, size, name, words, top),
        *_foot(shown),
    ]
    return document(WIDTH, HEIGHT, f"{shown['name']}, {tier.name}", body)


def _name(name: str) -> tuple[float, list[str]]:
    """The name as large as it can be."""
    for size in SIZES:
        lines = svg.folded(name, size, ROOM, 2, is_bold=True)
        if svg.ELLIPSIS not in lines[-1]:
            return size, lines
    return SIZES[-1], svg.folded(name, SIZES[-1], ROOM, 2, is_bold=True)


def _glow(tier: Tier) -> str:
    return (
        '<defs><radialGradient id="glow" cx="0.2" cy="0.45" r="0.75">'
        f'<stop offset="0" stop-color="{tier.glow}" stop-opacity="0.30"/>'
        f'<stop offset="1" stop-color="{tier.glow}" stop-opacity="0"/>'
        "</radialGradient></defs>"
    )


def _words(tier: Tier, size: float, name: list[str], words: list[str], top: float) -> list[str]:
    label = f"{tier.name} unlocked".upper()
    pill = svg.width(label, 20, is_bold=True) + 2 * len(label) + 40
    results = [
        box(LEFT, top, pill, 42, tier.glow, radius=21),
        text(LEFT + 21, top + 28, label, 20, GROUND, weight=700, more=' letter-spacing="2"'),
    ]
    y = top + 50
    for line in name:
        y += size * 1.12
        results.append(text(LEFT - size / 24, y, line, size, INK, weight=700))
    y += 22
    for line in words:
        y += 38
        results.append(text(LEFT, y, line, 28, SOFT))
    return results


def _ladder(shown: Mapping[str, Any], catalogue: Catalogue) -> list[str]:
    """A dot for each tier there is to earn; those that are earned shine."""
    tiers = {tier.id: tier for tier in catalogue.tiers}
    steps = [tier["name"] for tier in shown["tiers"] if tier["name"] in tiers]
    if len(steps) < 2:
        return []
    earned = steps.index(shown["tier"]) if shown["tier"] in steps else 0
    x = 236 - (len(steps) - 1) * 17.0
    return [
        f'<circle cx="{x + 34 * number:g}" cy="498" r="9" '
        f'fill="{tiers[step].glow if number <= earned else FAINT}"/>'
        for number, step in enumerate(steps)
    ]


def _foot(shown: Mapping[str, Any]) -> list[str]:
    """What it took, when it was, and whose it is."""
    took = f"{shown['progress']:,} {shown['unit']}" if shown["progress"] > 1 else ""
    said = " · ".join(item for item in (took, dated(shown)) if item)
    return [
        box(LEFT, 538, ROOM, 1.5, EDGE),
        text(LEFT, 580, svg.cut(said, 24, ROOM - 130), 24, SOFT),
        text(WIDTH - 70, 580, "Hermes", 24, INK, weight=700, anchor="end"),
    ]
