"""What has been earned, on disk: unlocks with their dates, and the last snapshot.

Both are JSON, written whole and readable by their owner alone. An unlock is never taken
back. Files that the original program left are read once; what they say is kept apart,
because its badges are not ours.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import orjson

from hermes_core.atomic_files import folder_locked, write_atomically
from hermes_core.json_files import read_json

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from hermes_core.clock import Clock

VERSION: Final = 2
STATE: Final = "state.json"
SNAPSHOT: Final = "scan_snapshot.json"


class Records:
    """The files of one user's achievements."""

    def __init__(self, folder: Callable[[], Path], clock: Clock) -> None:
        self._folder = folder
        self._clock = clock

    def state(self) -> dict[str, Any]:
        """The unlocks; those of the original program are under `inherited`."""
        return _upgraded(self._read(STATE) or self._left_behind())

    def save_state(self, state: dict[str, Any]) -> None:
        """Replace the unlocks."""
        self._write(STATE, {**state, "version": VERSION})

    def record(self, new: dict[str, dict[str, Any]]) -> dict[str, Any]:
        """Add tiers to the unlocks; what another process recorded meanwhile stays."""
        with folder_locked(self._folder()):
            state = self.state()
            for achievement_id, tiers in new.items():
                unlock = state["unlocks"].setdefault(achievement_id, {"tiers": {}})
                unlock["tiers"] = {**tiers, **unlock["tiers"]}
                first = min(unlock["tiers"].values(), key=lambda one: one["at"])
                unlock["unlocked_at"] = first["at"]
            if new:
                self.save_state(state)
        return state

    def snapshot(self) -> dict[str, Any] | None:
        """The last complete snapshot; None when there is none of use."""
        found = self._read(SNAPSHOT)
        is_ours = found.get("version") == VERSION  # the original's has the same name
        if not is_ours or not isinstance(found.get("achievements"), list):
            return None
        return found

    def save_snapshot(self, snapshot: dict[str, Any]) -> None:
        """Replace the snapshot."""
        self._write(SNAPSHOT, {**snapshot, "version": VERSION})

    def reset(self) -> None:
        """Forget every unlock and the snapshot; the next scan finds them again."""
        with folder_locked(self._folder()):
            inherited = self.state().get("inherited", {})
            self.save_state({"unlocks": {}, "inherited": inherited})
            (self._folder() / SNAPSHOT).unlink(missing_ok=True)

    def _read(self, name: str) -> dict[str, Any]:
        found = read_json(self._folder() / name, {}, self._clock).value
        return found if isinstance(found, dict) else {}

    def _left_behind(self) -> dict[str, Any]:
        """The state in the place where newer releases of the original keep it."""
        folder = self._folder()
        other = folder.parent.parent / "plugin-data" / folder.name / STATE
        found = read_json(other, {}, self._clock).value if other.is_file() else {}
        return found if isinstance(found, dict) else {}

    def _write(self, name: str, value: dict[str, Any]) -> None:
        options = orjson.OPT_INDENT_2 | orjson.OPT_NON_STR_KEYS
        write_atomically(self._folder() / name, orjson.dumps(value, default=list, option=options))


def _upgraded(state: dict[str, Any]) -> dict[str, Any]:
    unlocks = state.get("unlocks")
    unlocks = unlocks if isinstance(unlocks, dict) else {}
    inherited = state.get("inherited")
    inherited = dict(inherited) if isinstance(inherited, dict) else {}
    ours: dict[str, Any] = {}
    for name, unlock in unlocks.items():
        if isinstance(unlock, dict) and isinstance(unlock.get("tiers"), dict):
            ours[name] = unlock
        else:
            inherited.setdefault(name, unlock)
    return {**state, "unlocks": ours, "inherited": inherited}
