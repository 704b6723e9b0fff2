"""Where each achievement stands, and how it is shown to people and programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hermes_achievements.catalogue import Achievement, Catalogue

    Unlock = Mapping[str, Any]

UNLOCKED: Final = "unlocked"
DISCOVERED: Final = "discovered"
SECRET: Final = "secret"  # noqa: S105 - not that kind of secret
STATES: Final = (UNLOCKED, DISCOVERED, SECRET)
EVIDENCE: Final = ("at", "session_id", "message_id")


class Standing(NamedTuple):
    """How far somebody is with one achievement."""

    progress: int
    tier: str | None
    next_tier: str | None
    next_threshold: int | None
    percent: int


def standing(one: Achievement, value: int, held: str | None = None) -> Standing:
    """Where *value* stands on the ladder; *held* is a tier that was earned before."""
    rank = sum(value >= threshold for _, threshold in one.thresholds)
    names = [tier for tier, _ in one.thresholds]
    if held in names:
        rank = max(rank, names.index(held) + 1)  # what was earned is never taken back
    tier = names[rank - 1] if rank else None
    if rank == len(names):
        return Standing(value, tier, None, None, 100)
    below = one.thresholds[rank - 1][1] if rank else 0
    above = one.thresholds[rank][1]
    percent = min(99, max(0, (value - below) * 100 // (above - below)))
    return Standing(value, tier, names[rank], above, percent)


def reached(one: Achievement, value: int) -> list[tuple[str, int]]:
    """The tiers that *value* has reached."""
    return [(tier, threshold) for tier, threshold in one.thresholds if value >= threshold]


def highest(one: Achievement, unlock: Unlock | None) -> str | None:
    """The highest tier on record."""
    tiers = (unlock or {}).get("tiers", {})
    held = [tier for tier, _ in one.thresholds if tier in tiers]
    return held[-1] if held else None


def evaluate(
    catalogue: Catalogue,
    values: Mapping[str, int],
    unlocks: Mapping[str, Unlock],
    *,
    with_dates: bool = True,
) -> list[dict[str, Any]]:
    """Every achievement as it is shown; a secret says no more than its hint."""
    shown = []
    for number, item in enumerate(catalogue, 1):
        unlock = unlocks.get(item.id)
        where = standing(item, int(values.get(item.value, 0)), highest(item, unlock))
        if item.secret and where.tier is None and not where.progress:
            shown.append(_veiled(item, number))
        else:
            shown.append(_unveiled(item, where, unlock if with_dates else None))
    return shown


def _veiled(one: Achievement, number: int) -> dict[str, Any]:
    return {
        "id": f"secret-{number}",
        "name": "Secret",
        "description": one.hint,
        "hint": one.hint,
        "category": one.category,
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


def _unveiled(one: Achievement, where: Standing, unlock: Unlock | None) -> dict[str, Any]:
    is_unlocked = where.tier is not None
    shown: dict[str, Any] = {
        "id": one.id,
        "name": one.name,
        "description": one.text,
        "category": one.category,
        "kind": one.kind,
        "icon": one.icon,
        "secret": one.secret,
        "origin": one.origin,
        "state": UNLOCKED if is_unlocked else DISCOVERED,
        "unlocked": is_unlocked,
        "discovered": True,
        "tier": where.tier,
        "tiers": [{"name": tier, "threshold": number} for tier, number in one.thresholds],
        "progress": where.progress,
        "progress_pct": where.percent,
        "next_tier": where.next_tier,
        "next_threshold": where.next_threshold,
        "criteria": one.counts,
        "unit": one.unit,
        "metric": one.value,
    }
    if unlock is not None:
        history = _history(one, unlock)
        shown["unlocked_at"] = history[0]["at"] if history else unlock.get("unlocked_at")
        shown["tier_history"] = history
        shown["evidence"] = history[-1] if history else unlock.get("evidence")
    return shown


def _history(one: Achievement, unlock: Unlock) -> list[dict[str, Any]]:
    tiers = unlock.get("tiers", {})
    return [
        {"tier": tier, "value": threshold, **{key: tiers[tier].get(key) for key in EVIDENCE}}
        for tier, threshold in one.thresholds
        if tier in tiers
    ]


def counts(shown: list[dict[str, Any]]) -> dict[str, int]:
    """How many are unlocked, discovered and secret, of how many."""
    states = [item["state"] for item in shown]
    return {
        "unlocked_count": states.count(UNLOCKED),
        "discovered_count": states.count(DISCOVERED),
        "secret_count": states.count(SECRET),
        "total_count": len(shown),
    }
