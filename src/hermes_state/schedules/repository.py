"""Scheduled jobs: each occurrence is handed to the inbox once, whichever node is first.

An occurrence and its inbox row are inserted in one transaction, together with the job's next
time. That changes only if it is still the one that was read, so of several nodes one hands an
occurrence over. The inbox delivers the row to one process at a time. A run starts only from the
state `waiting`, in a transaction that requires the claim of the inbox row: an occurrence that
was started and not finished is never started again.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from hermes_core.errors import StoreError, UsageError
from hermes_state.delivery import inbox
from hermes_state.repository import Repository
from hermes_state.schedules.rows import (
    CRON,
    JOB_COLUMNS,
    OCCURRENCE_COLUMNS,
    JobTotals,
    Occurrence,
    ScheduledJob,
    encode,
)
from hermes_state.sessions import rows as sessions

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from hermes_state.delivery.rows import MessagePayload
    from hermes_state.engine.transaction import Reader, Tx
    from hermes_state.engine.values import SqlValue
    from hermes_state.schedules.rows import NewJob, OccurrenceState, RunUsage

    # Returns the payload of the inbox row of an occurrence.
    EncodeRun = Callable[[Occurrence], MessagePayload]

SESSION_KEY: Final = "agent:main:cron:job:{job_id}"
MAX_JOBS_PER_PERSON: Final = 200
MAX_DUE_JOBS: Final = 100
DAY_SECONDS: Final = 86400.0

_NAMES = " ".join(JOB_COLUMNS.split()).removeprefix("job_id, ")
INSERT_JOB = f"""
    INSERT INTO hermes_scheduled_job ({_NAMES})
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""  # noqa: S608 - own names
FIND_ORIGIN = "SELECT job_id FROM hermes_scheduled_job WHERE origin = ?"
COUNT_OF_PERSON = """
    SELECT count(*) FROM hermes_scheduled_job
    WHERE platform = ? AND user_id = ? AND state <> 'done'
"""
SELECT_JOB = f"SELECT {JOB_COLUMNS} FROM hermes_scheduled_job WHERE job_id = ?"  # noqa: S608
SELECT_JOBS = f"""
    SELECT {JOB_COLUMNS} FROM hermes_scheduled_job ORDER BY job_id
"""  # noqa: S608 - own names
SELECT_DUE = f"""
    SELECT {JOB_COLUMNS} FROM hermes_scheduled_job
    WHERE state = 'active' AND next_at <= ? ORDER BY next_at LIMIT {MAX_DUE_JOBS}
"""  # noqa: S608 - own names
SELECT_REQUESTED = f"""
    SELECT {OCCURRENCE_COLUMNS} FROM hermes_occurrence
    WHERE state = 'requested' ORDER BY occurrence_id
"""  # noqa: S608 - own names
# Only if no other node was faster, and the job is unchanged.
ADVANCE_JOB = """
    UPDATE hermes_scheduled_job
    SET next_at = ?, runs_left = ?, state = ?, is_held = 0
    WHERE job_id = ? AND state = 'active' AND next_at = ? AND rule = ?
"""
HOLD_JOB = """
    UPDATE hermes_scheduled_job SET is_held = 1
    WHERE job_id = ? AND state = 'active' AND next_at = ? AND is_held = 0
"""
INSERT_OCCURRENCE = """
    INSERT INTO hermes_occurrence (job_id, due_at, state, is_manual, missed, ended_at)
    VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING
"""
FIND_OCCURRENCE = f"""
    SELECT {OCCURRENCE_COLUMNS} FROM hermes_occurrence WHERE job_id = ? AND due_at = ?
"""  # noqa: S608 - own names
SELECT_OCCURRENCE = f"""
    SELECT {OCCURRENCE_COLUMNS} FROM hermes_occurrence WHERE occurrence_id = ?
"""  # noqa: S608 - own names
HAND_OVER = """
    UPDATE hermes_occurrence SET state = 'waiting', inbox_id = ?
    WHERE occurrence_id = ? AND state IN ('requested', 'waiting') AND inbox_id IS NULL
"""
HISTORY = f"""
    SELECT {OCCURRENCE_COLUMNS} FROM hermes_occurrence {{condition}}
    ORDER BY due_at DESC, occurrence_id DESC LIMIT ?
"""  # noqa: S608 - own names
IS_CLAIMED = """
    SELECT 1 FROM hermes_inbox WHERE inbox_id = ? AND state = 'claimed' AND process_id = ?
"""
START_RUN = """
    UPDATE hermes_occurrence SET state = 'running', session_id = ?, started_at = ?
    WHERE occurrence_id = ? AND state = 'waiting'
"""
FINISH_RUN = """
    UPDATE hermes_occurrence SET state = ?, ended_at = ?, error = ?
    WHERE occurrence_id = ? AND state IN ('waiting', 'running')
"""
SET_USAGE = "UPDATE hermes_occurrence SET tokens = ?, dollars = ? WHERE occurrence_id = ?"
COUNT_FAILURE = """
    UPDATE hermes_scheduled_job SET failures = failures + 1 WHERE job_id = ? RETURNING failures
"""
NO_FAILURES = "UPDATE hermes_scheduled_job SET failures = 0 WHERE job_id = ? AND failures > 0"
PAUSE_JOB = """
    UPDATE hermes_scheduled_job SET state = 'paused', reason = ?
    WHERE job_id = ? AND state = 'active'
"""
RESUME = """
    UPDATE hermes_scheduled_job
    SET state = 'active', reason = '', failures = 0, is_held = 0, next_at = ?
    WHERE job_id = ? AND state = 'paused'
"""
DELETE_JOB = "DELETE FROM hermes_scheduled_job WHERE job_id = ?"
WITHDRAW_RUNS = """
    UPDATE hermes_inbox SET state = 'done', settled_at = ?, error = 'the job was removed'
    WHERE state = 'waiting' AND inbox_id IN (
        SELECT inbox_id FROM hermes_occurrence WHERE job_id = ? AND state = 'waiting')
"""
DELETE_WAITING = """
    DELETE FROM hermes_occurrence WHERE job_id = ? AND state IN ('requested', 'waiting')
"""
TOTALS = """
    SELECT job_id, sum(CASE WHEN state IN ('done', 'failed', 'interrupted') THEN 1 ELSE 0 END),
           sum(CASE WHEN state IN ('failed', 'interrupted') THEN 1 ELSE 0 END),
           sum(tokens), sum(dollars)
    FROM hermes_occurrence GROUP BY job_id
"""
LAST_STATES = """
    SELECT o.job_id, o.state, o.due_at FROM hermes_occurrence o
    JOIN (SELECT job_id, max(due_at) AS due_at FROM hermes_occurrence GROUP BY job_id) l
        ON l.job_id = o.job_id AND l.due_at = o.due_at
"""
# Conversations that a process left open when it ended right after a run.
OPEN_CONVERSATIONS = """
    SELECT o.session_id FROM hermes_occurrence o JOIN sessions s ON s.id = o.session_id
    WHERE s.ended_at IS NULL AND o.ended_at < ?
"""
FORGET_OCCURRENCES = "DELETE FROM hermes_occurrence WHERE ended_at < ?"
FORGET_JOBS = """
    DELETE FROM hermes_scheduled_job WHERE state = 'done' AND created_at < ? AND NOT EXISTS (
        SELECT 1 FROM hermes_occurrence o WHERE o.job_id = hermes_scheduled_job.job_id)
"""
EDITABLE: Final = frozenset(
    {"name", "prompt", "schedule", "rule", "zone", "catch_up", "model", "target", "runs_left",
     "next_at", "kind"}
)  # fmt: skip


class DueRuns(NamedTuple):
    """What is handed over for a job, and when it is looked at again."""

    runs: Sequence[float]
    missed: int
    last_missed: float | None
    next_at: float | None
    runs_left: int | None

    @property
    def state(self) -> str:
        """The state of the job afterwards."""
        return "active" if self.next_at is not None else "done"


def finish(tx: Tx, occurrence_id: int, state: OccurrenceState, error: str | None = None) -> bool:
    """Record the end of a run, in the transaction that settles its inbox row."""
    row = (state, tx.clock.now(), error, occurrence_id)
    return tx.execute(FINISH_RUN, row).rowcount > 0


def count_failure(tx: Tx, job_id: int) -> int:
    """Count a failed run; how many there were in a row."""
    return int(tx.value(COUNT_FAILURE, (job_id,)) or 0)


def forgive_failures(tx: Tx, job_id: int) -> None:
    """Start counting failures again after a successful run."""
    tx.run(NO_FAILURES, (job_id,))


def pause(tx: Tx, job_id: int, reason: str) -> bool:
    """Pause a job; False if it is not active."""
    return tx.execute(PAUSE_JOB, (reason, job_id)).rowcount > 0


class ScheduleRepository(Repository):
    """Scheduled jobs and their occurrences."""

    def _read(self, sql: str, values: Sequence[SqlValue] = ()) -> list[tuple[Any, ...]]:
        """The rows of a query; none in a file without these tables."""

        def read(reader: Reader) -> list[tuple[Any, ...]]:
            if "hermes_scheduled_job" not in reader.columns.tables:
                return []
            return reader.rows(sql, values)

        return self.engine.read(read)

    # Jobs

    def add(self, job: NewJob) -> ScheduledJob:
        """Store a job; one that was imported before is returned as it is."""

        def add(tx: Tx) -> ScheduledJob:
            known = tx.value(FIND_ORIGIN, (job.origin,)) if job.origin else None
            if known is None:
                count = tx.value(COUNT_OF_PERSON, (job.platform, job.user_id))
                if count >= MAX_JOBS_PER_PERSON:
                    raise UsageError(
                        f"Too many scheduled jobs ({count}). Remove some of them first."
                    )
                known = tx.insert(INSERT_JOB, job.row(tx.clock.now()), "job_id")
            return ScheduledJob.of_row(tx.rows(SELECT_JOB, (known,))[0])

        return self.engine.write(add)

    def is_imported(self, origin: str) -> bool:
        """Whether an entry of another program was imported, and its job exists."""
        return bool(self._read(FIND_ORIGIN, (origin,)))

    def all(self, *, with_done: bool = False) -> list[ScheduledJob]:
        """All jobs in the order of their numbers."""
        jobs = [ScheduledJob.of_row(row) for row in self._read(SELECT_JOBS)]
        return [job for job in jobs if with_done or job.state != "done"]

    def of_person(self, platform: str, user_id: str) -> list[ScheduledJob]:
        """The jobs of a person that are not done."""
        return [job for job in self.all() if (job.platform, job.user_id) == (platform, user_id)]

    def get(self, job_id: int) -> ScheduledJob | None:
        """The job with a number."""
        rows = self._read(SELECT_JOB, (job_id,))
        return ScheduledJob.of_row(rows[0]) if rows else None

    def edit(self, job_id: int, changes: Mapping[str, Any]) -> ScheduledJob | None:
        """Change columns of a job; None if it does not exist. A done job becomes active."""
        unknown = changes.keys() - EDITABLE
        if unknown:
            raise StoreError(f"columns of a job that cannot be changed: {sorted(unknown)}")
        values = {
            name: encode(value) if name == "target" else value for name, value in changes.items()
        }
        if values.get("next_at") is not None:
            values["is_held"] = 0
        setters = ", ".join(f"{name} = ?" for name in values)
        sql = f"UPDATE hermes_scheduled_job SET {setters} WHERE job_id = ?"  # noqa: S608 - known names

        def edit(tx: Tx) -> ScheduledJob | None:
            if values:
                tx.execute(sql, (*values.values(), job_id))
            if values.get("next_at") is not None:
                tx.execute(
                    "UPDATE hermes_scheduled_job SET state = 'active'"
                    " WHERE job_id = ? AND state = 'done'",
                    (job_id,),
                )
            row = tx.row(SELECT_JOB, (job_id,))
            return None if row is None else ScheduledJob.of_row(row)

        return self.engine.write(edit)

    def pause(self, job_id: int, reason: str) -> bool:
        """Pause a job; False if it is not active."""
        return self.engine.write(lambda tx: pause(tx, job_id, reason))

    def resume(self, job_id: int, next_at: float | None) -> bool:
        """Continue a paused job from its next occurrence; False if it is not paused."""
        return self.engine.write(lambda tx: tx.execute(RESUME, (next_at, job_id)).rowcount > 0)

    def remove(self, job_id: int) -> bool:
        """Delete a job and its waiting runs; conversations and finished runs are kept."""

        def remove(tx: Tx) -> bool:
            tx.run(WITHDRAW_RUNS, (tx.clock.now(), job_id))
            tx.run(DELETE_WAITING, (job_id,))
            return tx.execute(DELETE_JOB, (job_id,)).rowcount > 0

        return self.engine.write(remove)

    # Hand-over to the inbox

    def due(self, now: float) -> list[ScheduledJob]:
        """Active jobs whose next time has come, the longest due first."""
        return [ScheduledJob.of_row(row) for row in self._read(SELECT_DUE, (now,))]

    def requested(self) -> list[Occurrence]:
        """Runs that a person has requested and that are not in the inbox yet."""
        return [Occurrence.of_row(row) for row in self._read(SELECT_REQUESTED)]

    def request_run(self, job_id: int) -> Occurrence | None:
        """Request a run now; None if the job does not exist."""

        def request(tx: Tx) -> Occurrence | None:
            if tx.row(SELECT_JOB, (job_id,)) is None:
                return None
            now = tx.clock.now()
            tx.execute(INSERT_OCCURRENCE, (job_id, now, "requested", 1, 0, None))
            return Occurrence.of_row(tx.rows(FIND_OCCURRENCE, (job_id, now))[0])

        return self.engine.write(request)

    def hand_over(self, job: ScheduledJob, due: DueRuns, encode_run: EncodeRun) -> bool:
        """Insert the occurrences that are due, with their inbox rows; False if another node did.

        The job must be as it was read: the same next time and the same rule.
        """

        def hand_over(tx: Tx) -> bool:
            values = (due.next_at, due.runs_left, due.state, job.job_id, job.next_at, job.rule)
            if not tx.execute(ADVANCE_JOB, values).rowcount:
                return False
            if due.missed and not due.runs:
                skipped = (due.last_missed, "skipped", 0, due.missed - 1, tx.clock.now())
                tx.execute(INSERT_OCCURRENCE, (job.job_id, *skipped))
            for number, at in enumerate(due.runs):
                missed = due.missed if number == 0 else 0
                row = (job.job_id, at, "waiting", 0, missed, None)
                if tx.execute(INSERT_OCCURRENCE, row).rowcount:
                    found = tx.rows(FIND_OCCURRENCE, (job.job_id, at))[0]
                    _enqueue(tx, Occurrence.of_row(found), encode_run)
            return True

        return self.engine.write(hand_over, is_conditional=True)

    def hand_over_requested(self, occurrence: Occurrence, encode_run: EncodeRun) -> bool:
        """Insert the inbox row of a requested run; False if another node did."""

        def hand_over(tx: Tx) -> bool:
            row = tx.row(SELECT_OCCURRENCE, (occurrence.occurrence_id,))
            is_requested = row is not None and Occurrence.of_row(row).state == "requested"
            return is_requested and _enqueue(tx, occurrence, encode_run)

        return self.engine.write(hand_over, is_conditional=True)

    def hold(self, job: ScheduledJob) -> bool:
        """Note that a job that is due waits for a budget; False if that was noted before."""
        values = (job.job_id, job.next_at)
        return self.engine.write(lambda tx: tx.execute(HOLD_JOB, values).rowcount > 0)

    # Runs

    def occurrence(self, occurrence_id: int) -> Occurrence | None:
        """The occurrence with a number."""
        rows = self._read(SELECT_OCCURRENCE, (occurrence_id,))
        return Occurrence.of_row(rows[0]) if rows else None

    def start(self, occurrence: Occurrence, session_id: str, facts: Mapping[str, SqlValue]) -> bool:
        """Start a run in a new conversation; False if it was started before.

        Only for the process that has claimed its inbox row.
        """
        process_id = self.identity.process_id

        def start(tx: Tx) -> bool:
            if tx.value(IS_CLAIMED, (occurrence.inbox_id, process_id)) is None:
                raise StoreError(f"the run {occurrence.occurrence_id} is not claimed here")
            values = (session_id, tx.clock.now(), occurrence.occurrence_id)
            if not tx.execute(START_RUN, values).rowcount:
                return False
            sessions.create(tx, session_id, {"source": CRON, **facts})
            return True

        return self.engine.write(start)

    def set_usage(self, occurrence_id: int, usage: RunUsage) -> None:
        """Record what a run has used."""
        values = (usage.tokens, usage.dollars, occurrence_id)
        self.engine.write(lambda tx: tx.run(SET_USAGE, values))

    def open_conversations(self, ended_seconds_ago: float) -> list[str]:
        """Conversations that are open although their run ended this long ago."""
        before = self.clock.now() - ended_seconds_ago
        return [str(row[0]) for row in self._read(OPEN_CONVERSATIONS, (before,))]

    def history(self, job_id: int | None = None, limit: int = 50) -> list[Occurrence]:
        """Occurrences of a job, or of all; the latest first."""
        condition = "" if job_id is None else "WHERE job_id = ?"
        values = (limit,) if job_id is None else (job_id, limit)
        rows = self._read(HISTORY.format(condition=condition), values)
        return [Occurrence.of_row(row) for row in rows]

    def totals(self) -> dict[int, JobTotals]:
        """Runs, failures, usage and the latest occurrence, by job."""
        last = {int(job_id): (state, at) for job_id, state, at in self._read(LAST_STATES)}
        return {
            int(job_id): JobTotals(
                int(runs), int(failed), int(tokens), float(dollars), *last[int(job_id)]
            )
            for job_id, runs, failed, tokens, dollars in self._read(TOTALS)
        }

    def forget(self, older_than_days: float) -> None:
        """Delete occurrences that ended this long ago, and done jobs without any."""
        before = self.clock.now() - older_than_days * DAY_SECONDS

        def forget(tx: Tx) -> None:
            tx.run(FORGET_OCCURRENCES, (before,))
            tx.run(FORGET_JOBS, (before,))

        self.engine.write_upkeep(forget)


def _enqueue(tx: Tx, occurrence: Occurrence, encode_run: EncodeRun) -> bool:
    """Insert the inbox row of an occurrence."""
    inbox_id = inbox.enqueue(
        tx,
        platform=CRON,
        account="",
        chat_id=str(occurrence.job_id),
        message_id=f"occurrence:{occurrence.occurrence_id}",
        session_key=SESSION_KEY.format(job_id=occurrence.job_id),
        payload=json.dumps(encode_run(occurrence)),
    )
    return tx.execute(HAND_OVER, (inbox_id, occurrence.occurrence_id)).rowcount > 0
