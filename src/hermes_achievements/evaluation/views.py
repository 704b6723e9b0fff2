"""Questions to a snapshot: lists, the newest unlocks, the timeline, a session's badges."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from hermes_achievements.evaluation.standings import STATES, UNLOCKED
from hermes_core.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from hermes_achievements.catalogue import Catalogue

    Shown = dict[str, Any]

ALL: Final = "all"
ORDERS: Final = ("asc", "desc")
RECENT: Final = 20

SORTS: Final[dict[str, Callable[[Shown], Any]]] = {
    "name": lambda one: one["name"].casefold(),
    "category": lambda one: (one["category"], one["name"].casefold()),
    "progress": lambda one: (one["progress_pct"], one["unlocked"]),
    "tier": lambda one: one["tier_rank"],
    "unlocked_at": lambda one: one.get("unlocked_at") or 0,
}


def listed(
    snapshot: Mapping[str, Any],
    catalogue: Catalogue,
    *,
    state: str = ALL,
    category: str = ALL,
    sort: str | None = None,
    order: str = "asc",
    limit: int | None = None,
) -> list[Shown]:
    """The achievements that fit, in the order asked for."""
    _check("state", state, (ALL, *STATES))
    _check("category", category, (ALL, *(one.id for one in catalogue.categories)))
    _check("sort", sort, (None, *SORTS))
    _check("order", order, ORDERS)
    if limit is not None and limit < 1:
        raise UsageError(f"limit is {limit}; accepted: a number of 1 or more")
    ranks = {tier.id: rank for rank, tier in enumerate(catalogue.tiers, 1)}
    found = [
        {**one, "tier_rank": ranks.get(one["tier"] or "", 0)}
        for one in snapshot["achievements"]
        if state in (ALL, one["state"]) and category in (ALL, one["category"])
    ]
    if sort is not None:
        found.sort(key=SORTS[sort], reverse=order == "desc")
    elif order == "desc":
        found.reverse()
    return found[:limit]


def _check(name: str, value: str | None, accepted: tuple[str | None, ...]) -> None:
    if value not in accepted:
        names = ", ".join(one for one in accepted if one is not None)
        raise UsageError(f"{name} is {value!r}; accepted: {names}")


def recent(snapshot: Mapping[str, Any], limit: int = RECENT) -> list[Shown]:
    """The newest unlocks and tier-ups, the latest first."""
    return timeline(snapshot)[::-1][:limit]


def timeline(snapshot: Mapping[str, Any]) -> list[Shown]:
    """Every unlock and tier-up with its date and evidence, the earliest first."""
    steps = [
        {
            "id": one["id"],
            "name": one["name"],
            "icon": one["icon"],
            "category": one["category"],
            "is_first": number == 0,
            **step,
        }
        for one in snapshot["achievements"]
        for number, step in enumerate(one.get("tier_history") or ())
    ]
    return sorted(steps, key=lambda step: (step["at"], step["id"], step["value"]))


def badges_of(snapshot: Mapping[str, Any], session_id: str) -> list[Shown]:
    """What was earned by messages of one session."""
    return [step for step in timeline(snapshot) if step.get("session_id") == session_id]


def within_reach(snapshot: Mapping[str, Any], limit: int = 5) -> list[Shown]:
    """What is nearest to its next tier."""
    open_ones = [one for one in snapshot["achievements"] if one["next_threshold"]]
    ranked = sorted(open_ones, key=lambda one: (-one["progress_pct"], one["next_threshold"]))
    return [one for one in ranked if one["progress"]][:limit]


def by_tier(snapshot: Mapping[str, Any], catalogue: Catalogue) -> dict[str, int]:
    """How many achievements stand at each tier."""
    held = [one["tier"] for one in snapshot["achievements"] if one["state"] == UNLOCKED]
    return {tier.id: held.count(tier.id) for tier in catalogue.tiers}
