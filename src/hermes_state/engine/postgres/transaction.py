"""Readers and transactions of PostgreSQL."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_state.engine.transaction import Reader, Tx

if TYPE_CHECKING:
    from hermes_core.clock import Clock
    from hermes_state.engine.columns import Columns
    from hermes_state.engine.database import DatabaseConnection


class PostgresReader(Reader):
    """A connection for reading; each statement sees what is committed when it starts."""


class PostgresTx(PostgresReader, Tx):
    """A transaction. Only Hermes writes here, so the session index is never behind.

    `uid_limit` is empty, so that every identity is looked up: another process may have
    stored it.
    """

    def __init__(self, connection: DatabaseConnection, columns: Columns, clock: Clock) -> None:
        super().__init__(connection, columns, clock)
        self.newest_uid = b""
