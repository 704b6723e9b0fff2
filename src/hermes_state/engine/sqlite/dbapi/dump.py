"""A database as SQL statements."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import apsw

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hermes_state.engine.sqlite.dbapi.connection import Connection

SCHEMA: Final = """
    SELECT type, name, sql FROM sqlite_master
    WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite!_%' ESCAPE '!'
    ORDER BY type != 'table', rowid
"""
SEQUENCES: Final = "SELECT name, seq FROM sqlite_sequence"


def dump_statements(connection: Connection) -> Iterator[str]:
    """The statements that create the tables, their rows, and everything else."""
    yield "BEGIN TRANSACTION;"
    schema = _plain_rows(connection, SCHEMA)
    for kind, name, sql in schema:
        if sql.upper().startswith("CREATE VIRTUAL"):
            yield "PRAGMA writable_schema=ON;"
            yield (
                "INSERT INTO sqlite_master(type,name,tbl_name,rootpage,sql) VALUES("
                f"'table',{_text(name)},{_text(name)},0,{_text(sql)});"
            )
            continue
        yield f"{sql};"
        if kind == "table":
            yield from _row_statements(connection, name)
    if _plain_rows(connection, "SELECT 1 FROM sqlite_master WHERE name = 'sqlite_sequence'"):
        yield "DELETE FROM sqlite_sequence;"
        for name, number in _plain_rows(connection, SEQUENCES):
            yield f"INSERT INTO sqlite_sequence VALUES({_text(name)},{number});"
    yield "COMMIT;"


def _row_statements(connection: Connection, table: str) -> Iterator[str]:
    quoted = _name(table)
    columns = _plain_rows(connection, f"PRAGMA table_info({quoted})")
    values = " || ',' || ".join(f"quote({_name(column[1])})" for column in columns)
    for (row,) in _plain_rows(connection, f"SELECT {values} FROM {quoted}"):  # noqa: S608
        yield f"INSERT INTO {quoted} VALUES({row});"


def _plain_rows(connection: Connection, sql: str) -> list[tuple[Any, ...]]:
    """Rows as tuples, whatever row factory the connection has."""
    cursor = apsw.Connection.cursor(connection)
    cursor.row_trace = lambda _cursor, row: row
    return list(cursor.execute(sql))


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _name(value: str) -> str:
    return '"' + value.replace('"', '""') + '"'
