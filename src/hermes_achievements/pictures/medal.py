"""The medal of an achievement: its icon on a hexagon in the colour of the tier."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from hermes_achievements.pictures.svg import BACKGROUND_COLOUR, EDGE_COLOUR, FAINT_COLOUR, icon

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hermes_achievements.catalogue import Catalogue, Tier


def definitions(catalogue: Catalogue) -> str:
    """The gradients of the tiers; needed once per picture."""
    return "<defs>" + "".join(map(_gradient, catalogue.tiers)) + "</defs>"


def _gradient(tier: Tier) -> str:
    return (
        f'<linearGradient id="medal-{tier.id}" x1="0" y1="0" x2="0" y2="1">'
        f'<stop offset="0" stop-color="{tier.glow}" stop-opacity="0.34"/>'
        f'<stop offset="1" stop-color="{tier.glow}" stop-opacity="0.10"/></linearGradient>'
    )


def medal(name: str, tier: Tier | None, x: float, y: float, radius: float) -> str:
    """A medal centred at *x*, *y*; grey without a tier."""
    outer, inner = _hexagon(x, y, radius), _hexagon(x, y, radius * 0.86)
    edge = tier.glow if tier else EDGE_COLOUR
    fill = f"url(#medal-{tier.id})" if tier else BACKGROUND_COLOUR
    size = radius * 0.92
    ring = (
        f'<polygon points="{outer}" fill="{BACKGROUND_COLOUR}" stroke="{edge}" '
        f'stroke-width="{radius / 16:g}" stroke-linejoin="round"/>'
    )
    face = f'<polygon points="{inner}" fill="{fill}"/>'
    shapes = icon(name, x - size / 2, y - size / 2, size, tier.glow if tier else FAINT_COLOUR)
    return ring + face + shapes


def _hexagon(x: float, y: float, radius: float) -> str:
    corners: Iterable[tuple[float, float]] = (
        (
            x + radius * math.sin(math.pi / 3 * number),
            y - radius * math.cos(math.pi / 3 * number),
        )
        for number in range(6)
    )
    return " ".join(f"{left:.1f},{top:.1f}" for left, top in corners)
