"""The ledger: what each session adds to lifetime statistics, in a separate file.

Session entries and the notes about the progress of the scan are written in one
transaction, so the file is always consistent, even after a kill.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from typing import TYPE_CHECKING, Final

from hermes_core.errors import StoreUnavailableError
from hermes_core.paths import FILE_MODE
from hermes_state.engine.sqlite.side_file import SideFile
from hermes_state.store_settings import store_url

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from hermes_core.history_rows import LedgerEntry
    from hermes_state.engine.sqlite.driver import sqlite3
    from hermes_state.ledger.shared import SharedLedger

LEDGER_LAYOUT: Final = "3"
CHUNK_ROWS: Final = 500

LEDGER_TABLES: Final = (
    "CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
    "CREATE TABLE note (name TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID",
    "CREATE TABLE session (number INTEGER PRIMARY KEY, session_id TEXT NOT NULL UNIQUE,"
    " generation INTEGER NOT NULL, first_at REAL NOT NULL, contribution BLOB NOT NULL)",
    "CREATE TABLE book (number INTEGER PRIMARY KEY, facts BLOB NOT NULL)",
    "CREATE TABLE day (day TEXT NOT NULL, number INTEGER NOT NULL, PRIMARY KEY (day, number))"
    " WITHOUT ROWID",
    "CREATE INDEX day_number ON day (number)",
)
UPSERT_SESSION: Final = """
    INSERT INTO session (session_id, generation, first_at, contribution) VALUES (?, ?, ?, ?)
    ON CONFLICT (session_id) DO UPDATE SET
        generation = excluded.generation, first_at = excluded.first_at,
        contribution = excluded.contribution
    RETURNING number
"""
REPLACE_FACTS: Final = "INSERT OR REPLACE INTO book (number, facts) VALUES (?, ?)"
UPSERT_NOTE: Final = """
    INSERT INTO note (name, value) VALUES (?, ?)
    ON CONFLICT (name) DO UPDATE SET value = excluded.value
"""
SELECT_FACTS: Final = """
    SELECT s.session_id, b.facts FROM session s JOIN book b ON b.number = s.number
    WHERE s.session_id = ?
"""
# SQLite reads the sizes without the values.
FACTS_VERSIONS: Final = """
    SELECT s.session_id, length(b.facts), length(s.contribution), s.generation, s.first_at
    FROM session s JOIN book b ON b.number = s.number
"""
CONTRIBUTIONS: Final = "SELECT session_id, first_at, contribution FROM session"
SESSIONS_ON_DAY: Final = """
    SELECT s.session_id FROM day d JOIN session s ON s.number = d.number WHERE d.day = ?
"""


class LedgerFile:
    """The ledger of one history."""

    is_shared = False

    def __init__(self, database: Path) -> None:
        name = "statistics.db" if database.name == "state.db" else f"{database.name}.statistics"
        self.path = database.with_name(name)
        self._file = SideFile(self.path, "the statistics ledger", LEDGER_LAYOUT, LEDGER_TABLES)

    def notes(self) -> dict[str, bytes]:
        """All notes by name."""
        return dict(self._file.run(lambda c: c.execute("SELECT name, value FROM note").fetchall()))

    def save(
        self, entries: Iterable[LedgerEntry], notes: Mapping[str, bytes | None], generation: int
    ) -> None:
        """Store entries and notes in one transaction; a note of None is deleted."""
        entries = list(entries)
        self._file.run(lambda c: _save(c, entries, notes, generation))

    def session_ids(self, generation: int | None = None) -> list[str]:
        """IDs of the sessions in the ledger, of one generation or of all."""
        where = "" if generation is None else " WHERE generation = ?"
        values = () if generation is None else (generation,)
        sql = f"SELECT session_id FROM session{where}"  # noqa: S608 - constant text
        return [row[0] for row in self._file.run(lambda c: c.execute(sql, values).fetchall())]

    def count(self) -> int:
        """Number of sessions in the ledger."""
        row = self._file.run(lambda c: c.execute("SELECT count(*) FROM session").fetchone())
        return int(row[0])

    def recorded_facts(self, session_ids: Sequence[str]) -> dict[str, bytes]:
        """Recorded facts of these sessions; unknown sessions are omitted."""

        def look_up(connection: sqlite3.Connection) -> list[tuple[str, bytes]]:
            rows = (
                connection.execute(SELECT_FACTS, (session_id,)).fetchone()
                for session_id in session_ids
            )
            return [row for row in rows if row is not None]

        return dict(self._file.run(look_up))

    def facts_versions(self) -> dict[str, tuple[float, ...]]:
        """Every session with numbers that change with its recorded facts."""
        rows = self._file.run(lambda c: c.execute(FACTS_VERSIONS).fetchall())
        return {row[0]: row[1:] for row in rows}

    def contributions(
        self, session_ids: Sequence[str] | None = None
    ) -> Iterator[tuple[str, float, bytes]]:
        """Session, time of its first message and contribution; of all without *session_ids*."""
        if session_ids is not None:
            sql = f"{CONTRIBUTIONS} WHERE session_id = ?"
            for session_id in session_ids:
                key = (session_id,)
                yield from self._file.run(lambda c, key=key: c.execute(sql, key).fetchall())  # type: ignore[misc]
            return
        last = 0
        columns = f"number, {CONTRIBUTIONS[7:]}"
        sql = f"SELECT {columns} WHERE number > ? ORDER BY number LIMIT {CHUNK_ROWS}"
        while rows := self._file.run(lambda c, last=last: c.execute(sql, (last,)).fetchall()):  # type: ignore[misc]
            yield from (row[1:] for row in rows)
            last = rows[-1][0]

    def sessions_on_day(self, day: str) -> list[str]:
        """Sessions with activity on *day*."""
        return [
            row[0]
            for row in self._file.run(lambda c: c.execute(SESSIONS_ON_DAY, (day,)).fetchall())
        ]

    def clear(self) -> None:
        """Delete the ledger file."""
        self._file.remove()

    @contextlib.contextmanager
    def try_lock(self) -> Iterator[bool]:
        """Try to lock the ledger against other processes; yields whether it succeeded.

        The kernel releases the lock when the process ends.
        """
        path = self.path.with_name(f"{self.path.name}.lock")
        try:
            handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, FILE_MODE)
        except OSError as error:
            raise StoreUnavailableError(f"cannot write {self.path}: {error}") from error
        try:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
            else:
                yield True
        finally:
            os.close(handle)

    def size(self) -> int:
        """Bytes on disk."""
        return self._file.size()

    def close(self) -> None:
        """Close the ledger file."""
        self._file.close()


def _save(
    connection: sqlite3.Connection,
    entries: list[LedgerEntry],
    notes: Mapping[str, bytes | None],
    generation: int,
) -> None:
    connection.execute("BEGIN IMMEDIATE")
    try:
        for entry in entries:
            _save_entry(connection, entry, generation)
        for name, value in notes.items():
            if value is None:
                connection.execute("DELETE FROM note WHERE name = ?", (name,))
            else:
                connection.execute(UPSERT_NOTE, (name, value))
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _save_entry(connection: sqlite3.Connection, entry: LedgerEntry, generation: int) -> None:
    values = (entry.session_id, generation, entry.first_at, entry.contribution)
    number = connection.execute(UPSERT_SESSION, values).fetchone()[0]
    connection.execute(REPLACE_FACTS, (number, entry.facts))
    connection.execute("DELETE FROM day WHERE number = ?", (number,))
    connection.executemany(
        "INSERT INTO day (day, number) VALUES (?, ?)", [(day, number) for day in entry.days]
    )


def open_ledger(path: Path) -> LedgerFile | SharedLedger:
    """The ledger of the history at *path*; close it after use."""
    if store_url(path):
        from hermes_state.engine.postgres.driver import require_driver  # noqa: PLC0415 - an extra

        require_driver()
        from hermes_state.ledger.shared import SharedLedger  # noqa: PLC0415 - an extra

        return SharedLedger(path)
    from hermes_state.ledger.file import LedgerFile  # noqa: PLC0415 - needed for files only

    return LedgerFile(path)
