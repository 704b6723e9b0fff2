"""What is read from the files of achievements, made safe: anybody may have edited them.

Whatever does not fit is left out and reported in the log; the rest is kept.
"""

from __future__ import annotations

import logging
import math
from typing import Any, Final

log = logging.getLogger(__name__)

TITLE: Final = "title"
SOUGHT: Final = "was_sought"
COUNTS: Final = ("unlocked_count", "discovered_count", "secret_count", "total_count")
SHOWN: Final = ("id", "name", "icon", "category", "state", "unlocked", "discovered", "tier",
                "progress", "progress_pct", "next_tier", "next_threshold", "unit")  # fmt: skip


def readable_state(state: dict[str, Any]) -> dict[str, Any]:
    """The unlocks that are ours, and under `inherited` those that are not."""
    unlocks, inherited = state.get("unlocks"), state.get("inherited")
    unlocks = unlocks if isinstance(unlocks, dict) else {}
    inherited = dict(inherited) if isinstance(inherited, dict) else {}
    ours: dict[str, Any] = {}
    for name, unlock in unlocks.items():
        if not isinstance(unlock, dict) or not isinstance(unlock.get("tiers"), dict):
            inherited.setdefault(name, unlock)
            continue
        tiers = _tiers(name, unlock["tiers"])
        if tiers:
            first = min(one["at"] for one in tiers.values())
            ours[name] = {**unlock, "tiers": tiers, "unlocked_at": first}
    return {**state, "unlocks": ours, "inherited": without_titles(inherited)}


def _tiers(name: str, stored: dict[str, Any]) -> dict[str, dict[str, Any]]:
    found = {}
    for tier, one in stored.items():
        if isinstance(one, dict) and is_number(one.get("at")):
            session_id, message_id = one.get("session_id"), one.get("message_id")
            found[tier] = {
                "at": one["at"],
                "session_id": session_id if isinstance(session_id, str) else None,
                "message_id": message_id if isinstance(message_id, int) else None,
            } | ({SOUGHT: True} if one.get(SOUGHT) is True else {})
        else:
            log.warning("achievement %s: tier %s on record has no date and is left out", name, tier)
    return found


def readable_snapshot(snapshot: dict[str, Any]) -> dict[str, Any] | None:
    """The snapshot without titles; None when it cannot be shown."""
    shown = snapshot.get("achievements")
    is_whole = (
        isinstance(shown, list)
        and all(_is_shown(one) for one in shown)
        and is_number(snapshot.get("generated_at"))
        and isinstance(snapshot.get("scan_meta"), dict)
        and isinstance(snapshot.get("aggregate"), dict)
        and all(isinstance(snapshot.get(name), int) for name in COUNTS)
    )
    if not is_whole:
        log.warning("the snapshot of achievements cannot be used and is made anew")
        return None
    return {name: without_titles(value) for name, value in snapshot.items()}


def _is_shown(one: Any) -> bool:
    if not isinstance(one, dict) or not all(name in one for name in SHOWN):
        return False
    history = one.get("tier_history") or []
    return isinstance(history, list) and all(
        isinstance(step, dict) and is_number(step.get("at")) and "tier" in step and "value" in step
        for step in history
    )


def is_number(value: Any) -> bool:
    """Whether something is a number that can be a time."""
    is_real = isinstance(value, int | float) and not isinstance(value, bool)
    return is_real and math.isfinite(value)


def without_titles(value: Any) -> Any:
    """The same without the names of conversations, at whatever depth."""
    if isinstance(value, dict):
        return {key: without_titles(one) for key, one in value.items() if key != TITLE}
    return [without_titles(one) for one in value] if isinstance(value, list) else value
