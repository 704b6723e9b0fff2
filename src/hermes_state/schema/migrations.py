"""Numbered changes of own tables and indexes; tables of the base schema are never changed.

A file records each applied migration in `hermes_migration`. Statements are idempotent and
run in one transaction per migration. A migration with `fill` also changes existing rows:
one slice per transaction, in the background, from the recorded position.

`layout` in a file is the newest applied migration. `readable_by` is the layout that a
release must know to open the file; a migration raises it when older releases would
misread the file or damage it.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_state.schema.own import FIRST_TABLES

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes_state.engine.transaction import Tx

    # Changes a slice of rows after a position ('' at first); the next position, None at the end.
    Fill = Callable[[Tx, str], str | None]


class Migration(NamedTuple):
    """A change of own tables."""

    number: int
    name: str
    statements: tuple[str, ...]
    is_readable_before: bool = True  # older releases can open a changed file
    fill: Fill | None = None


RECORDS_TABLE: Final = """
    CREATE TABLE IF NOT EXISTS hermes_migration (
        number INTEGER PRIMARY KEY,
        name TEXT NOT NULL,
        applied_at DOUBLE PRECISION NOT NULL,
        position TEXT
    )
"""
ROLE_TABLES: Final = (
    """
    CREATE TABLE IF NOT EXISTS hermes_person_role (
        platform TEXT NOT NULL,
        user_id TEXT NOT NULL,
        role TEXT NOT NULL,
        set_at DOUBLE PRECISION NOT NULL,
        PRIMARY KEY (platform, user_id)
    ) {clustered}
    """,
    """
    CREATE TABLE IF NOT EXISTS hermes_api_key (
        name TEXT PRIMARY KEY,
        role TEXT NOT NULL,
        digest {blob} NOT NULL UNIQUE,
        created_at DOUBLE PRECISION NOT NULL
    ) {clustered}
    """,
)
FILE_TABLE: Final = """
    CREATE TABLE IF NOT EXISTS hermes_file (
        name TEXT PRIMARY KEY,
        content {blob} NOT NULL,
        stored_at DOUBLE PRECISION NOT NULL
    )
"""
# Places whose conversations work in a folder of one node.
BOUND_TABLE: Final = """
    CREATE TABLE IF NOT EXISTS hermes_bound_place (
        session_key TEXT PRIMARY KEY,
        node TEXT NOT NULL
    ) {clustered}
"""
# How often a message was interrupted together with others, and a reply was sent without receipt.
INTERRUPTION_TABLE: Final = """
    CREATE TABLE IF NOT EXISTS hermes_interruption (
        kind TEXT NOT NULL CHECK (kind IN ('inbox', 'outbox')),
        number BIGINT NOT NULL,
        count INTEGER NOT NULL,
        noted_at DOUBLE PRECISION NOT NULL,
        PRIMARY KEY (kind, number)
    ) {clustered}
"""
FAILED_INDEX: Final = (
    "CREATE INDEX IF NOT EXISTS hermes_inbox_failed ON hermes_inbox(inbox_id)"
    " WHERE state = 'failed'"
)
SCHEDULE_TABLES: Final = (
    # `requester` is the chat and user that asked for the job, as JSON; the run has their rights.
    """
    CREATE TABLE IF NOT EXISTS hermes_scheduled_job (
        job_id {identity},
        name TEXT NOT NULL,
        kind TEXT NOT NULL CHECK (kind IN ('job', 'reminder')),
        prompt TEXT NOT NULL,
        schedule TEXT NOT NULL,
        rule TEXT NOT NULL,
        zone TEXT NOT NULL,
        catch_up TEXT NOT NULL CHECK (catch_up IN ('once', 'all', 'skip')),
        model TEXT NOT NULL,
        target TEXT,
        requester TEXT NOT NULL,
        platform TEXT NOT NULL,
        user_id TEXT NOT NULL,
        role TEXT NOT NULL,
        runs_left INTEGER,
        state TEXT NOT NULL CHECK (state IN ('active', 'paused', 'done')),
        reason TEXT NOT NULL,
        next_at DOUBLE PRECISION,
        is_held INTEGER NOT NULL DEFAULT 0,
        failures INTEGER NOT NULL DEFAULT 0,
        created_at DOUBLE PRECISION NOT NULL,
        origin TEXT UNIQUE
    )
    """,
    "CREATE INDEX IF NOT EXISTS hermes_scheduled_job_due ON hermes_scheduled_job(next_at)"
    " WHERE state = 'active'",
    """
    CREATE TABLE IF NOT EXISTS hermes_occurrence (
        occurrence_id {identity},
        job_id BIGINT NOT NULL,
        due_at DOUBLE PRECISION NOT NULL,
        state TEXT NOT NULL CHECK (state IN
            ('requested', 'waiting', 'running', 'done', 'failed', 'interrupted', 'skipped')),
        is_manual INTEGER NOT NULL DEFAULT 0,
        missed INTEGER NOT NULL DEFAULT 0,
        inbox_id BIGINT,
        session_id TEXT,
        started_at DOUBLE PRECISION,
        ended_at DOUBLE PRECISION,
        tokens BIGINT NOT NULL DEFAULT 0,
        dollars DOUBLE PRECISION NOT NULL DEFAULT 0,
        error TEXT,
        UNIQUE (job_id, due_at)
    )
    """,
    "CREATE INDEX IF NOT EXISTS hermes_occurrence_requested ON hermes_occurrence(occurrence_id)"
    " WHERE state = 'requested'",
)
BUDGET_TABLES: Final = (
    """
    CREATE TABLE IF NOT EXISTS hermes_token_use (
        platform TEXT NOT NULL,
        user_id TEXT NOT NULL,
        day TEXT NOT NULL,
        tokens BIGINT NOT NULL,
        PRIMARY KEY (platform, user_id, day)
    ) {clustered}
    """,
    "CREATE INDEX IF NOT EXISTS hermes_token_use_day ON hermes_token_use(day)",
    "CREATE INDEX IF NOT EXISTS hermes_spending_day ON hermes_spending(day)",
    # Places whose messages wait until a budget is free again.
    """
    CREATE TABLE IF NOT EXISTS hermes_paused_place (
        session_key TEXT PRIMARY KEY,
        until_at DOUBLE PRECISION NOT NULL,
        platform TEXT NOT NULL,
        user_id TEXT NOT NULL
    ) {clustered}
    """,
)
API_REQUEST_TABLES: Final = (
    """
    CREATE TABLE IF NOT EXISTS hermes_api_request (
        request_id {identity},
        token TEXT NOT NULL UNIQUE,
        message_id TEXT NOT NULL,
        scope TEXT NOT NULL,
        digest TEXT NOT NULL,
        chat_id TEXT NOT NULL,
        follows BIGINT,
        asked TEXT NOT NULL,
        answered TEXT,
        streamed TEXT,
        plan TEXT NOT NULL,
        session_id TEXT,
        inbox_id BIGINT,
        state TEXT NOT NULL CHECK (state IN ('open', 'answered', 'failed')),
        retries INTEGER NOT NULL DEFAULT 0,
        created_at DOUBLE PRECISION NOT NULL,
        settled_at DOUBLE PRECISION,
        UNIQUE (chat_id, follows)
    )
    """,
    "CREATE INDEX IF NOT EXISTS hermes_api_request_answered"
    " ON hermes_api_request(answered) WHERE answered IS NOT NULL",
    "CREATE INDEX IF NOT EXISTS hermes_api_request_streamed"
    " ON hermes_api_request(streamed) WHERE streamed IS NOT NULL",
    "CREATE INDEX IF NOT EXISTS hermes_api_request_digest ON hermes_api_request(digest)",
    "CREATE INDEX IF NOT EXISTS hermes_api_request_created ON hermes_api_request(created_at)",
)
QUESTION_TABLE: Final = """
    CREATE TABLE IF NOT EXISTS hermes_open_question (
        number {identity},
        question_id TEXT NOT NULL UNIQUE,
        session_key TEXT NOT NULL,
        session_id TEXT NOT NULL,
        kind TEXT NOT NULL,
        text TEXT NOT NULL,
        choices TEXT NOT NULL,
        asked_at DOUBLE PRECISION NOT NULL,
        expires_at DOUBLE PRECISION NOT NULL,
        answer TEXT
    )
"""
IMPORT_TABLES: Final = (
    # Files of other agents, or conversations in their databases, and how far they were read.
    """
    CREATE TABLE IF NOT EXISTS hermes_import_unit (
        agent TEXT NOT NULL,
        unit_id TEXT NOT NULL,
        revision TEXT NOT NULL,
        position BIGINT NOT NULL,
        state TEXT NOT NULL,
        unknown TEXT NOT NULL,
        read_at DOUBLE PRECISION NOT NULL,
        PRIMARY KEY (agent, unit_id)
    ) {clustered}
    """,
    # Rows stay when a conversation is deleted here: it is not imported again.
    """
    CREATE TABLE IF NOT EXISTS hermes_imported_session (
        session_id TEXT PRIMARY KEY,
        agent TEXT NOT NULL,
        native_id TEXT NOT NULL,
        path TEXT NOT NULL,
        imported_at DOUBLE PRECISION NOT NULL,
        last_record_at DOUBLE PRECISION NOT NULL,
        UNIQUE (agent, native_id)
    ) {clustered}
    """,
    "CREATE INDEX IF NOT EXISTS hermes_imported_session_native"
    " ON hermes_imported_session(native_id)",
    # Requests whose usage is counted, where it is not recorded with a message.
    """
    CREATE TABLE IF NOT EXISTS hermes_imported_usage (
        usage_key {blob} PRIMARY KEY,
        session_id TEXT NOT NULL
    ) {clustered}
    """,
)
# Derived: the values by which lists are sorted; see `hermes_state.sessions.sort_values`.
SORT_TABLES: Final = (
    """
    CREATE TABLE IF NOT EXISTS hermes_session_sort (
        session_id TEXT PRIMARY KEY,
        started_at DOUBLE PRECISION NOT NULL,
        messages INTEGER NOT NULL,
        tokens INTEGER NOT NULL,
        cost DOUBLE PRECISION NOT NULL,
        tool_errors INTEGER NOT NULL DEFAULT -1
    ) {clustered}
    """,
    *(
        f"CREATE INDEX IF NOT EXISTS hermes_session_sort_{column}"
        f" ON hermes_session_sort({column}, session_id)"
        for column in ("started_at", "messages", "tokens", "cost", "tool_errors")
    ),
)
# See `hermes_state.sessions.usage`.
ANSWER_USAGE_TABLE: Final = """
    CREATE TABLE IF NOT EXISTS hermes_answer_usage (
        message_id BIGINT PRIMARY KEY,
        model TEXT NOT NULL,
        input_tokens BIGINT NOT NULL,
        output_tokens BIGINT NOT NULL,
        cache_read_tokens BIGINT NOT NULL,
        cache_write_tokens BIGINT NOT NULL,
        reasoning_tokens BIGINT NOT NULL,
        cost_usd DOUBLE PRECISION,
        cost_status TEXT NOT NULL,
        seconds DOUBLE PRECISION NOT NULL
    ) {clustered}
"""
# The processes that have an open session and wrote to it; before, there was one owner.
PARTICIPANT_TABLE: Final = (
    """
    CREATE TABLE IF NOT EXISTS hermes_participant (
        session_id TEXT NOT NULL,
        process_id TEXT NOT NULL,
        since DOUBLE PRECISION NOT NULL,
        PRIMARY KEY (session_id, process_id)
    ) {clustered}
    """,
    """
    INSERT INTO hermes_participant (session_id, process_id, since)
        SELECT session_id, process_id, since FROM hermes_owner WHERE since IS NOT NULL
        ON CONFLICT DO NOTHING
    """,
    "DELETE FROM hermes_owner",
)
COPY_INDEX: Final = (
    "CREATE INDEX IF NOT EXISTS hermes_copy_origin ON hermes_copy(origin_id) WHERE origin_id > 0"
)
# What the agent remembers; see `hermes_state.facts`. The text of a fact never changes.
FACT_TABLES: Final = (
    """
    CREATE TABLE IF NOT EXISTS hermes_fact (
        fact_id {identity},
        file TEXT NOT NULL,
        subject TEXT NOT NULL CHECK (subject IN ('user', 'project', 'machine')),
        folder TEXT NOT NULL,
        text TEXT NOT NULL,
        state TEXT NOT NULL CHECK (state IN ('active', 'superseded', 'rejected', 'stale')),
        created_by TEXT NOT NULL CHECK (created_by IN ('owner', 'agent', 'review', 'import')),
        created_at DOUBLE PRECISION NOT NULL,
        changed_at DOUBLE PRECISION NOT NULL,
        successor BIGINT,
        is_pinned INTEGER NOT NULL DEFAULT 0,
        is_listed INTEGER NOT NULL DEFAULT 0,
        times_used BIGINT NOT NULL DEFAULT 0,
        last_used_at DOUBLE PRECISION
    )
    """,
    "CREATE INDEX IF NOT EXISTS hermes_fact_file ON hermes_fact(file, fact_id)",
    # Where a quotation is in the text of a message, and its digest; not the words themselves.
    """
    CREATE TABLE IF NOT EXISTS hermes_fact_evidence (
        fact_id BIGINT NOT NULL,
        message_id BIGINT NOT NULL,
        start INTEGER NOT NULL,
        length INTEGER NOT NULL,
        digest TEXT NOT NULL,
        said_at DOUBLE PRECISION NOT NULL,
        PRIMARY KEY (fact_id, message_id, start)
    ) {clustered}
    """,
    "CREATE INDEX IF NOT EXISTS hermes_fact_evidence_message ON hermes_fact_evidence(message_id)",
    """
    CREATE TABLE IF NOT EXISTS hermes_fact_change (
        change_id {identity},
        fact_id BIGINT NOT NULL,
        event TEXT NOT NULL,
        made_at DOUBLE PRECISION NOT NULL,
        made_by TEXT NOT NULL,
        reason TEXT NOT NULL,
        earlier TEXT,
        is_undone INTEGER NOT NULL DEFAULT 0
    )
    """,
    "CREATE INDEX IF NOT EXISTS hermes_fact_change_fact ON hermes_fact_change(fact_id, change_id)",
    "CREATE INDEX IF NOT EXISTS hermes_fact_change_event ON hermes_fact_change(event)",
)
# Derived from the tool calls of sessions; see `hermes_state.calls`.
CALL_TABLES: Final = (
    """
    CREATE TABLE IF NOT EXISTS hermes_call_mark (
        session_id TEXT PRIMARY KEY,
        through BIGINT NOT NULL,
        seen BIGINT NOT NULL
    ) {clustered}
    """,
    """
    CREATE TABLE IF NOT EXISTS hermes_edit (
        message_id BIGINT NOT NULL,
        place INTEGER NOT NULL,
        session_id TEXT NOT NULL,
        edited_at DOUBLE PRECISION NOT NULL,
        path TEXT NOT NULL,
        name TEXT NOT NULL,
        lines {blob} NOT NULL,
        removed {blob} NOT NULL,
        PRIMARY KEY (message_id, place)
    )
    """,
    "CREATE INDEX IF NOT EXISTS hermes_edit_name ON hermes_edit(name)",
    "CREATE INDEX IF NOT EXISTS hermes_edit_session ON hermes_edit(session_id)",
    "CREATE INDEX IF NOT EXISTS hermes_edit_time ON hermes_edit(edited_at)",
)
OUTCOME_TABLE: Final = (
    """
    CREATE TABLE IF NOT EXISTS hermes_outcome (
        message_id BIGINT NOT NULL,
        place INTEGER NOT NULL,
        session_id TEXT NOT NULL,
        happened_at DOUBLE PRECISION NOT NULL,
        kind TEXT NOT NULL,
        subject TEXT NOT NULL,
        folder TEXT NOT NULL,
        exit_code INTEGER,
        state TEXT NOT NULL,
        fingerprint TEXT NOT NULL,
        line TEXT NOT NULL,
        inverse TEXT NOT NULL,
        error TEXT NOT NULL,
        fix TEXT NOT NULL,
        fix_id BIGINT,
        PRIMARY KEY (message_id, place)
    )
    """,
    "CREATE INDEX IF NOT EXISTS hermes_outcome_fix"
    " ON hermes_outcome(fingerprint, happened_at) WHERE fix_id IS NOT NULL",
    "CREATE INDEX IF NOT EXISTS hermes_outcome_file"
    " ON hermes_outcome(fingerprint, happened_at) WHERE kind = 'edit'",
    "CREATE INDEX IF NOT EXISTS hermes_outcome_line ON hermes_outcome(line)",
    "CREATE INDEX IF NOT EXISTS hermes_outcome_session ON hermes_outcome(session_id)",
    "DELETE FROM hermes_call_mark",  # calls are read again
)
# {blob}, {identity} and {clustered} are filled in by the dialect.
MIGRATIONS: Final = (
    Migration(1, "tables of the first release", (RECORDS_TABLE, *FIRST_TABLES)),
    Migration(2, "roles of people, keys for the API platform", ROLE_TABLES),
    Migration(3, "superseded index", ("DROP INDEX IF EXISTS hermes_outbox_unsettled",)),
    Migration(4, "files that nodes share, places bound to a node", (FILE_TABLE, BOUND_TABLE)),
    Migration(5, "interruptions and failures of messages", (INTERRUPTION_TABLE, FAILED_INDEX)),
    Migration(6, "scheduled jobs, budgets", (*SCHEDULE_TABLES, *BUDGET_TABLES)),
    Migration(7, "requests of API clients", API_REQUEST_TABLES),
    Migration(8, "questions of running turns", (QUESTION_TABLE,)),
    Migration(9, "conversations imported from other agents", IMPORT_TABLES),
    Migration(10, "values by which lists are sorted", SORT_TABLES),
    Migration(11, "tokens, cost and time of answers", (ANSWER_USAGE_TABLE,)),
    Migration(12, "participants of open sessions", PARTICIPANT_TABLE),
    Migration(13, "copies of a message", (COPY_INDEX,)),
    Migration(14, "facts of the agent's memory", FACT_TABLES),
    Migration(15, "what tool calls did", CALL_TABLES),
    Migration(16, "what came of tool calls", OUTCOME_TABLE),
)


def layout_of(migrations: tuple[Migration, ...]) -> int:
    """The layout after all of *migrations*."""
    return migrations[-1].number


def readable_by(migrations: tuple[Migration, ...]) -> int:
    """The layout that a release must know to open a file after all of *migrations*."""
    breaking = [each.number for each in migrations if not each.is_readable_before]
    return max(breaking, default=1)


def table_statements(migrations: tuple[Migration, ...]) -> list[tuple[str, str]]:
    """The tables that *migrations* create, and their templates."""
    return [
        (statement.partition("IF NOT EXISTS ")[2].partition(" ")[0], statement)
        for migration in migrations
        for statement in migration.statements
        if statement.lstrip().startswith("CREATE TABLE")
    ]


@functools.cache
def table_names(migrations: tuple[Migration, ...]) -> frozenset[str]:
    """The tables that *migrations* create."""
    return frozenset(name for name, _ in table_statements(migrations))
