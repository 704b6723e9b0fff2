"""The scheduler: hands occurrences that are due to the inbox.

It reads the wall clock every second, so a machine that slept and a clock that was set are
noticed at once. What became due meanwhile is a downtime, for which each job has a policy.
Every node of a history runs one; the store lets one of them hand over an occurrence.
"""

from __future__ import annotations

import asyncio
import logging
from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple

from gateway.inbound.budgets import JOBS_WAIT, UserKey
from hermes_conversation.scheduled_jobs import zone_named
from hermes_core.errors import UsageError
from hermes_core.isolate import Failure, attempt
from hermes_core.schedules.rules import read_rule
from hermes_state.schedules.repository import DueRuns

if TYPE_CHECKING:
    from collections.abc import Callable
    from zoneinfo import ZoneInfo

    from gateway.inbound.budgets import Budgets
    from gateway.schedules.targets import JobTargets
    from hermes_core.clock import Clock
    from hermes_core.schedules.rules import Rule
    from hermes_state.delivery.rows import MessagePayload
    from hermes_state.schedules.rows import Occurrence, ScheduledJob
    from hermes_state.store import SessionDB

log = logging.getLogger(__name__)

TICK_SECONDS: Final = 1.0
GRACE_SECONDS: Final = 120.0  # an occurrence that is late by less is on time
MAX_RUNS: Final = 100  # at a time: `all` continues with the rest afterwards
MAX_COUNTED: Final = 1000  # missed occurrences


class CatchUp(StrEnum):
    """The policy for occurrences that were missed."""

    ONCE = "once"  # the latest one runs, for all of them
    ALL = "all"  # each runs
    SKIP = "skip"  # none runs


class DueOccurrences(NamedTuple):
    """What to do with the occurrences that are due."""

    runs: tuple[float, ...]  # the times of those that run
    missed: int  # how many do not run; at most MAX_COUNTED
    last_missed: float | None  # the latest of them
    next_at: float | None  # the next occurrence to look at


def plan(rule: Rule, zone: ZoneInfo, first: float, now: float, policy: CatchUp) -> DueOccurrences:
    """Apply a policy to the occurrences from *first*, which is due, until *now*.

    A rule whose earlier times changed may not occur at *first*; it counts all the same.
    """
    if policy is CatchUp.ALL:
        return _all(rule, zone, first, now)
    last = rule.last_until(now, zone)
    latest = first if last is None or last < first else last
    missed, last_missed = _count_until(rule, zone, first, latest)
    next_at = rule.next_after(max(now, latest), zone)
    if policy is CatchUp.SKIP and now - latest > GRACE_SECONDS:
        return DueOccurrences((), min(missed + 1, MAX_COUNTED), latest, next_at)
    return DueOccurrences((latest,), missed, last_missed, next_at)


def _all(rule: Rule, zone: ZoneInfo, first: float, now: float) -> DueOccurrences:
    runs: list[float] = []
    moment: float | None = first
    while moment is not None and moment <= now and len(runs) < MAX_RUNS:
        runs.append(moment)
        moment = rule.next_after(moment, zone)
    return DueOccurrences(tuple(runs), 0, None, moment)


def _count_until(
    rule: Rule, zone: ZoneInfo, first: float, latest: float
) -> tuple[int, float | None]:
    """The number of occurrences from *first* to before *latest*, and the latest of them."""
    count, moment, last = 0, first, None
    while moment < latest and count < MAX_COUNTED:
        count, last = count + 1, moment
        following = rule.next_after(moment, zone)
        if following is None:
            break
        moment = following
    return count, last


class Scheduler:
    """Looks for jobs that are due."""

    def __init__(
        self,
        db: SessionDB,
        budgets: Budgets,
        targets: JobTargets,
        on_handed_over: Callable[[], object],
        clock: Clock | None = None,
    ) -> None:
        self._db = db
        self._budgets = budgets
        self._targets = targets
        self._on_handed_over = on_handed_over
        self._clock = clock or db.clock

    async def run(self) -> None:
        """Hand over what is due, until cancelled."""
        while True:
            if await asyncio.to_thread(self._tick_isolated):
                self._on_handed_over()
            await asyncio.sleep(TICK_SECONDS)

    def _tick_isolated(self) -> int:
        """Hand over what is due; a failure is logged and tried again."""
        count = attempt("hand over scheduled jobs", self.tick)
        return 0 if isinstance(count, Failure) else count

    def tick(self) -> int:
        """Hand over what is due now; how many jobs and requested runs."""
        now = self._clock.now()
        count = sum(self._hand_over(job, now) for job in self._db.schedules.due(now))
        for occurrence in self._db.schedules.requested():
            job = self._db.schedules.get(occurrence.job_id)
            if job is not None:
                encode = _encoder(job)
                count += self._db.schedules.hand_over_requested(occurrence, encode)
        return count

    def _hand_over(self, job: ScheduledJob, now: float) -> bool:
        if job.next_at is None or self._is_held(job):
            return False
        try:
            rule, zone = read_rule(job.rule), zone_named(job.zone)
            policy = CatchUp(job.catch_up)
        except (UsageError, ValueError) as error:  # e.g. a zone that the system no longer has
            self._db.schedules.pause(job.job_id, str(error))
            log.error("scheduled job %d paused: %s", job.job_id, error)
            return False
        if job.is_held and policy is CatchUp.SKIP:
            policy = CatchUp.ONCE  # what waited for a budget is not dropped
        due = plan(rule, zone, job.next_at, now, policy)
        runs, next_at, runs_left = due.runs, due.next_at, job.runs_left
        if runs_left is not None:
            runs = runs[:runs_left]
            runs_left -= len(runs)
            next_at = next_at if runs_left else None
        result = DueRuns(runs, due.missed, due.last_missed, next_at, runs_left)
        if not self._db.schedules.hand_over(job, result, _encoder(job)):
            return False
        log.info("scheduled job %d: %d due, %d missed", job.job_id, len(runs), due.missed)
        return bool(runs)

    def _is_held(self, job: ScheduledJob) -> bool:
        """Whether a job waits for a budget; its person gets a notice. Reminders cost nothing."""
        if job.kind == "reminder":
            return False
        user = UserKey(job.platform, job.user_id)
        exceeded = self._budgets.exceeded(user)
        if exceeded is None:
            return False
        if self._db.schedules.hold(job):
            log.info("scheduled job %d waits: %s", job.job_id, exceeded.reason)
            try:
                channel = self._targets.find(job.target)
            except UsageError as error:
                log.warning("notice of scheduled job %d not sent: %s", job.job_id, error)
                return True
            if channel is not None:
                platform, target = channel.platform, channel.target()
                self._budgets.notify(user, exceeded, platform, target, JOBS_WAIT)
        return True


def _encoder(job: ScheduledJob) -> Callable[[Occurrence], MessagePayload]:
    """Makes the payload of an inbox row: what the handler and generic code of the inbox read."""

    def encode(occurrence: Occurrence) -> MessagePayload:
        return {
            "text": job.prompt,
            "source": job.requester,
            "internal": True,
            "occurrence_id": occurrence.occurrence_id,
        }

    return encode
