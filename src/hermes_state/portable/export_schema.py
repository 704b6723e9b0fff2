"""Columns of a new file, and the encoding of values in exports.

Files of different releases have different columns. A value that equals the default of a
new file is omitted from an export, so that a column that an older file lacks and a column
that was never set look the same.

An imported value may have no column: an older file lacks it, or a parent or the origin of a copy
does not exist (yet). It is stored in `hermes_session_extra` as JSON, under a name that starts with
`kept.`, and the next export includes it as if it were a column. Nothing else reads it.
"""

from __future__ import annotations

import contextlib
import functools
import json
import math
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from hermes_core.json_values import text_in
from hermes_state.engine.sqlite import driver
from hermes_state.schema.base import BASE_TABLES
from hermes_state.sessions import labels
from hermes_state.sessions.rows import UPSERT_EXTRA

if TYPE_CHECKING:
    from hermes_core.json_values import JsonData, JsonObject, JsonValue
    from hermes_state.engine.transaction import Reader, Tx
    from hermes_state.engine.values import SqlValue

    ColumnRow = dict[str, SqlValue]  # a row by the names of its columns, which differ between files
    from collections.abc import Mapping

# Columns that are meaningful only within one file.
SESSION_INTERNAL: Final = frozenset({"system_prompt_hash"})
MESSAGE_INTERNAL: Final = frozenset({"id", "session_id"})
USAGE_INTERNAL: Final = frozenset({"session_id"})

_NUMBERS: Final[Mapping[str, type]] = {"INTEGER": int, "REAL": float}
_ENCODER: Final = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False)


class ExportColumn(NamedTuple):
    """A column of a new file."""

    kind: str
    is_required: bool
    default: Any

    def is_default(self, value: Any) -> bool:
        """Whether *value* is the value of a row that does not set this column."""
        if value is None and self.is_required:
            return True  # older programs store NULL in some NOT NULL columns
        return type(value) is type(self.default) and value == self.default

    def from_text(self, text: Any) -> Any:
        """A value that was stored as text, in the type of the column."""
        number = _NUMBERS.get(self.kind)
        if number is None or not isinstance(text, str):
            return text
        with contextlib.suppress(ValueError):
            return number(text)
        return text


UNKNOWN_COLUMN: Final = ExportColumn("", is_required=False, default=None)


@functools.cache
def columns_of(table: str) -> dict[str, ExportColumn]:
    """Columns of a table in a new file."""
    with contextlib.closing(driver.connect(":memory:", 1)) as connection:
        for statement in BASE_TABLES:
            connection.execute(statement)
        rows = connection.execute(
            'SELECT name, type, "notnull", dflt_value FROM pragma_table_info(?)', (table,)
        ).fetchall()
    return {
        name: ExportColumn(kind, bool(rule), _parse_default(text))
        for name, kind, rule, text in rows
    }


def _parse_default(text: str | None) -> Any:
    if text is None:
        return None
    return text.strip("'") if text.startswith("'") else int(text)


def without_defaults(table: str, row: Mapping[str, SqlValue]) -> ColumnRow:
    """The values of a row that differ from the defaults."""
    known = columns_of(table)
    return {
        name: value
        for name, value in row.items()
        if not known.get(name, UNKNOWN_COLUMN).is_default(value)
    }


def to_json(value: Any) -> str:
    """JSON in the canonical form of exports: sorted, without spaces, ASCII."""
    return _ENCODER.encode(value).replace("\x7f", "\\u007f")


def to_plain(value: SqlValue) -> JsonValue:
    """A column value as a JSON value."""
    if isinstance(value, bytes):
        return {"hex": value.hex()}
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": repr(value)}
    return value


def from_plain(value: JsonValue) -> SqlValue:
    """The inverse of `to_plain`; raises ValueError for other values."""
    if isinstance(value, list):
        raise ValueError(f"{value!r} is not a column value")  # noqa: TRY004 - as below
    if not isinstance(value, dict):
        return value
    if value.keys() == {"hex"}:
        return bytes.fromhex(text_in(value, "hex"))
    if value.keys() == {"float"}:
        return float(text_in(value, "float"))
    raise ValueError(f"{value!r} is not a column value")


def row_to_plain(row: Mapping[str, SqlValue]) -> JsonObject:
    """A row with all values as JSON values."""
    return {name: to_plain(value) for name, value in row.items()}


EXTRA_PREFIX: Final = "kept."
PARENT_NAME: Final = "kept.parent"
USAGE_NAME: Final = "kept.usage"
SESSION_PREFIX: Final = "kept.session."
MESSAGE_PREFIX: Final = "kept.message."
ORIGIN_PREFIX: Final = "kept.origin."
LABELS_NAME: Final = "kept.labels"  # title and archive state in another agent; not exported
INHERITED_NAME: Final = "kept.inherited"  # of a fork whose origin is not here; not exported

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
    tx.execute(UPSERT_EXTRA, (session_id, name, json.dumps(value)))


def delete_extra(tx: Tx, session_id: str, name: str) -> None:
    """Delete a value that has been stored in its column."""
    tx.execute(DELETE_EXTRA, (session_id, name))
