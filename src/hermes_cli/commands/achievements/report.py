"""The report of achievements after a scan, with new unlocks."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_achievements.evaluation import views
from hermes_cli import history
from hermes_conversation import achievements
from hermes_core.config.file import ConfigFile
from hermes_core.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from hermes_achievements.catalogue import Catalogue
    from hermes_achievements.evaluation.snapshot import (
        AchievementView,
        AnnouncedUnlock,
        Announcement,
        Snapshot,
        TierEvidence,
        TierStep,
        TimelineStep,
        Unlock,
    )
    from hermes_achievements.service import AchievementService, HistorySource
    from hermes_cli.output import CommandOutput


DISABLED: Final = (
    "Achievements are disabled. Enable them with `hermes config set achievements.enabled true`."
)
ACHIEVEMENT_FIELDS: Final = (
    "id", "name", "description", "category", "kind", "icon", "secret", "origin", "state", "tier",
    "tiers", "progress", "progress_pct", "next_tier", "next_threshold", "criteria", "unit",
    "metric", "unlocked_at", "tier_history",
)  # fmt: skip
STEP_FIELDS: Final = ("tier", "value", "at", "session_id", "message_id", "title")
UNLOCK_FIELDS: Final = ("id", "name", "icon", *STEP_FIELDS)
DELETED_CONVERSATION: Final = "(deleted conversation)"


class AchievementReport(NamedTuple):
    """The snapshot of achievements and the new unlocks."""

    service: AchievementService
    snapshot: Snapshot
    news: Announcement
    source: HistorySource | None = None  # None without a history
    is_earlier: bool = False  # from an earlier scan: another process is scanning

    @property
    def has_history(self) -> bool:
        """Whether a history exists."""
        return self.source is not None

    @property
    def catalogue(self) -> Catalogue:
        """The catalogue of achievements."""
        return self.service.catalogue

    def earned_in(self, source: str | None) -> Snapshot:
        """The snapshot with the achievements of one source only, if *source* is given."""
        if self.source is None:
            return self.snapshot
        return views.earned_in(self.snapshot, source, self.source.open_history)

    def steps_in(self, source: str | None) -> list[TimelineStep]:
        """Unlocks and tiers in the order in which they were earned."""
        steps = views.timeline(self.snapshot)
        if self.source is None:
            return steps
        return views.steps_in(steps, source, self.source.open_history)


@contextlib.contextmanager
def open_report(out: CommandOutput, *, full: bool = False) -> Iterator[AchievementReport]:
    """Scan new messages, or with *full* all; without a history nothing is earned."""
    if not achievements.is_enabled():
        raise UsageError(DISABLED)
    service = achievements.service()
    if not history.exists():
        snapshot = service.pending()
        yield AchievementReport(service, snapshot, new_unlocks({}, snapshot))
        return
    from hermes_cli.commands.achievements.scan_progress import scan_history  # noqa: PLC0415 - `--help` does without

    before = service.records.state()["unlocks"]
    result = scan_history(out, full=full)
    with contextlib.closing(result.service):
        new = new_unlocks(before, result.snapshot)
        yield AchievementReport(
            result.service, result.snapshot, new, result.source, result.is_earlier
        )


def new_unlocks(before: Mapping[str, Unlock], snapshot: Snapshot) -> Announcement:
    """Achievements with tiers that are not in *before*, each with its highest."""
    unlocks: list[AnnouncedUnlock] = []
    for achievement in snapshot["achievements"]:
        name = achievement["id"]
        held = before[name].get("tiers", {}) if name in before else {}
        new = [step for step in achievement.get("tier_history") or () if step["tier"] not in held]
        if new:
            icon = achievement["icon"]
            unlocks.append({"id": name, "name": achievement["name"], "icon": icon, **new[-1]})
    return {"unlocks": unlocks, "count": len(unlocks), "is_first_scan": not before}


def tiers_by_id(snapshot: Snapshot) -> dict[str, Unlock]:
    """The tiers of a snapshot by achievement ID."""
    return {
        achievement["id"]: {"tiers": dict(map(_evidence, achievement.get("tier_history") or ()))}
        for achievement in snapshot["achievements"]
    }


def _evidence(step: TierStep) -> tuple[str, TierEvidence]:
    return step["tier"], {
        "at": step["at"],
        "session_id": step["session_id"],
        "message_id": step["message_id"],
    }


def public_fields(one: AchievementView) -> dict[str, object]:
    """The documented fields of an achievement, also of a secret one."""
    history = one.get("tier_history")
    steps = None if history is None else [_public_step(step) for step in history]
    return {**{key: one.get(key) for key in ACHIEVEMENT_FIELDS}, "tier_history": steps}


def _public_step(step: TierStep) -> dict[str, object]:
    return {key: step.get(key) for key in STEP_FIELDS}


def unlock_as_dict(unlock: AnnouncedUnlock) -> dict[str, object]:
    """An unlock as a dict."""
    return {key: unlock.get(key) for key in UNLOCK_FIELDS}


def wants_notices() -> bool:
    """Whether notices of new achievements are enabled."""
    return ConfigFile.of_home().settings().get_bool("achievements.notify")


def conversation_name(step: TierStep | AnnouncedUnlock) -> str:
    """The title or ID of the conversation of a step."""
    if step.get("is_gone"):
        return DELETED_CONVERSATION
    return str(step.get("title") or step.get("session_id") or "")
