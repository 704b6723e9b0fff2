"""From a row to the identity of its message.

The store maps identities to rows and nothing back. For an export the way back is made
once, in a temporary database that vanishes with its connection.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Self

from hermes_state.engine import driver
from hermes_state.engine.reader_pool import read_only_uri

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

    from hermes_state.engine.engine import Engine
    from hermes_state.engine.transaction import Reader

FEW_SESSIONS: Final = 50

FILL = """
    INSERT OR REPLACE INTO identity
    SELECT message_id, uid FROM store.hermes_message {narrow} ORDER BY message_id
"""
OF_SESSIONS = "WHERE message_id IN (SELECT id FROM store.messages WHERE session_id IN ({}))"
OF_ROW = "SELECT uid FROM identity WHERE message_id = ?"
LATER = "SELECT message_id, uid FROM hermes_message WHERE message_id > ?"


class Identities:
    """The identities of the messages of some sessions, by row."""

    def __init__(self, engine: Engine, session_ids: Sequence[str]) -> None:
        self._later: dict[int, bytes] = {}
        self._through = 0
        self._connection = driver.connect("", engine.busy_seconds, uri=True)
        execute = self._connection.execute
        execute("CREATE TABLE identity (message_id INTEGER PRIMARY KEY, uid BLOB NOT NULL)")
        if engine.columns.has_own_tables and session_ids:
            execute("ATTACH ? AS store", (read_only_uri(engine.path),))
            execute("BEGIN")
            self._through = execute("SELECT coalesce(max(id), 0) FROM store.messages").fetchone()[0]
            few = list(session_ids) if len(session_ids) <= FEW_SESSIONS else []
            narrow = OF_SESSIONS.format(", ".join("?" * len(few))) if few else ""
            execute(FILL.format(narrow=narrow), few)
            execute("COMMIT")
            execute("DETACH store")

    def begin_session(self, reader: Reader, last_id: int) -> None:
        """Look at rows that were added since the way back was made."""
        self._later = {}
        if last_id > self._through and reader.columns.has_own_tables:
            self._later = dict(reader.rows(LATER, (self._through,)))

    def of_row(self, row_id: int) -> str | None:
        """The identity of the message in a row, if it has one of ours."""
        if row_id > self._through:
            found = self._later.get(row_id)
        else:
            row = self._connection.execute(OF_ROW, (row_id,)).fetchone()
            found = None if row is None else row[0]
        return None if found is None else bytes(found).hex()

    def close(self) -> None:
        """Let go of the temporary database."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
