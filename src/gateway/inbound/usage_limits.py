"""Limits per user: turns per minute. Budgets per day are in `budgets`."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Final

from gateway.inbound.budgets import user_key

if TYPE_CHECKING:
    from collections.abc import Callable

    from gateway.inbound.budgets import UserKey
    from gateway.routing.sources import SessionSource
    from hermes_core.config.file import Settings

SECONDS_PER_MINUTE: Final = 60.0
MAX_TRACKED_USERS: Final = 10_000  # above it all counts start again


class UsageLimits:
    """The turns of each user; a limit of 0 means no limit."""

    def __init__(self, turns_per_minute: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._turns = turns_per_minute
        self._clock = clock
        self._buckets: dict[UserKey, tuple[float, float]] = {}
        self._last_counted: dict[UserKey, int] = {}  # the inbox ID of each user's last message
        self._lock = threading.Lock()

    @classmethod
    def of(cls, settings: Settings) -> UsageLimits:
        """The limits in the settings."""
        return cls(settings.get_int("gateway.user_turns_per_minute"))

    def refusal(self, source: SessionSource, inbox_id: int | None = None) -> str:
        """Why a user has to wait; empty if not. Counts a turn, once per message."""
        user = user_key(source)
        if inbox_id is not None and self._last_counted.get(user) == inbox_id:
            return ""
        wait_seconds = self._take_turn(user)
        if inbox_id is not None and not wait_seconds:
            self._last_counted[user] = inbox_id
        return f"Rate limit reached. Try again in {wait_seconds:.0f} s." if wait_seconds else ""

    def wait_seconds(self, source: SessionSource) -> float:
        """How long a user has to wait for the next turn."""
        with self._lock:
            left, at = self._buckets.get(user_key(source), (1.0, self._clock()))
        rate = self._turns / SECONDS_PER_MINUTE
        left += (self._clock() - at) * rate
        return 0.0 if not rate or left >= 1 else max(1.0, (1 - left) / rate)

    def _take_turn(self, user: UserKey) -> float:
        """Take a turn from the user's token bucket; the seconds to wait if it is empty."""
        if not self._turns:
            return 0.0
        now, rate = self._clock(), self._turns / SECONDS_PER_MINUTE
        with self._lock:
            left, at = self._buckets.get(user, (float(self._turns), now))
            left = min(self._turns, left + (now - at) * rate)
            if len(self._buckets) >= MAX_TRACKED_USERS:
                self._buckets.clear()
                self._last_counted.clear()
            self._buckets[user] = (left - 1 if left >= 1 else left, now)
        return 0.0 if left >= 1 else max(1.0, (1 - left) / rate)
