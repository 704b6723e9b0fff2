"""The dictionaries of a snapshot and of the stored unlocks.

They are the JSON of the achievement files and of the plugin's interface, on which other
programs rely.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NotRequired, TypedDict

if TYPE_CHECKING:
    from hermes_achievements.evaluation.dates import Threshold, UnlockMoment
    from hermes_core.json_values import JsonObject


class TierEvidence(TypedDict):
    """When a tier was earned, and by which message; `was_sought` if none was found."""

    at: float
    session_id: str | None
    message_id: int | None
    was_sought: NotRequired[bool]


class Unlock(TypedDict, total=False):
    """The recorded tiers of an achievement."""

    tiers: dict[str, TierEvidence]
    unlocked_at: float


class DueAnnouncement(TypedDict):
    """Tiers by achievement that were recorded and have to be announced."""

    since: float
    tiers: dict[str, list[str]]
    is_first: bool


class UnlockState(TypedDict):
    """The recorded unlocks; those of the original program are under `inherited`."""

    unlocks: dict[str, Unlock]
    inherited: JsonObject
    zone: NotRequired[str]
    unannounced: NotRequired[dict[str, DueAnnouncement]]
    version: NotRequired[int]


class TierStep(TypedDict):
    """A tier that was reached; the title of the conversation is added for display."""

    tier: str
    value: int
    at: float
    session_id: str | None
    message_id: int | None
    title: NotRequired[str | None]
    is_gone: NotRequired[bool]


class TimelineStep(TierStep):
    """A tier that was reached, and its achievement."""

    id: str
    name: str
    icon: str
    category: str
    is_first: bool


class TierGoal(TypedDict):
    """A tier and its threshold."""

    name: str
    threshold: int


class AchievementView(TypedDict):
    """An achievement as it is shown; a locked secret has only a hint."""

    id: str
    name: str
    description: str
    hint: NotRequired[str]
    category: str
    kind: str
    icon: str
    secret: bool
    origin: NotRequired[str]
    state: str
    unlocked: bool
    discovered: bool
    tier: str | None
    tiers: list[TierGoal]
    progress: int
    progress_pct: int
    next_tier: str | None
    next_threshold: int | None
    criteria: str
    unit: str
    metric: NotRequired[str]
    unlocked_at: NotRequired[float | None]
    tier_history: NotRequired[list[TierStep]]
    evidence: NotRequired[TierStep | None]
    tier_rank: NotRequired[int]


class ScanMeta(TypedDict, total=False):
    """What a scan read."""

    mode: str
    sessions_total: int
    sessions_rescanned: int
    sessions_reused: int
    sessions_scanned_so_far: int
    sessions_expected_total: int
    seconds_left: float | None


class AchievementCounts(TypedDict):
    """Numbers of achievements by state."""

    unlocked_count: int
    discovered_count: int
    secret_count: int
    total_count: int


class Snapshot(AchievementCounts):
    """All achievements at a time."""

    achievements: list[AchievementView]
    aggregate: dict[str, int]
    scan_meta: ScanMeta
    catalogue_id: int
    scan_id: str
    error: str | None
    is_stale: bool
    generated_at: float


class Scan(TypedDict, total=False):
    """The result of a scan; without `moments` it has no evidence and is not recorded."""

    sessions: list[dict[str, object]]
    aggregate: dict[str, int]
    moments: dict[Threshold, UnlockMoment]
    titles: dict[str, str]
    scan_meta: ScanMeta


class AnnouncedUnlock(TypedDict):
    """A new unlock, with the title of the conversation if it is known."""

    id: str
    name: str
    icon: str
    tier: str
    at: float
    session_id: str | None
    message_id: int | None
    title: NotRequired[str | None]
    value: NotRequired[int]
    is_gone: NotRequired[bool]


class Announcement(TypedDict):
    """The new unlocks of a scan."""

    unlocks: list[AnnouncedUnlock]
    count: int
    is_first_scan: bool
