"""The ledger: what each session adds to lifetime statistics, in a file of its own.

A session's entry and the notes that say how far the history was followed are written in
one transaction, so the file is true at any moment, also after a kill.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from typing import TYPE_CHECKING, Final

from hermes_core.errors import StoreUnavailableError
from hermes_core.paths import FILE_MODE
from hermes_state.engine.side_file import SideFile

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from hermes_core.history_rows import LedgerEntry
    from hermes_state.engine.driver import sqlite3

LAYOUT: Final = "3"
AT_ONCE: Final = 500

TABLES: Final = (
    "CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
    "CREATE TABLE note (name TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID",
    "CREATE TABLE session (number INTEGER PRIMARY KEY, session_id TEXT NOT NULL UNIQUE,"
    " generation INTEGER NOT NULL, first_at REAL NOT NULL, contribution BLOB NOT NULL)",
    "CREATE TABLE book (number INTEGER PRIMARY KEY, facts BLOB NOT NULL)",
    "CREATE TABLE day (day TEXT NOT NULL, number INTEGER NOT NULL, PRIMARY KEY (day, number))"
    " WITHOUT ROWID",
    "CREATE INDEX day_number ON day (number)",
)
PUT_SESSION: Final = """
    INSERT INTO session (session_id, generation, first_at, contribution) VALUES (?, ?, ?, ?)
    ON CONFLICT (session_id) DO UPDATE SET
        generation = excluded.generation, first_at = excluded.first_at,
        contribution = excluded.contribution
    RETURNING number
"""
PUT_BOOK: Final = "INSERT OR REPLACE INTO book (number, facts) VALUES (?, ?)"
PUT_NOTE: Final = """
    INSERT INTO note (name, value) VALUES (?, ?)
    ON CONFLICT (name) DO UPDATE SET value = excluded.value
"""
BOOKS: Final = """
    SELECT s.session_id, b.facts FROM session s JOIN book b ON b.number = s.number
    WHERE s.session_id = ?
"""
# Sizes are known without reading what they are the sizes of.
BOOK_MARKS: Final = """
    SELECT s.session_id, length(b.facts), length(s.contribution), s.generation, s.first_at
    FROM session s JOIN book b ON b.number = s.number
"""
CONTRIBUTIONS: Final = "SELECT session_id, first_at, contribution FROM session"
ON_DAY: Final = """
    SELECT s.session_id FROM day d JOIN session s ON s.number = d.number WHERE d.day = ?
"""


class LedgerFile:
    """The ledger of one history."""

    def __init__(self, database: Path) -> None:
        name = "statistics.db" if database.name == "state.db" else f"{database.name}.statistics"
        self.path = database.with_name(name)
        self._file = SideFile(self.path, "the statistics ledger", LAYOUT, TABLES)

    def notes(self) -> dict[str, bytes]:
        """Everything noted beside the sessions."""
        return dict(self._file.run(lambda c: c.execute("SELECT name, value FROM note").fetchall()))

    def save(
        self, entries: Iterable[LedgerEntry], notes: Mapping[str, bytes | None], generation: int
    ) -> None:
        """Keep entries and notes, all or none of them; a note of None is forgotten."""
        entries = list(entries)
        self._file.run(lambda c: _save(c, entries, notes, generation))

    def known(self, generation: int | None = None) -> list[str]:
        """The sessions in the ledger, of one generation or of all."""
        where = "" if generation is None else " WHERE generation = ?"
        values = () if generation is None else (generation,)
        sql = f"SELECT session_id FROM session{where}"  # noqa: S608 - our own words
        return [row[0] for row in self._file.run(lambda c: c.execute(sql, values).fetchall())]

    def count(self) -> int:
        """How many sessions are in the ledger."""
        found = self._file.run(lambda c: c.execute("SELECT count(*) FROM session").fetchone())
        return int(found[0])

    def books(self, session_ids: Sequence[str]) -> dict[str, bytes]:
        """The books of these sessions, as far as there are any."""

        def look_up(connection: sqlite3.Connection) -> list[tuple[str, bytes]]:
            found = (connection.execute(BOOKS, (one,)).fetchone() for one in session_ids)
            return [row for row in found if row is not None]

        return dict(self._file.run(look_up))

    def book_marks(self) -> dict[str, tuple[float, ...]]:
        """Every session with numbers that change when its book does."""
        rows = self._file.run(lambda c: c.execute(BOOK_MARKS).fetchall())
        return {row[0]: row[1:] for row in rows}

    def contributions(
        self, session_ids: Sequence[str] | None = None
    ) -> Iterator[tuple[str, float, bytes]]:
        """Session, time of its first message and contribution; of all without *session_ids*."""
        if session_ids is not None:
            sql = f"{CONTRIBUTIONS} WHERE session_id = ?"
            for one in session_ids:
                yield from self._file.run(lambda c, one=one: c.execute(sql, (one,)).fetchall())  # type: ignore[misc]
            return
        last = 0
        sql = f"SELECT number, {CONTRIBUTIONS[7:]} WHERE number > ? ORDER BY number LIMIT {AT_ONCE}"
        while rows := self._file.run(lambda c, last=last: c.execute(sql, (last,)).fetchall()):  # type: ignore[misc]
            yield from (row[1:] for row in rows)
            last = rows[-1][0]

    def sessions_on(self, day: str) -> list[str]:
        """The sessions that added something on *day*."""
        return [row[0] for row in self._file.run(lambda c: c.execute(ON_DAY, (day,)).fetchall())]

    def forget(self) -> None:
        """Throw everything away."""
        self._file.remove()

    @contextlib.contextmanager
    def alone(self) -> Iterator[bool]:
        """Whether nobody else, in any process, is working on the ledger; and keep it so.

        The lock is the kernel's: it ends with the process, however that ends.
        """
        path = self.path.with_name(f"{self.path.name}.lock")
        try:
            handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, FILE_MODE)
        except OSError as error:
            raise StoreUnavailableError(f"nothing can be kept at {self.path}: {error}") from error
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
        """Let go of the ledger."""
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
            _put(connection, entry, generation)
        for name, value in notes.items():
            if value is None:
                connection.execute("DELETE FROM note WHERE name = ?", (name,))
            else:
                connection.execute(PUT_NOTE, (name, value))
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _put(connection: sqlite3.Connection, entry: LedgerEntry, generation: int) -> None:
    values = (entry.session_id, generation, entry.first_at, entry.contribution)
    number = connection.execute(PUT_SESSION, values).fetchone()[0]
    connection.execute(PUT_BOOK, (number, entry.book))
    connection.execute("DELETE FROM day WHERE number = ?", (number,))
    connection.executemany(
        "INSERT INTO day (day, number) VALUES (?, ?)", [(day, number) for day in entry.days]
    )
