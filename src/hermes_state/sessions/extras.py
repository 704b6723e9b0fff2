"""Values of sessions whose columns a file of another program lacks: they are in a table of ours."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_state.sessions.records import EXTRA_COLUMNS, SessionRow, parse_extra

if TYPE_CHECKING:
    from hermes_state.engine.transaction import Reader
    from hermes_state.engine.values import SqlValue

# Names with a dot hold import data for the next export, not columns of a session.
SELECT_EXTRAS = """
    SELECT name, value FROM hermes_session_extra WHERE session_id = ? AND instr(name, '.') = 0
"""
SELECT_ALL_EXTRAS = (
    "SELECT session_id, name, value FROM hermes_session_extra WHERE instr(name, '.') = 0"
)


def lacks_extras(reader: Reader) -> bool:
    """Whether values of sessions are in a table of ours, because the file lacks their columns."""
    columns = reader.columns
    return columns.has_own_tables and not EXTRA_COLUMNS.issubset(columns.sessions)


def with_extras(reader: Reader, sessions: list[SessionRow]) -> list[SessionRow]:
    """The sessions with the values of columns that the file lacks."""
    if not lacks_extras(reader):
        return sessions
    extras = _extras(reader, sessions)
    if not extras:
        return sessions
    return [
        SessionRow._make((session._asdict() | extras[session.id]).values())
        if session.id in extras
        else session
        for session in sessions
    ]


def _extras(reader: Reader, sessions: list[SessionRow]) -> dict[str, dict[str, SqlValue]]:
    if len(sessions) > 100:
        triples = reader.rows(SELECT_ALL_EXTRAS)
    else:
        triples = [
            (session.id, name, value)
            for session in sessions
            for name, value in reader.rows(SELECT_EXTRAS, (session.id,))
        ]
    missing = EXTRA_COLUMNS.difference(reader.columns.sessions)
    extras: dict[str, dict[str, SqlValue]] = {}
    for session_id, name, value in triples:
        if name in missing:
            extras.setdefault(session_id, {})[name] = parse_extra(name, value)
    return extras
