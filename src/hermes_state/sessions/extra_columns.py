"""Facts about a session, in its column where the file has one, beside it where not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hermes_state.ledger import changes

if TYPE_CHECKING:
    from hermes_state.engine.transaction import Reader, Tx

# Columns of newer files that older ones lack, with the value a session starts with.
EXTRA_DEFAULTS: dict[str, Any] = {
    "pinned": 0,
    "hidden": 0,
    "title_source": None,
    "last_read_at": None,
    "session_key": None,
    "chat_id": None,
    "chat_type": None,
    "thread_id": None,
    "display_name": None,
    "origin_json": None,
    "profile_name": None,
    "git_branch": None,
    "git_repo_root": None,
    "expiry_finalized": 0,
}
_NUMBERS = frozenset({"pinned", "hidden", "expiry_finalized"})

PUT = """
    INSERT INTO hermes_session_extra (session_id, name, value) VALUES (?, ?, ?)
    ON CONFLICT (session_id, name) DO UPDATE SET value = excluded.value
"""
# Names with a dot are what an import kept for the next export: no facts about a session.
ALL = """
    SELECT name, value FROM hermes_session_extra WHERE session_id = ? AND instr(name, '.') = 0
"""
EVERY = "SELECT session_id, name, value FROM hermes_session_extra WHERE instr(name, '.') = 0"


def set_fact(tx: Tx, session_id: str, name: str, value: Any) -> bool:
    """Set one fact; False if there is no such session."""
    if name in changes.TELLING:
        changes.mark(tx, session_id)
    if tx.columns.session_has(name):
        sql = f"UPDATE sessions SET {name} = ? WHERE id = ?"  # noqa: S608 - a known column
        return tx.execute(sql, (value, session_id)).rowcount > 0
    if not tx.value("SELECT 1 FROM sessions WHERE id = ?", (session_id,)):
        return False
    tx.execute(PUT, (session_id, name, value))
    return True


def with_extras(reader: Reader, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Add to each session row the facts for which the file has no column."""
    lacking = {
        name: value
        for name, value in EXTRA_DEFAULTS.items()
        if not reader.columns.session_has(name)
    }
    if not lacking:
        return rows
    known = _extras(reader, rows)
    for row in rows:
        row.update(lacking)
        row.update(known.get(row["id"], {}))
    return rows


def _extras(reader: Reader, rows: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    if not reader.columns.has_own_tables:
        return {}
    found: dict[str, dict[str, Any]] = {}
    if len(rows) > 100:
        triples = reader.rows(EVERY)
    else:
        triples = [
            (row["id"], name, value)
            for row in rows
            for name, value in reader.rows(ALL, (row["id"],))
        ]
    for session_id, name, value in triples:
        number = name in _NUMBERS and value is not None
        found.setdefault(session_id, {})[name] = int(value) if number else value
    return found
