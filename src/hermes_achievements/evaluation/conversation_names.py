"""The names of conversations, looked up when something is shown and kept nowhere.

A conversation that is gone has no name; what it earned stays.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from typing import TYPE_CHECKING, Any, Final

from hermes_core.errors import HermesError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

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
            return {one: self._known[one] for one in wanted if one in self._known}

    def _look_up(self, session_ids: set[str]) -> dict[str, str | None]:
        try:
            with contextlib.closing(self._open_history()) as history:
                found: dict[str, str | None] = dict(history.titles(session_ids))
                unnamed = session_ids - found.keys()
                return found | {one: None for one in unnamed if history.session(one) is not None}
        except HermesError as error:
            log.info("conversations cannot be named: %s", error)
            return {}


def named(snapshot: Mapping[str, Any], names: Names) -> Shown:
    """The snapshot with the title of each conversation in it, and whether that is gone."""
    shown: list[Shown] = snapshot["achievements"]
    titles = names.of(
        step["session_id"] for one in shown for step in _steps(one) if step.get("session_id")
    )
    return {**snapshot, "achievements": [_named(one, titles) for one in shown]}


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
