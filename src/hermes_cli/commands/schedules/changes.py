"""Actions that add, change and delete scheduled jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from gateway import status
from gateway.inbound.access_control import AccessControl
from gateway.process.config_loader import config_of_home
from gateway.schedules.targets import JobTargets
from hermes_cli import history
from hermes_cli.commands.schedules.display import find_job, job_facts, print_preview
from hermes_conversation import scheduled_jobs
from hermes_conversation.purge_hook import keep_facts
from hermes_conversation.scheduled_jobs import JobRequest, local_requester
from hermes_core.errors import UsageError
from hermes_core.schedules.expressions import parse_schedule
from hermes_core.schedules.rules import OnceRule, read_rule
from hermes_state.schedules.rows import JobTotals
from hermes_state.store import SessionDB

if TYPE_CHECKING:
    import argparse

    from hermes_cli.output import CommandOutput
    from hermes_state.delivery.rows import JobTarget
    from hermes_state.schedules.rows import ScheduledJob

NO_GATEWAY: Final = "The gateway, which runs jobs, is not running. Start it: hermes gateway start"


def job_targets(db: SessionDB) -> JobTargets:
    """Finds the chats of targets."""
    config = config_of_home()
    return JobTargets(db, config, AccessControl(db, config))


def add(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Schedule a job or a reminder."""
    with SessionDB(purge_hook=keep_facts) as db:
        target = _target(db, arguments.to)
        if arguments.reminder and target is None:
            raise UsageError("A reminder needs a chat: --to me, or --to PLATFORM:CHAT.")
        if target is not None:
            job_targets(db).find(target)  # raises if the owner has no chat there
        requester = local_requester()._replace(target=target)
        request = JobRequest(
            arguments.schedule,
            arguments.prompt,
            kind="reminder" if arguments.reminder else "job",
            name=arguments.name or "",
            zone=arguments.tz or "",
            catch_up=arguments.catch_up or "once",
            model=arguments.model or "",
            runs_left=1 if arguments.once else None,
        )
        job = scheduled_jobs.create_job(db, requester, request)
        now = db.clock.now()
    return _report(f"Added job {job.job_id}: {job.name}", job, now, arguments, out)


def _target(db: SessionDB, text: str | None) -> JobTarget | None:
    return None if text in {None, "", "none"} else job_targets(db).parse(str(text))


def _report(
    text: str, job: ScheduledJob, now: float, arguments: argparse.Namespace, out: CommandOutput
) -> int:
    if arguments.json:
        out.json(job_facts(job, JobTotals(), now))
        return 0
    out.text(text)
    print_preview(job, now, out)
    if status.running_pid() is None:
        out.note(NO_GATEWAY)
    return 0


def edit(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Change a job."""
    with history.open_for_writing() as db:
        job = find_job(db, arguments.number)
        changes = _changes(db, job, arguments)
        if not changes:
            raise UsageError("Nothing to change: give an option, e.g. --schedule or --prompt.")
        changed = db.schedules.edit(job.job_id, changes) or job
        now = db.clock.now()
    return _report(f"Changed job {job.job_id}: {changed.name}", changed, now, arguments, out)


def _changes(db: SessionDB, job: ScheduledJob, arguments: argparse.Namespace) -> dict[str, Any]:
    changes: dict[str, Any] = {}
    if arguments.schedule or arguments.tz:
        changes |= _new_times(db, job, arguments)
    if arguments.prompt:
        changes["prompt"] = scheduled_jobs.checked_prompt(arguments.prompt)
    if arguments.to:
        changes["target"] = _target(db, arguments.to)
    if arguments.reminder:
        changes["kind"] = "reminder"
    if arguments.once:
        changes["runs_left"] = 1
    for name in ("name", "model", "catch_up"):
        if getattr(arguments, name):
            changes[name] = getattr(arguments, name)
    return changes


def _new_times(db: SessionDB, job: ScheduledJob, arguments: argparse.Namespace) -> dict[str, Any]:
    """The rule and the next time after a change of the schedule or of the time zone."""
    now, zone = db.clock.now(), scheduled_jobs.zone_named(arguments.tz or job.zone)
    schedule = arguments.schedule or job.schedule
    rule = read_rule(job.rule)
    if arguments.schedule or isinstance(rule, OnceRule):
        rule = parse_schedule(schedule, now, zone)
    return {
        "schedule": schedule,
        "rule": str(rule),
        "zone": scheduled_jobs.zone_name(zone),
        "next_at": rule.next_after(now, zone),
    }


def pause(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Pause a job."""
    with history.open_for_writing() as db:
        job = find_job(db, arguments.number)
        if not db.schedules.pause(job.job_id, "paused by the owner"):
            raise UsageError(f"Job {job.job_id} is not active: it is {job.state}.")
    return _confirm(f"Paused job {job.job_id}: {job.name}", job, arguments, out)


def resume(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Continue a paused job."""
    with history.open_for_writing() as db:
        job = find_job(db, arguments.number)
        if not scheduled_jobs.resume_job(db, job):
            raise UsageError(f"Job {job.job_id} is not paused: it is {job.state}.")
        job, now = find_job(db, job.job_id), db.clock.now()
    return _report(f"Resumed job {job.job_id}: {job.name}", job, now, arguments, out)


def run_now(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Request a run now."""
    with history.open_for_writing() as db:
        job = find_job(db, arguments.number)
        db.schedules.request_run(job.job_id)
    if status.running_pid() is None:
        out.note(NO_GATEWAY)
    return _confirm(f"Job {job.job_id} runs now: {job.name}", job, arguments, out)


def remove(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Delete a job."""
    with history.open_for_writing() as db:
        job = find_job(db, arguments.number)
        db.schedules.remove(job.job_id)
    return _confirm(f"Removed job {job.job_id}: {job.name}", job, arguments, out)


def _confirm(
    text: str, job: ScheduledJob, arguments: argparse.Namespace, out: CommandOutput
) -> int:
    if arguments.json:
        out.json({"number": job.job_id, "done": arguments.action})
    else:
        out.text(text)
    return 0
