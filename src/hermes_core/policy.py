"""When a conversation is over and when it may be removed: pure functions of time.

Every moment is an aware datetime, compared as an instant: the subtraction of two
datetimes of the same zone would count wall-clock time and be an hour wrong across
a clock change.
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
    """When a place gets a new conversation by itself."""

    mode: str = "none"
    at_hour: int = 4
    idle_minutes: int = 1440

    def __post_init__(self) -> None:
        if self.mode not in RESET_MODES:
            raise ConfigError(
                f"Reset mode {self.mode!r}: it must be one of none, idle, daily, both."
            )
        if not 0 <= self.at_hour <= 23:
            raise ConfigError(f"Reset hour {self.at_hour}: it must be from 0 to 23.")
        if self.idle_minutes < 1:
            raise ConfigError(f"Idle minutes {self.idle_minutes}: it must be at least 1.")

    def expired(self, last_active: datetime, now: datetime, zone: ZoneInfo) -> Expiry | None:
        """Why a conversation last touched at *last_active* is over at *now*, or None."""
        touched, present = instant(last_active), instant(now)
        pause = timedelta(minutes=self.idle_minutes)
        if self.mode in {"idle", "both"} and present - touched >= pause:
            return "idle"
        if self.mode in {"daily", "both"} and touched < self.last_daily_reset(present, zone):
            return "daily"
        return None

    def last_daily_reset(self, now: datetime, zone: ZoneInfo) -> datetime:
        """The latest daily reset that is not after *now*.

        There is one reset per calendar day. An hour that the clock skips counts at
        the moment of the jump; of an hour that comes twice, the first counts. The
        days around today are all looked at, since a zone may skip a whole day.
        """
        present = instant(now)
        today = present.astimezone(zone).date()
        days = (today + timedelta(days=offset) for offset in (1, 0, -1, -2))
        resets = (
            datetime.combine(day, time(self.at_hour), tzinfo=zone).astimezone(UTC) for day in days
        )
        return max(reset for reset in resets if reset <= present)


class RetentionVerdict(NamedTuple):
    """Whether a session may go, and why it may or may not."""

    is_due: bool
    reason: RetentionReason


@dataclass(frozen=True, slots=True)
class RetentionPolicy:
    """How long an ended session is kept; 0 days means for ever."""

    days: int = 0

    def __post_init__(self) -> None:
        if self.days < 0:
            raise ConfigError(f"Retention of {self.days} days: it must be 0 or more.")

    def due(
        self, last_active: datetime, now: datetime, *, pinned: bool, ended: bool
    ) -> RetentionVerdict:
        """The verdict on one session; age counts from its last activity, never its start."""
        age = instant(now) - instant(last_active)
        if self.days == 0:
            return RetentionVerdict(False, "kept for ever")
        if pinned:
            return RetentionVerdict(False, "pinned")
        if not ended:
            return RetentionVerdict(False, "still open")
        if age < timedelta(days=self.days):
            return RetentionVerdict(False, "recently active")
        return RetentionVerdict(True, "due")


def instant(moment: datetime) -> datetime:
    """*moment* in UTC; a datetime without a zone is refused because it names no instant."""
    if moment.utcoffset() is None:
        raise ValueError(f"{moment!r} has no time zone; give an aware datetime.")
    return moment.astimezone(UTC)


def retention_policy(settings: Settings) -> RetentionPolicy:
    """The retention that the user has chosen.

    A number of days alone removes nothing: configurations of the original carry one
    by default, next to an auto_prune that is off.
    """
    if not settings.get_bool("sessions.auto_prune"):
        return RetentionPolicy()
    return RetentionPolicy(settings.get_int("sessions.retention_days"))
