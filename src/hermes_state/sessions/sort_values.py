"""The values by which lists of conversations are sorted: derived, updated when a list is read.

Appends do not write them. A list that is sorted by one of them first updates the sessions
that changed since the last list; the position of that update is in `hermes_layout`. In a
history that cannot be written to, or while the first update is under way, lists compute the
values instead, which takes longer.

`tool_errors` is counted by readers of the statistics and stored here; -1 is not counted yet.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_state.engine.dialect import DIALECT
from hermes_state.engine.values import amount_sql, number_sql
from hermes_state.repository import Repository

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hermes_state.engine.columns import Columns
    from hermes_state.engine.engine import Engine
    from hermes_state.engine.transaction import Reader, Tx
    from hermes_state.sessions.records import ListedSession

LAST_ACTIVE: Final = "last_active"
STARTED: Final = "started"
MESSAGES: Final = "messages"
TOKENS: Final = "tokens"
COST: Final = "cost"
TOOL_ERRORS: Final = "tool_errors"
SORT_COLUMNS: Final = {
    STARTED: "started_at",
    MESSAGES: "messages",
    TOKENS: "tokens",
    COST: "cost",
    TOOL_ERRORS: "tool_errors",
}
NOT_COUNTED: Final = -1
SLICE_ROWS: Final = 5000  # about 100 ms
RECENT_SESSIONS: Final = 200  # compared with their rows where other programs write
POSITION: Final = "sorted_through"

ROOT_START: Final = f"""
    coalesce(
        nullif((SELECT {amount_sql("r.started_at")} FROM sessions r WHERE r.id = i.root_id), 0),
        {amount_sql("s.started_at")})
"""  # noqa: S608 - own names
READ_POSITION: Final = "SELECT value FROM hermes_layout WHERE name = 'sorted_through'"
WRITE_POSITION: Final = """
    INSERT INTO hermes_layout (name, value) VALUES ('sorted_through', ?)
    ON CONFLICT (name) DO UPDATE SET value = excluded.value
"""
# The number of the next change: changes of transactions that are under way are read again.
NEWEST_CHANGE: Final = f"SELECT {DIALECT.newest_change}"
NEWEST_MESSAGE: Final = "SELECT max(id) FROM messages"
# With an index, SQLite scans the complete session index for the distinct values.
SESSIONS_WITH_NEW_ROWS: Final = (
    f"SELECT DISTINCT session_id FROM messages {DIALECT.not_indexed} WHERE id > ?"  # noqa: S608 - own names
)
CHANGED_SESSIONS: Final = f"SELECT session_id FROM {DIALECT.changes_after} ?"  # noqa: S608 - own names
# Purged sessions are in the index, not here.
COUNTS: Final = """
    SELECT (SELECT count(*) FROM hermes_session_index)
           - (SELECT count(*) FROM hermes_session_index WHERE shown >= 3),
           (SELECT count(*) FROM hermes_session_sort)
"""
MISSING: Final = """
    SELECT i.session_id FROM hermes_session_index i
    WHERE i.shown < 3
        AND NOT EXISTS (SELECT 1 FROM hermes_session_sort o WHERE o.session_id = i.session_id)
    LIMIT ?
"""
DELETE_PURGED: Final = """
    DELETE FROM hermes_session_sort WHERE NOT EXISTS (
        SELECT 1 FROM hermes_session_index i
        WHERE i.session_id = hermes_session_sort.session_id AND i.shown < 3)
"""
SET_TOOL_ERRORS: Final = """
    UPDATE hermes_session_sort SET tool_errors = ? WHERE session_id = ? AND tool_errors <> ?
"""


class SortPosition(NamedTuple):
    """The last message and the last change that are included."""

    message: int
    change: int


class PageOrder(NamedTuple):
    """The order of a list; rows with the same value are ordered by ID."""

    key: str = LAST_ACTIVE
    is_ascending: bool = False


BY_LAST_ACTIVITY: Final = PageOrder()


def computed_values(columns: Columns) -> dict[str, str]:
    """SQL expressions over `sessions s` and the index `i` for the values that are derived."""
    costs = [
        number_sql(f"s.{name}")
        for name in ("actual_cost_usd", "estimated_cost_usd")
        if columns.session_has(name)
    ]
    return {
        STARTED: ROOT_START,
        MESSAGES: amount_sql("s.message_count"),
        TOKENS: f"{amount_sql('s.input_tokens')} + {amount_sql('s.output_tokens')}",
        COST: f"coalesce({', '.join([*costs, '0.0'])})" if costs else "0.0",
    }


def value_of(row: ListedSession, key: str) -> float:
    """The value of a row that is not indexed."""
    session = row.session
    if key == COST:
        return session.actual_cost_usd or session.estimated_cost_usd or 0.0
    values = {
        LAST_ACTIVE: row.last_active,
        STARTED: session.started_at,
        MESSAGES: session.message_count,
        TOKENS: session.input_tokens + session.output_tokens,
    }
    return values.get(key, NOT_COUNTED)


def _upsert_sql(columns: Columns) -> str:
    values = ", ".join(computed_values(columns).values())
    return (
        "INSERT INTO hermes_session_sort (session_id, started_at, messages, tokens, cost)"  # noqa: S608
        f" SELECT s.id, {values} FROM sessions s"
        " JOIN hermes_session_index i ON i.session_id = s.id"
        " WHERE s.id IN (SELECT value FROM json_each(?))"
        " ON CONFLICT (session_id) DO UPDATE SET started_at = excluded.started_at,"
        " messages = excluded.messages, tokens = excluded.tokens, cost = excluded.cost"
    )


def _differing_sql(columns: Columns) -> str:
    started, messages, tokens, cost = computed_values(columns).values()
    return (
        "SELECT s.id FROM (SELECT session_id, root_id FROM hermes_session_index"  # noqa: S608
        " WHERE shown = 1 ORDER BY last_activity DESC LIMIT ?) i"
        f" {DIALECT.join_in_order} sessions s ON s.id = i.session_id"
        f" {DIALECT.join_in_order} hermes_session_sort o ON o.session_id = i.session_id"
        f" WHERE o.messages <> {messages} OR o.tokens <> {tokens} OR o.cost <> {cost}"
        f" OR o.started_at <> {started}"
    )


def refresh(engine: Engine) -> bool:
    """Update the values of sessions that changed; whether all values are current."""
    if engine.read_only or not engine.columns.has_own_tables:
        return False
    position, outdated = engine.read(_outdated)
    for start in range(0, len(outdated), SLICE_ROWS):
        ids = outdated[start : start + SLICE_ROWS]
        engine.write(lambda tx, ids=ids: _update(tx, ids))  # type: ignore[misc]
    while engine.read(_is_incomplete):
        if not engine.write(_complete):
            return False  # a row of the index has no session: the list removes it
    if outdated or engine.read(_stored_position) is None:
        engine.write(lambda tx: tx.execute(WRITE_POSITION, (json.dumps(position),)))
    return True


def _stored_position(reader: Reader) -> SortPosition | None:
    text = reader.value(READ_POSITION)
    return None if text is None else SortPosition(*json.loads(text))


def _outdated(reader: Reader) -> tuple[SortPosition, list[str]]:
    """The current position, and the sessions that changed since the stored one."""
    newest = reader.value(NEWEST_MESSAGE) or 0
    current = SortPosition(newest, reader.value(NEWEST_CHANGE) or 0)
    stored = _stored_position(reader)
    if stored is None:
        return current, []  # all sessions are missing, and added
    rows = reader.rows(SESSIONS_WITH_NEW_ROWS, (stored.message,))
    rows += reader.rows(CHANGED_SESSIONS, (stored.change,))
    if reader.columns.has_foreign_writers:
        rows += reader.rows(reader.prepared(_differing_sql), (RECENT_SESSIONS,))
    return current, sorted({row[0] for row in rows})


def _update(tx: Tx, session_ids: Sequence[str]) -> None:
    tx.execute(tx.prepared(_upsert_sql), (json.dumps(session_ids),))


def _is_incomplete(reader: Reader) -> bool:
    indexed, stored = reader.rows(COUNTS)[0]
    return bool(indexed != stored)


def _complete(tx: Tx) -> bool:
    """Add sessions without values, delete the values of purged ones; whether any changed."""
    indexed, stored = tx.rows(COUNTS)[0]
    missing = [row[0] for row in tx.rows(MISSING, (SLICE_ROWS,))]
    if missing:
        _update(tx, missing)
    if stored + len(missing) > indexed:
        tx.execute(DELETE_PURGED)
    return bool(tx.rows(COUNTS)[0][1] != stored)


class SortRepository(Repository):
    """Values by which lists are sorted."""

    def set_tool_errors(self, counts: Mapping[str, int]) -> None:
        """Store how many tool calls of sessions failed."""
        refresh(self.engine)
        items = [(number, session_id) for session_id, number in counts.items()]
        for start in range(0, len(items), SLICE_ROWS):
            part = items[start : start + SLICE_ROWS]
            self.engine.write(lambda tx, part=part: _set_tool_errors(tx, part))  # type: ignore[misc]


def _set_tool_errors(tx: Tx, items: Sequence[tuple[int, str]]) -> None:
    for number, session_id in items:
        tx.execute(SET_TOOL_ERRORS, (number, session_id, number))
