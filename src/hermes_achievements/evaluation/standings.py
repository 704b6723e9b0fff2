"""The standing of each achievement, and its public representation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hermes_achievements.catalogue import Achievement, Catalogue
    from hermes_achievements.evaluation.snapshot import (
        AchievementCounts,
        AchievementView,
        TierStep,
        Unlock,
    )

UNLOCKED: Final = "unlocked"
DISCOVERED: Final = "discovered"
SECRET: Final = "secret"  # noqa: S105 - a state, not a credential
STATES: Final = (UNLOCKED, DISCOVERED, SECRET)


class Standing(NamedTuple):
    """Progress of one achievement."""

    progress: int
    tier: str | None
    next_tier: str | None
    next_threshold: int | None
    percent: int


def compute_standing(
    achievement: Achievement, value: int, recorded_tier: str | None = None
) -> Standing:
    """The standing of *value*; a tier that was earned before is kept."""
    rank = sum(value >= threshold for _, threshold in achievement.thresholds)
    names = [tier for tier, _ in achievement.thresholds]
    if recorded_tier in names:
        rank = max(rank, names.index(recorded_tier) + 1)  # tiers are never removed
    tier = names[rank - 1] if rank else None
    if rank == len(names):
        return Standing(value, tier, None, None, 100)
    below = achievement.thresholds[rank - 1][1] if rank else 0
    above = achievement.thresholds[rank][1]
    percent = min(99, max(0, (value - below) * 100 // (above - below)))
    return Standing(value, tier, names[rank], above, percent)


def reached_tiers(achievement: Achievement, value: int) -> list[tuple[str, int]]:
    """The tiers that *value* has reached, with thresholds."""
    return [(tier, threshold) for tier, threshold in achievement.thresholds if value >= threshold]


def highest_tier(achievement: Achievement, unlock: Unlock | None) -> str | None:
    """The highest recorded tier."""
    tiers = unlock.get("tiers", {}) if unlock else {}
    recorded = [tier for tier, _ in achievement.thresholds if tier in tiers]
    return recorded[-1] if recorded else None


def evaluate(
    catalogue: Catalogue,
    values: Mapping[str, int],
    unlocks: Mapping[str, Unlock],
    *,
    with_dates: bool = True,
) -> list[AchievementView]:
    """Every achievement as it is shown; a locked secret shows only its hint."""
    shown = []
    for number, achievement in enumerate(catalogue, 1):
        unlock = unlocks.get(achievement.id)
        standing = compute_standing(
            achievement, int(values.get(achievement.value, 0)), highest_tier(achievement, unlock)
        )
        if achievement.secret and standing.tier is None and not standing.progress:
            shown.append(_show_secret(achievement, number))
        else:
            shown.append(_show_visible(achievement, standing, unlock if with_dates else None))
    return shown


def _show_secret(achievement: Achievement, number: int) -> AchievementView:
    return {
        "id": f"secret-{number}",
        "name": "Secret",
        "description": achievement.hint,
        "hint": achievement.hint,
        "category": achievement.category,
        "kind": SECRET,
        "icon": "lock",
        "secret": True,
        "state": SECRET,
        "unlocked": False,
        "discovered": False,
        "tier": None,
        "tiers": [],
        "progress": 0,
        "progress_pct": 0,
        "next_tier": None,
        "next_threshold": None,
        "criteria": "",
        "unit": "",
    }


def _show_visible(
    achievement: Achievement, standing: Standing, unlock: Unlock | None
) -> AchievementView:
    is_unlocked = standing.tier is not None
    shown: AchievementView = {
        "id": achievement.id,
        "name": achievement.name,
        "description": achievement.text,
        "category": achievement.category,
        "kind": achievement.kind,
        "icon": achievement.icon,
        "secret": achievement.secret,
        "origin": achievement.origin,
        "state": UNLOCKED if is_unlocked else DISCOVERED,
        "unlocked": is_unlocked,
        "discovered": True,
        "tier": standing.tier,
        "tiers": [{"name": tier, "threshold": number} for tier, number in achievement.thresholds],
        "progress": standing.progress,
        "progress_pct": standing.percent,
        "next_tier": standing.next_tier,
        "next_threshold": standing.next_threshold,
        "criteria": achievement.counts,
        "unit": achievement.unit,
        "metric": achievement.value,
    }
    if unlock is not None:
        history = _tier_history(achievement, unlock)
        shown["unlocked_at"] = history[0]["at"] if history else unlock.get("unlocked_at")
        shown["tier_history"] = history
        shown["evidence"] = history[-1] if history else None
    return shown


def _tier_history(achievement: Achievement, unlock: Unlock) -> list[TierStep]:
    tiers = unlock.get("tiers", {})
    return [
        {
            "tier": tier,
            "value": threshold,
            "at": tiers[tier]["at"],
            "session_id": tiers[tier]["session_id"],
            "message_id": tiers[tier]["message_id"],
        }
        for tier, threshold in achievement.thresholds
        if tier in tiers
    ]


def count_states(shown: list[AchievementView]) -> AchievementCounts:
    """Numbers of unlocked, discovered, secret and all achievements."""
    states = [achievement["state"] for achievement in shown]
    return {
        "unlocked_count": states.count(UNLOCKED),
        "discovered_count": states.count(DISCOVERED),
        "secret_count": states.count(SECRET),
        "total_count": len(shown),
    }
