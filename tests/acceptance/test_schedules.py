"""Scheduled jobs over changes of the clock, kills, restarts, frozen processes and downtime.

The expected occurrences are found by looking at every minute, the expected runs by applying the
policy of each job to what became due since its last look at the clock.
"""

from __future__ import annotations

import json
import os
import random
import signal
import struct
import time
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple
from zoneinfo import ZoneInfo

import pytest

from acceptance.campaign import Worker, size, wait_until
from hermes_core.schedules.rules import read_rule
from hermes_state import SessionDB
from hermes_state.schedules.rows import NewJob
from support.model_servers import configured_models

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from hermes_state.schedules.rows import Occurrence

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]

OCCURRENCES = size(24, 500)
GRACE_SECONDS = 120.0
HOUR = 3600.0
FAULTS = ("none", "none", "kill", "kill", "downtime", "freeze", "set back")
# Zones, and days on which their clocks change.
SEASONS = (
    ("Europe/Berlin", "2026-03-29"),
    ("America/New_York", "2026-11-01"),
    ("Australia/Lord_Howe", "2026-10-04"),
    ("Europe/Berlin", "2026-10-25"),
    ("America/New_York", "2026-03-08"),
    ("Australia/Lord_Howe", "2027-04-04"),
)
REQUESTER = {"platform": "local", "chat_id": "c1", "chat_type": "dm", "user_id": "u1"}
SLOW_ANSWERS = str([{"say": "one two three four", "pause": 0.04}] * 2000)
OPEN_RUNS = """
    SELECT (SELECT count(*) FROM hermes_occurrence
            WHERE state IN ('requested', 'waiting', 'running'))
        + (SELECT count(*) FROM hermes_scheduled_job WHERE state = 'active' AND next_at <= ?)
"""
UNSENT = "SELECT count(*) FROM hermes_outbox WHERE state IN ('waiting', 'sending', 'ambiguous')"
SENT_KEYS = "SELECT idempotency_key FROM hermes_outbox WHERE idempotency_key LIKE 'occurrence:%'"


class Schedule(NamedTuple):
    """A schedule: its rule, whether a local time matches it, and the policy of its job."""

    rule: str
    matches: Callable[[datetime], bool] | None  # None for an interval
    policy: str
    kind: str
    interval: float = 0.0


SCHEDULES = (
    Schedule("cron 30 2 * * *", lambda t: (t.hour, t.minute) == (2, 30), "once", "reminder"),
    Schedule(
        "cron */30 1,2 * * *",
        lambda t: t.hour in {1, 2} and t.minute in {0, 30},
        "all",
        "reminder",
    ),
    Schedule("cron 0 */6 * * *", lambda t: t.hour % 6 == 0 and t.minute == 0, "all", "job"),
    Schedule(
        "cron 0 8 * * 1-5",
        lambda t: (t.hour, t.minute) == (8, 0) and t.weekday() < 5,
        "skip",
        "job",
    ),
    Schedule("cron 45 1 * * *", lambda t: (t.hour, t.minute) == (1, 45), "skip", "reminder"),
    Schedule("every 25200 from {start}", None, "once", "job", 25200.0),
)


class Expected(NamedTuple):
    """What must have become of an occurrence."""

    due_at: float
    is_skipped: bool
    missed: int


@dataclass
class Job:
    """A job under test: when it is due, and what the policy makes of it."""

    number: int
    schedule: Schedule
    due: list[float]
    expected: list[Expected] = field(default_factory=list)
    occurrences: int = 0

    def look(self, now: float) -> None:
        """Apply the policy to what became due."""
        due = []
        while self.due and self.due[0] <= now:
            due.append(self.due.pop(0))
        self.occurrences += len(due)
        if not due:
            return
        if self.schedule.policy == "all":
            self.expected += [Expected(at, False, 0) for at in due]
            return
        is_skipped = self.schedule.policy == "skip" and now - due[-1] > GRACE_SECONDS
        self.expected.append(Expected(due[-1], is_skipped, len(due) - 1))


def due_times(schedule: Schedule, start: float, end: float, zone: ZoneInfo) -> list[float]:
    """The occurrences in a span: each local time once, a skipped one when the gap ends."""
    if schedule.matches is None:
        count = int((end - start) / schedule.interval)
        return [start + schedule.interval * number for number in range(1, count + 1)]
    latest = datetime.fromtimestamp(start, zone).replace(tzinfo=None)
    found, moment = [], start
    while moment < end:
        moment += 60
        now = datetime.fromtimestamp(moment, zone).replace(tzinfo=None)
        is_due = False
        while latest < now:
            latest += timedelta(minutes=1)
            is_due = is_due or schedule.matches(latest)
        if is_due:
            found.append(moment)
    return found


class Campaign:
    """Gateways that share a history and a clock, and the faults that happen to them."""

    def __init__(self, folder: Path, processes: int, seed: int) -> None:
        self._folder = folder
        self._clock = folder / "clock"
        self._random = random.Random(seed)
        self.now = 0.0
        self.jobs: list[Job] = []
        self.workers: list[Worker | None] = [None] * processes
        self.reports: list[Worker] = []
        self.faults: Counter[str] = Counter()
        self._deck: list[str] = []  # the next faults, each kind in turn
        self.ends = 0  # of processes, by SIGKILL
        self.db = SessionDB()

    def set_clock(self, now: float) -> None:
        """Set the clock of all gateways, in one step."""
        temporary = self._clock.with_name("clock.new")
        temporary.write_bytes(struct.pack("d", now))
        temporary.replace(self._clock)
        self.now = now

    def start(self) -> None:
        """Start the gateways that are down."""
        started = []
        for number, worker in enumerate(self.workers):
            if worker is None or worker.process.poll() is not None:
                node = ("env", f"HERMES_NODE_NAME=node-{number}")
                new = Worker("run_schedules.py", self._folder, self._clock, prefix=node)
                self.workers[number] = new
                self.reports.append(new)
                started.append(new)
        for worker in started:
            worker.wait_for("up")

    def settle(self) -> None:
        """Wait until everything that is due has run."""

        def is_settled() -> bool:
            return self.db.engine.read(lambda r: r.value(OPEN_RUNS, (self.now,))) == 0

        wait_until(is_settled, f"the runs at {self.now}")

    def wait_for_replies(self) -> None:
        """Wait until all replies are sent; one that a kill interrupted twice is due later."""
        wait_until(lambda: self.db.engine.read(lambda r: r.value(UNSENT)) == 0, "the replies")

    def look(self) -> None:
        for job in self.jobs:
            job.look(self.now)

    def begin(self, zone: ZoneInfo, day: str, days: float) -> float:
        """Make the jobs of a season; when it ends."""
        change = datetime.fromisoformat(day).replace(tzinfo=zone).timestamp()
        start = change - days / 2 * 24 * HOUR
        start -= start % 60
        end = start + days * 24 * HOUR
        self.set_clock(start)
        for schedule in SCHEDULES:
            rule = schedule.rule.format(start=int(start))
            job = self.db.schedules.add(
                NewJob(
                    name=f"{schedule.policy} {schedule.kind}",
                    prompt="work",
                    schedule=rule,
                    rule=rule,
                    zone=zone.key,
                    requester=REQUESTER,
                    platform="local",
                    user_id="u1",
                    role="owner",
                    next_at=read_rule(rule).next_after(start, zone),
                    kind=schedule.kind,  # type: ignore[arg-type]
                    catch_up=schedule.policy,
                    target={"platform": "local", "chat_id": "c1", "thread_id": None},
                )
            )
            due = due_times(schedule, start, end + 48 * HOUR, zone)
            self.jobs.append(Job(job.job_id, schedule, due))
        return end

    def run(self, end: float) -> None:
        """Let time pass, with faults, until the end of a season."""
        while self.now < end:
            if not self._deck:
                self._deck = self._random.sample(FAULTS, len(FAULTS))
            fault = self._deck.pop()
            self.faults[fault] += 1
            getattr(self, f"_{fault.replace(' ', '_')}")()
            self.settle()
        for job in self.jobs:
            self.db.schedules.pause(job.number, "the season is over")
            job.due.clear()

    def _next_time(self) -> float:
        """Soon after the next occurrence, or hours later."""
        following = min(job.due[0] for job in self.jobs if job.due)
        late = self._random.choice((0.0, 1.0, 60.0, 119.0, 121.0, 1800.0))
        return max(following, self.now + 60) + late

    def _none(self) -> None:
        self.set_clock(self._next_time())
        self.look()

    def _kill(self) -> None:
        """Kill a gateway while something runs, or is about to."""
        self._none()
        time.sleep(self._random.uniform(0.0, 0.25))
        victim = self._random.choice(self.workers)
        if victim is not None:
            victim.kill()
            self.ends += 1
        self.start()

    def _downtime(self) -> None:
        is_killed = self._random.random() < 0.5
        for worker in self.workers:
            if worker is not None and is_killed:
                worker.kill()
                self.ends += 1
        if not is_killed:
            self.stop()
        self.set_clock(self.now + self._random.uniform(0.5, 30.0) * HOUR)
        self.look()
        self.start()

    def _freeze(self) -> None:
        """Stop the processes as a sleeping machine does."""
        for worker in self.workers:
            assert worker is not None
            os.kill(worker.process.pid, signal.SIGSTOP)
        self.set_clock(self.now + self._random.uniform(0.1, 9.0) * HOUR)
        self.look()
        for worker in self.workers:
            assert worker is not None
            os.kill(worker.process.pid, signal.SIGCONT)

    def _set_back(self) -> None:
        now = self.now
        self.set_clock(now - 2 * HOUR)
        time.sleep(0.1)
        self.set_clock(now)
        self._none()

    def stop(self) -> None:
        """Stop all gateways in order."""
        for worker in self.workers:
            if worker is not None:
                worker.process.terminate()
                assert worker.wait() == 0, worker.error_output()

    def close(self) -> None:
        for worker in self.workers:
            if worker is not None:
                worker.kill()
        self.db.close()


@contextmanager
def campaign(folder: Path, processes: int, seed: int = 17) -> Iterator[Campaign]:
    folder.mkdir()
    running = Campaign(folder, processes, seed)
    try:
        yield running
    finally:
        running.close()


@pytest.fixture(params=["sqlite", "postgresql"])
def processes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """The engine of the history, and how many gateways share it."""
    if request.param == "sqlite":
        monkeypatch.delenv("HERMES_STORE_URL", raising=False)
        yield 1
        return
    with request.getfixturevalue("postgres").history() as url:
        monkeypatch.setenv("HERMES_STORE_URL", url)
        yield 2


def test_every_occurrence_runs_as_its_policy_says_and_at_most_once(
    processes: int, tmp_path: Path, hermes_home: Path, figures: Callable[..., None]
) -> None:
    del hermes_home
    with (
        configured_models(memory__review_turns="0", gateway__job_failures="1000") as start_model,
        campaign(tmp_path / "campaign", processes) as running,
    ):
        server = start_model(SLOW_ANSWERS)
        started_at = time.monotonic()
        seasons = 0
        while sum(job.occurrences for job in running.jobs) < OCCURRENCES:
            zone, day = SEASONS[seasons % len(SEASONS)]
            end = running.begin(ZoneInfo(zone), day, days=size(2, 6))
            running.start()
            running.run(end)
            seasons += 1
        running.wait_for_replies()
        running.stop()
        runs = check(running, [json.dumps(body) for body in server.requests])
        states = Counter(run.state for run in runs)
        figures(
            f"schedules on {processes} process{'es' if processes > 1 else ''}",
            seasons=seasons,
            occurrences=sum(job.occurrences for job in running.jobs),
            runs=len(runs) - states["skipped"],
            **{f"runs_{state}": count for state, count in sorted(states.items())},
            **{f"faults_{name.replace(' ', '_')}": n for name, n in sorted(running.faults.items())},
            model_requests=len(server.requests),
            seconds=time.monotonic() - started_at,
        )


def check(running: Campaign, requests: list[str]) -> list[Occurrence]:
    """Compare what was stored, sent and asked with what must have happened."""
    stored = running.db.schedules.history(limit=100_000)
    for job in running.jobs:
        rows = sorted(
            (run for run in stored if run.job_id == job.number), key=lambda run: run.due_at
        )
        found = [Expected(run.due_at, run.state == "skipped", run.missed) for run in rows]
        assert found == job.expected, f"job {job.number}: {job.schedule.rule}"
    check_states(running, stored)
    check_replies(running, stored)
    # No run asked the model twice: the prompt names the job and when it was due.
    asked = Counter(
        request.partition("This is a scheduled run of ")[2].partition("No person")[0]
        for request in requests
    )
    assert [name for name, count in asked.items() if count > 1] == []
    done = [run for run in stored if run.state == "done" and run.session_id]
    assert len(done) <= len(asked) <= len([run for run in stored if run.session_id])
    return stored


def check_states(running: Campaign, stored: list[Occurrence]) -> None:
    kinds = {job.number: job.schedule.kind for job in running.jobs}
    states = {run.state for run in stored}
    assert states <= {"done", "skipped", "interrupted"}
    interrupted = [run for run in stored if run.state == "interrupted"]
    assert all(kinds[run.job_id] == "job" for run in interrupted)
    kills = running.faults["kill"]
    assert len(interrupted) <= kills * len(SCHEDULES)
    # What a kill right after a run leaves open is ended by the next maintenance.
    left_open = running.db.schedules.open_conversations(0.0)
    assert len(left_open) <= running.ends * len(SCHEDULES)
    for run in stored:
        if run.session_id is not None:
            row: dict[str, Any] = running.db.get_session(run.session_id) or {}
            assert row["source"] == "cron"
            assert row["ended_at"] is not None or run.session_id in left_open


def check_replies(running: Campaign, stored: list[Occurrence]) -> None:
    """Each run has one reply, its result or the notice of its interruption, and it was sent."""
    keys = Counter(row[0] for row in running.db.engine.read(lambda r: r.rows(SENT_KEYS)))
    expected = {f"occurrence:{run.occurrence_id}:0" for run in stored if run.state != "skipped"}
    assert set(keys) == expected
    assert set(keys.values()) <= {1}

    reports = [report for worker in running.reports for report in worker.reports("sent")]
    assert {report["key"] for report in reports} >= expected
