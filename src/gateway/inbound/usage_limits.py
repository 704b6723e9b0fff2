"""Usage limits per user: turns per minute and dollars per day."""

from __future__ import annotations

import threading
import time
from datetime import datetime
from typing import TYPE_CHECKING, Final

from hermes_core import time_zones

if TYPE_CHECKING:
    from collections.abc import Callable
    from zoneinfo import ZoneInfo

    from gateway.routing.sources import SessionSource
    from hermes_core.config.file import Settings
    from hermes_state import SessionDB

    UserKey = tuple[str, str]  # platform, user ID

SECONDS_PER_MINUTE: Final = 60.0
MAX_TRACKED_USERS: Final = 10_000  # above it all counts start again


class UsageLimits:
    """What each user has used; a limit of 0 means no limit."""

    def __init__(
        self,
        db: SessionDB,
        turns_per_minute: int,
        dollars_per_day: float,
        zone: ZoneInfo,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._db = db
        self._turns = turns_per_minute
        self._dollars = dollars_per_day
        self._zone = zone
        self._clock = clock
        self._buckets: dict[UserKey, tuple[float, float]] = {}
        self._last_counted: dict[UserKey, int] = {}  # the inbox ID of each user's last message
        self._lock = threading.Lock()

    @classmethod
    def of(cls, db: SessionDB, settings: Settings) -> UsageLimits:
        """The limits in the settings."""
        return cls(
            db,
            settings.get_int("gateway.user_turns_per_minute"),
            settings.get_float("gateway.user_dollars_per_day"),
            time_zones.find_zone(settings.get_str("display.timezone")),
        )

    def refusal(self, source: SessionSource, inbox_id: int | None = None) -> str:
        """Why a user has to wait; empty if not. Counts a turn, once per message."""
        user = _user_key(source)
        if self._dollars and self._cost_today(user) >= self._dollars:
            return f"Daily limit of ${self._dollars:g} reached. Try again tomorrow."
        if inbox_id is not None and self._last_counted.get(user) == inbox_id:
            return ""
        wait_seconds = self._take_turn(user)
        if inbox_id is not None and not wait_seconds:
            self._last_counted[user] = inbox_id
        return f"Rate limit reached. Try again in {wait_seconds:.0f} s." if wait_seconds else ""

    def _cost_today(self, user: UserKey) -> float:
        return self._db.chats.spending(*user, day=self._today())

    @property
    def counts_costs(self) -> bool:
        """Whether a limit on costs is set."""
        return self._dollars > 0

    def add_cost(self, source: SessionSource, dollars: float) -> None:
        """Record the cost of a turn."""
        if self._dollars and dollars > 0:
            user = _user_key(source)
            self._db.chats.add_spending(*user, day=self._today(), dollars=dollars)

    def _today(self) -> str:
        return datetime.now(self._zone).date().isoformat()

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


def _user_key(source: SessionSource) -> UserKey:
    return source.platform.value, source.user_id or source.chat_id
