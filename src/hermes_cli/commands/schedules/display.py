"""Lists of scheduled jobs and runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hermes_cli import history
from hermes_cli.output import TableColumn
from hermes_conversation import scheduled_jobs
from hermes_conversation.scheduled_jobs import describe_target
from hermes_core import human_format
from hermes_core.errors import UsageError
from hermes_state.schedules.rows import JobTotals

if TYPE_CHECKING:
    import argparse

    from hermes_cli.output import CommandOutput
    from hermes_core.json_values import JsonObject
    from hermes_state.schedules.rows import Occurrence, ScheduledJob
    from hermes_state.store import SessionDB

JOB_COLUMNS: Final = (
    TableColumn("job", style="cyan", right=True),
    TableColumn("name", flexible=True),
    TableColumn("schedule"),
    TableColumn("next"),
    TableColumn("to", optional=True),
    TableColumn("state"),
    TableColumn("last", optional=True),
    TableColumn("cost", right=True, optional=True),
)
RUN_COLUMNS: Final = (
    TableColumn("job", style="cyan", right=True),
    TableColumn("due"),
    TableColumn("state"),
    TableColumn("tokens", right=True, optional=True),
    TableColumn("cost", right=True, optional=True),
    TableColumn("conversation", optional=True),
    TableColumn("note", flexible=True),
)
WAITS_FOR_BUDGET: Final = "waiting for budget"


def find_job(db: SessionDB, number: int) -> ScheduledJob:
    """The job with a number; UsageError if there is none."""
    job = db.schedules.get(number)
    if job is None:
        raise UsageError(f"No scheduled job {number}. `hermes cron` lists them.")
    return job


def show_list(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """List the jobs."""
    with history.open_or_create() as db:
        jobs = db.schedules.all(with_done=arguments.all)
        totals, now = db.schedules.totals(), db.clock.now()
    if arguments.json:
        out.json([job_facts(job, totals.get(job.job_id, JobTotals()), now) for job in jobs])
        return 0
    if not jobs:
        out.hint('No scheduled jobs. Add one: hermes cron add "every weekday 8:00" "…" --to me')
        return 0
    out.table(JOB_COLUMNS, [_job_row(job, totals.get(job.job_id, JobTotals())) for job in jobs])
    return 0


def _job_row(job: ScheduledJob, totals: JobTotals) -> tuple[str, ...]:
    zone = scheduled_jobs.zone_named(job.zone)
    is_next = job.state == "active" and job.next_at is not None
    when = scheduled_jobs.local_text(job.next_at, zone) if is_next else "-"
    cost = f"${totals.dollars:.2f}" if totals.dollars else "-"
    return (
        str(job.job_id),
        job.name,
        job.schedule,
        when,
        describe_target(job.target),
        WAITS_FOR_BUDGET if job.is_held else job.state,
        totals.last_state or "-",
        cost,
    )


def job_facts(job: ScheduledJob, totals: JobTotals, now: float) -> JsonObject:
    """A job in JSON output."""
    facts: JsonObject = {
        "number": job.job_id,
        "name": job.name,
        "kind": job.kind,
        "prompt": job.prompt,
        "schedule": job.schedule,
        "rule": job.rule,
        "time_zone": job.zone,
        "catch_up": job.catch_up,
        "model": job.model or None,
        "to": describe_target(job.target),
        "person": f"{job.platform}:{job.user_id}",
        "role": job.role,
        "runs_left": job.runs_left,
        "state": job.state,
        "reason": job.reason,
        "waits_for_budget": job.is_held,
        "failures": job.failures,
        "next": [*scheduled_jobs.next_occurrences(job, now)],
        "created_at": job.created_at,
    }
    return {**facts, "runs": totals._asdict()}


def show(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Show one job."""
    with history.open_or_create() as db:
        job = find_job(db, arguments.number)
        totals = db.schedules.totals().get(job.job_id, JobTotals())
        now = db.clock.now()
    if arguments.json:
        out.json(job_facts(job, totals, now))
    else:
        print_job(job, totals, now, out)
    return 0


def print_job(job: ScheduledJob, totals: JobTotals, now: float, out: CommandOutput) -> None:
    """Print a job and its next occurrences."""
    state = f"{job.state} ({job.reason})" if job.reason else job.state
    pairs = [
        ("job", str(job.job_id)),
        ("name", job.name),
        ("kind", job.kind),
        ("schedule", job.schedule),
        ("time zone", job.zone or "of this machine"),
        ("missed runs", f"catch up: {job.catch_up}"),
        ("to", describe_target(job.target)),
        ("created by", f"{job.platform}:{job.user_id} ({job.role})"),
        ("state", f"{state}, {WAITS_FOR_BUDGET}" if job.is_held else state),
        ("runs", _totals_text(totals)),
    ]
    if job.model:
        pairs.append(("model", job.model))
    out.pairs(pairs)
    print_preview(job, now, out)
    out.text()
    out.text(job.prompt)


def _totals_text(totals: JobTotals) -> str:
    if not totals.runs:
        return "none yet"
    failed = f", {totals.failed} failed" if totals.failed else ""
    return (
        f"{totals.runs}{failed}, last {totals.last_state}; "
        f"{human_format.number(totals.tokens)} tokens, ${totals.dollars:.4f}"
    )


def print_preview(job: ScheduledJob, now: float, out: CommandOutput) -> None:
    """Print the next occurrences of a job."""
    zone = scheduled_jobs.zone_named(job.zone)
    for number, moment in enumerate(scheduled_jobs.next_occurrences(job, now)):
        label = "next" if number == 0 else "then"
        out.text(f"{label}  {scheduled_jobs.local_text(moment, zone)}")


def show_history(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """List runs."""
    with history.open_or_create() as db:
        if arguments.number is not None and not db.schedules.history(arguments.number, 1):
            find_job(db, arguments.number)
        runs = db.schedules.history(arguments.number, max(1, arguments.limit))
    if arguments.json:
        out.json([run_facts(run) for run in runs])
        return 0
    if not runs:
        out.text("No runs yet.")
        return 0
    out.table(RUN_COLUMNS, [_run_row(run) for run in runs])
    return 0


def _run_row(run: Occurrence) -> tuple[str, ...]:
    notes = ["on request"] if run.is_manual else []
    if run.missed:
        notes.append(f"{human_format.plural(run.missed, 'earlier occurrence')} missed")
    if run.error:
        notes.append(run.error)
    return (
        str(run.job_id),
        human_format.local(run.due_at),
        run.state,
        human_format.number(run.tokens) if run.tokens else "-",
        f"${run.dollars:.4f}" if run.dollars else "-",
        run.session_id or "-",
        "; ".join(notes),
    )


def run_facts(run: Occurrence) -> JsonObject:
    """A run in JSON output."""
    names = {"occurrence_id": "id", "job_id": "job"}
    return {
        names.get(name, name): value for name, value in run._asdict().items() if name != "inbox_id"
    }
