"""Scheduled jobs and their runs.

A page may pause, continue, run and delete jobs, which grants nothing. A new job lets the agent
work without a person: the page requests it, and a confirmation in a terminal creates it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from fastapi import HTTPException, Query
from pydantic import BaseModel, Field

from hermes_conversation import scheduled_jobs
from hermes_core.config.file import ConfigFile
from hermes_core.errors import UsageError, of_field
from hermes_dashboard.models.text import MAX_ROW_ID, Text, View, problems
from hermes_dashboard.pending_changes import PendingChanges, RequestedJob
from hermes_dashboard.resources.pending_changes import PendingChangeItem, change_item
from hermes_dashboard.routes import ResourceRouter
from hermes_state.schedules.rows import JobTotals

if TYPE_CHECKING:
    from hermes_dashboard.context import DashboardContext
    from hermes_state.schedules.rows import ScheduledJob
    from hermes_state.store import SessionDB

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


class ScheduledRun(View):
    """An occurrence of a scheduled job: its run, or that it was skipped."""

    id: int = Field(validation_alias="occurrence_id")
    job: int = Field(validation_alias="job_id")
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


def router(context: DashboardContext) -> ResourceRouter:
    """The routes of scheduled jobs."""
    routes = ResourceRouter("/api/schedules", tag="schedules")
    _add_lists(routes, context.db)
    _add_changes(routes, context.db)
    _add_request(routes, context)
    return routes


def _add_lists(routes: ResourceRouter, db: SessionDB) -> None:
    @routes.get("", responses=problems(503))
    def list_jobs(*, with_done: bool = False) -> ScheduledJobs:
        """All scheduled jobs and reminders, with their next occurrences and costs."""
        totals = db.schedules.totals()
        jobs = db.schedules.all(with_done=with_done)
        return ScheduledJobs(items=[_view(db, job, totals.get(job.job_id)) for job in jobs])

    @routes.get("/runs", responses=problems(503))
    def list_runs(
        job: JobNumber | None = None, limit: Annotated[int, Query(ge=1, le=500)] = 50
    ) -> ScheduledRuns:
        """Runs of one job or of all, the latest first, with state, cost and conversation."""
        return ScheduledRuns.model_validate({"items": db.schedules.history(job, limit)})


def _add_changes(routes: ResourceRouter, db: SessionDB) -> None:
    @routes.post("/{number}/pause", responses=problems(404, 409, 503))
    def pause(number: JobNumber) -> ScheduledJobView:
        """Pause a job."""
        job = _find(db, number)
        if not db.schedules.pause(number, "paused on the dashboard"):
            raise HTTPException(409, f"Job {number} is not active: it is {job.state}.")
        return _view(db, _find(db, number))

    @routes.post("/{number}/resume", responses=problems(404, 409, 503))
    def resume(number: JobNumber) -> ScheduledJobView:
        """Continue a paused job with its next occurrence."""
        job = _find(db, number)
        try:
            is_resumed = scheduled_jobs.resume_job(db, job)
        except UsageError as error:
            raise HTTPException(409, str(error)) from error
        if not is_resumed:
            raise HTTPException(409, f"Job {number} is not paused: it is {job.state}.")
        return _view(db, _find(db, number))

    @routes.post("/{number}/run", status_code=202, responses=problems(404, 503))
    def run_now(number: JobNumber) -> ScheduledRun:
        """Request a run now; the gateway runs it."""
        occurrence = db.schedules.request_run(number)
        if occurrence is None:
            raise _missing(number)
        return ScheduledRun.model_validate(occurrence)

    @routes.remove("/{number}", 404, 503)
    def remove(number: JobNumber) -> None:
        """Delete a job; its conversations and finished runs are kept."""
        if not db.schedules.remove(number):
            raise _missing(number)


def _add_request(routes: ResourceRouter, context: DashboardContext) -> None:
    changes = PendingChanges(context.home)

    @routes.post("", status_code=202, responses=problems(400))
    def request_job(new: NewScheduledJob) -> PendingChangeItem:
        """Request a job; it is created after a confirmation in a terminal."""
        schedule, zone = " ".join(new.schedule.split()), new.time_zone.strip()
        with of_field("prompt"):
            prompt = scheduled_jobs.checked_prompt(new.prompt)
        with of_field("time_zone"):
            scheduled_jobs.zone_named(zone)
        with of_field("schedule"):
            request = scheduled_jobs.JobRequest(schedule, prompt, zone=zone)
            scheduled_jobs.first_occurrence(request, context.db.clock.now())
        name = new.name.strip() or scheduled_jobs.short_name(prompt)
        job = RequestedJob(schedule, prompt, name, zone)
        return change_item(changes.add("job", name, job.to_text()), ConfigFile.of_home())


def _missing(number: int) -> HTTPException:
    return HTTPException(404, f"No scheduled job {number}.")


def _find(db: SessionDB, number: int) -> ScheduledJob:
    job = db.schedules.get(number)
    if job is None:
        raise _missing(number)
    return job


def _view(db: SessionDB, job: ScheduledJob, totals: JobTotals | None = None) -> ScheduledJobView:
    totals = totals or db.schedules.totals().get(job.job_id, JobTotals())
    return ScheduledJobView(
        **job._asdict(),
        **totals._asdict(),
        number=job.job_id,
        time_zone=job.zone,
        to=scheduled_jobs.describe_target(job.target),
        person=f"{job.platform}:{job.user_id}",
        waits_for_budget=job.is_held,
        next=scheduled_jobs.next_occurrences(job, db.clock.now()),
        failed_runs=totals.failed,
    )
