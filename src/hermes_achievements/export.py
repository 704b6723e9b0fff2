"""What has been earned, as a file: JSON, Markdown, or a picture.

Exports are made to be shown around, so no conversation is named in them.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import orjson

from hermes_achievements.calendar import Calendar
from hermes_achievements.evaluation.views import by_tier
from hermes_achievements.pictures import badges, svg
from hermes_achievements.pictures.badges import dated
from hermes_achievements.pictures.card import card
from hermes_achievements.recap.periods import short
from hermes_achievements.recap.sentences import amount
from hermes_core.errors import UsageError
from hermes_core.time_zones import find_zone

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hermes_achievements.catalogue import Catalogue, Category

    Shown = Mapping[str, Any]
    from collections.abc import Callable, Mapping

    Snapshot = Mapping[str, Any]

SPECIAL: Final = re.compile(r"([\\`*_{}\[\]<>#|~!])")
BAR: Final = 10


def page(snapshot: Mapping[str, Any], catalogue: Catalogue) -> str:
    """The page: a summary, then a table for each category."""
    unlocked, total = snapshot["unlocked_count"], snapshot["total_count"]
    day = Calendar(find_zone("")).day(float(snapshot["generated_at"]))
    held = by_tier(snapshot, catalogue)
    parts = [
        "# Achievements",
        f"**{unlocked:,} of {total:,} unlocked** · {snapshot['discovered_count']:,} in progress · "
        f"{snapshot['secret_count']:,} secret · as of {short(day)}",
        _table(
            [tier.name for tier in reversed(catalogue.tiers)],
            [[f"{held[tier.id]:,}" for tier in reversed(catalogue.tiers)]],
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
            parts.append(_chapter(category, shown, catalogue))
    return "\n\n".join(parts) + "\n"


def _chapter(category: Category, shown: list[Shown], catalogue: Catalogue) -> str:
    earned = sum(1 for item in shown if item["unlocked"])
    names = {tier.id: tier.name for tier in catalogue.tiers}
    ranks = {tier.id: rank for rank, tier in enumerate(catalogue.tiers, 1)}
    ordered = sorted(shown, key=lambda item: (-ranks.get(item["tier"] or "", 0), item["secret"]))
    rows = [_row(item, names) for item in ordered]
    table = _table(["achievement", "tier", "progress", "since"], rows)
    heading = f"## {plain(category.name)} ({earned:,} of {len(shown):,})"
    return f"{heading}\n\n{plain(category.text)}\n\n{table}"


def _row(one: Shown, names: dict[str, str]) -> list[str]:
    if one["state"] == "secret":
        return [f"🔒 *{plain(one['hint'])}*", "secret", "", ""]
    name = f"**{plain(one['name'])}**" if one["unlocked"] else plain(one["name"])
    tier = names.get(one["tier"] or "", "-")
    return [f"{name}<br>{plain(one['description'])}", tier, _progress(one), dated(one)]


def _progress(one: Shown) -> str:
    if not one["next_threshold"]:
        return f"{amount(one['progress'])} {plain(one['unit'])}, the top"
    full = one["progress_pct"] * BAR // 100
    bar = "▰" * full + "▱" * (BAR - full)
    return f"{bar} {amount(one['progress'])} / {amount(one['next_threshold'])} {plain(one['unit'])}"


def _table(titles: list[str], rows: list[list[str]], numbers: range = range(0)) -> str:
    rule = ["---:" if place in numbers else "---" for place in range(len(titles))]
    return "\n".join("| " + " | ".join(row) + " |" for row in (titles, rule, *rows))


def plain(text: str) -> str:
    """*text* as Markdown shows it: on one line, with nothing in it that means something."""
    return (
        SPECIAL.sub(r"\\\1", " ".join(text.split())).replace("\\<", "&lt;").replace("\\>", "&gt;")
    )


__all__ = ["FORMATS", "Exported", "card", "render"]

COUNTS: Final = ("unlocked_count", "discovered_count", "secret_count", "total_count")
STEP: Final = frozenset({"tier", "value", "at"})  # of a tier's history, for everybody


class Exported(NamedTuple):
    """A file to be handed out."""

    name: str
    media_type: str
    content: bytes


def render(snapshot: Snapshot, catalogue: Catalogue, form: str) -> Exported:
    """What has been earned, in the form asked for."""
    kind = EXPORT_FORMATS.get(form.lower())
    if kind is None:
        raise UsageError(f"format is {form!r}; accepted: {', '.join(FORMATS)}")
    return Exported(kind.name, kind.media_type, kind.write(snapshot, catalogue))


def _json(snapshot: Snapshot, catalogue: Catalogue) -> bytes:
    del catalogue
    public = {
        "generated_at": snapshot["generated_at"],
        **{name: snapshot[name] for name in COUNTS},
        "achievements": [_public(achievement) for achievement in snapshot["achievements"]],
    }
    return orjson.dumps(public, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def _public(one: Mapping[str, Any]) -> dict[str, Any]:
    """An achievement without the conversations that earned it."""
    shown = {name: value for name, value in one.items() if name != "evidence"}
    if "tier_history" in shown:
        shown["tier_history"] = [
            {name: step[name] for name in step if name in STEP} for step in one["tier_history"]
        ]
    return shown


def _markdown(snapshot: Snapshot, catalogue: Catalogue) -> bytes:
    return page(snapshot, catalogue).encode(errors="replace")


def _svg(snapshot: Snapshot, catalogue: Catalogue) -> bytes:
    return badges.wall(snapshot, catalogue).encode()


def _png(snapshot: Snapshot, catalogue: Catalogue) -> bytes:
    return svg.png(badges.wall(snapshot, catalogue))


class _Kind(NamedTuple):
    name: str
    media_type: str
    write: Callable[[Snapshot, Catalogue], bytes]


EXPORT_FORMATS: Final = {
    "json": _Kind("achievements.json", "application/json", _json),
    "markdown": _Kind("achievements.md", "text/markdown; charset=utf-8", _markdown),
    "svg": _Kind("achievements.svg", "image/svg+xml", _svg),
    "png": _Kind("achievements.png", "image/png", _png),
}
FORMATS: Final = tuple(EXPORT_FORMATS)
