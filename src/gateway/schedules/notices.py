"""Notices about scheduled runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hermes_conversation.scheduled_jobs import local_text, zone_named

if TYPE_CHECKING:
    from hermes_state.schedules.rows import Occurrence, ScheduledJob

REMINDER_TEXT: Final = "Reminder: {text}"
LATE_REMINDER_TEXT: Final = "Reminder (due {due}): {text}"
FAILURE_TEXT: Final = "Scheduled job {number} ({name}), due {due}, failed: {error}"
INTERRUPTION_TEXT: Final = (
    "Scheduled job {number} ({name}), due {due}, was interrupted: the gateway stopped during the "
    "run. It is not repeated, because part of it may already be done. `hermes cron run {number}` "
    "runs it again."
)
PAUSE_TEXT: Final = (
    "It failed {count} times in a row and is paused. `hermes cron resume {number}` continues it."
)
RUN_TEXT: Final = (
    "This is a scheduled run of job {number}, {name!r}, due {due}. No person is present: questions "
    "and requests for approval are not answered, so do what you can without them. {delivery}"
)
IS_SENT: Final = "Your final reply is sent to the user."
IS_STORED: Final = "Your final reply is stored in the history."
SHORT_DELAY_SECONDS: Final = 600.0


def _facts(job: ScheduledJob, occurrence: Occurrence) -> dict[str, str]:
    return {"number": str(job.job_id), "name": job.name, "due": _due_text(job, occurrence)}


def _due_text(job: ScheduledJob, occurrence: Occurrence) -> str:
    return local_text(occurrence.due_at, zone_named(job.zone))


def reminder(job: ScheduledJob, occurrence: Occurrence, now: float) -> str:
    """The text of a reminder; a late one contains when it was due."""
    if now - occurrence.due_at < SHORT_DELAY_SECONDS:
        return REMINDER_TEXT.format(text=job.prompt)
    return LATE_REMINDER_TEXT.format(text=job.prompt, due=_due_text(job, occurrence))


def failure(job: ScheduledJob, occurrence: Occurrence, error: str) -> str:
    """The notice of a failed run."""
    return FAILURE_TEXT.format(**_facts(job, occurrence), error=error)


def interruption(job: ScheduledJob, occurrence: Occurrence) -> str:
    """The notice of an interrupted run."""
    return INTERRUPTION_TEXT.format(**_facts(job, occurrence))


def pause(job: ScheduledJob, failures: int) -> str:
    """The notice that a job is paused."""
    return PAUSE_TEXT.format(number=job.job_id, count=failures)


def about(job: ScheduledJob, occurrence: Occurrence, *, is_sent: bool) -> str:
    """The description of a run for the system prompt."""
    delivery = IS_SENT if is_sent else IS_STORED
    return RUN_TEXT.format(**_facts(job, occurrence), delivery=delivery)
