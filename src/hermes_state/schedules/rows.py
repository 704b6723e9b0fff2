"""Rows of scheduled jobs and of their occurrences."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from hermes_state.delivery.rows import read_object

if TYPE_CHECKING:
    from hermes_state.delivery.rows import JobTarget, StoredSource
    from hermes_state.engine.values import SqlValue

CRON: Final = "cron"  # the platform of inbox rows and the source of conversations
JobKind = Literal["job", "reminder"]
JobState = Literal["active", "paused", "done"]
OccurrenceState = Literal[
    "requested", "waiting", "running", "done", "failed", "interrupted", "skipped"
]
JOB_COLUMNS: Final = """
    job_id, name, kind, prompt, schedule, rule, zone, catch_up, model, target, requester, platform,
    user_id, role, runs_left, state, reason, next_at, is_held, failures, created_at, origin
"""
OCCURRENCE_COLUMNS: Final = """
    occurrence_id, job_id, due_at, state, is_manual, missed, inbox_id, session_id, started_at,
    ended_at, tokens, dollars, error
"""


class NewJob(NamedTuple):
    """A job to be stored."""

    name: str
    prompt: str
    schedule: str  # as it was written
    rule: str  # what it means, see hermes_core.schedules.rules
    zone: str
    requester: StoredSource  # the chat and user that asked for it
    platform: str  # of the person
    user_id: str
    role: str  # that the person had
    next_at: float | None
    kind: JobKind = "job"
    catch_up: str = "once"
    model: str = ""
    target: JobTarget | None = None  # where results go; None: nowhere
    runs_left: int | None = None
    state: JobState = "active"
    reason: str = ""
    origin: str | None = None  # the entry of another program that it was imported from

    def row(self, created_at: float) -> tuple[SqlValue, ...]:
        """The values of the table row, in the order of JOB_COLUMNS."""
        return (
            self.name, self.kind, self.prompt, self.schedule, self.rule, self.zone, self.catch_up,
            self.model, encode(self.target), encode(self.requester) or "{}", self.platform,
            self.user_id, self.role, self.runs_left, self.state, self.reason, self.next_at, 0, 0,
            created_at, self.origin,
        )  # fmt: skip


class ScheduledJob(NamedTuple):
    """A row of the scheduled jobs."""

    job_id: int
    name: str
    kind: JobKind
    prompt: str
    schedule: str
    rule: str
    zone: str
    catch_up: str
    model: str
    target: JobTarget | None
    requester: StoredSource
    platform: str
    user_id: str
    role: str
    runs_left: int | None
    state: JobState
    reason: str
    next_at: float | None
    is_held: bool  # it waits until a budget is free again
    failures: int  # in a row
    created_at: float
    origin: str | None

    @classmethod
    def of_row(cls, row: tuple[Any, ...]) -> ScheduledJob:
        """The job of a row with the columns JOB_COLUMNS."""
        job = cls._make(row)
        target = read_object(row[9]) if row[9] else None
        return job._replace(
            target=target, requester=read_object(row[10]), is_held=bool(job.is_held)
        )


class Occurrence(NamedTuple):
    """A row of the occurrences: one run, or what became of it."""

    occurrence_id: int
    job_id: int
    due_at: float
    state: OccurrenceState
    is_manual: bool
    missed: int  # occurrences before it that did not run
    inbox_id: int | None
    session_id: str | None
    started_at: float | None
    ended_at: float | None
    tokens: int
    dollars: float
    error: str | None

    @classmethod
    def of_row(cls, row: tuple[Any, ...]) -> Occurrence:
        """The occurrence of a row with the columns OCCURRENCE_COLUMNS."""
        occurrence = cls._make(row)
        return occurrence._replace(is_manual=bool(occurrence.is_manual))


class RunUsage(NamedTuple):
    """Tokens and dollars of a run or a turn."""

    tokens: int = 0
    dollars: float = 0.0

    def since(self, before: RunUsage) -> RunUsage:
        """What was added to an earlier usage."""
        return RunUsage(self.tokens - before.tokens, self.dollars - before.dollars)


class JobTotals(NamedTuple):
    """The runs of a job so far."""

    runs: int = 0
    failed: int = 0
    tokens: int = 0
    dollars: float = 0.0
    last_state: str = ""
    last_at: float | None = None


def encode(data: JobTarget | StoredSource | None) -> str | None:
    """The stored form of JSON data."""
    return None if data is None else json.dumps(data, sort_keys=True)
