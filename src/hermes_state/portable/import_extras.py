"""What an import brings and the file has no place for, kept beside the session.

An older file lacks columns; a parent or the origin of a copy may not be there (yet). Such
facts wait in `hermes_session_extra` under names that begin with `kept.`, as JSON, and the
next export gives them out as if they had been stored. Nothing else reads them.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from hermes_state.portable.export_schema import plain, stored
from hermes_state.sessions import labels

if TYPE_CHECKING:
    from hermes_state.engine.transaction import Reader, Tx

PREFIX: Final = "kept."
PARENT: Final = "kept.parent"
USAGE: Final = "kept.usage"
SESSION: Final = "kept.session."
MESSAGE: Final = "kept.message."
ORIGIN: Final = "kept.origin."

INSERT_EXTRA = """
    INSERT INTO hermes_session_extra (session_id, name, value) VALUES (?, ?, ?)
    ON CONFLICT (session_id, name) DO UPDATE SET value = excluded.value
"""
ALL = "SELECT name, value FROM hermes_session_extra WHERE session_id = ?"
FORGET = "DELETE FROM hermes_session_extra WHERE session_id = ? AND name = ?"
WAITING = """
    SELECT session_id, name, value FROM hermes_session_extra
    WHERE name = 'kept.parent' OR (name >= 'kept.origin.' AND name < 'kept.origin/')
"""


class Extras:
    """Everything that is kept beside one session."""

    def __init__(self, reader: Reader, session_id: str) -> None:
        rows = reader.rows(ALL, (session_id,)) if reader.columns.has_own_tables else []
        self.facts: dict[str, Any] = {}
        self.session: dict[str, Any] = {}
        self.messages: dict[int, dict[str, Any]] = {}
        self.origins: dict[int, Any] = {}
        self.parent: str | None = None
        self.usage: list[dict[str, Any]] = []
        for name, value in rows:
            self._take(name, value)
        if found := labels.tags_of(reader, [session_id]).get(session_id):
            self.facts[labels.TAGS_EXPORT_NAME] = json.dumps(found)

    def _take(self, name: str, value: str) -> None:
        if not name.startswith(PREFIX):
            self.facts[name] = value
        elif name == PARENT:
            self.parent = json.loads(value)
        elif name == USAGE:
            self.usage = json.loads(value)
        elif name.startswith(SESSION):
            self.session[name.removeprefix(SESSION)] = stored(json.loads(value))
        elif name.startswith(ORIGIN):
            self.origins[int(name.removeprefix(ORIGIN))] = json.loads(value)
        elif name.startswith(MESSAGE):
            row, _, column = name.removeprefix(MESSAGE).partition(".")
            self.messages.setdefault(int(row), {})[column] = stored(json.loads(value))


def keep(tx: Tx, session_id: str, name: str, value: Any) -> None:
    """Keep one fact that has no place."""
    tx.execute(INSERT_EXTRA, (session_id, name, json.dumps(plain(value))))


def forget(tx: Tx, session_id: str, name: str) -> None:
    """The fact has found its place."""
    tx.execute(FORGET, (session_id, name))
