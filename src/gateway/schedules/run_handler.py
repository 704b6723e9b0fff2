"""Runs scheduled jobs: each in a conversation of its own, with the rights of its person.

The inbox row of a run is handled like a message, by one process at a time. A run that was
started and not finished was interrupted by the end of its process: it is recorded and reported,
never repeated.
"""

from __future__ import annotations

import logging
import threading
import time
from typing import TYPE_CHECKING, Final, NamedTuple

from gateway.inbound import prompt_format
from gateway.inbound.budgets import JOBS_WAIT, UserKey, usage_of
from gateway.outbound import direct_send
from gateway.platforms.base import split_text
from gateway.routing.sources import SessionSource
from hermes_agent import events
from hermes_agent.messages import PromptIdentity
from hermes_agent.tools.prompter import NonInteractivePrompter
from hermes_conversation.agent_factory import ConversationOptions
from hermes_conversation.conversation import Conversation
from hermes_conversation.scheduled_jobs import local_text, zone_named
from hermes_core.errors import HermesError, SessionDeletedError, StoreError, UsageError
from hermes_core.isolate import attempt
from hermes_core.log_file import log_fields
from hermes_core.roles import Person, Right, Role, may, parse_role
from hermes_state.delivery import inbox, outbox
from hermes_state.delivery.inbox import PausedPlace
from hermes_state.schedules import repository as schedules
from hermes_state.schedules.rows import CRON

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from gateway.inbound.access_control import AccessControl
    from gateway.inbound.budgets import Budgets
    from gateway.outbound.direct_send import Channel
    from gateway.routing.session_routes import SessionRoutes
    from gateway.schedules.targets import JobTargets
    from hermes_core.clock import Clock
    from hermes_state.delivery.rows import IncomingMessage
    from hermes_state.engine.transaction import Tx
    from hermes_state.schedules.rows import Occurrence, OccurrenceState, ScheduledJob
    from hermes_state.store import SessionDB

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


log = logging.getLogger(__name__)

COMPLETED = "cron_complete"
LEFT_OPEN_SECONDS = 60.0
PRIVATE_KINDS = frozenset({"dm", "home"})
NO_ACCESS = "its creator no longer has access"


class RunRecord(NamedTuple):
    """A run, as the store has it."""

    row: IncomingMessage
    job: ScheduledJob
    occurrence: Occurrence
    session_id: str | None = None


class RunContext(NamedTuple):
    """What the handler works with, besides the store."""

    routes: SessionRoutes
    access: AccessControl
    targets: JobTargets
    budgets: Budgets
    longest_text: Callable[[str], int]  # by platform name
    cwd: Path
    max_failures: int  # in a row, before a job is paused
    clock: Clock
    is_bound_to_node: bool = False  # runs that may use *cwd*
    on_progress: Callable[[int, events.Event], object] = lambda _inbox_id, _event: None


class ScheduledRunHandler:
    """Handles the inbox rows of occurrences; called from one thread per busy job."""

    def __init__(self, db: SessionDB, context: RunContext) -> None:
        self._db = db
        self._context = context
        self._running: dict[int, Conversation] = {}
        self._lock = threading.Lock()

    def all_running(self) -> list[Conversation]:
        """The conversations of all runs."""
        with self._lock:
            return list(self._running.values())

    def handle(self, row: IncomingMessage) -> None:
        """Run a claimed occurrence, or record what became of it."""
        number = row.payload.get("occurrence_id")
        if number is None:
            self._db.inbox.settle(row.inbox_id, error=prompt_format.UNREADABLE)
            return
        occurrence = self._db.schedules.occurrence(number)
        job = self._db.schedules.get(occurrence.job_id) if occurrence else None
        if occurrence is None or job is None:
            self._db.inbox.settle(row.inbox_id, error="the scheduled job was removed")
            return
        run = RunRecord(row, job, occurrence, occurrence.session_id)
        if occurrence.state == "running":
            self._end(run, "interrupted", interruption(job, occurrence))
            self._record_usage(run)
        elif occurrence.state != "waiting":
            self._db.inbox.settle(row.inbox_id)
        elif job.state == "paused" and not occurrence.is_manual:
            self._skip(run)
        elif job.kind == "reminder":
            self._remind(run)
        else:
            self._run(run)

    def end_conversations(self, ended_seconds_ago: float = LEFT_OPEN_SECONDS) -> None:
        """End the conversations of runs whose process ended right after the run."""
        for session_id in self._db.schedules.open_conversations(ended_seconds_ago):
            self._db.sessions.end_session(session_id, COMPLETED)

    def _skip(self, run: RunRecord) -> None:
        """Leave out a run whose job was paused while it waited."""

        def skip(tx: Tx) -> None:
            inbox.settle(tx, run.row.inbox_id, self._db.identity.process_id, None)
            schedules.finish(tx, run.occurrence.occurrence_id, "skipped", "the job is paused")

        self._db.engine.write(skip)

    def _remind(self, run: RunRecord) -> None:
        try:
            channel = self._context.targets.find(run.job.target)
            self._require_access(run.job)
        except UsageError as error:
            self._fail(run, str(error))
            return
        text = reminder(run.job, run.occurrence, self._context.clock.now())
        self._db.engine.write(lambda tx: self._deliver(tx, run, channel, text))
        self._log(run, "done")

    # Turns

    def _run(self, run: RunRecord) -> None:
        try:
            source = self._require_access(run.job)
            channel = self._context.targets.find(run.job.target)
        except UsageError as error:
            self._fail(run, str(error))
            return
        if self._must_wait(run, channel):
            return
        run = run._replace(session_id=_session_id(run))
        role = self._role(run.job, source)
        if self._context.is_bound_to_node and may(role, Right.ALL_FILES):
            self._db.nodes.bind(run.row.session_key)
        facts = {"session_key": run.row.session_key, "user_id": run.job.user_id}
        if not self._db.schedules.start(run.occurrence, str(run.session_id), facts):
            self._db.inbox.settle(run.row.inbox_id)  # it was started before
            return
        try:
            self._turn(run, self._options(run, source, channel, role), channel)
        except SessionDeletedError:
            self._fail(run, "its conversation was deleted during the run")
        except StoreError:
            raise  # the inbox worker retries, and the run is recorded as interrupted
        except HermesError as error:
            self._fail(run, str(error))
        finally:
            self._forget(run)

    def _must_wait(self, run: RunRecord, channel: Channel | None) -> bool:
        """Whether the run waits for a budget, with all later ones of its job."""
        user = UserKey(run.job.platform, run.job.user_id)
        exceeded = self._context.budgets.exceeded(user)
        if exceeded is None:
            return False
        place = PausedPlace(run.row.session_key, exceeded.until, *user)
        self._db.paused_places.pause(run.row, place)
        if channel is not None:
            platform, target = channel.platform, channel.target()
            self._context.budgets.notify(user, exceeded, platform, target, JOBS_WAIT)
        return True

    def _turn(self, run: RunRecord, options: ConversationOptions, channel: Channel | None) -> None:
        conversation = Conversation(self._db, NonInteractivePrompter(), options)
        with self._lock:
            self._running[run.row.inbox_id] = conversation
        is_delivered: list[bool] = []

        def deliver(finished: events.TurnFinished) -> Callable[[Tx], object]:
            is_delivered.append(True)
            return lambda tx: self._deliver(tx, run, channel, finished.reply)

        last = None
        uid = prompt_format.message_uid(run.row.inbox_id)
        for event in conversation.send(
            run.job.prompt, identity=PromptIdentity(uid), on_answer=deliver
        ):
            self._context.on_progress(run.row.inbox_id, event)
            if isinstance(event, events.TurnFinished):
                last = event
        if not is_delivered:
            self._end_without_answer(run, channel, last)
        self._log(run, "done" if is_delivered else "ended")

    def _end_without_answer(
        self, run: RunRecord, channel: Channel | None, last: events.TurnFinished | None
    ) -> None:
        if last is None or last.end is events.TurnEnd.FAILED:
            self._fail(run, last.error if last else "the turn ended unexpectedly")
        elif last.end is events.TurnEnd.INTERRUPTED:
            self._end(run, "interrupted", interruption(run.job, run.occurrence))
        else:
            self._db.engine.write(lambda tx: self._deliver(tx, run, channel, last.reply))

    def _forget(self, run: RunRecord) -> None:
        """Record what a run has used, and end its conversation."""
        with self._lock:
            conversation = self._running.pop(run.row.inbox_id, None)
        if conversation is None:
            return
        conversation.stop()
        attempt("record the usage of a scheduled run", lambda: self._record_usage(run))
        session_id = str(run.session_id)
        attempt("end a run", lambda: self._db.sessions.end_session(session_id, COMPLETED))

    def _record_usage(self, run: RunRecord) -> None:
        usage = usage_of(self._db, str(run.session_id))
        self._db.schedules.set_usage(run.occurrence.occurrence_id, usage)
        self._context.budgets.add(UserKey(run.job.platform, run.job.user_id), usage)

    # Rights

    def _require_access(self, job: ScheduledJob) -> SessionSource:
        """The source of a job; UsageError if its person has no access any longer."""
        try:
            source = SessionSource.from_dict(job.requester)
        except (ValueError, KeyError) as error:
            raise UsageError(f"unknown platform: {error}") from error
        if not self._context.access.has_access(source):
            raise UsageError(NO_ACCESS)
        return source

    def _role(self, job: ScheduledJob, source: SessionSource) -> Role:
        """The role of a run: that of its person now, and no more than when the job was made."""
        roles = {self._context.access.role_of(source), parse_role(job.role) or Role.GUEST}
        return [role for role in Role if role in roles][-1]  # the highest comes first

    def _options(
        self, run: RunRecord, source: SessionSource, channel: Channel | None, role: Role
    ) -> ConversationOptions:
        is_private = channel is None or channel.kind in PRIVATE_KINDS
        has_all = is_private and role is Role.OWNER and source.chat_type == "dm"
        person = Person(source.platform.value, source.user_id or source.chat_id)
        options = ConversationOptions(run.session_id, run.job.model, CRON, CRON, self._context.cwd)
        return options._replace(
            about=about(run.job, run.occurrence, is_sent=channel is not None),
            scope_key="" if has_all else self._context.routes.key_of(source),
            role=role,
            person=person.folder_name,
        )

    # Results

    def _deliver(self, tx: Tx, run: RunRecord, channel: Channel | None, text: str) -> None:
        """Store the result of a run with everything that follows from it."""
        occurrence_id = run.occurrence.occurrence_id
        inbox.settle(tx, run.row.inbox_id, self._db.identity.process_id, run.session_id)
        schedules.finish(tx, occurrence_id, "done")
        schedules.forgive_failures(tx, run.job.job_id)
        self._send(tx, run, channel, text)
        if channel is not None:  # the agent knows it when the person answers
            sent = direct_send.sent_message(channel, text, f"occurrence:{occurrence_id}")
            if sent is not None:
                inbox.enqueue(tx, **sent)

    def _send(self, tx: Tx, run: RunRecord, channel: Channel | None, text: str) -> None:
        if channel is None:
            return
        parts = split_text(text, self._context.longest_text(channel.platform))
        for number, part in enumerate(parts):
            outbox.insert_reply(
                tx,
                f"occurrence:{run.occurrence.occurrence_id}:{number}",
                platform=channel.platform,
                target=channel.target(),
                payload={"text": part},
                session_id=run.session_id,
                inbox_id=run.row.inbox_id,
            )

    def _fail(self, run: RunRecord, error: str) -> None:
        self._end(run, "failed", failure(run.job, run.occurrence, error), error)

    def _end(
        self, run: RunRecord, state: OccurrenceState, notice: str, error: str | None = None
    ) -> None:
        """Record a run without a result; pause its job after too many of them."""
        try:
            channel = self._context.targets.find(run.job.target)
        except UsageError as problem:
            log.warning("notice of scheduled job %d not sent: %s", run.job.job_id, problem)
            channel = None

        def end(tx: Tx) -> None:
            inbox.settle(tx, run.row.inbox_id, self._db.identity.process_id, run.session_id)
            schedules.finish(tx, run.occurrence.occurrence_id, state, error)
            failures = schedules.count_failure(tx, run.job.job_id)
            texts = [notice]
            if failures >= self._context.max_failures:
                reason = f"failed {failures} times in a row"
                if schedules.pause(tx, run.job.job_id, reason):
                    texts.append(pause(run.job, failures))
            self._send(tx, run, channel, "\n".join(texts))

        self._db.engine.write(end)
        self._log(run, state)

    def _log(self, run: RunRecord, state: str) -> None:
        log.info(
            "scheduled run %s",
            state,
            extra=log_fields(
                job_id=run.job.job_id,
                occurrence_id=run.occurrence.occurrence_id,
                inbox_id=run.row.inbox_id,
                session_id=run.session_id,
            ),
        )


def _session_id(run: RunRecord) -> str:
    """The ID of the conversation of a run: its job, when it was due, its number."""
    due = time.strftime("%Y%m%d_%H%M%S", time.localtime(run.occurrence.due_at))
    return f"cron_{run.job.job_id}_{due}_{run.occurrence.occurrence_id}"
