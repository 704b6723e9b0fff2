"""Resolves text typed by a user to a session ID."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_core.errors import AmbiguousSessionError, SessionNotFoundError
from hermes_core.messages import has_lone_surrogate
from hermes_state.engine.dialect import DIALECT, prefix_pattern
from hermes_state.repository import Repository
from hermes_state.sessions import lineage

if TYPE_CHECKING:
    from hermes_state.engine.transaction import Reader

SESSION_BY_ID = "SELECT id FROM sessions WHERE id = ?"
BY_PREFIX = "SELECT id, title FROM sessions WHERE id >= ? AND id < ? ORDER BY id LIMIT 6"
BY_TITLE = "SELECT id FROM sessions WHERE title = ?"
BY_NATIVE_ID = """
    SELECT i.session_id FROM hermes_imported_session i JOIN sessions s ON s.id = i.session_id
    WHERE i.native_id = ? ORDER BY i.last_record_at DESC LIMIT 1
"""
BY_TITLE_PREFIX = f"""
    SELECT id, title FROM sessions WHERE title {DIALECT.like} ? ESCAPE '\\'
    ORDER BY started_at DESC LIMIT 6
"""  # noqa: S608 - own names
LAST_INDEXED = """
    SELECT session_id FROM hermes_session_index WHERE shown = 1
    ORDER BY last_activity DESC LIMIT 1
"""
IN_TRASH = "SELECT 1 FROM hermes_trash WHERE session_id = ?"
LAST_STARTED = "SELECT id FROM sessions ORDER BY started_at DESC LIMIT 1"


def resolve(reader: Reader, text: str) -> str:
    """The session identified by an ID, an ID prefix, a title, a title prefix, or 'last'.

    An imported one is also identified by the ID that it has in its agent.

    A session in the trash is identified only by its full ID.
    """
    if text == "last":
        return _last(reader)
    if has_lone_surrogate(text):  # an argument in another encoding: no stored text has it
        raise SessionNotFoundError(f"No session with ID or title {text!a}.")
    has_imports = "hermes_imported_session" in reader.columns.tables
    for sql in (SESSION_BY_ID, BY_TITLE, *([BY_NATIVE_ID] if has_imports else [])):
        session_id = reader.value(sql, (text,))
        if session_id is not None:
            return str(session_id)
    for rows in (
        reader.rows(BY_PREFIX, (text, text + "\U0010ffff")) if text else [],
        reader.rows(BY_TITLE_PREFIX, (prefix_pattern(text),)) if text else [],
    ):
        candidates = [row for row in rows if not _is_trashed(reader, row[0])]
        tips = {lineage.tip_of(reader, row[0]) for row in candidates}
        if len(candidates) == 1:
            return str(candidates[0][0])
        if len(tips) == 1:  # all are rows of one conversation
            return tips.pop()
        if candidates:
            raise AmbiguousSessionError(_ambiguous(text, candidates))
    raise SessionNotFoundError(f"No session with ID or title '{text}'. See `hermes sessions list`.")


def _is_trashed(reader: Reader, session_id: str) -> bool:
    if not reader.columns.has_own_tables:
        return False
    return (
        reader.value("SELECT 1 FROM hermes_trash WHERE session_id = ?", (session_id,)) is not None
    )


def _last(reader: Reader) -> str:
    sql = LAST_INDEXED if reader.columns.has_own_tables else LAST_STARTED
    session_id = reader.value(sql) or reader.value(LAST_STARTED)
    if session_id is None:
        raise SessionNotFoundError("no sessions yet")
    return str(session_id)


def _ambiguous(text: str, rows: list[tuple[str, str | None]]) -> str:
    lines = [f"  {each}  '{title}'" if title else f"  {each}" for each, title in rows[:5]]
    more = "\n  …" if len(rows) > 5 else ""
    return f"'{text}' matches several sessions:\n" + "\n".join(lines) + more


class LookupRepository(Repository):
    """Resolving sessions."""

    def resolve(self, text: str) -> str:
        """The session that *text* identifies.

        Raises SessionNotFoundError or AmbiguousSessionError.
        """
        return self.engine.read(lambda reader: resolve(reader, text))

    def conversation_rows(self, session_id: str) -> list[str]:
        """All session rows of the conversation that *session_id* belongs to, oldest first."""
        return self.engine.read(lambda reader: lineage.conversation_of(reader, session_id))

    def resolve_session_id(self, session_id_or_prefix: str) -> str | None:
        """The ID that equals the text, or the only one that starts with it; otherwise None."""

        prefix = session_id_or_prefix

        def find(reader: Reader) -> str | None:
            if reader.value(SESSION_BY_ID, (prefix,)) is not None:
                return prefix
            rows = reader.rows(BY_PREFIX, (prefix, prefix + "\U0010ffff")) if prefix else []
            return str(rows[0][0]) if len(rows) == 1 else None

        return self.engine.read(find)
