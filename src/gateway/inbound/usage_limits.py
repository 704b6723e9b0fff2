"""How much one person may ask for: turns in a minute, dollars in a day."""

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

MINUTE: Final = 60.0
MOST_PEOPLE: Final = 10_000  # remembered at once; the others begin anew


class Limits:
    """What a person has used up; 0 means that there is no limit."""

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
        self._buckets: dict[tuple[str, str], tuple[float, float]] = {}
        self._counted: dict[tuple[str, str], int] = {}  # the last message of each
        self._lock = threading.Lock()

    @classmethod
    def of(cls, db: SessionDB, settings: Settings) -> Limits:
        """Those of the settings."""
        return cls(
            db,
            settings.get_int("gateway.user_turns_per_minute"),
            settings.get_float("gateway.user_dollars_per_day"),
            time_zones.find_zone(settings.get_str("display.timezone")),
        )

    def refusal(self, source: SessionSource, message: int | None = None) -> str:
        """Why a person has to wait; empty when they need not. Counts a turn, once per message."""
        who = (source.platform.value, source.user_id or source.chat_id)
        if self._dollars and self._spent(who) >= self._dollars:
            return f"You have used up the ${self._dollars:g} of today; tomorrow there is more."
        if message is not None and self._counted.get(who) == message:
            return ""
        pause = self._pause(who)
        if message is not None and not pause:
            self._counted[who] = message
        return f"That is a little fast; please write again in {pause:.0f} s." if pause else ""

    def _spent(self, who: tuple[str, str]) -> float:
        return self._db.spending(*who, day=self._day())

    def spent(self, source: SessionSource, dollars: float) -> None:
        """A turn has cost so much."""
        if self._dollars and dollars > 0:
            who = (source.platform.value, source.user_id or source.chat_id)
            self._db.add_spending(*who, day=self._day(), dollars=dollars)

    def _day(self) -> str:
        return datetime.now(self._zone).date().isoformat()

    def _pause(self, who: tuple[str, str]) -> float:
        """A bucket of turns that fills up evenly."""
        if not self._turns:
            return 0.0
        now, rate = self._clock(), self._turns / MINUTE
        with self._lock:
            left, at = self._buckets.get(who, (float(self._turns), now))
            left = min(self._turns, left + (now - at) * rate)
            if len(self._buckets) >= MOST_PEOPLE:
                self._buckets.clear()
                self._counted.clear()
            self._buckets[who] = (left - 1 if left >= 1 else left, now)
        return 0.0 if left >= 1 else max(1.0, (1 - left) / rate)
