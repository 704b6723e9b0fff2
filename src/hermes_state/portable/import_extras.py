"""Imported values that the file cannot store in its columns.

An older file lacks columns; a parent or the origin of a copy may not exist (yet). Such
values are stored in `hermes_session_extra` as JSON, under names that start with `kept.`,
and the next export includes them as if they were columns. Nothing else reads them.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from hermes_state.portable.export_schema import from_plain, to_plain
from hermes_state.sessions import labels

if TYPE_CHECKING:
    from hermes_core.json_values import JsonData, JsonObject, JsonValue
    from hermes_state.engine.transaction import Reader, Tx
    from hermes_state.engine.values import SqlValue
    from hermes_state.portable.export_schema import ColumnRow

EXTRA_PREFIX: Final = "kept."
PARENT_NAME: Final = "kept.parent"
USAGE_NAME: Final = "kept.usage"
SESSION_PREFIX: Final = "kept.session."
MESSAGE_PREFIX: Final = "kept.message."
ORIGIN_PREFIX: Final = "kept.origin."
LABELS_NAME: Final = "kept.labels"  # title and archive state in another agent; not exported
INHERITED_NAME: Final = "kept.inherited"  # of a fork whose origin is not here; not exported

INSERT_EXTRA = """
    INSERT INTO hermes_session_extra (session_id, name, value) VALUES (?, ?, ?)
    ON CONFLICT (session_id, name) DO UPDATE SET value = excluded.value
"""
SELECT_EXTRAS = "SELECT name, value FROM hermes_session_extra WHERE session_id = ?"
DELETE_EXTRA = "DELETE FROM hermes_session_extra WHERE session_id = ? AND name = ?"
PENDING_LINKS = """
    SELECT session_id, name, value FROM hermes_session_extra
    WHERE name = 'kept.parent' OR (name >= 'kept.origin.' AND name < 'kept.origin/')
"""


class Extras:
    """All extra values of a session."""

    def __init__(self, reader: Reader, session_id: str) -> None:
        rows = reader.rows(SELECT_EXTRAS, (session_id,)) if reader.columns.has_own_tables else []
        self.facts: dict[str, str] = {}
        self.session: ColumnRow = {}
        self.messages: dict[int, ColumnRow] = {}
        self.origins: dict[int, JsonValue] = {}
        self.parent: str | None = None
        self.usage: list[JsonObject] = []
        for name, value in rows:
            self._read_value(name, value)
        if tags := labels.tags_of(reader, [session_id]).get(session_id):
            self.facts[labels.TAGS_EXPORT_NAME] = json.dumps(tags)

    def _read_value(self, name: str, value: str) -> None:
        if not name.startswith(EXTRA_PREFIX):
            self.facts[name] = value
        elif name == PARENT_NAME:
            self.parent = json.loads(value)
        elif name == USAGE_NAME:
            self.usage = json.loads(value)
        elif name.startswith(SESSION_PREFIX):
            self.session[name.removeprefix(SESSION_PREFIX)] = from_plain(json.loads(value))
        elif name.startswith(ORIGIN_PREFIX):
            self.origins[int(name.removeprefix(ORIGIN_PREFIX))] = json.loads(value)
        elif name.startswith(MESSAGE_PREFIX):
            row, _, column = name.removeprefix(MESSAGE_PREFIX).partition(".")
            self.messages.setdefault(int(row), {})[column] = from_plain(json.loads(value))


def save_extra(tx: Tx, session_id: str, name: str, value: SqlValue) -> None:
    """Store a value that has no column."""
    save_json(tx, session_id, name, to_plain(value))


def save_json(tx: Tx, session_id: str, name: str, value: JsonData) -> None:
    """Store data of an export for which the file has no table."""
    tx.execute(INSERT_EXTRA, (session_id, name, json.dumps(value)))


def delete_extra(tx: Tx, session_id: str, name: str) -> None:
    """Delete a value that has been stored in its column."""
    tx.execute(DELETE_EXTRA, (session_id, name))
