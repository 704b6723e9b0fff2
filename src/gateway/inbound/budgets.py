"""Budgets per day in tokens and dollars: for each person, and for all of them together.

What exceeds a budget waits: messages in the inbox, scheduled jobs before their next run. It
continues when the next day begins in the configured time zone, or when the budget is raised.
"""

from __future__ import annotations

import logging
import threading
import time
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_core import time_zones
from hermes_core.config.file import ConfigFile
from hermes_core.errors import ConfigError
from hermes_core.schedules.rules import local_time, moment_of
from hermes_state.schedules.rows import RunUsage

if TYPE_CHECKING:
    from collections.abc import Callable
    from zoneinfo import ZoneInfo

    from gateway.routing.sources import SessionSource
    from hermes_core.config.file import Settings
    from hermes_state.delivery.rows import ReplyTarget
    from hermes_state.store import SessionDB

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


log = logging.getLogger(__name__)

NOTICE: Final = "{reason} {what} until {when}, or until the budget is raised. Nothing is lost."
REREAD_SECONDS: Final = 2.0
MESSAGES_WAIT: Final = "Your messages are on hold"
JOBS_WAIT: Final = "Your scheduled jobs are on hold"


class UserKey(NamedTuple):
    """A person on a platform."""

    platform: str
    user_id: str


class DailyLimits(NamedTuple):
    """Limits per day; 0 means no limit."""

    user_dollars: float = 0.0
    user_tokens: int = 0
    all_dollars: float = 0.0
    all_tokens: int = 0

    @classmethod
    def of(cls, settings: Settings) -> DailyLimits:
        """The limits in the settings."""
        return cls(
            settings.get_float("gateway.user_dollars_per_day"),
            settings.get_int("gateway.user_tokens_per_day"),
            settings.get_float("gateway.dollars_per_day"),
            settings.get_int("gateway.tokens_per_day"),
        )


class ExceededBudget(NamedTuple):
    """A budget that is used up, and when the next day begins."""

    reason: str
    until: float


class BudgetExceededError(Exception):
    """The turn of a message has to wait for a budget."""

    def __init__(self, exceeded: ExceededBudget) -> None:
        super().__init__(exceeded.reason)
        self.exceeded = exceeded


class Budgets:
    """What was used today, compared with the limits."""

    def __init__(
        self, db: SessionDB, read_limits: Callable[[], DailyLimits], zone: ZoneInfo
    ) -> None:
        self._db = db
        self._read_limits = read_limits
        self._zone = zone
        self._limits = read_limits()
        self._problem = ""  # of the settings, logged once
        self._read_at = time.monotonic()

    @classmethod
    def of(cls, db: SessionDB, settings: Settings) -> Budgets:
        """The budgets in the settings."""
        zone = time_zones.find_zone(settings.get_str("display.timezone"))
        return cls(db, _configured_limits, zone)

    @property
    def limits(self) -> DailyLimits:
        """The limits; a changed one applies after a few seconds."""
        if time.monotonic() - self._read_at >= REREAD_SECONDS:
            self._read_at = time.monotonic()
            try:
                self._limits = self._read_limits()
            except ConfigError as error:
                if str(error) != self._problem:
                    self._problem = str(error)
                    log.warning("budgets not reloaded: %s", error)
            else:
                self._problem = ""
        return self._limits

    def exceeded(self, user: UserKey) -> ExceededBudget | None:
        """The budget that a person has to wait for; None if there is none."""
        if not any(self.limits):
            return None
        reason = self._reason(user, self._today())
        return ExceededBudget(reason, self._tomorrow()) if reason else None

    def _reason(self, user: UserKey, day: str) -> str:
        limits, chats = self._limits, self._db.chats
        if limits.user_dollars and chats.spending(*user, day=day) >= limits.user_dollars:
            return f"Your daily budget of ${limits.user_dollars:g} is used up."
        if limits.user_tokens and chats.tokens(*user, day=day) >= limits.user_tokens:
            return f"Your daily budget of {limits.user_tokens:,} tokens is used up."
        if limits.all_dollars and chats.spending_of_all(day) >= limits.all_dollars:
            return f"The daily budget of ${limits.all_dollars:g} for all people is used up."
        if limits.all_tokens and chats.tokens_of_all(day) >= limits.all_tokens:
            return f"The daily budget of {limits.all_tokens:,} tokens for all people is used up."
        return ""

    def add(self, user: UserKey, usage: RunUsage) -> None:
        """Record what a turn has used, if a limit is set."""
        limits, day = self._limits, self._today()
        if usage.dollars > 0 and (limits.user_dollars or limits.all_dollars):
            self._db.chats.add_spending(*user, day=day, dollars=usage.dollars)
        if usage.tokens > 0 and (limits.user_tokens or limits.all_tokens):
            self._db.chats.add_tokens(*user, day=day, tokens=usage.tokens)

    def notify(
        self,
        user: UserKey,
        exceeded: ExceededBudget,
        platform: str,
        target: ReplyTarget,
        what: str,
    ) -> None:
        """Send a notice to a chat, once per person and day."""
        when = datetime.fromtimestamp(exceeded.until, self._zone).strftime("%Y-%m-%d %H:%M %Z")
        self._db.outbox.add(
            f"budget:{user.platform}:{user.user_id}:{self._today()}",
            platform=platform,
            target=target,
            payload={"text": NOTICE.format(reason=exceeded.reason, what=what, when=when)},
        )

    def release(self) -> bool:
        """Release the chats and jobs whose budget is free again; whether there were any."""
        free = [
            place
            for place in self._db.paused_places.all()
            if self.exceeded(UserKey(place.platform, place.user_id)) is None
        ]
        for place in free:
            self._db.paused_places.release(place.session_key)
            log.info("messages of %s released: budget available", place.session_key)
        return bool(free)

    def _today(self) -> str:
        return local_time(self._db.clock.now(), self._zone).date().isoformat()

    def _tomorrow(self) -> float:
        today, midnight = local_time(self._db.clock.now(), self._zone).date(), datetime.min.time()
        return moment_of(datetime.combine(today + timedelta(days=1), midnight), self._zone)


def _configured_limits() -> DailyLimits:
    return DailyLimits.of(ConfigFile.of_home().settings())


def user_key(source: SessionSource) -> UserKey:
    """The person of a message, by whom usage is counted."""
    return UserKey(source.platform.value, source.user_id or source.chat_id)


def usage_of(db: SessionDB, session_id: str) -> RunUsage:
    """Tokens and dollars of a conversation and its sub-agents; cached tokens count as well."""
    totals = db.usage.with_tasks(session_id)
    tokens = (
        totals.input_tokens
        + totals.output_tokens
        + totals.cache_read_tokens
        + totals.cache_write_tokens
    )
    return RunUsage(int(tokens), float(totals.cost_usd))
