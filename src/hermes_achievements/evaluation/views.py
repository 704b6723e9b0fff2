"""Views of a snapshot: filtered lists, recent unlocks, timeline, badges of a session."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from typing import TYPE_CHECKING, Any, Final, TypeVar

from hermes_achievements.evaluation.standings import STATES, UNLOCKED
from hermes_achievements.scan.history import SessionKind
from hermes_achievements.scan.ledger_entries import decode_facts
from hermes_core.errors import HermesError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from hermes_achievements.catalogue import Catalogue, CatalogueOutline
    from hermes_achievements.evaluation.snapshot import (
        AchievementView,
        Snapshot,
        TierStep,
        TimelineStep,
    )
    from hermes_achievements.scan.history import History, ScannedSession

    AnyStep = TypeVar("AnyStep", TierStep, TimelineStep)
    EarnedStep = TypeVar("EarnedStep", bound=TierStep)


log = logging.getLogger(__name__)

TITLE_CACHE_SECONDS: Final = 5.0


class SessionTitles:
    """Titles of sessions, cached for a few seconds."""

    def __init__(
        self, open_history: Callable[[], History], cache_seconds: float = TITLE_CACHE_SECONDS
    ) -> None:
        self._open_history = open_history
        self._cache_seconds = cache_seconds
        self._titles: dict[str, str | None] = {}
        self._loaded_at = float("-inf")
        self._lock = threading.Lock()

    def look_up(self, session_ids: Iterable[str]) -> dict[str, str | None]:
        """Title or preview of each existing session, None without one.

        The result is empty if the history is unreadable.
        """
        with self._lock:
            now = time.monotonic()
            if now - self._loaded_at > self._cache_seconds:
                self._titles, self._loaded_at = {}, now
            ids = set(session_ids)
            missing = ids - self._titles.keys()
            if missing:
                self._titles |= self._look_up(missing)
            return {item: self._titles[item] for item in ids if item in self._titles}

    def _look_up(self, session_ids: set[str]) -> dict[str, str | None]:
        try:
            with contextlib.closing(self._open_history()) as history:
                result: dict[str, str | None] = dict(history.titles(session_ids))
                unnamed = session_ids - result.keys()
                return result | {
                    item: None for item in unnamed if history.session(item) is not None
                }
        except HermesError as error:
            log.info("session titles unavailable: %s", error)
            return {}


def with_titles(snapshot: Snapshot, title_lookup: SessionTitles) -> Snapshot:
    """The snapshot with session titles, and whether the sessions still exist."""
    shown = snapshot["achievements"]
    ids = (step["session_id"] for item in shown for step in _steps(item))
    titles = title_lookup.look_up(item for item in ids if item)
    return {**snapshot, "achievements": [_achievement_with_titles(item, titles) for item in shown]}


def steps_with_titles(steps: list[AnyStep], title_lookup: SessionTitles) -> list[AnyStep]:
    """Timeline steps with session titles."""
    ids = (step["session_id"] for step in steps)
    titles = title_lookup.look_up(item for item in ids if item)
    return [_step_with_title(step, titles) for step in steps]


def _steps(achievement: AchievementView) -> list[TierStep]:
    evidence = achievement.get("evidence")
    history = achievement.get("tier_history") or []
    return [*history, evidence] if evidence else history


def _achievement_with_titles(
    achievement: AchievementView, titles: Mapping[str, str | None]
) -> AchievementView:
    if not _steps(achievement):
        return achievement
    history = [_step_with_title(step, titles) for step in achievement.get("tier_history") or ()]
    evidence = achievement.get("evidence")
    return {
        **achievement,
        "tier_history": history,
        "evidence": _step_with_title(evidence, titles) if evidence else evidence,
    }


def _step_with_title(step: AnyStep, titles: Mapping[str, str | None]) -> AnyStep:
    session_id = step["session_id"]
    is_gone = session_id is not None and session_id not in titles
    return {**step, "title": titles.get(session_id or ""), "is_gone": is_gone}


ALL_FILTER: Final = "all"
SORT_ORDERS: Final = ("asc", "desc")
RECENT_UNLOCKS_LIMIT: Final = 20

SORT_KEYS: Final[dict[str, Callable[[AchievementView], Any]]] = {
    "name": lambda item: item["name"].casefold(),
    "category": lambda item: (item["category"], item["name"].casefold()),
    "progress": lambda item: (item["progress_pct"], item["unlocked"]),
    "tier": lambda item: item.get("tier_rank", 0),
    "unlocked_at": lambda item: item.get("unlocked_at") or 0,
}


def filter_achievements(
    snapshot: Snapshot,
    catalogue: Catalogue | CatalogueOutline,
    *,
    state: str = ALL_FILTER,
    category: str = ALL_FILTER,
    sort: str | None = None,
    order: str = "asc",
    limit: int | None = None,
) -> list[AchievementView]:
    """The matching achievements in the requested order."""
    _check("state", state, (ALL_FILTER, *STATES))
    _check("category", category, (ALL_FILTER, *(category.id for category in catalogue.categories)))
    _check("sort", sort, (None, *SORT_KEYS))
    _check("order", order, SORT_ORDERS)
    if limit is not None and limit < 1:
        raise UsageError(f"limit is {limit}; accepted: a number of 1 or more")
    ranks = {tier.id: rank for rank, tier in enumerate(catalogue.tiers, 1)}
    matches: list[AchievementView] = [
        {**achievement, "tier_rank": ranks.get(achievement["tier"] or "", 0)}
        for achievement in snapshot["achievements"]
        if state in (ALL_FILTER, achievement["state"])
        and category in (ALL_FILTER, achievement["category"])
    ]
    if sort is not None:
        matches.sort(key=SORT_KEYS[sort], reverse=order == "desc")
    elif order == "desc":
        matches.reverse()
    return matches[:limit]


def _check(name: str, value: str | None, accepted: tuple[str | None, ...]) -> None:
    if value not in accepted:
        names = ", ".join(item for item in accepted if item is not None)
        raise UsageError(f"{name} is {value!r}; accepted: {names}")


def recent_unlocks(snapshot: Snapshot, limit: int = RECENT_UNLOCKS_LIMIT) -> list[TimelineStep]:
    """The latest unlocks and tier-ups, newest first."""
    return timeline(snapshot)[::-1][:limit]


def timeline(snapshot: Snapshot) -> list[TimelineStep]:
    """Every unlock and tier-up with its date and evidence, oldest first."""
    steps: list[TimelineStep] = [
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


def session_badges(snapshot: Snapshot, session_id: str) -> list[TimelineStep]:
    """The unlocks earned by messages of a session."""
    return [step for step in timeline(snapshot) if step["session_id"] == session_id]


def closest_achievements(snapshot: Snapshot, limit: int = 5) -> list[AchievementView]:
    """The achievements closest to their next tier."""
    unfinished = [
        achievement for achievement in snapshot["achievements"] if achievement["next_threshold"]
    ]
    ranked = sorted(
        unfinished, key=lambda item: (-item["progress_pct"], item["next_threshold"] or 0)
    )
    return [item for item in ranked if item["progress"]][:limit]


def count_by_tier(snapshot: Snapshot, catalogue: Catalogue) -> dict[str, int]:
    """Number of unlocked achievements per tier."""
    tiers = [
        achievement["tier"]
        for achievement in snapshot["achievements"]
        if achievement["state"] == UNLOCKED
    ]
    return {tier.id: tiers.count(tier.id) for tier in catalogue.tiers}


MAX_DEPTH: Final = 20  # of sub-agents of sub-agents


def earned_in(
    snapshot: Snapshot, source: str | None, open_history: Callable[[], History]
) -> Snapshot:
    """The snapshot with only the achievements of which *source* has earned a tier."""
    if source is None:
        return snapshot
    shown = snapshot["achievements"]
    steps = [step for item in shown for step in item.get("tier_history") or ()]
    kept = {step["session_id"] for step in steps_in(steps, source, open_history)}

    def is_kept(item: AchievementView) -> bool:
        return any(step["session_id"] in kept for step in item.get("tier_history") or ())

    return {**snapshot, "achievements": [item for item in shown if is_kept(item)]}


def steps_in(
    steps: Sequence[EarnedStep], source: str | None, open_history: Callable[[], History]
) -> list[EarnedStep]:
    """The steps that were earned in conversations of *source*; all of them for None."""
    if source is None:
        return list(steps)
    ids = {step["session_id"] for step in steps if step["session_id"]}
    with contextlib.closing(open_history()) as history:
        kept = {each for each in ids if _source_of(history, each) == source}
    return [step for step in steps if step["session_id"] in kept]


def _source_of(history: History, session_id: str) -> str | None:
    """The source of a conversation, also of a purged one; None if it is unknown."""
    session = _session(history, session_id)
    for _ in range(MAX_DEPTH):
        if session is None or session.kind != SessionKind.SUBAGENT or session.parent_id is None:
            break
        session = _session(history, session.parent_id) or session._replace(parent_id=None)
    return None if session is None else session.source


def _session(history: History, session_id: str) -> ScannedSession | None:
    session = history.session(session_id)
    if session is not None:
        return session
    facts = decode_facts(history.purged_facts(session_id))
    return None if facts is None else facts.session
