"""Limits of turns per user and minute."""

from __future__ import annotations

from gateway.config import Platform
from gateway.inbound.budgets import UsageLimits
from gateway.routing.sources import SessionSource

ADA = SessionSource(Platform.TELEGRAM, "c1", user_id="ada")
BOB = SessionSource(Platform.TELEGRAM, "c1", user_id="bob")


def test_turns_are_limited_per_user_and_refill_evenly() -> None:
    now = [0.0]
    limits = UsageLimits(2, clock=lambda: now[0])
    assert [limits.refusal(ADA) for _ in range(2)] == ["", ""]
    assert "Try again in 30 s" in limits.refusal(ADA)
    assert limits.refusal(BOB) == ""
    now[0] = 30.0
    assert limits.refusal(ADA) == ""
    assert limits.refusal(ADA) != ""


def test_without_limits_no_turns_are_counted() -> None:
    limits = UsageLimits(0)
    assert all(limits.refusal(ADA) == "" for _ in range(100))
