"""Pictures of achievements: the wall of badges and the share card of one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hermes_achievements.calendar import Calendar
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
from hermes_achievements.recap.periods import short_date
from hermes_achievements.recap.sentences import format_count
from hermes_core.errors import UsageError
from hermes_core.time_zones import find_zone

if TYPE_CHECKING:
    from hermes_achievements.catalogue import Catalogue, Tier
    from hermes_achievements.evaluation.snapshot import AchievementView, Snapshot


WALL_WIDTH: Final = 1600
WALL_MARGIN: Final = 48
WALL_COLUMNS: Final = 10
TILE_GAP: Final = 10
TILE_WIDTH: Final = (WALL_WIDTH - 2 * WALL_MARGIN - TILE_GAP * (WALL_COLUMNS - 1)) / WALL_COLUMNS
TILE_HEIGHT: Final = 140
MEDAL_RADIUS: Final = 31
NAME_FONT_SIZE: Final = 14.0
HEADER_HEIGHT: Final = 200
HEADING_HEIGHT: Final = 62


def wall(snapshot: Snapshot, catalogue: Catalogue) -> str:
    """All badges of *snapshot* as one picture."""
    sections = _sections(snapshot["achievements"], catalogue)
    body: list[str] = []
    y = float(HEADER_HEIGHT)
    for tier, title, shown in sections:
        body += _section(tier, title, shown, y)
        rows = -(-len(shown) // WALL_COLUMNS)
        y += HEADING_HEIGHT + rows * (TILE_HEIGHT + TILE_GAP) + 10
    height = round(y + WALL_MARGIN - 10)
    head = [
        definitions(catalogue),
        box(0, 0, WALL_WIDTH, height, BACKGROUND_COLOUR),
        *_header(snapshot, catalogue, {tier.id: len(s) for tier, _, s in sections if tier}),
    ]
    return document(WALL_WIDTH, height, _title(snapshot), head + body)


def _title(snapshot: Snapshot) -> str:
    return f"{snapshot['unlocked_count']} of {snapshot['total_count']} achievements"


def _sections(
    achievements: list[AchievementView], catalogue: Catalogue
) -> list[tuple[Tier | None, str, list[AchievementView]]]:
    """Highest tier first; newest first within a tier."""
    results: list[tuple[Tier | None, str, list[AchievementView]]] = []
    for tier in reversed(catalogue.tiers):
        unlocked = [
            achievement
            for achievement in achievements
            if achievement["unlocked"] and achievement["tier"] == tier.id
        ]
        unlocked.sort(key=lambda item: (-(reached_at(item) or 0), item["name"]))
        results.append((tier, tier.name, unlocked))
    ahead = [achievement for achievement in achievements if not achievement["unlocked"]]
    ahead.sort(key=lambda item: -item["progress_pct"])
    results.append((None, "Still ahead", ahead))
    return [section for section in results if section[2]]


def reached_at(achievement: AchievementView) -> float | None:
    """The time at which the current tier was reached, or None."""
    history = achievement.get("tier_history") or ()
    at = history[-1]["at"] if history else achievement.get("unlocked_at")
    return float(at) if at is not None else None


def unlock_date(achievement: AchievementView) -> str:
    """The day on which the current tier was reached, or ''."""
    at = reached_at(achievement)
    return "" if at is None else short_date(Calendar(find_zone("")).day(at))


def _header(snapshot: Snapshot, catalogue: Catalogue, tier_counts: dict[str, int]) -> list[str]:
    unlocked, total = snapshot["unlocked_count"], snapshot["total_count"]
    number = f"{unlocked:,}"
    beside = WALL_MARGIN + svg.text_width(number, 64, is_bold=True) + 16
    results = [
        text(WALL_MARGIN, 92, number, 64, weight=700),
        text(beside, 92, f"of {total:,} achievements", 26, SOFT_COLOUR),
        text(WALL_WIDTH - WALL_MARGIN, 62, "Hermes", 26, TEXT_COLOUR, weight=700, anchor="end"),
        text(WALL_WIDTH - WALL_MARGIN, 90, _day_of(snapshot), 16, FAINT_COLOUR, anchor="end"),
    ]
    return results + _bar(catalogue, tier_counts, total) + _legend(catalogue, tier_counts)


def _day_of(snapshot: Snapshot) -> str:
    return short_date(Calendar(find_zone("")).day(float(snapshot["generated_at"])))


def _bar(catalogue: Catalogue, tier_counts: dict[str, int], total: int) -> list[str]:
    """The progress bar, with a colour per tier."""
    width = WALL_WIDTH - 2 * WALL_MARGIN
    clip = box(WALL_MARGIN, 116, width, 12, "#fff", radius=6)
    results = [f'<clipPath id="bar">{clip}</clipPath><g clip-path="url(#bar)">']
    results.append(box(WALL_MARGIN, 116, width, 12, EDGE_COLOUR))
    x = float(WALL_MARGIN)
    for tier in reversed(catalogue.tiers):
        part = width * tier_counts.get(tier.id, 0) / max(1, total)
        results.append(box(x, 116, part, 12, tier.glow))
        x += part
    return [*results, "</g>"]


def _legend(catalogue: Catalogue, tier_counts: dict[str, int]) -> list[str]:
    results: list[str] = []
    x = float(WALL_MARGIN)
    for tier in reversed(catalogue.tiers):
        label = f"{tier_counts.get(tier.id, 0):,} {tier.name}"
        results.append(f'<circle cx="{x + 6:g}" cy="155" r="6" fill="{tier.glow}"/>')
        results.append(text(x + 20, 161, label, 17, SOFT_COLOUR))
        x += 20 + svg.text_width(label, 17) + 30
    return results


def _section(tier: Tier | None, title: str, shown: list[AchievementView], y: float) -> list[str]:
    colour = tier.glow if tier else SOFT_COLOUR
    after = WALL_MARGIN + svg.text_width(title, 24, is_bold=True) + 14
    results = [
        text(WALL_MARGIN, y + 38, title, 24, colour, weight=700),
        text(after, y + 38, f"{len(shown):,}", 20, FAINT_COLOUR),
    ]
    for number, item in enumerate(shown):
        row, column = divmod(number, WALL_COLUMNS)
        x = WALL_MARGIN + column * (TILE_WIDTH + TILE_GAP)
        results.append(_tile(item, tier, x, y + HEADING_HEIGHT + row * (TILE_HEIGHT + TILE_GAP)))
    return results


def _tile(achievement: AchievementView, tier: Tier | None, x: float, y: float) -> str:
    middle = x + TILE_WIDTH / 2
    name = svg.wrap_text(achievement["name"], NAME_FONT_SIZE, TILE_WIDTH - 14, 2, is_bold=True)
    top = y + 92 if len(name) == 2 else y + 100
    below = unlock_date(achievement) if tier else _progress(achievement)
    pieces = [
        box(x, y, TILE_WIDTH, TILE_HEIGHT, PANEL_COLOUR, radius=14),
        medal(achievement["icon"], tier, middle, y + 44, MEDAL_RADIUS),
        *(
            text(
                middle,
                top + 17 * number,
                line,
                NAME_FONT_SIZE,
                TEXT_COLOUR,
                weight=500,
                anchor="middle",
            )
            for number, line in enumerate(name)
        ),
        text(middle, y + 128, below, 12, SOFT_COLOUR, anchor="middle"),
    ]
    dim = "" if tier else ' opacity="0.8"'
    return f"<g{dim}>{''.join(pieces)}</g>"


def _progress(achievement: AchievementView) -> str:
    """The progress of a locked achievement; '' for a secret."""
    if achievement["state"] == "secret" or not achievement["next_threshold"]:
        return ""
    return (
        f"{format_count(achievement['progress'])} of {format_count(achievement['next_threshold'])}"
    )


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
