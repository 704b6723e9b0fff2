"""Questions to a snapshot: lists, the newest unlocks, the timeline, a session's badges."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from typing import TYPE_CHECKING, Any, Final

from hermes_achievements.evaluation.standings import STATES, UNLOCKED
from hermes_core.errors import HermesError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from hermes_achievements.catalogue import Catalogue
    from hermes_achievements.scan.history import History

    Shown = dict[str, Any]

log = logging.getLogger(__name__)

KEPT_SECONDS: Final = 5.0


class Names:
    """The titles of conversations; asked again after a few seconds."""

    def __init__(
        self, open_history: Callable[[], History], kept_seconds: float = KEPT_SECONDS
    ) -> None:
        self._open_history = open_history
        self._kept_seconds = kept_seconds
        self._known: dict[str, str | None] = {}
        self._since = float("-inf")
        self._lock = threading.Lock()

    def of(self, session_ids: Iterable[str]) -> dict[str, str | None]:
        """Title or first words of each conversation that exists; None where it has none.

        A history that cannot be read has no conversations.
        """
        with self._lock:
            now = time.monotonic()
            if now - self._since > self._kept_seconds:
                self._known, self._since = {}, now
            wanted = set(session_ids)
            missing = wanted - self._known.keys()
            if missing:
                self._known |= self._look_up(missing)
            return {item: self._known[item] for item in wanted if item in self._known}

    def _look_up(self, session_ids: set[str]) -> dict[str, str | None]:
        try:
            with contextlib.closing(self._open_history()) as history:
                result: dict[str, str | None] = dict(history.titles(session_ids))
                unnamed = session_ids - result.keys()
                return result | {
                    item: None for item in unnamed if history.session(item) is not None
                }
        except HermesError as error:
            log.info("conversations cannot be named: %s", error)
            return {}


def named(snapshot: Mapping[str, Any], names: Names) -> Shown:
    """The snapshot with the title of each conversation in it, and whether that is gone."""
    shown: list[Shown] = snapshot["achievements"]
    titles = names.of(
        step["session_id"] for item in shown for step in _steps(item) if step.get("session_id")
    )
    return {**snapshot, "achievements": [_named(item, titles) for item in shown]}


def steps_named(steps: list[Shown], names: Names) -> list[Shown]:
    """Steps of a timeline with their titles."""
    titles = names.of(step["session_id"] for step in steps if step.get("session_id"))
    return [_titled(step, titles) for step in steps]


def _steps(one: Shown) -> list[Shown]:
    evidence = one.get("evidence")
    history: list[Shown] = one.get("tier_history") or []
    return [*history, evidence] if isinstance(evidence, dict) else history


def _named(one: Shown, titles: Mapping[str, str | None]) -> Shown:
    if not _steps(one):
        return one
    history = [_titled(step, titles) for step in one.get("tier_history") or ()]
    evidence = one.get("evidence")
    return {
        **one,
        "tier_history": history,
        "evidence": _titled(evidence, titles) if isinstance(evidence, dict) else evidence,
    }


def _titled(step: Shown, titles: Mapping[str, str | None]) -> Shown:
    session_id = step.get("session_id")
    is_gone = session_id is not None and session_id not in titles
    return {**step, "title": titles.get(session_id or ""), "is_gone": is_gone}


ALL: Final = "all"
ORDERS: Final = ("asc", "desc")
RECENT: Final = 20

SORTS: Final[dict[str, Callable[[Shown], Any]]] = {
    "name": lambda item: item["name"].casefold(),
    "category": lambda item: (item["category"], item["name"].casefold()),
    "progress": lambda item: (item["progress_pct"], item["unlocked"]),
    "tier": lambda item: item["tier_rank"],
    "unlocked_at": lambda item: item.get("unlocked_at") or 0,
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
    _check("category", category, (ALL, *(category.id for category in catalogue.categories)))
    _check("sort", sort, (None, *SORTS))
    _check("order", order, ORDERS)
    if limit is not None and limit < 1:
        raise UsageError(f"limit is {limit}; accepted: a number of 1 or more")
    ranks = {tier.id: rank for rank, tier in enumerate(catalogue.tiers, 1)}
    matches = [
        {**achievement, "tier_rank": ranks.get(achievement["tier"] or "", 0)}
        for achievement in snapshot["achievements"]
        if state in (ALL, achievement["state"]) and category in (ALL, achievement["category"])
    ]
    if sort is not None:
        matches.sort(key=SORTS[sort], reverse=order == "desc")
    elif order == "desc":
        matches.reverse()
    return matches[:limit]


def _check(name: str, value: str | None, accepted: tuple[str | None, ...]) -> None:
    if value not in accepted:
        names = ", ".join(item for item in accepted if item is not None)
        raise UsageError(f"{name} is {value!r}; accepted: {names}")


def recent(snapshot: Mapping[str, Any], limit: int = RECENT) -> list[Shown]:
    """The newest unlocks and tier-ups, the latest first."""
    return timeline(snapshot)[::-1][:limit]


def timeline(snapshot: Mapping[str, Any]) -> list[Shown]:
    """Every unlock and tier-up with its date and evidence, the earliest first."""
    steps = [
        {
            "id": achievement["id"],
            "name": achievement["name"],
            "icon": achievement["icon"],
            "category": achievement["category"],
            "is_first": number == 0,
            **step,
        }
        for achievement in snapshot["achievements"]
        for number, step in enumerate(achievement.get("tier_history") or ())
    ]
    return sorted(steps, key=lambda step: (step["at"], step["id"], step["value"]))


def badges_of(snapshot: Mapping[str, Any], session_id: str) -> list[Shown]:
    """What was earned by messages of one session."""
    return [step for step in timeline(snapshot) if step.get("session_id") == session_id]


def within_reach(snapshot: Mapping[str, Any], limit: int = 5) -> list[Shown]:
    """What is nearest to its next tier."""
    open_ones = [
        achievement for achievement in snapshot["achievements"] if achievement["next_threshold"]
    ]
    ranked = sorted(open_ones, key=lambda item: (-item["progress_pct"], item["next_threshold"]))
    return [item for item in ranked if item["progress"]][:limit]


def by_tier(snapshot: Mapping[str, Any], catalogue: Catalogue) -> dict[str, int]:
    """How many achievements stand at each tier."""
    held = [
        achievement["tier"]
        for achievement in snapshot["achievements"]
        if achievement["state"] == UNLOCKED
    ]
    return {tier.id: held.count(tier.id) for tier in catalogue.tiers}
