"""Whether a place's conversation is over: a function of its policy and the clock."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from hermes_core.config.file import ConfigFile
from hermes_core.policy import Expiry, ResetPolicy
from hermes_core.time_zones import find_zone

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

    from gateway.config import SessionResetPolicy
    from gateway.routing.entries import SessionEntry


def expiry_reason(
    entry: SessionEntry,
    policy: SessionResetPolicy,
    now: datetime | None = None,
    zone: ZoneInfo | None = None,
) -> Expiry | None:
    """Why the conversation is over: `idle` or `daily`; None while it is not."""
    if policy.mode == "none":
        return None
    rule = ResetPolicy(policy.mode, policy.at_hour, policy.idle_minutes)
    last, present = entry.updated_at.astimezone(UTC), now or datetime.now(UTC)
    return rule.expired(last, present, zone or user_zone())


def user_zone() -> ZoneInfo:
    """The zone in which the user's days begin."""
    return find_zone(ConfigFile.of_home().settings().get_str("display.timezone"))
