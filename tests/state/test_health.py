"""Health checks, and the names that plugins of hermes-agent import."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import pytest

import hermes_state
from hermes_state import SessionDB
from hermes_state.engine.sqlite.driver import sqlite3
from hermes_state.upkeep.health import examine
from state.conftest import FILES_ONLY
from support.waiting import PATIENCE_SECONDS

if TYPE_CHECKING:
    from pathlib import Path


def statuses(path: Path) -> dict[str, str]:
    return {finding.name: finding.status for finding in examine(path)}


@pytest.mark.engines
def test_a_healthy_store_has_no_warnings(db_path: Path, db: SessionDB, session: str) -> None:
    db.append_message(session, "user", "x")
    assert set(statuses(db_path).values()) <= {"ok", "skipped"}


def test_a_missing_store_is_not_a_failure(tmp_path: Path) -> None:
    assert statuses(tmp_path / "none.db")["store"] == "skipped"


@FILES_ONLY
def test_an_outdated_index_is_reported_and_repaired(
    db_path: Path, db: SessionDB, session: str
) -> None:
    db.append_message(session, "user", "x")
    assert db.wait_for_index(PATIENCE_SECONDS)  # the daily repair would be faster
    with closing(sqlite3.connect(db_path, isolation_level=None)) as connection:
        connection.execute("UPDATE messages SET active = 0")
    assert statuses(db_path)["session index"] == "warning"
    assert db.statistics.repair_index() == 1
    assert statuses(db_path)["session index"] == "ok"


@FILES_ONLY
def test_open_sessions_without_an_owner_are_counted(db_path: Path, db: SessionDB) -> None:
    db.create_session("s", "cli", is_owned=False)
    finding = next(f for f in examine(db_path) if f.name == "open sessions")
    assert finding.status == "warning"
    assert finding.detail == "1 open session has no running process"


@pytest.mark.engines
def test_one_session_is_called_one_session(db_path: Path, db: SessionDB, session: str) -> None:
    db.append_message(session, "user", "x")
    details = " / ".join(finding.detail for finding in examine(db_path))
    assert ": 1 session, " in details
    assert "1 sessions" not in details


def test_damage_is_detected(hermes_home: Path) -> None:
    path = hermes_home / "state.db"
    with SessionDB(path) as db:
        db.create_session("s", "cli")
        for number in range(300):
            db.append_message("s", "user", "x" * 3000 + str(number))
        db.vacuum()
    with path.open("r+b") as file:
        file.seek(40 * 4096)
        file.write(b"\xff" * 4096 * 20)
    assert "failed" in statuses(path).values()
    assert not hermes_state._db_opens_cleanly(path)
    assert hermes_state.repair_state_db_schema(path)["problems"]


def test_vacuum_returns_free_space(hermes_home: Path) -> None:
    path = hermes_home / "state.db"
    with SessionDB(path) as db:
        db.create_session("s", "cli")
        for _ in range(200):
            db.append_message("s", "user", "x" * 10_000)
        db.trash.purge("s")
        db.vacuum()
        db.create_session("t", "cli")
        assert db.append_message("t", "user", "still works") > 0
        assert db.statistics.stats().database_bytes < 1_000_000


def test_names_that_plugins_import_exist(hermes_home: Path) -> None:
    assert hermes_home / "state.db" == hermes_state.DEFAULT_DB_PATH
    assert "no history" in hermes_state.get_last_init_error()
    assert "no history" in hermes_state.format_session_db_unavailable()
    SessionDB().close()
    assert hermes_state.get_last_init_error() is None
    assert hermes_state.is_malformed_db_error(Exception("database disk image is malformed"))
    with closing(sqlite3.connect(hermes_home / "own.db")) as connection:
        assert hermes_state.apply_wal_with_fallback(connection) == "wal"
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = hermes_state.no_such_name
