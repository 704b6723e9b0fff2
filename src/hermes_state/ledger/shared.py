"""The ledger of a history that several machines share: tables of its database.

One process of all machines writes it at a time: it holds a lock, and writes through the
connection that holds it (`engine.postgres.exclusive`).
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, Final, TypeVar

from hermes_core.clock import SystemClock
from hermes_core.errors import StoreError
from hermes_state.engine.database import DriverError
from hermes_state.engine.engine import ENGINES
from hermes_state.engine.postgres.database import PostgresDatabase
from hermes_state.store_settings import StoreSettings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from hermes_core.history_rows import LedgerEntry
    from hermes_state.engine.postgres.connection import PostgresConnection
    from hermes_state.engine.transaction import Reader

T = TypeVar("T")

LOCK_NAME: Final = "hermes scan"
CHUNK_ROWS: Final = 500

UPSERT_SESSION: Final = """
    INSERT INTO hermes_ledger_session
        (session_id, generation, first_at, days, contribution, facts)
    VALUES (?, ?, ?, ?, ?, ?)
    ON CONFLICT (session_id) DO UPDATE SET
        generation = excluded.generation, first_at = excluded.first_at, days = excluded.days,
        contribution = excluded.contribution, facts = excluded.facts
"""
UPSERT_NOTE: Final = """
    INSERT INTO hermes_ledger_note (name, value) VALUES (?, ?)
    ON CONFLICT (name) DO UPDATE SET value = excluded.value
"""
DELETE_NOTE: Final = "DELETE FROM hermes_ledger_note WHERE name = ?"
NOTES: Final = "SELECT name, value FROM hermes_ledger_note"
SESSION_IDS: Final = "SELECT session_id FROM hermes_ledger_session"
FACTS: Final = "SELECT session_id, facts FROM hermes_ledger_session WHERE session_id = ANY(?)"
# The server knows the sizes without reading the values.
FACTS_VERSIONS: Final = """
    SELECT session_id, octet_length(facts), octet_length(contribution), generation, first_at
    FROM hermes_ledger_session
"""
CONTRIBUTIONS: Final = """
    SELECT session_id, first_at, contribution FROM hermes_ledger_session
    WHERE session_id = ANY(?)
"""
NEXT_CONTRIBUTIONS: Final = """
    SELECT session_id, first_at, contribution FROM hermes_ledger_session
    WHERE session_id > ? ORDER BY session_id LIMIT ?
"""
SESSIONS_ON_DAY: Final = (
    "SELECT session_id FROM hermes_ledger_session WHERE days @> ARRAY[?] ORDER BY session_id"
)
SIZE: Final = """
    SELECT pg_total_relation_size('hermes_ledger_session')
        + pg_total_relation_size('hermes_ledger_note')
"""


class SharedLedger:
    """The ledger of the history that `store.url` names instead of the file at *path*."""

    is_shared = True

    def __init__(self, path: Path) -> None:
        self._engine = ENGINES.acquire(
            path, read_only=False, clock=SystemClock(), settings=StoreSettings.of_home()
        )
        self._locked: PostgresConnection | None = None

    def notes(self) -> dict[str, bytes]:
        """All notes by name."""
        return dict(self._rows(NOTES))

    def save(
        self, entries: Iterable[LedgerEntry], notes: Mapping[str, bytes | None], generation: int
    ) -> None:
        """Store entries and notes in one transaction; a note of None is deleted."""
        rows = [
            (each.session_id, generation, each.first_at, list(each.days), each.contribution,
             each.facts)
            for each in entries
        ]  # fmt: skip
        kept = [(name, value) for name, value in notes.items() if value is not None]
        deleted = [(name,) for name, value in notes.items() if value is None]

        def write(connection: PostgresConnection) -> None:
            for sql, values in (
                (UPSERT_SESSION, rows),
                (UPSERT_NOTE, kept),
                (DELETE_NOTE, deleted),
            ):
                if values:
                    connection.executemany(sql, values)

        self._write(write)

    def session_ids(self, generation: int | None = None) -> list[str]:
        """IDs of the sessions in the ledger, of one generation or of all."""
        if generation is None:
            return [row[0] for row in self._rows(SESSION_IDS)]
        return [row[0] for row in self._rows(f"{SESSION_IDS} WHERE generation = ?", (generation,))]

    def count(self) -> int:
        """Number of sessions in the ledger."""
        return int(self._rows("SELECT count(*) FROM hermes_ledger_session")[0][0])

    def recorded_facts(self, session_ids: Sequence[str]) -> dict[str, bytes]:
        """Recorded facts of these sessions; unknown sessions are omitted."""
        return dict(self._rows(FACTS, (list(session_ids),)))

    def facts_versions(self) -> dict[str, tuple[float, ...]]:
        """Every session with numbers that change with its recorded facts."""
        return {row[0]: row[1:] for row in self._rows(FACTS_VERSIONS)}

    def contributions(
        self, session_ids: Sequence[str] | None = None
    ) -> Iterator[tuple[str, float, bytes]]:
        """Session, time of its first message and contribution; of all without *session_ids*."""
        if session_ids is not None:
            for start in range(0, len(session_ids), CHUNK_ROWS):
                part = list(session_ids[start : start + CHUNK_ROWS])
                yield from self._rows(CONTRIBUTIONS, (part,))
            return
        last = ""
        while rows := self._rows(NEXT_CONTRIBUTIONS, (last, CHUNK_ROWS)):
            yield from rows
            last = rows[-1][0]

    def sessions_on_day(self, day: str) -> list[str]:
        """Sessions with activity on *day*."""
        return [row[0] for row in self._rows(SESSIONS_ON_DAY, (day,))]

    def clear(self) -> None:
        """Delete all entries and notes."""

        def write(connection: PostgresConnection) -> None:
            connection.execute("DELETE FROM hermes_ledger_session")
            connection.execute("DELETE FROM hermes_ledger_note")

        self._write(write)

    @contextlib.contextmanager
    def try_lock(self) -> Iterator[bool]:
        """Try to lock the ledger against the processes of all machines; whether it succeeded.

        The server releases the lock when the process ends.
        """
        with contextlib.ExitStack() as stack:
            with self._translated():
                locked = stack.enter_context(self._database.exclusive(LOCK_NAME))
            self._locked = locked
            try:
                yield locked is not None
            finally:
                self._locked = None

    def size(self) -> int:
        """Bytes on the server's disk."""
        return int(self._rows(SIZE)[0][0])

    def close(self) -> None:
        """Release the database."""
        ENGINES.release(self._engine)

    @property
    def _database(self) -> PostgresDatabase:
        database = self._engine.database
        if not isinstance(database, PostgresDatabase):
            raise StoreError(f"{database.place} is not shared")
        return database

    def _rows(self, sql: str, values: Sequence[Any] = ()) -> list[Any]:
        def read(reader: Reader) -> list[Any]:
            return reader.rows(sql, values)

        return self._engine.read(read)

    def _write(self, work: Callable[[PostgresConnection], None]) -> None:
        connection = self._locked
        if connection is None:
            raise StoreError("the statistics ledger is written only while it is locked")
        with self._translated():
            connection.execute("BEGIN")
            try:
                work(connection)
            except BaseException:
                with contextlib.suppress(DriverError):  # a lost connection: the server rolls back
                    connection.execute("ROLLBACK")
                raise
            connection.execute("COMMIT")

    @contextlib.contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except DriverError as error:
            raise self._engine.database.to_store_error(error) from error
