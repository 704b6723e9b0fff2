"""Readers and transactions of PostgreSQL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hermes_state.engine.postgres.listener import NOTIFY
from hermes_state.engine.transaction import Reader, Tx

if TYPE_CHECKING:
    from hermes_core.clock import Clock
    from hermes_state.engine.columns import Columns
    from hermes_state.engine.database import DatabaseConnection
    from hermes_state.engine.transaction import ValueKind


COLUMN_TYPES: Final = """
    SELECT column_name, data_type FROM information_schema.columns
    WHERE table_schema = current_schema() AND table_name = ?
"""
KINDS: Final[dict[str, ValueKind]] = {
    "text": "text",
    "bigint": "int",
    "double precision": "float",
    "bytea": "bytes",
}


class PostgresReader(Reader):
    """A connection for reading; each statement sees what is committed when it starts."""

    def column_kinds(self, table: str) -> dict[str, ValueKind]:
        """The kind of value that each column takes."""
        return {
            name: KINDS[kind] for name, kind in self.rows(COLUMN_TYPES, (table,)) if kind in KINDS
        }


class PostgresTx(PostgresReader, Tx):
    """A transaction. Only Hermes writes here, so the session index is never behind.

    `uid_limit` is empty, so that every identity is looked up: another process may have
    stored it.
    """

    def __init__(self, connection: DatabaseConnection, columns: Columns, clock: Clock) -> None:
        super().__init__(connection, columns, clock)
        self.newest_uid = b""

    def update_planner(self) -> None:
        """Collect the statistics of all tables, which otherwise happens about a minute later."""
        self.run("ANALYZE")

    def compact(self) -> None:
        """Make the space of deleted rows free for new ones; the files do not become smaller."""
        self.run("COMMIT")
        self.run("VACUUM (ANALYZE)")
        self.run("BEGIN")

    def wake(self, topic: str) -> None:
        """Notify the processes that listen, on all nodes, once this is committed."""
        self.run(NOTIFY, (topic,))

    def continue_numbers(self, table: str, key: str) -> None:
        """Set the sequence of the column to its highest value."""
        sql = (
            f"SELECT setval(pg_get_serial_sequence('{table}', '{key}'),"  # noqa: S608 - own names
            f" coalesce(max({key}), 1), max({key}) IS NOT NULL) FROM {table}"
        )
        self.run(sql)
