"""Models of scheduled jobs and their runs."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, Field

from hermes_dashboard.models.text import MAX_ROW_ID, Text

JobNumber = Annotated[int, Field(ge=1, le=MAX_ROW_ID)]


class ScheduledJobView(BaseModel):
    """A scheduled job or reminder, its next occurrences, and its runs so far."""

    number: int
    name: Text
    kind: Text
    prompt: Text
    schedule: Text
    time_zone: Text
    catch_up: Text
    model: Text
    to: Text
    person: Text
    role: Text
    state: Text
    reason: Text
    waits_for_budget: bool
    runs_left: int | None
    failures: int
    next: list[float]
    created_at: float
    runs: int
    failed_runs: int
    tokens: int
    dollars: float
    last_state: Text
    last_at: float | None


class NewScheduledJob(BaseModel):
    """A job to schedule; its result goes to the chat of the owner."""

    schedule: Annotated[str, Field(max_length=200)]
    prompt: Annotated[str, Field(max_length=20_000)]
    name: Annotated[str, Field(max_length=40)] = ""
    time_zone: Annotated[str, Field(max_length=60)] = ""


class ScheduledJobs(BaseModel):
    """All scheduled jobs."""

    items: list[ScheduledJobView]


class ScheduledRun(BaseModel):
    """An occurrence of a scheduled job: its run, or that it was skipped."""

    id: int
    job: int
    due_at: float
    state: Text
    is_manual: bool
    missed: int
    session_id: Text | None
    started_at: float | None
    ended_at: float | None
    tokens: int
    dollars: float
    error: Text | None


class ScheduledRuns(BaseModel):
    """Runs, the latest first."""

    items: list[ScheduledRun]
