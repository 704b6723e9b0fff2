"""Reads a `state.db` of hermes-agent in another folder: any schema, and nothing is changed."""

from __future__ import annotations

from contextlib import ExitStack, closing
from typing import TYPE_CHECKING, Final, NamedTuple, Self

from hermes_core.errors import UsageError
from hermes_state.engine.sqlite.driver import sqlite3
from hermes_state.imports.foreign_database import UnchangedFile
from hermes_state.messages.rows import decode_json

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from hermes_state.engine.values import SqlValue

    ColumnValues = dict[str, SqlValue]

FILE_NAME: Final = "state.db"
BUSY_SECONDS: Final = 10.0
FETCH_ROWS: Final = 500
LISTED_COLUMNS: Final = (
    "ended_at", "end_reason", "title", "archived", "input_tokens", "output_tokens",
)  # fmt: skip
SESSION_KEYS: Final = ("id", "started_at")
MESSAGE_KEYS: Final = ("id", "session_id", "role")

TABLES = "SELECT name FROM sqlite_master WHERE type IN ('table', 'view')"
SCHEMA_VERSION = "SELECT max(version) FROM schema_version"
SESSION = "SELECT * FROM sessions WHERE id = ?"
MESSAGES = "SELECT * FROM messages WHERE session_id = ? ORDER BY id"
USAGE = "SELECT * FROM session_model_usage WHERE session_id = ?"
PROMPT = "SELECT prompt FROM system_prompts WHERE hash = ?"
ROUTES = "SELECT session_key, entry_json FROM gateway_routing"


class OriginalSession(NamedTuple):
    """A session as it is listed: when it began, and what changes when it is written to."""

    session_id: str
    started_at: float
    last_at: float
    messages: int
    revision: str


class OriginalHistory:
    """A history of hermes-agent, opened for reading; a context manager."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._stack = ExitStack()
        try:
            self._file = self._stack.enter_context(closing(UnchangedFile(path, BUSY_SECONDS)))
            self._connection = self._file.connection
            self._connection.text_factory = lambda data: data.decode(errors="replace")
            self._tables = {name for (name,) in self._connection.execute(TABLES)}
            self._session_columns = self._columns_of("sessions")
            self._message_columns = self._columns_of("messages")
        except sqlite3.Error as error:
            self._stack.close()
            raise UsageError(f"{path} cannot be read: {error}.") from error
        self._require_tables()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file, and delete a private copy of it."""
        self._stack.close()

    @property
    def is_current(self) -> bool:
        """Whether the history shows what programs have written to the file meanwhile."""
        return self._file.is_current

    @property
    def schema(self) -> int:
        """The schema version; 0 if the file has none."""
        if "schema_version" not in self._tables:
            return 0
        return int(self._connection.execute(SCHEMA_VERSION).fetchone()[0] or 0)

    def sessions(self) -> list[OriginalSession]:
        """All sessions, oldest first."""
        return [
            OriginalSession(str(name), float(at or 0.0), float(last or at or 0.0), count, revision)
            for name, at, last, count, revision in self._connection.execute(self._list_sql())
        ]

    def session(self, session_id: str) -> ColumnValues:
        """The columns of a session, its system prompt included; empty if it does not exist."""
        rows = list(self._rows(SESSION, session_id))
        if not rows:
            return {}
        digest = rows[0].get("system_prompt_hash")
        if digest and not rows[0].get("system_prompt") and "system_prompts" in self._tables:
            row = self._connection.execute(PROMPT, (digest,)).fetchone()
            rows[0]["system_prompt"] = row[0] if row else None
        return rows[0]

    def messages(self, session_id: str) -> Iterator[ColumnValues]:
        """The messages of a session with all their columns, in order."""
        return self._rows(MESSAGES, session_id)

    def usage(self, session_id: str) -> list[ColumnValues]:
        """The usage of a session by model, if the file has it."""
        if "session_model_usage" not in self._tables:
            return []
        return list(self._rows(USAGE, session_id))

    def routes(self) -> dict[str, object]:
        """The routes of the gateway in the file, as its `sessions.json` has them."""
        if "gateway_routing" not in self._tables:
            return {}
        return {key: decode_json(text) for key, text in self._connection.execute(ROUTES)}

    def _columns_of(self, table: str) -> list[str]:
        return [row[1] for row in self._connection.execute(f"PRAGMA table_info({table})")]

    def _require_tables(self) -> None:
        has_sessions = set(SESSION_KEYS) <= set(self._session_columns)
        if not has_sessions or not set(MESSAGE_KEYS) <= set(self._message_columns):
            self._stack.close()
            raise UsageError(f"{self.path} is not a history of hermes-agent.")

    def _rows(self, sql: str, session_id: str) -> Iterator[ColumnValues]:
        cursor = self._connection.execute(sql, (session_id,))
        names = [column[0] for column in cursor.description or ()]
        while rows := cursor.fetchmany(FETCH_ROWS):
            for row in rows:
                yield dict(zip(names, row, strict=True))

    def _list_sql(self) -> str:
        """Every session with a text that differs after each change that matters."""
        of_session = [
            f"coalesce(s.{name}, '')" for name in LISTED_COLUMNS if name in self._session_columns
        ]
        of_rows = ["count(m.id)", "coalesce(max(m.id), 0)"]
        of_rows += [
            f"coalesce(sum(m.{name}), '')"
            for name in ("active", "compacted")
            if name in self._message_columns
        ]
        revision = " || ':' || ".join([*of_rows, *of_session])
        last = "max(m.timestamp)" if "timestamp" in self._message_columns else "NULL"
        return (
            f"SELECT s.id, s.started_at, {last}, count(m.id), {revision}"  # noqa: S608 - its columns
            " FROM sessions s LEFT JOIN messages m ON m.session_id = s.id"
            " GROUP BY s.id ORDER BY s.started_at, s.id"
        )
