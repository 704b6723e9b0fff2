"""Reset and retention policies as pure functions of time.

All times are aware datetimes and are compared in UTC: subtracting two datetimes of the
same zone would use wall-clock time and be wrong by an hour across a clock change.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from typing import TYPE_CHECKING, Literal, NamedTuple

from hermes_core.errors import ConfigError

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

    from hermes_core.config.file import Settings

Expiry = Literal["idle", "daily"]
RetentionReason = Literal["due", "kept for ever", "pinned", "still open", "recently active"]

RESET_MODES = ("none", "idle", "daily", "both")


@dataclass(frozen=True, slots=True)
class ResetPolicy:
    """When a place gets a new conversation automatically, and whether the user is notified."""

    mode: str = "none"
    at_hour: int = 4
    idle_minutes: int = 1440
    notify: bool = True
    notify_exclude_platforms: tuple[str, ...] = ("api_server", "webhook")

    def __post_init__(self) -> None:
        if self.mode not in RESET_MODES:
            raise ConfigError(f"Invalid reset mode {self.mode!r}; use none, idle, daily or both.")
        if not 0 <= self.at_hour <= 23:
            raise ConfigError(f"Reset hour {self.at_hour}: it must be from 0 to 23.")
        if self.idle_minutes < 1:
            raise ConfigError(f"Idle minutes {self.idle_minutes}: it must be at least 1.")

    def notifies(self, platform: str) -> bool:
        """Whether users of a platform are notified of an automatic reset."""
        return self.notify and platform not in self.notify_exclude_platforms

    def expired(self, last_active: datetime, now: datetime, zone: ZoneInfo) -> Expiry | None:
        """Why a conversation last active at *last_active* has expired at *now*, or None."""
        last_active_utc, now_utc = to_utc(last_active), to_utc(now)
        idle_limit = timedelta(minutes=self.idle_minutes)
        if self.mode in {"idle", "both"} and now_utc - last_active_utc >= idle_limit:
            return "idle"
        if self.mode in {"daily", "both"} and last_active_utc < self.last_daily_reset(
            now_utc, zone
        ):
            return "daily"
        return None

    def last_daily_reset(self, now: datetime, zone: ZoneInfo) -> datetime:
        """The latest daily reset that is not after *now*.

        There is one reset per calendar day. If the clock skips the hour, the reset is at the
        change; if the hour occurs twice, the first one is used. Several days around today
        are checked, because a zone may skip a calendar day.
        """
        now_utc = to_utc(now)
        today = now_utc.astimezone(zone).date()
        days = (today + timedelta(days=offset) for offset in (1, 0, -1, -2))
        resets = (
            datetime.combine(day, time(self.at_hour), tzinfo=zone).astimezone(UTC) for day in days
        )
        return max(reset for reset in resets if reset <= now_utc)


class RetentionVerdict(NamedTuple):
    """Whether a session may be pruned, and the reason."""

    is_due: bool
    reason: RetentionReason


@dataclass(frozen=True, slots=True)
class RetentionPolicy:
    """How long an ended session is kept; 0 days means forever."""

    days: int = 0

    def __post_init__(self) -> None:
        if self.days < 0:
            raise ConfigError(f"Retention of {self.days} days: it must be 0 or more.")

    def due(
        self, last_active: datetime, now: datetime, *, pinned: bool, ended: bool
    ) -> RetentionVerdict:
        """Whether a session is due; its age is the time since its last activity."""
        age = to_utc(now) - to_utc(last_active)
        if self.days == 0:
            return RetentionVerdict(False, "kept for ever")
        if pinned:
            return RetentionVerdict(False, "pinned")
        if not ended:
            return RetentionVerdict(False, "still open")
        if age < timedelta(days=self.days):
            return RetentionVerdict(False, "recently active")
        return RetentionVerdict(True, "due")


def to_utc(moment: datetime) -> datetime:
    """*moment* in UTC; raises ValueError for a datetime without a time zone."""
    if moment.utcoffset() is None:
        raise ValueError(f"{moment!r} has no time zone; give an aware datetime.")
    return moment.astimezone(UTC)


def retention_policy(settings: Settings) -> RetentionPolicy:
    """The retention policy of the settings.

    A number of days alone has no effect: configurations of hermes-agent contain one by
    default, with auto_prune disabled.
    """
    if not settings.get_bool("sessions.auto_prune"):
        return RetentionPolicy()
    return RetentionPolicy(settings.get_int("sessions.retention_days"))
