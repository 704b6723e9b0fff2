"""Stored unlocks with their dates, announcements that are due, and the latest snapshot.

Unlocks are never removed. The records contain no session titles: titles are looked up for
display, so that purged sessions leave no text behind. Files of the original program are read
once; its badges are different and stored separately under `inherited`. Announcements are recorded
with the unlocks and removed when they were made: a process that dies in between leaves its
announcement to the next scan, on any machine.
"""

from __future__ import annotations

import logging
import math
import uuid
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, TypeGuard, cast

import orjson

from hermes_core.atomic_files import folder_locked, write_atomically
from hermes_core.errors import HermesError
from hermes_core.json_files import read_json
from hermes_core.json_values import object_in

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from hermes_achievements.evaluation.snapshot import (
        DueAnnouncement,
        Snapshot,
        TierEvidence,
        Unlock,
        UnlockState,
    )
    from hermes_core.clock import Clock
    from hermes_core.json_values import JsonObject

    Tiers = dict[str, TierEvidence]

STATE_FILE: Final = "state.json"
SNAPSHOT_FILE: Final = "scan_snapshot.json"
FORMAT: Final = orjson.OPT_INDENT_2 | orjson.OPT_NON_STR_KEYS


class RecordStorage(Protocol):
    """JSON objects by name; an error is an OSError or a HermesError."""

    def read(self, name: str) -> JsonObject:
        """An object; empty if it is missing or unreadable."""

    def write(self, name: str, value: JsonObject) -> None:
        """Replace an object."""

    def change(self, name: str, change: Callable[[JsonObject], JsonObject]) -> None:
        """Replace an object by what *change* makes of it; no other process does so meanwhile.

        *change* may be called again after a conflict.
        """

    def remove(self, name: str) -> None:
        """Delete an object, if it exists."""


def encode(value: JsonObject) -> bytes:
    """The JSON of a record."""
    return orjson.dumps(value, default=list, option=FORMAT)


class FolderStorage:
    """Files, written atomically and readable only by their owner.

    The folder is created by the first write.
    """

    def __init__(self, folder: Path, clock: Clock) -> None:
        self._folder = folder
        self._clock = clock

    def read(self, name: str) -> JsonObject:
        """An object; the state may be that of newer releases of the original program."""
        path = self._folder / name
        try:
            result = read_json(path, {}, self._clock).value
        except OSError as error:  # unreadable, or damaged and not movable
            log.warning("achievements file unreadable: %s: %s", path, error)
            return {}
        if not result and name == STATE_FILE:
            result = self._read_original()
        return result if isinstance(result, dict) else {}

    def write(self, name: str, value: JsonObject) -> None:
        """Replace an object."""
        write_atomically(self._folder / name, encode(value))

    def change(self, name: str, change: Callable[[JsonObject], JsonObject]) -> None:
        """Replace an object, with the folder locked."""
        with folder_locked(self._folder):
            self.write(name, change(self.read(name)))

    def remove(self, name: str) -> None:
        """Delete a file, if it exists."""
        (self._folder / name).unlink(missing_ok=True)

    def _read_original(self) -> object:
        path = self._folder.parent.parent / "plugin-data" / self._folder.name / STATE_FILE
        return read_json(path, {}, self._clock).value if path.is_file() else {}


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


def announce_later(state: UnlockState, new: dict[str, Tiers], now: float, *, is_first: bool) -> str:
    """Record that *new* has to be announced; returns the ID of the announcement."""
    name = uuid.uuid4().hex
    due: DueAnnouncement = {
        "since": now,
        "tiers": {achievement: list(tiers) for achievement, tiers in new.items()},
        "is_first": is_first,
    }
    state["unannounced"] = {**state.get("unannounced", {}), name: due}
    return name


def remove_announcement(state: UnlockState, name: str) -> None:
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


log = logging.getLogger(__name__)

TITLE_FIELD: Final = "title"
COUNT_FIELDS: Final = ("unlocked_count", "discovered_count", "secret_count", "total_count")
SNAPSHOT_ACHIEVEMENT_FIELDS: Final = (
    "id", "name", "icon", "category", "state", "unlocked", "discovered", "tier", "progress",
    "progress_pct", "next_tier", "next_threshold", "unit",
)  # fmt: skip


def validate_state(state: JsonObject) -> UnlockState:
    """The valid unlocks; those of other programs are under `inherited`."""
    inherited = dict(object_in(state, "inherited"))
    valid: dict[str, Unlock] = {}
    for name, unlock in object_in(state, "unlocks").items():
        stored = unlock.get("tiers") if isinstance(unlock, dict) else None
        if not isinstance(unlock, dict) or not isinstance(stored, dict):
            inherited.setdefault(name, unlock)
            continue
        tiers = _validate_tiers(name, stored)
        if tiers:
            first = min(tier["at"] for tier in tiers.values())
            valid[name] = cast("Unlock", {**unlock, "tiers": tiers, "unlocked_at": first})
    parts = {"unlocks": valid, "inherited": without_titles(inherited)}
    result = cast("UnlockState", {**state, **parts})
    due = valid_announcements(result.pop("unannounced", None))
    if due:
        result["unannounced"] = due
    return result


def _validate_tiers(name: str, stored: JsonObject) -> Tiers:
    result: Tiers = {}
    for tier, item in stored.items():
        at = item.get("at") if isinstance(item, dict) else None
        if isinstance(item, dict) and isinstance(at, int | float) and is_number(at):
            session_id, message_id = item.get("session_id"), item.get("message_id")
            result[tier] = {
                "at": at,
                "session_id": session_id if isinstance(session_id, str) else None,
                "message_id": message_id if isinstance(message_id, int) else None,
            }
            if item.get("was_sought") is True:
                result[tier]["was_sought"] = True
        else:
            log.warning("recorded tier without a date ignored: achievement %s, tier %s", name, tier)
    return result


def validate_snapshot(snapshot: JsonObject) -> Snapshot | None:
    """The snapshot without titles; None if it is invalid."""
    shown = snapshot.get("achievements")
    is_valid = (
        isinstance(shown, list)
        and all(_is_complete(item) for item in shown)
        and is_number(snapshot.get("generated_at"))
        and isinstance(snapshot.get("scan_meta"), dict)
        and isinstance(snapshot.get("aggregate"), dict)
        and all(isinstance(snapshot.get(name), int) for name in COUNT_FIELDS)
    )
    if not is_valid:
        log.warning("achievements snapshot unusable: rebuilding it")
        return None
    valid = {name: without_titles(value) for name, value in snapshot.items()}
    return cast("Snapshot", valid)


def _is_complete(achievement: Any) -> bool:
    if not isinstance(achievement, dict) or not all(
        name in achievement for name in SNAPSHOT_ACHIEVEMENT_FIELDS
    ):
        return False
    history = achievement.get("tier_history") or []
    return isinstance(history, list) and all(
        isinstance(step, dict) and is_number(step.get("at")) and "tier" in step and "value" in step
        for step in history
    )


def is_number(value: Any) -> bool:
    """Whether *value* is a number that can be a timestamp."""
    is_real = isinstance(value, int | float) and not isinstance(value, bool)
    return is_real and math.isfinite(value)


def without_titles(value: Any) -> Any:
    """A copy of *value* without titles, at any depth."""
    if isinstance(value, dict):
        return {key: without_titles(item) for key, item in value.items() if key != TITLE_FIELD}
    return [without_titles(item) for item in value] if isinstance(value, list) else value


RECORDS_VERSION: Final = 2


class RecordedTiers(NamedTuple):
    """The unlocks after tiers were recorded; the announcement of those that were not before."""

    state: UnlockState
    announcement: ClaimedAnnouncement | None = None


class UnlockRecords:
    """The recorded unlocks and the snapshot of a user.

    `problem` is the error of the last failed write, or None.
    """

    def __init__(self, storage: Callable[[], RecordStorage]) -> None:
        self.problem: str | None = None
        self._storage = storage

    def state(self) -> UnlockState:
        """The unlocks; those of the original program are under `inherited`."""
        return validate_state(self._storage().read(STATE_FILE))

    def save_state(self, state: UnlockState) -> None:
        """Replace the unlocks."""
        self._storage().write(STATE_FILE, _storable(state))

    def record(self, tiers: dict[str, Tiers], known: UnlockState, now: float) -> RecordedTiers:
        """Add tiers to the unlocks; tiers recorded by another process are kept.

        The announcement of new ones is recorded as due: call `settle_announcement` after it. If
        they cannot be stored, they are added to the *known* state and `problem` is set.
        """
        results: list[RecordedTiers] = []

        def change(stored: JsonObject) -> JsonObject:
            before = validate_state(stored)
            new = _unrecorded(tiers, before["unlocks"])
            is_first = not before["unlocks"]
            state = merge_tiers(before, tiers)
            announcement = None
            if new:
                name = announce_later(state, new, now, is_first=is_first)
                announcement = ClaimedAnnouncement(name, new, is_first)
            results.append(RecordedTiers(state, announcement))
            return _storable(state)

        try:
            self._storage().change(STATE_FILE, change)
        except (OSError, HermesError) as error:
            self._report_problem(error)
            return RecordedTiers(merge_tiers(known, tiers))
        self.problem = None
        return results[-1]

    def inherit(self, dates: JsonObject) -> None:
        """Add unlocks of the original program, from another folder; recorded ones are kept."""

        def add(stored: JsonObject) -> JsonObject:
            state = validate_state(stored)
            state["inherited"] = without_titles({**dates, **state["inherited"]})
            return _storable(state)

        self._storage().change(STATE_FILE, add)

    def settle_announcement(self, name: str) -> None:
        """Record that an announcement was made."""
        self._change(lambda state: remove_announcement(state, name))

    def take_over_announcements(self, now: float) -> list[ClaimedAnnouncement]:
        """The announcements of processes that died; this process makes them."""
        claimed: list[ClaimedAnnouncement] = []

        def claim(state: UnlockState) -> None:
            claimed[:] = take_over(state, now)

        return claimed if self._change(claim) else []

    def zone(self) -> str:
        """The recorded time zone of days, or ''."""
        zone = self.state().get("zone")
        return zone if isinstance(zone, str) else ""

    def remember_zone(self, name: str) -> None:
        """Record the time zone of days, unless one is recorded."""
        if not name or self.zone():
            return

        def remember(state: UnlockState) -> None:
            state["zone"] = state.get("zone") or name

        self._change(remember)

    def snapshot(self) -> Snapshot | None:
        """The latest complete snapshot; None without a valid one."""
        result = self._storage().read(SNAPSHOT_FILE)
        if result.get("version") != RECORDS_VERSION:  # the original program uses the same file name
            return None
        return validate_snapshot(result)

    def save_snapshot(self, snapshot: Snapshot) -> None:
        """Replace the snapshot; sets `problem` if it cannot be stored."""
        try:
            self._storage().write(SNAPSHOT_FILE, _storable(snapshot))
        except (OSError, HermesError) as error:
            self._report_problem(error)

    def reset(self) -> None:
        """Delete every unlock and the snapshot; the next scan finds them again."""
        storage = self._storage()
        storage.change(STATE_FILE, _without_unlocks)
        storage.remove(SNAPSHOT_FILE)

    def _change(self, change: Callable[[UnlockState], object]) -> bool:
        """Change the stored state; returns whether it was stored."""

        def replace(stored: JsonObject) -> JsonObject:
            state = validate_state(stored)
            change(state)
            return _storable(state)

        try:
            self._storage().change(STATE_FILE, replace)
        except (OSError, HermesError) as error:
            self._report_problem(error)
            return False
        return True

    def _report_problem(self, error: Exception) -> None:
        if self.problem is None:
            log.warning("achievements not saved: %s", error)
        self.problem = str(error)


def _storable(value: Mapping[str, object]) -> JsonObject:
    """What is stored of the unlocks or of a snapshot: no titles."""
    return cast("JsonObject", without_titles({**value, "version": RECORDS_VERSION}))


def _without_unlocks(stored: JsonObject) -> JsonObject:
    state = validate_state(stored)
    state.pop("unannounced", None)
    return _storable({**state, "unlocks": {}})


def _unrecorded(tiers: dict[str, Tiers], unlocks: Mapping[str, Unlock]) -> dict[str, Tiers]:
    """The tiers that are not among the recorded ones."""
    result: dict[str, Tiers] = {}
    for achievement_id, items in tiers.items():
        recorded = unlocks[achievement_id]["tiers"] if achievement_id in unlocks else {}
        new = {tier: item for tier, item in items.items() if tier not in recorded}
        if new:
            result[achievement_id] = new
    return result


def merge_tiers(state: UnlockState, new: dict[str, Tiers]) -> UnlockState:
    """Add tiers to *state*; recorded tiers are kept, except those without a message."""
    for achievement_id, tiers in new.items():
        unlock = state["unlocks"].setdefault(achievement_id, {"tiers": {}})
        dated = {tier: item for tier, item in unlock["tiers"].items() if is_dated(item)}
        unlock["tiers"] = {**unlock["tiers"], **tiers, **dated}
        unlock["unlocked_at"] = min(item["at"] for item in unlock["tiers"].values())
    return state


def is_dated(tier: TierEvidence) -> bool:
    """Whether a recorded tier has the message that earned it."""
    return tier.get("session_id") is not None
