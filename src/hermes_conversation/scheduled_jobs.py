"""Scheduled jobs and reminders, as every front end creates, lists and removes them."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Final, NamedTuple, cast

from hermes_core import time_zones
from hermes_core.config.file import ConfigFile
from hermes_core.errors import UsageError
from hermes_core.roles import Role
from hermes_core.schedules.expressions import parse_schedule, split_reminder
from hermes_core.schedules.rules import read_rule, upcoming
from hermes_state.schedules.rows import NewJob

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

    from hermes_core.json_values import JsonObject
    from hermes_state.delivery.rows import JobTarget, StoredSource
    from hermes_state.schedules.rows import JobKind, ScheduledJob
    from hermes_state.store import SessionDB

TERMINAL: Final = "terminal"
OWNER_TARGET: Final = "me"  # the chat of the owner, as a target is written
PROGRAM_PLATFORMS: Final = frozenset({"api_server", "webhook"})
UNNAMED_ZONE: Final = "localtime"  # of a machine without a zone name
PREVIEW_COUNT: Final = 3
NAME_CHARACTERS: Final = 40
MAX_PROMPT_CHARACTERS: Final = 20_000
TIME_FORM: Final = "%a %Y-%m-%d %H:%M"
OWNERS_CHAT: Final[JobTarget] = {}  # the chat of the owner on any platform
NO_CHAT_YET: Final = (
    "No chat is known yet. Connect one (`hermes gateway add telegram`, for example) and write to "
    "the agent there, so that the reminder can be sent."
)
REMIND_USAGE: Final = (
    "Usage: /remind 20m TEXT, /remind tomorrow 9:00 TEXT, /remind every monday 9:00 TEXT, "
    "/remind list, /remind remove NUMBER"
)


class JobRequester(NamedTuple):
    """Who asks for a job, and where its results go unless another chat is named."""

    source: StoredSource  # chat and user, as the gateway describes them
    role: Role
    target: JobTarget | None

    @property
    def person(self) -> tuple[str, str]:
        """Platform and user ID."""
        user = self.source.get("user_id") or self.source.get("chat_id")
        return str(self.source.get("platform")), str(user)


def local_requester(target: JobTarget | None = None) -> JobRequester:
    """The user of this machine."""
    source: StoredSource = {"platform": "local", "chat_id": TERMINAL, "chat_type": "dm"}
    return JobRequester(source, Role.OWNER, OWNERS_CHAT if target is None else target)


def chat_requester(source: StoredSource, role: Role) -> JobRequester:
    """The sender of a chat message; results go to the same chat.

    A program gets no messages later: its results go to the chat of the owner, or nowhere.
    """
    if source.get("platform") in PROGRAM_PLATFORMS:
        return JobRequester(source, role, OWNERS_CHAT if role is Role.OWNER else None)
    target: JobTarget = {
        "platform": source["platform"],
        "chat_id": source["chat_id"],
        "thread_id": source.get("thread_id"),
    }
    return JobRequester(source, role, target)


class JobRequest(NamedTuple):
    """A job that is asked for."""

    schedule: str
    prompt: str
    kind: JobKind = "job"
    name: str = ""
    zone: str = ""  # empty: the configured one, else the machine's
    catch_up: str = "once"
    model: str = ""
    runs_left: int | None = None
    origin: str | None = None
    state: str = "active"


def default_zone() -> ZoneInfo:
    """The configured time zone of the user, else the machine's."""
    return time_zones.find_zone(ConfigFile.of_home().settings().get_str("display.timezone"))


def zone_named(name: str) -> ZoneInfo:
    """A zone by its stored name; UsageError if it is unknown."""
    if not name:
        return default_zone()
    try:
        return time_zones.find_zone(name)
    except UsageError as error:
        raise UsageError(
            f"Unknown time zone {name!r}. Use a name such as Europe/Berlin."
        ) from error


def first_occurrence(request: JobRequest, now: float) -> float:
    """When a job runs first; UsageError if it cannot be scheduled as written."""
    zone = zone_named(request.zone)
    next_at = parse_schedule(request.schedule, now, zone).next_after(now, zone)
    if next_at is None:
        raise UsageError(f"The schedule {request.schedule!r} has no occurrence.")
    return next_at


def create_job(db: SessionDB, requester: JobRequester, request: JobRequest) -> ScheduledJob:
    """Store a job; UsageError if it cannot be scheduled as written."""
    zone = zone_named(request.zone)
    prompt = checked_prompt(request.prompt)
    if request.kind == "reminder" and requester.target is None:
        raise UsageError("A reminder needs a chat that it is sent to.")
    now = db.clock.now()
    next_at = first_occurrence(request, now)
    rule = parse_schedule(request.schedule, now, zone)
    platform, user_id = requester.person
    return db.schedules.add(
        NewJob(
            name=request.name.strip()[:NAME_CHARACTERS] or short_name(prompt),
            prompt=prompt,
            schedule=" ".join(request.schedule.split()),
            rule=str(rule),
            zone=zone_name(zone),
            requester=requester.source,
            platform=platform,
            user_id=user_id,
            role=requester.role,
            next_at=next_at,
            kind=request.kind,
            catch_up=request.catch_up,
            model=request.model,
            target=requester.target,
            runs_left=request.runs_left,
            origin=request.origin,
            state="paused" if request.state == "paused" else "active",
            reason="imported as paused" if request.state == "paused" else "",
        )
    )


def checked_prompt(text: str) -> str:
    """The text of a job; UsageError if it is empty or too long."""
    prompt = text.strip()
    if not prompt:
        raise UsageError("The text of the job is empty.")
    if len(prompt) > MAX_PROMPT_CHARACTERS:
        raise UsageError(f"The text of a job has at most {MAX_PROMPT_CHARACTERS:,} characters.")
    return prompt


def zone_name(zone: ZoneInfo) -> str:
    """The stored name of a zone; empty for a machine's zone without a name."""
    return "" if zone.key == UNNAMED_ZONE else zone.key


def short_name(prompt: str) -> str:
    """A name made of the beginning of a prompt."""
    line = " ".join(prompt.split())
    return line if len(line) <= NAME_CHARACTERS else f"{line[: NAME_CHARACTERS - 1]}…"


def next_occurrences(job: ScheduledJob, now: float, count: int = PREVIEW_COUNT) -> list[float]:
    """The next occurrences of a job; none if it is paused or done."""
    if job.state != "active" or job.next_at is None:
        return []
    count = count if job.runs_left is None else min(count, job.runs_left)
    following = upcoming(read_rule(job.rule), zone_named(job.zone), max(job.next_at, now), count)
    return [job.next_at, *following][:count]


def next_at_after(job: ScheduledJob, now: float) -> float | None:
    """The next occurrence of a job after a moment."""
    return read_rule(job.rule).next_after(now, zone_named(job.zone))


def local_text(moment: float | None, zone: ZoneInfo) -> str:
    """A moment in a zone, with its offset where that is not obvious."""
    if moment is None:
        return "-"
    return datetime.fromtimestamp(moment, zone).strftime(f"{TIME_FORM} %Z")


def describe_target(target: JobTarget | None) -> str:
    """A target as `hermes cron add --to` reads it; `none` without one."""
    if target is None:
        return "none"
    platform, chat_id = target.get("platform"), target.get("chat_id")
    thread_id = target.get("thread_id")
    if chat_id is None:
        return f"{platform}:{OWNER_TARGET}" if platform else OWNER_TARGET
    return f"{platform}:{chat_id}" + (f"#{thread_id}" if thread_id else "")


def resume_job(db: SessionDB, job: ScheduledJob) -> bool:
    """Continue a paused job with its next occurrence; what was missed meanwhile is left out."""
    next_at = next_at_after(job, db.clock.now())
    if next_at is None:
        raise UsageError(f"Job {job.job_id} has no further occurrence. Give it another schedule.")
    return db.schedules.resume(job.job_id, next_at)


# Reminders


def remind(db: SessionDB, requester: JobRequester, words: str, origin: str | None = None) -> str:
    """Run `/remind`; the reply. *origin* identifies the message, which may be handled again."""
    verb, _, rest = words.strip().partition(" ")
    if not verb:
        raise UsageError(REMIND_USAGE)
    if verb == "list" and not rest:
        return _list_reminders(db, requester)
    if verb in {"remove", "delete", "cancel"}:
        return _remove_reminder(db, requester, rest.strip())
    zone = default_zone()
    _rule, schedule, text = split_reminder(" ".join(words.split()), db.clock.now(), zone)
    request = JobRequest(schedule, text, kind="reminder", origin=origin)
    job = create_job(db, requester, request)
    repeats = "" if job.rule.startswith("at ") else f", then {job.schedule}"
    lines = [
        f"Reminder {job.job_id} set for {local_text(job.next_at, zone)}{repeats}: {job.name}",
        f"Remove it with /remind remove {job.job_id}.",
    ]
    if requester.target == OWNERS_CHAT and not _has_chat(db):
        lines.append(NO_CHAT_YET)
    return "\n".join(lines)


def _has_chat(db: SessionDB) -> bool:
    """Whether the owner can be found in a chat: one was used or is configured."""
    settings = ConfigFile.of_home().settings()
    return bool(db.routes.count() or settings.get_list("gateway.notify"))


def _list_reminders(db: SessionDB, requester: JobRequester) -> str:
    jobs = db.schedules.of_person(*requester.person)
    lines = [describe(job) for job in jobs]
    return "\n".join(lines) or "No reminders. Set one with /remind 20m TEXT."


def describe(job: ScheduledJob) -> str:
    """A job in one line."""
    when = local_text(job.next_at, zone_named(job.zone)) if job.state == "active" else job.state
    return f"{job.job_id}  {when}  ({job.schedule})  {job.name}"


def _remove_reminder(db: SessionDB, requester: JobRequester, text: str) -> str:
    job = own_job(db, requester, text)
    db.schedules.remove(job.job_id)
    return f"Removed {job.job_id}: {job.name}"


def own_job(db: SessionDB, requester: JobRequester, text: str) -> ScheduledJob:
    """A job of a person by its number; those of others do not exist for them."""
    number = int(text) if text.isdecimal() and len(text) < len(str(2**63)) else 0
    job = db.schedules.get(number)
    if job is None or (job.platform, job.user_id) != requester.person:
        raise UsageError(f"No reminder {text!r}. /remind list shows their numbers.")
    return job


class PersonsJobs:
    """The jobs of one person."""

    def __init__(self, db: SessionDB, requester: JobRequester) -> None:
        self._db = db
        self._requester = requester

    def add(self, kind: str, schedule: str, prompt: str) -> JsonObject:
        """Store a reminder or a job; what was stored."""
        request = JobRequest(schedule, prompt, kind=cast("JobKind", kind))
        return _facts(create_job(self._db, self._requester, request))

    def list(self) -> list[JsonObject]:
        """The jobs of the person."""
        return [_facts(job) for job in self._db.schedules.of_person(*self._requester.person)]

    def remove(self, job_id: int) -> JsonObject:
        """Delete a job of the person."""
        job = own_job(self._db, self._requester, str(job_id))
        self._db.schedules.remove(job.job_id)
        return _facts(job)


def _facts(job: ScheduledJob) -> JsonObject:
    zone = zone_named(job.zone)
    return {
        "number": job.job_id,
        "kind": job.kind,
        "schedule": job.schedule,
        "next": local_text(job.next_at, zone),
        "state": job.state,
        "text": job.prompt,
    }
