"""Exports achievements as JSON, Markdown, SVG or PNG.

Exports are meant for sharing and contain no session titles.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

import orjson

from hermes_achievements.calendar import Calendar
from hermes_achievements.evaluation.views import count_by_tier
from hermes_achievements.pictures import badges, svg
from hermes_achievements.pictures.badges import card, unlock_date
from hermes_achievements.recap.periods import short_date
from hermes_achievements.recap.sentences import format_count
from hermes_core.errors import UsageError
from hermes_core.time_zones import find_zone

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes_achievements.catalogue import Catalogue, Category
    from hermes_achievements.evaluation.snapshot import AchievementView, Snapshot

MARKDOWN_SPECIAL: Final = re.compile(r"([\\`*_{}\[\]<>#|~!])")
BAR_CELLS: Final = 10


def markdown_page(snapshot: Snapshot, catalogue: Catalogue) -> str:
    """The achievements as Markdown: a summary and a table per category."""
    unlocked, total = snapshot["unlocked_count"], snapshot["total_count"]
    day = Calendar(find_zone("")).day(float(snapshot["generated_at"]))
    tier_counts = count_by_tier(snapshot, catalogue)
    parts = [
        "# Achievements",
        f"**{unlocked:,} of {total:,} unlocked** · {snapshot['discovered_count']:,} in progress · "
        f"{snapshot['secret_count']:,} secret · as of {short_date(day)}",
        _table(
            [tier.name for tier in reversed(catalogue.tiers)],
            [[f"{tier_counts[tier.id]:,}" for tier in reversed(catalogue.tiers)]],
            numbers=range(len(catalogue.tiers)),
        ),
    ]
    for category in catalogue.categories:
        shown = [
            achievement
            for achievement in snapshot["achievements"]
            if achievement["category"] == category.id
        ]
        if shown:
            parts.append(_category_section(category, shown, catalogue))
    return "\n\n".join(parts) + "\n"


def _category_section(
    category: Category, shown: list[AchievementView], catalogue: Catalogue
) -> str:
    earned = sum(1 for item in shown if item["unlocked"])
    names = {tier.id: tier.name for tier in catalogue.tiers}
    ranks = {tier.id: rank for rank, tier in enumerate(catalogue.tiers, 1)}
    ordered = sorted(shown, key=lambda item: (-ranks.get(item["tier"] or "", 0), item["secret"]))
    rows = [_row(item, names) for item in ordered]
    table = _table(["achievement", "tier", "progress", "since"], rows)
    heading = f"## {escape_markdown(category.name)} ({earned:,} of {len(shown):,})"
    return f"{heading}\n\n{escape_markdown(category.text)}\n\n{table}"


def _row(achievement: AchievementView, names: dict[str, str]) -> list[str]:
    if achievement["state"] == "secret":
        return [f"🔒 *{escape_markdown(achievement['hint'])}*", "secret", "", ""]
    name = (
        f"**{escape_markdown(achievement['name'])}**"
        if achievement["unlocked"]
        else escape_markdown(achievement["name"])
    )
    tier = names.get(achievement["tier"] or "", "-")
    return [
        f"{name}<br>{escape_markdown(achievement['description'])}",
        tier,
        _progress(achievement),
        unlock_date(achievement),
    ]


def _progress(achievement: AchievementView) -> str:
    progress, unit = format_count(achievement["progress"]), escape_markdown(achievement["unit"])
    if not achievement["next_threshold"]:
        return f"{progress} {unit}, the top"
    full = achievement["progress_pct"] * BAR_CELLS // 100
    bar = "▰" * full + "▱" * (BAR_CELLS - full)
    return f"{bar} {progress} / {format_count(achievement['next_threshold'])} {unit}"


def _table(headings: list[str], rows: list[list[str]], numbers: range = range(0)) -> str:
    rule = ["---:" if column in numbers else "---" for column in range(len(headings))]
    return "\n".join("| " + " | ".join(row) + " |" for row in (headings, rule, *rows))


def escape_markdown(text: str) -> str:
    """Escape Markdown and HTML in *text*; the result is one line."""
    return (
        MARKDOWN_SPECIAL.sub(r"\\\1", " ".join(text.split()))
        .replace("\\<", "&lt;")
        .replace("\\>", "&gt;")
    )


__all__ = ["FORMATS", "ExportedFile", "card", "render"]

COUNT_FIELDS: Final = ("unlocked_count", "discovered_count", "secret_count", "total_count")


class ExportedFile(NamedTuple):
    """An exported file."""

    name: str
    media_type: str
    content: bytes


def render(snapshot: Snapshot, catalogue: Catalogue, format_name: str) -> ExportedFile:
    """Export the achievements in a format."""
    export_format = EXPORT_FORMATS.get(format_name.lower())
    if export_format is None:
        raise UsageError(f"format is {format_name!r}; accepted: {', '.join(FORMATS)}")
    return ExportedFile(
        export_format.name, export_format.media_type, export_format.write(snapshot, catalogue)
    )


def _json(snapshot: Snapshot, catalogue: Catalogue) -> bytes:
    del catalogue
    public = {
        "generated_at": snapshot["generated_at"],
        **{name: snapshot[name] for name in COUNT_FIELDS},
        "achievements": [
            _without_evidence(achievement) for achievement in snapshot["achievements"]
        ],
    }
    return orjson.dumps(public, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def _without_evidence(achievement: AchievementView) -> dict[str, object]:
    """An achievement without references to sessions."""
    shown = {name: value for name, value in achievement.items() if name != "evidence"}
    if "tier_history" in achievement:
        shown["tier_history"] = [
            {"tier": step["tier"], "value": step["value"], "at": step["at"]}
            for step in achievement["tier_history"]
        ]
    return shown


def _markdown(snapshot: Snapshot, catalogue: Catalogue) -> bytes:
    return markdown_page(snapshot, catalogue).encode(errors="replace")


def _svg(snapshot: Snapshot, catalogue: Catalogue) -> bytes:
    return badges.wall(snapshot, catalogue).encode()


def _png(snapshot: Snapshot, catalogue: Catalogue) -> bytes:
    return svg.png(badges.wall(snapshot, catalogue))


class _ExportFormat(NamedTuple):
    name: str
    media_type: str
    write: Callable[[Snapshot, Catalogue], bytes]


EXPORT_FORMATS: Final = {
    "json": _ExportFormat("achievements.json", "application/json", _json),
    "markdown": _ExportFormat("achievements.md", "text/markdown; charset=utf-8", _markdown),
    "svg": _ExportFormat("achievements.svg", "image/svg+xml", _svg),
    "png": _ExportFormat("achievements.png", "image/png", _png),
}
FORMATS: Final = tuple(EXPORT_FORMATS)
