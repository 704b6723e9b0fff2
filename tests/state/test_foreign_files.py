"""Histories of hermes-agent: opened without migration, schema unchanged, still usable by it."""

from __future__ import annotations

import logging
import shutil
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from hermes_state import SessionDB
from hermes_state.engine.sqlite.driver import sqlite3
from state.foreign_files import (
    foreign_message,
    foreign_session,
    make_schema_16,
    make_schema_26,
    schema_of,
    write_as_hermes_agent,
)

if TYPE_CHECKING:
    from pathlib import Path

FILES = ("state-schema16.db", "state-schema26.db")


@pytest.fixture(params=FILES)
def real_file(request: pytest.FixtureRequest, shared_data: Path, hermes_home: Path) -> Path:
    path = hermes_home / "state.db"
    shutil.copyfile(shared_data / request.param, path)
    return path


def use_everything(path: Path) -> SessionDB:
    db = SessionDB(path)
    session_id = db.list_sessions_rich(limit=-1)[0]["id"]
    db.append_message(session_id, "user", "zzyzx", tool_calls=[{"id": "1"}])
    db.append_message(session_id, "assistant", "yes")
    db.edits.undo(session_id)
    db.edits.redo(session_id)
    db.end_session(session_id, "cli_close")
    db.reopen_session(session_id)
    db.set_session_title(session_id, "a title of ours")
    db.set_session_pinned(session_id)
    db.edits.branch(session_id)
    db.delete_session(session_id)
    db.trash.restore(session_id)
    return db


def version_of(path: Path) -> list[tuple[int]]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute("SELECT version FROM schema_version").fetchall()


def test_using_a_real_history_does_not_change_its_schema(real_file: Path) -> None:
    schema, version = schema_of(real_file), version_of(real_file)
    use_everything(real_file).close()
    assert schema_of(real_file) == schema
    assert version_of(real_file) == version


def test_every_session_and_message_of_a_real_history_is_read(real_file: Path) -> None:
    with closing(sqlite3.connect(real_file)) as connection:
        sessions = {row[0] for row in connection.execute("SELECT id FROM sessions")}
        count = connection.execute("SELECT count(*) FROM messages").fetchone()[0]
    with SessionDB(real_file) as db:
        rows = db.list_sessions_rich(limit=-1, include_children=True, include_archived=True)
        assert {row["id"] for row in rows} == sessions
        assert (
            sum(len(list(db.messages.iter_messages(session_id, True))) for session_id in sessions)
            == count
        )


def test_a_real_history_reads_the_same_before_and_after_indexing(real_file: Path) -> None:
    with SessionDB(real_file, read_only=True) as reader:
        before = reader.list_sessions_rich(limit=-1, order_by_last_active=True)
    with SessionDB(real_file) as db:
        after = db.list_sessions_rich(limit=-1, order_by_last_active=True)
    assert before == after


def test_the_search_index_of_hermes_agent_finds_new_messages(real_file: Path) -> None:
    use_everything(real_file).close()
    with closing(sqlite3.connect(real_file)) as connection:
        hits = connection.execute(
            "SELECT count(*) FROM messages_fts WHERE messages_fts MATCH 'zzyzx'"
        ).fetchone()
    assert hits[0] >= 1


def test_a_new_file_has_the_base_tables_and_their_version(hermes_home: Path) -> None:
    path = hermes_home / "state.db"
    with SessionDB(path) as db:
        db.create_session("s", "cli")
    write_as_hermes_agent(
        path,
        [foreign_session("theirs", 1.0, model="m"), foreign_message("theirs", "user", "x", 1.0)],
    )
    assert version_of(path) == [(26,)]
    with SessionDB(path) as db:
        assert {row["id"] for row in db.list_sessions_rich()} == {"s", "theirs"}


DAMAGES = {
    "missing shadow table": ["DROP TABLE messages_fts_data"],
    "structure record garbage": ["UPDATE messages_fts_data SET block = x'ffffffff' WHERE id = 10"],
    "structure record gone": ["DELETE FROM messages_fts_data WHERE id = 10"],
    "index emptied": ["DELETE FROM messages_fts_idx", "DELETE FROM messages_fts_data"],
    "config gone": ["DELETE FROM messages_fts_config"],
    "sizes gone": ["DELETE FROM messages_fts_docsize"],
}


@pytest.mark.parametrize("make", [make_schema_16, make_schema_26])
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_search_index_of_another_program_does_not_stop_writes(
    hermes_home: Path, make, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    path = hermes_home / "state.db"
    make(path)
    write_as_hermes_agent(path, [foreign_session("s", 1.0), foreign_message("s", "user", "x", 1.0)])
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        for statement in DAMAGES[damage]:
            connection.execute(statement)
    with caplog.at_level(logging.WARNING), SessionDB(path) as db:
        row_ids = [db.append_message("s", "user", f"message {n}") for n in range(20)]
        db.edits.undo("s")
        assert len(set(row_ids)) == 20
        assert 0 not in row_ids
    with closing(sqlite3.connect(path)) as connection:
        triggers = connection.execute(
            "SELECT count(*) FROM sqlite_master WHERE type = 'trigger'"
        ).fetchone()[0]
    if triggers == 0:
        assert "search index is damaged" in caplog.text


def test_intact_triggers_of_another_program_are_kept(hermes_home: Path) -> None:
    path = hermes_home / "state.db"
    make_schema_16(path)
    schema = schema_of(path)
    with SessionDB(path) as db:
        db.create_session("s", "cli")
        db.append_message("s", "user", "x")
    assert schema_of(path) == schema
    assert len([row for row in schema if row[0] == "trigger"]) == 6
