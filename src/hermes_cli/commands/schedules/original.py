"""The scheduled jobs of hermes-agent in `cron/jobs.json`: listed, and taken over.

The file is only read. An entry is taken over once; its ID is kept with the job.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from hermes_conversation import scheduled_jobs
from hermes_conversation.purge_hook import keep_facts
from hermes_conversation.scheduled_jobs import JobRequest, JobRequester, local_requester
from hermes_core import human_format
from hermes_core.errors import StoreError, UsageError
from hermes_core.paths import hermes_home
from hermes_state.store import SessionDB
from hermes_state.store_settings import history_exists

if TYPE_CHECKING:
    import argparse
    from pathlib import Path

    from hermes_cli.output import CommandOutput
    from hermes_state.delivery.rows import JobTarget

ORIGIN: Final = "hermes-agent:{id}"
FILE: Final = "cron/jobs.json"
NOT_IMPORTED: Final = "not imported"
OWN_TARGETS: Final = {"", "local", "none"}  # the result is only stored
STILL_RUNNING: Final = (
    "Stop the gateway of hermes-agent or remove the jobs there: otherwise both run them."
)


class OriginalJob(NamedTuple):
    """An entry of the file."""

    entry_id: str
    name: str
    prompt: str
    schedule: str
    target: JobTarget | None
    is_active: bool
    runs_left: int | None
    model: str
    problem: str = ""  # why it cannot be taken over

    @property
    def origin(self) -> str:
        """How a job that was made of it refers to it."""
        return ORIGIN.format(id=self.entry_id)


def jobs_path() -> Path:
    """The file of hermes-agent."""
    return hermes_home() / FILE


def read_jobs(path: Path) -> list[OriginalJob]:
    """The entries of the file; none without one. UsageError if it is unreadable."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return []
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} is unreadable: {error}") from error
    except RecursionError as error:
        raise UsageError(f"{path} is unreadable: it is nested too deeply") from error
    entries = data.get("jobs") if isinstance(data, dict) else data
    if not isinstance(entries, list):
        raise UsageError(f"{path} has no list of jobs.")
    return [_job(entry, number) for number, entry in enumerate(entries, 1) if _is_job(entry)]


def _is_job(entry: object) -> bool:
    return isinstance(entry, dict)


def _job(entry: dict[str, Any], number: int) -> OriginalJob:
    prompt = str(entry.get("prompt") or "").strip()
    name = str(entry.get("name") or scheduled_jobs.short_name(prompt) or f"job {number}")
    skill = entry.get("skill")
    skills = entry.get("skills") or ([skill] if skill else [])
    if prompt and isinstance(skills, list) and skills:
        prompt = f"Use the skills {', '.join(map(str, skills))}.\n\n{prompt}"
    schedule = _schedule(entry.get("schedule"))
    problem = ""
    if entry.get("script") or entry.get("no_agent"):
        problem = "it runs a script"
    elif not prompt:
        problem = "it has no prompt"
    elif not schedule:
        problem = "unsupported schedule"
    runs_left = _runs_left(entry.get("repeat"))
    is_over = entry.get("state") == "completed" or runs_left == 0
    return OriginalJob(
        str(entry.get("id") or number),
        name,
        prompt,
        schedule,
        _target(entry),
        entry.get("enabled") is not False and entry.get("state") != "paused",
        runs_left,
        str(entry.get("model") or ""),
        problem or ("it is completed" if is_over else ""),
    )


def _schedule(written: object) -> str:
    """A schedule in our words; empty if it is of an unknown kind."""
    if isinstance(written, str):
        return written
    if not isinstance(written, dict):
        return ""
    kind = written.get("kind")
    if kind == "cron":
        return str(written.get("expr") or "")
    minutes = written.get("minutes")
    if kind == "interval" and minutes:
        return f"every {minutes} minutes"
    if kind in {"once", "at"}:
        return str(written.get("run_at") or "")
    return str(written.get("display") or "")


def _runs_left(repeat: object) -> int | None:
    times = repeat.get("times") if isinstance(repeat, dict) else None
    if not isinstance(repeat, dict) or not isinstance(times, int):
        return None
    return max(0, times - int(repeat.get("completed") or 0))


def _target(entry: dict[str, Any]) -> JobTarget | None:
    deliver = entry.get("deliver")
    text = str(deliver[0] if isinstance(deliver, list) and deliver else deliver or "").strip()
    text = text.split(",")[0].strip()
    origin = entry.get("origin")
    if text == "origin" and isinstance(origin, dict) and origin.get("chat_id"):
        return {
            "platform": str(origin.get("platform")),
            "chat_id": str(origin.get("chat_id")),
            "thread_id": str(origin.get("thread_id") or "") or None,
        }
    if text in OWN_TARGETS or text == "origin":
        return None
    platform, _, chat = text.partition(":")
    if not chat:
        return {"platform": platform}
    chat_id, _, thread = chat.partition(":") if platform == "telegram" else (chat, "", "")
    return {"platform": platform, "chat_id": chat_id, "thread_id": thread or None}


def run(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Take over the jobs, or show what would be done."""
    found = read_jobs(jobs_path())
    if not found:
        raise UsageError(f"No jobs of hermes-agent: {jobs_path()} does not exist or is empty.")
    with SessionDB(purge_hook=keep_facts) as db:
        results = [(item, take_over(db, item, is_dry=arguments.dry_run)) for item in found]
    if arguments.json:
        out.json(
            [{"id": item.entry_id, "name": item.name, "result": text} for item, text in results]
        )
        return 0
    for item, text in results:
        out.text(f"{item.entry_id}  {item.name}: {text}")
    if any(text.startswith("imported as") for _, text in results):
        out.note(STILL_RUNNING)
    return 0


def take_over(db: SessionDB, item: OriginalJob, *, is_dry: bool) -> str:
    """Make a job of an entry, once; what was done, in words."""
    if db.schedules.is_imported(item.origin):
        return "already imported"
    if item.problem:
        return f"{NOT_IMPORTED}: {item.problem}"
    request = JobRequest(
        item.schedule,
        item.prompt,
        name=item.name,
        model=item.model,
        runs_left=item.runs_left,
        origin=item.origin,
        state="active" if item.is_active else "paused",
    )
    requester: JobRequester = local_requester()._replace(target=item.target)
    if is_dry:
        return f"would be imported: {item.schedule}"
    try:
        job = scheduled_jobs.create_job(db, requester, request)
    except UsageError as error:
        return f"{NOT_IMPORTED}: {error}"
    return f"imported as job {job.job_id} ({job.state})"


def _imported(found: list[OriginalJob]) -> set[str]:
    """The origins of entries that were taken over."""
    if not history_exists():
        return set()
    try:
        with SessionDB(read_only=True) as db:
            return {item.origin for item in found if db.schedules.is_imported(item.origin)}
    except StoreError:  # empty, or it cannot be opened, which other checks report
        return set()


def summary() -> str:
    """What `hermes doctor` reports about jobs that were not taken over; empty if there are none."""
    found = [item for item in read_jobs(jobs_path()) if not item.problem]
    if not found:
        return ""
    imported = _imported(found)
    waiting = [item for item in found if item.origin not in imported]
    if not waiting:
        return ""
    names = ", ".join(f"{item.name} ({item.schedule})" for item in waiting[:5])
    more = f" and {len(waiting) - 5} more" if len(waiting) > 5 else ""
    return f"{human_format.plural(len(waiting), 'job')} of hermes-agent: {names}{more}"
