"""Usage limits per user."""

from __future__ import annotations

from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import pytest

from gateway.config import Platform
from gateway.inbound.usage_limits import UsageLimits
from gateway.routing.sources import SessionSource

if TYPE_CHECKING:
    from hermes_state import SessionDB

pytestmark = pytest.mark.clock

ADA = SessionSource(Platform.TELEGRAM, "c1", user_id="ada")
BOB = SessionSource(Platform.TELEGRAM, "c1", user_id="bob")
UTC = ZoneInfo("UTC")


def test_turns_are_limited_per_user_and_refill_evenly(db: SessionDB) -> None:
    now = [0.0]
    limits = UsageLimits(db, 2, 0.0, UTC, clock=lambda: now[0])
    assert [limits.refusal(ADA) for _ in range(2)] == ["", ""]
    assert "Try again in 30 s" in limits.refusal(ADA)
    assert limits.refusal(BOB) == ""
    now[0] = 30.0
    assert limits.refusal(ADA) == ""
    assert limits.refusal(ADA) != ""


def test_spending_is_limited_by_day_and_survives_a_restart(db: SessionDB) -> None:
    UsageLimits(db, 0, 1.0, UTC).add_cost(ADA, 0.6)
    limits = UsageLimits(db, 0, 1.0, UTC)
    assert limits.refusal(ADA) == ""
    limits.add_cost(ADA, 0.6)
    assert "Daily limit" in UsageLimits(db, 0, 1.0, UTC).refusal(ADA)
    assert limits.refusal(BOB) == ""


def test_a_day_of_spending_is_a_day_in_the_configured_zone(db: SessionDB) -> None:
    east, west = ZoneInfo("Pacific/Kiritimati"), ZoneInfo("Pacific/Pago_Pago")  # 25 hours apart
    UsageLimits(db, 0, 1.0, east).add_cost(ADA, 2.0)
    assert UsageLimits(db, 0, 1.0, west).refusal(ADA) == ""


def test_without_limits_no_turns_are_counted(db: SessionDB) -> None:
    limits = UsageLimits(db, 0, 0.0, UTC)
    limits.add_cost(ADA, 100.0)
    assert all(limits.refusal(ADA) == "" for _ in range(100))
    assert UsageLimits(db, 0, 1.0, UTC).refusal(ADA) == ""
