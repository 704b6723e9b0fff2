"""Creates the tables of a new history in PostgreSQL, and applies missing migrations."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from hermes_core.errors import SchemaTooNewError, StoreUnavailableError
from hermes_state.engine.postgres import dialect
from hermes_state.engine.postgres.errors import translated
from hermes_state.engine.transaction import Columns
from hermes_state.schema import migrations as own
from hermes_state.schema.base import BASE_INDEXES, BASE_TABLES, BASE_VERSION
from hermes_state.schema.migrations import MIGRATIONS, Migration
from hermes_state.schema.own import (
    ADD_LAYOUT,
    RAISE_LAYOUT,
    READ_LAYOUT,
    RECORD_MIGRATION,
    UNFINISHED_COPY,
    refuse_unfinished_copy,
)

if TYPE_CHECKING:
    from hermes_state.engine.postgres.connection import PostgresConnection

# Held while tables are created, so that processes that start together do not do it twice.
LOCK: Final = "SELECT pg_advisory_xact_lock(hashtext(current_schema() || '.hermes'))"
TABLES: Final = "SELECT tablename FROM pg_tables WHERE schemaname = current_schema()"
COLUMN_NAMES: Final = """
    SELECT column_name FROM information_schema.columns
    WHERE table_schema = current_schema() AND table_name = ? ORDER BY ordinal_position
"""


# The outcome of a lost commit is looked up within seconds.
FORGET_CONNECTIONS: Final = "DELETE FROM hermes_commit WHERE changed_at < now() - interval '1 day'"
# Noted by triggers, so that no way of writing forgets it: messages to index, changed sessions.
SEARCH_TABLES: Final = (
    """
    CREATE TABLE IF NOT EXISTS hermes_commit (
        connection_id TEXT PRIMARY KEY,
        transaction_number BIGINT NOT NULL,
        changed_at TIMESTAMPTZ NOT NULL DEFAULT now()
    )
    """,
    "CREATE TABLE IF NOT EXISTS hermes_search_pending (message_id BIGINT PRIMARY KEY)",
    """
    CREATE TABLE IF NOT EXISTS hermes_search_words (
        message_id BIGINT NOT NULL REFERENCES messages(id) ON DELETE CASCADE,
        is_tool SMALLINT NOT NULL,
        words TEXT[] COLLATE "C" NOT NULL,
        counts SMALLINT[] NOT NULL,
        session_id TEXT COLLATE "C" NOT NULL,
        previous_id BIGINT NOT NULL,
        tokens INTEGER NOT NULL,
        PRIMARY KEY (message_id, is_tool)
    )
    """,
    """
    CREATE TABLE IF NOT EXISTS hermes_search_session (
        session_id TEXT COLLATE "C" PRIMARY KEY,
        last_id BIGINT NOT NULL,
        messages INTEGER NOT NULL,
        tokens BIGINT NOT NULL
    )
    """,
    """
    CREATE TABLE IF NOT EXISTS hermes_search_vector (
        id BIGINT PRIMARY KEY REFERENCES messages(id) ON DELETE CASCADE,
        model TEXT COLLATE "C" NOT NULL,
        data BYTEA NOT NULL
    )
    """,
    # Each search reads the list of entries that are not sorted in yet, so it is kept short.
    "CREATE INDEX IF NOT EXISTS hermes_search_words_gin ON hermes_search_words USING gin (words)"
    " WITH (gin_pending_list_limit = 256)",
    """
    CREATE TABLE IF NOT EXISTS hermes_search_term (
        term TEXT COLLATE "C" PRIMARY KEY,
        grams TEXT[] COLLATE "C" NOT NULL
    )
    """,
    "CREATE INDEX IF NOT EXISTS hermes_search_term_gin ON hermes_search_term USING gin (grams)",
    """
    CREATE OR REPLACE FUNCTION hermes_message_added() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        INSERT INTO hermes_search_pending SELECT id FROM added ON CONFLICT DO NOTHING;
        INSERT INTO hermes_change (session_id, sequence)
            SELECT DISTINCT session_id, pg_current_xact_id()::text::bigint FROM added
            ON CONFLICT (session_id) DO UPDATE SET sequence = excluded.sequence;
        RETURN NULL;
    END $$
    """,
    """
    CREATE OR REPLACE FUNCTION hermes_rebuild_search() RETURNS void LANGUAGE sql AS $$
        DELETE FROM hermes_search_words;
        DELETE FROM hermes_search_term;
        DELETE FROM hermes_search_session;
        INSERT INTO hermes_search_pending SELECT id FROM messages ON CONFLICT DO NOTHING;
    $$
    """,
    "DROP TRIGGER IF EXISTS hermes_message_added ON messages",
    """
    CREATE TRIGGER hermes_message_added AFTER INSERT ON messages
        REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION hermes_message_added()
    """,
)
# An index of an earlier layout is built again.
DISCARDED_SEARCH_TABLES: Final = (
    "DROP TABLE hermes_search_words, hermes_search_term",
    "INSERT INTO hermes_search_pending SELECT id FROM messages ON CONFLICT DO NOTHING",
)

# What each session adds to the statistics: derived, and shared by all nodes.
LEDGER_TABLE: Final = "hermes_ledger_session"
LEDGER_TABLES: Final = (
    """
    CREATE TABLE IF NOT EXISTS hermes_ledger_note (
        name TEXT COLLATE "C" PRIMARY KEY,
        value BYTEA NOT NULL
    )
    """,
    """
    CREATE TABLE IF NOT EXISTS hermes_ledger_session (
        session_id TEXT COLLATE "C" PRIMARY KEY,
        generation BIGINT NOT NULL,
        first_at DOUBLE PRECISION NOT NULL,
        days TEXT[] COLLATE "C" NOT NULL,
        contribution BYTEA NOT NULL,
        facts BYTEA NOT NULL
    )
    """,
    "CREATE INDEX IF NOT EXISTS hermes_ledger_day ON hermes_ledger_session USING gin (days)",
)


def prepare(connection: PostgresConnection, now: float, place: str) -> None:
    """Create what is missing, in one transaction."""
    tables = table_names(connection)
    is_complete = {"hermes_layout", LEDGER_TABLE} <= tables
    if is_complete and _layout_value(connection, "layout") >= _layout():
        check_layout(connection, place)
        connection.execute(FORGET_CONNECTIONS)
        return
    connection.execute("BEGIN")
    connection.execute(LOCK)
    try:
        _migrate(connection, now, place)
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise


def check_layout(connection: PostgresConnection, place: str) -> None:
    """Refuse a history that this release cannot read."""
    needed = _layout_value(connection, "readable_by")
    if needed > _layout():
        raise SchemaTooNewError(
            f"{place} was last written by a newer release of Hermes (layout {needed}, this "
            f"release knows {_layout()}). Update Hermes; nothing was changed."
        )


def check_is_finished(connection: PostgresConnection, place: str) -> None:
    """Refuse a database into which a history was copied only in part."""
    refuse_unfinished_copy(_layout_value(connection, UNFINISHED_COPY), place)


def table_names(connection: PostgresConnection) -> frozenset[str]:
    """The tables of the schema."""
    return frozenset(name for (name,) in connection.execute(TABLES))


def read_columns(connection: PostgresConnection, process_timeout_seconds: float) -> Columns:
    """The tables and columns of the history."""
    sessions = _column_names(connection, "sessions")
    return Columns(
        sessions=sessions,
        messages=_column_names(connection, "messages"),
        tables=table_names(connection),
        stamps_activity="last_activity_at" in sessions,
        has_foreign_writers=False,
        process_timeout_seconds=process_timeout_seconds,
    )


def _layout() -> int:
    return own.layout_of(MIGRATIONS)


def _layout_value(connection: PostgresConnection, name: str) -> int:
    row = connection.execute(READ_LAYOUT, (name,)).fetchone()
    return 0 if row is None else int(row[0])


def _column_names(connection: PostgresConnection, table: str) -> tuple[str, ...]:
    return tuple(name for (name,) in connection.execute(COLUMN_NAMES, (table,)))


def _migrate(connection: PostgresConnection, now: float, place: str) -> None:
    tables = table_names(connection)
    if "sessions" in tables and "hermes_layout" not in tables:
        raise StoreUnavailableError(
            f"{place} has tables of another program with the names that Hermes uses. Choose an "
            "empty database."
        )
    if "sessions" not in tables:
        for statement in (*BASE_TABLES, *BASE_INDEXES):
            connection.execute(dialect.table(statement))
        connection.execute("INSERT INTO schema_version VALUES (?)", (BASE_VERSION,))
    applied: set[int] = set()
    if "hermes_migration" in tables:
        check_layout(connection, place)
        applied = {n for (n,) in connection.execute("SELECT number FROM hermes_migration")}
    for migration in MIGRATIONS:
        if migration.number not in applied:
            _apply(connection, migration, now)
    if "hermes_search_pending" not in tables:
        _create(connection, SEARCH_TABLES)
    elif "hermes_search_session" not in tables:
        _create(connection, (*DISCARDED_SEARCH_TABLES, *SEARCH_TABLES))
    _create(connection, LEDGER_TABLES)
    connection.execute(RAISE_LAYOUT, ("layout", str(_layout())))
    connection.execute(RAISE_LAYOUT, ("readable_by", str(own.readable_by(MIGRATIONS))))
    connection.execute(ADD_LAYOUT, ("history", os.urandom(8).hex()))


def _create(connection: PostgresConnection, statements: tuple[str, ...]) -> None:
    """Create tables of PostgreSQL only."""
    for statement in statements:
        with translated():
            connection.raw.execute(statement.encode())


def _apply(connection: PostgresConnection, migration: Migration, now: float) -> None:
    for template in migration.statements:
        connection.execute(dialect.table(template))
    position = None if migration.fill is None else ""
    connection.execute(RECORD_MIGRATION, (migration.number, migration.name, now, position))
