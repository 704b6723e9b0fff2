"""Announcements that are due: recorded with the unlocks, removed when they were made.

A process that dies in between leaves its announcement to the next scan, on any machine.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeGuard

if TYPE_CHECKING:
    from hermes_achievements.evaluation.snapshot import (
        DueAnnouncement,
        TierEvidence,
        UnlockState,
    )

    Tiers = dict[str, TierEvidence]

TAKE_OVER_SECONDS: Final = 120.0  # hooks of plugins take less


class ClaimedAnnouncement(NamedTuple):
    """An announcement that this process makes."""

    id: str
    tiers: dict[str, Tiers]
    is_first: bool


def valid_announcements(stored: object) -> dict[str, DueAnnouncement]:
    """The valid ones of the stored announcements."""
    items = stored.items() if isinstance(stored, dict) else ()
    return {str(name): item for name, item in items if _is_valid(item)}


def _is_valid(item: Any) -> TypeGuard[DueAnnouncement]:
    match item:
        case {"since": int() | float(), "tiers": dict() as tiers}:
            return all(isinstance(names, list) for names in tiers.values())
    return False


def add(state: UnlockState, new: dict[str, Tiers], now: float, *, is_first: bool) -> str:
    """Record that *new* has to be announced; returns the ID of the announcement."""
    name = uuid.uuid4().hex
    due: DueAnnouncement = {
        "since": now,
        "tiers": {achievement: list(tiers) for achievement, tiers in new.items()},
        "is_first": is_first,
    }
    state["unannounced"] = {**state.get("unannounced", {}), name: due}
    return name


def remove(state: UnlockState, name: str) -> None:
    """Record that an announcement was made."""
    left = {key: item for key, item in state.get("unannounced", {}).items() if key != name}
    if left:
        state["unannounced"] = left
    else:
        state.pop("unannounced", None)


def is_overdue(item: DueAnnouncement, now: float) -> bool:
    """Whether the process that recorded an announcement does not make it any longer."""
    return not 0 <= now - item["since"] < TAKE_OVER_SECONDS


def take_over(state: UnlockState, now: float) -> list[ClaimedAnnouncement]:
    """Let this process make the announcements that are overdue."""
    result = []
    for name, item in state.get("unannounced", {}).items():
        if is_overdue(item, now):
            item["since"] = now
            tiers = {
                achievement: _evidence(state, achievement, names)
                for achievement, names in item["tiers"].items()
            }
            result.append(ClaimedAnnouncement(name, tiers, bool(item.get("is_first"))))
    return result


def _evidence(state: UnlockState, achievement: str, names: list[str]) -> Tiers:
    unlock = state["unlocks"].get(achievement)
    recorded = unlock["tiers"] if unlock is not None else {}
    return {name: recorded[name] for name in names if name in recorded}
