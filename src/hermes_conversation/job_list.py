"""The scheduled jobs that the agent of a conversation may see and change: those of its person."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from hermes_conversation import scheduled_jobs
from hermes_conversation.scheduled_jobs import JobRequest

if TYPE_CHECKING:
    from hermes_conversation.scheduled_jobs import JobRequester
    from hermes_core.json_values import JsonObject
    from hermes_state import SessionDB
    from hermes_state.schedules.rows import JobKind, ScheduledJob


class PersonsJobs:
    """The jobs of one person."""

    def __init__(self, db: SessionDB, requester: JobRequester) -> None:
        self._db = db
        self._requester = requester

    def add(self, kind: str, schedule: str, prompt: str) -> JsonObject:
        """Store a reminder or a job; what was stored."""
        request = JobRequest(schedule, prompt, kind=cast("JobKind", kind))
        return _facts(scheduled_jobs.create_job(self._db, self._requester, request))

    def list(self) -> list[JsonObject]:
        """The jobs of the person."""
        return [_facts(job) for job in self._db.schedules.of_person(*self._requester.person)]

    def remove(self, job_id: int) -> JsonObject:
        """Delete a job of the person."""
        job = scheduled_jobs.own_job(self._db, self._requester, str(job_id))
        self._db.schedules.remove(job.job_id)
        return _facts(job)


def _facts(job: ScheduledJob) -> JsonObject:
    zone = scheduled_jobs.zone_named(job.zone)
    return {
        "number": job.job_id,
        "kind": job.kind,
        "schedule": job.schedule,
        "next": scheduled_jobs.local_text(job.next_at, zone),
        "state": job.state,
        "text": job.prompt,
    }
