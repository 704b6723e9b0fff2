"""The wall of badges: what is earned in the order of the tiers, then what is still ahead."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from hermes_achievements.calendar import Calendar
from hermes_achievements.pictures import svg
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
from hermes_achievements.recap.periods import short
from hermes_achievements.recap.sentences import amount
from hermes_core.time_zones import find_zone

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hermes_achievements.catalogue import Catalogue, Tier

    Shown = Mapping[str, Any]

WIDTH: Final = 1600
MARGIN: Final = 48
COLUMNS: Final = 10
GAP: Final = 10
TILE: Final = (WIDTH - 2 * MARGIN - GAP * (COLUMNS - 1)) / COLUMNS
TILE_HEIGHT: Final = 140
MEDAL: Final = 31
NAME_FONT_SIZE: Final = 14.0
HEADER: Final = 200
HEADING: Final = 62


def wall(snapshot: Mapping[str, Any], catalogue: Catalogue) -> str:
    """All badges of *snapshot* as one picture."""
    sections = _sections(snapshot["achievements"], catalogue)
    body: list[str] = []
    y = float(HEADER)
    for tier, title, shown in sections:
        body += _section(tier, title, shown, y)
        rows = -(-len(shown) // COLUMNS)
        y += HEADING + rows * (TILE_HEIGHT + GAP) + 10
    height = round(y + MARGIN - 10)
    head = [
        definitions(catalogue),
        box(0, 0, WIDTH, height, GROUND),
        *_header(snapshot, catalogue, {tier.id: len(s) for tier, _, s in sections if tier}),
    ]
    return document(WIDTH, height, _title(snapshot), head + body)


def _title(snapshot: Mapping[str, Any]) -> str:
    return f"{snapshot['unlocked_count']} of {snapshot['total_count']} achievements"


def _sections(
    achievements: list[Shown], catalogue: Catalogue
) -> list[tuple[Tier | None, str, list[Shown]]]:
    """The highest tier first; in each the newest first."""
    results: list[tuple[Tier | None, str, list[Shown]]] = []
    for tier in reversed(catalogue.tiers):
        held = [
            achievement
            for achievement in achievements
            if achievement["unlocked"] and achievement["tier"] == tier.id
        ]
        held.sort(key=lambda item: (-(reached_at(item) or 0), item["name"]))
        results.append((tier, tier.name, held))
    ahead = [achievement for achievement in achievements if not achievement["unlocked"]]
    ahead.sort(key=lambda item: -item["progress_pct"])
    results.append((None, "Still ahead", ahead))
    return [section for section in results if section[2]]


def reached_at(one: Shown) -> float | None:
    """When the tier that is held was reached."""
    history = one.get("tier_history") or ()
    at = history[-1]["at"] if history else one.get("unlocked_at")
    return float(at) if at is not None else None


def dated(one: Shown) -> str:
    """The day of the tier that is held; empty where nobody knows."""
    at = reached_at(one)
    return "" if at is None else short(Calendar(find_zone("")).day(at))


def _header(snapshot: Mapping[str, Any], catalogue: Catalogue, held: dict[str, int]) -> list[str]:
    unlocked, total = snapshot["unlocked_count"], snapshot["total_count"]
    number = f"{unlocked:,}"
    beside = MARGIN + svg.width(number, 64, is_bold=True) + 16
    results = [
        text(MARGIN, 92, number, 64, weight=700),
        text(beside, 92, f"of {total:,} achievements", 26, SOFT),
        text(WIDTH - MARGIN, 62, "Hermes", 26, INK, weight=700, anchor="end"),
        text(WIDTH - MARGIN, 90, _day_of(snapshot), 16, FAINT, anchor="end"),
    ]
    return results + _bar(catalogue, held, total) + _legend(catalogue, held)


def _day_of(snapshot: Mapping[str, Any]) -> str:
    return short(Calendar(find_zone("")).day(float(snapshot["generated_at"])))


def _bar(catalogue: Catalogue, held: dict[str, int], total: int) -> list[str]:
    """How much is earned, each tier in its colour."""
    whole = WIDTH - 2 * MARGIN
    clip = box(MARGIN, 116, whole, 12, "#fff", radius=6)
    results = [f'<clipPath id="bar">{clip}</clipPath><g clip-path="url(#bar)">']
    results.append(box(MARGIN, 116, whole, 12, EDGE))
    x = float(MARGIN)
    for tier in reversed(catalogue.tiers):
        part = whole * held.get(tier.id, 0) / max(1, total)
        results.append(box(x, 116, part, 12, tier.glow))
        x += part
    return [*results, "</g>"]


def _legend(catalogue: Catalogue, held: dict[str, int]) -> list[str]:
    results: list[str] = []
    x = float(MARGIN)
    for tier in reversed(catalogue.tiers):
        words = f"{held.get(tier.id, 0):,} {tier.name}"
        results.append(f'<circle cx="{x + 6:g}" cy="155" r="6" fill="{tier.glow}"/>')
        results.append(text(x + 20, 161, words, 17, SOFT))
        x += 20 + svg.width(words, 17) + 30
    return results


def _section(tier: Tier | None, title: str, shown: list[Shown], y: float) -> list[str]:
    colour = tier.glow if tier else SOFT
    after = MARGIN + svg.width(title, 24, is_bold=True) + 14
    results = [
        text(MARGIN, y + 38, title, 24, colour, weight=700),
        text(after, y + 38, f"{len(shown):,}", 20, FAINT),
    ]
    for number, item in enumerate(shown):
        row, column = divmod(number, COLUMNS)
        x = MARGIN + column * (TILE + GAP)
        results.append(_tile(item, tier, x, y + HEADING + row * (TILE_HEIGHT + GAP)))
    return results


def _tile(one: Shown, tier: Tier | None, x: float, y: float) -> str:
    middle = x + TILE / 2
    name = svg.folded(one["name"], NAME_FONT_SIZE, TILE - 14, 2, is_bold=True)
    top = y + 92 if len(name) == 2 else y + 100
    below = dated(one) if tier else _ahead(one)
    pieces = [
        box(x, y, TILE, TILE_HEIGHT, PANEL, radius=14),
        medal(one["icon"], tier, middle, y + 44, MEDAL),
        *(
            text(middle, top + 17 * number, line, NAME_FONT_SIZE, INK, weight=500, anchor="middle")
            for number, line in enumerate(name)
        ),
        text(middle, y + 128, below, 12, SOFT, anchor="middle"),
    ]
    dim = "" if tier else ' opacity="0.8"'
    return f"<g{dim}>{''.join(pieces)}</g>"


def _ahead(one: Shown) -> str:
    """How far an unearned one is; a secret says nothing."""
    if one["state"] == "secret" or not one["next_threshold"]:
        return ""
    return f"{amount(one['progress'])} of {amount(one['next_threshold'])}"
