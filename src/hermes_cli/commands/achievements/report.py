"""A look at what has been earned: scanned, with what is new since the last one."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from hermes_cli import history
from hermes_conversation import achievements
from hermes_core.config.file import ConfigFile
from hermes_core.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from hermes_achievements.catalogue import Catalogue
    from hermes_achievements.service import Service, Source
    from hermes_cli.output import Output

    Snapshot = dict[str, Any]

OFF: Final = (
    "Achievements are disabled. Enable them with `hermes config set achievements.enabled true`."
)
FIELDS: Final = (
    "id", "name", "description", "category", "kind", "icon", "secret", "origin", "state", "tier",
    "tiers", "progress", "progress_pct", "next_tier", "next_threshold", "criteria", "unit",
    "metric", "unlocked_at", "tier_history",
)  # fmt: skip
STEP_FIELDS: Final = ("tier", "value", "at", "session_id", "message_id", "title")
UNLOCK_FIELDS: Final = ("id", "name", "icon", *STEP_FIELDS)
GONE: Final = "(deleted conversation)"


class Look(NamedTuple):
    """What is known, and what was not known before; `news` is an announcement."""

    service: Service
    snapshot: Snapshot
    news: dict[str, Any]
    source: Source | None = None  # None where there is no history
    is_earlier: bool = False  # not read now, because another process is at it

    @property
    def has_history(self) -> bool:
        """Whether there is anything to read."""
        return self.source is not None

    @property
    def catalogue(self) -> Catalogue:
        """What can be earned."""
        return self.service.catalogue


@contextlib.contextmanager
def looking(out: Output, *, full: bool = False) -> Iterator[Look]:
    """Scan what is new, or everything; where there is no history, nothing is earned."""
    if not achievements.is_enabled():
        raise UsageError(OFF)
    service = achievements.service()
    if not history.exists():
        snapshot = service.pending()
        yield Look(service, snapshot, news({}, snapshot))
        return
    from hermes_cli.commands.achievements.scan_progress import scanned  # noqa: PLC0415 - `--help` does without

    before = service.records.state()["unlocks"]
    found = scanned(out, full=full)
    with contextlib.closing(found.service):
        new = news(before, found.snapshot)
        yield Look(found.service, found.snapshot, new, found.source, found.is_earlier)


def news(before: Mapping[str, Mapping[str, Any]], snapshot: Snapshot) -> dict[str, Any]:
    """Achievements with tiers that *before* does not have, each with the highest."""
    unlocks = []
    for one in snapshot["achievements"]:
        held = before.get(one["id"], {}).get("tiers", {})
        new = [step for step in one.get("tier_history") or () if step["tier"] not in held]
        if new:
            unlocks.append({key: one[key] for key in ("id", "name", "icon")} | new[-1])
    return {"unlocks": unlocks, "count": len(unlocks), "is_first_scan": not before}


def held_in(snapshot: Snapshot) -> dict[str, dict[str, Any]]:
    """The tiers in a snapshot, in the form of the records."""
    return {
        one["id"]: {"tiers": {step["tier"]: step for step in one.get("tier_history") or ()}}
        for one in snapshot["achievements"]
    }


def public(one: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of an achievement that programs may rely on; secrets have them all, too."""
    found = {key: one.get(key) for key in FIELDS}
    if found["tier_history"] is not None:
        found["tier_history"] = [
            {key: step.get(key) for key in STEP_FIELDS} for step in found["tier_history"]
        ]
    return found


def unlock_as_dict(unlock: Mapping[str, Any]) -> dict[str, Any]:
    """Something new, for programs."""
    return {key: unlock.get(key) for key in UNLOCK_FIELDS}


def wants_notices() -> bool:
    """Whether the user wants to be told of new achievements."""
    return ConfigFile.of_home().settings().get_bool("achievements.notify")


def conversation(step: Mapping[str, Any]) -> str:
    """The conversation in which something was earned: its title, or its id."""
    if step.get("is_gone"):
        return GONE
    return str(step.get("title") or step.get("session_id") or "")
