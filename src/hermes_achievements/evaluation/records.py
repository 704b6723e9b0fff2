"""What has been earned, on disk: unlocks with their dates, and the last snapshot.

Both are JSON, written whole and readable by their owner alone. An unlock is never taken
back. Neither file names a conversation: titles are looked up when something is shown, so
that what is purged from the history is gone from here, too. Files that the original program
left are read once; what they say is kept apart, because its badges are not ours.
"""

from __future__ import annotations

import logging
import math
from typing import TYPE_CHECKING, Any, Final

import orjson

from hermes_core.atomic_files import folder_locked, write_atomically
from hermes_core.json_files import read_json

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from hermes_core.clock import Clock

    Tiers = dict[str, dict[str, Any]]

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
            first = min(tier["at"] for tier in tiers.values())
            ours[name] = {**unlock, "tiers": tiers, "unlocked_at": first}
    return {**state, "unlocks": ours, "inherited": without_titles(inherited)}


def _tiers(name: str, stored: dict[str, Any]) -> dict[str, dict[str, Any]]:
    result = {}
    for tier, item in stored.items():
        if isinstance(item, dict) and is_number(item.get("at")):
            session_id, message_id = item.get("session_id"), item.get("message_id")
            result[tier] = {
                "at": item["at"],
                "session_id": session_id if isinstance(session_id, str) else None,
                "message_id": message_id if isinstance(message_id, int) else None,
            } | ({SOUGHT: True} if item.get(SOUGHT) is True else {})
        else:
            log.warning("achievement %s: tier %s on record has no date and is left out", name, tier)
    return result


def readable_snapshot(snapshot: dict[str, Any]) -> dict[str, Any] | None:
    """The snapshot without titles; None when it cannot be shown."""
    shown = snapshot.get("achievements")
    is_whole = (
        isinstance(shown, list)
        and all(_is_shown(item) for item in shown)
        and is_number(snapshot.get("generated_at"))
        and isinstance(snapshot.get("scan_meta"), dict)
        and isinstance(snapshot.get("aggregate"), dict)
        and all(isinstance(snapshot.get(name), int) for name in COUNTS)
    )
    if not is_whole:
        log.warning("achievements snapshot unusable: rebuilding it")
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
        return {key: without_titles(item) for key, item in value.items() if key != TITLE}
    return [without_titles(item) for item in value] if isinstance(value, list) else value


VERSION: Final = 2
STATE: Final = "state.json"
SNAPSHOT: Final = "scan_snapshot.json"


class Records:
    """The files of one user's achievements.

    *folder* need not exist before something is written. `problem` says why the last thing
    could not be written; it is None when all is well.
    """

    def __init__(self, folder: Callable[[], Path], clock: Clock) -> None:
        self.problem: str | None = None
        self._folder = folder
        self._clock = clock

    def state(self) -> dict[str, Any]:
        """The unlocks; those of the original program are under `inherited`."""
        return readable_state(self._read(STATE) or self._left_behind())

    def save_state(self, state: dict[str, Any]) -> None:
        """Replace the unlocks."""
        self._write(STATE, {**state, "version": VERSION})

    def record(self, new: dict[str, Tiers]) -> dict[str, Any]:
        """Add tiers to the unlocks; what another process recorded meanwhile stays.

        Where nothing can be written, the unlocks are as if it had been, and `problem` says so.
        """
        try:
            with folder_locked(self._folder()):
                state = added(self.state(), new)
                self.save_state(state)
        except OSError as error:
            self._complain(error)
            return added(self.state(), new)
        self.problem = None
        return state

    def zone(self) -> str:
        """The time zone by which days were told first; empty when there is none on record."""
        zone = self.state().get("zone")
        return zone if isinstance(zone, str) else ""

    def remember_zone(self, name: str) -> None:
        """Tell days by this zone from now on, unless there is one on record."""
        if not name or self.zone():
            return
        try:
            with folder_locked(self._folder()):
                state = self.state()
                self.save_state({**state, "zone": state.get("zone") or name})
        except OSError as error:
            self._complain(error)

    def snapshot(self) -> dict[str, Any] | None:
        """The last complete snapshot; None when there is none of use."""
        result = self._read(SNAPSHOT)
        if result.get("version") != VERSION:  # the original's has the same name
            return None
        return readable_snapshot(result)

    def save_snapshot(self, snapshot: dict[str, Any]) -> None:
        """Replace the snapshot; where nothing can be written, `problem` says so."""
        try:
            self._write(SNAPSHOT, {**snapshot, "version": VERSION})
        except OSError as error:
            self._complain(error)

    def reset(self) -> None:
        """Forget every unlock and the snapshot; the next scan finds them again."""
        with folder_locked(self._folder()):
            self.save_state({**self.state(), "unlocks": {}})
            (self._folder() / SNAPSHOT).unlink(missing_ok=True)

    def _complain(self, error: OSError) -> None:
        if self.problem is None:
            log.warning("what was earned cannot be kept: %s", error)
        self.problem = str(error)

    def _read(self, name: str) -> dict[str, Any]:
        path = self._folder() / name
        try:
            result = read_json(path, {}, self._clock).value
        except OSError as error:  # damaged or unreadable, and it cannot be put aside either
            log.warning("%s cannot be read: %s", path, error)
            return {}
        return result if isinstance(result, dict) else {}

    def _left_behind(self) -> dict[str, Any]:
        """The state in the place where newer releases of the original keep it."""
        folder = self._folder()
        other = folder.parent.parent / "plugin-data" / folder.name / STATE
        result = read_json(other, {}, self._clock).value if other.is_file() else {}
        return result if isinstance(result, dict) else {}

    def _write(self, name: str, value: dict[str, Any]) -> None:
        options = orjson.OPT_INDENT_2 | orjson.OPT_NON_STR_KEYS
        content = orjson.dumps(without_titles(value), default=list, option=options)
        write_atomically(self._folder() / name, content)


def added(state: dict[str, Any], new: dict[str, Tiers]) -> dict[str, Any]:
    """*state* with these tiers; one that is there stays, unless nobody knew what earned it."""
    for achievement_id, tiers in new.items():
        unlock = state["unlocks"].setdefault(achievement_id, {"tiers": {}})
        held = {tier: item for tier, item in unlock["tiers"].items() if is_dated(item)}
        unlock["tiers"] = {**unlock["tiers"], **tiers, **held}
        unlock["unlocked_at"] = min(item["at"] for item in unlock["tiers"].values())
    return state


def is_dated(tier: dict[str, Any]) -> bool:
    """Whether a tier on record names the message that earned it."""
    return tier.get("session_id") is not None
