"""Opening a store: checks of the file, its folder and its format."""

from __future__ import annotations

import os
import stat
import threading
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from hermes_core.errors import (
    NetworkFileSystemError,
    NotADatabaseError,
    SchemaTooNewError,
    StoreUnavailableError,
)
from hermes_state import SessionDB
from hermes_state.engine.sqlite import database, filesystem
from hermes_state.engine.sqlite.driver import sqlite3
from hermes_state.sessions.lists import refresh_index
from hermes_state.upkeep.health import examine
from state.foreign_files import (
    foreign_message,
    foreign_session,
    make_schema_16,
    write_as_hermes_agent,
)

if TYPE_CHECKING:
    from pathlib import Path


def test_a_file_that_is_not_a_database_is_refused_and_kept(hermes_home: Path) -> None:
    path = hermes_home / "state.db"
    path.write_text("these are my notes, " * 100)
    with pytest.raises(NotADatabaseError, match="not an SQLite database"):
        SessionDB(path)
    assert path.read_text().startswith("these are my notes")


def test_a_database_of_another_program_is_refused(hermes_home: Path) -> None:
    path = hermes_home / "state.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE photos (id)")
    with pytest.raises(StoreUnavailableError, match="not a session store"):
        SessionDB(path)
    with closing(sqlite3.connect(path)) as connection:
        tables = connection.execute("SELECT name FROM sqlite_master").fetchall()
    assert tables == [("photos",)]


def test_a_newer_layout_is_refused_and_unchanged(hermes_home: Path) -> None:
    path = hermes_home / "state.db"
    SessionDB(path).close()
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("UPDATE hermes_layout SET value = '99' WHERE name = 'readable_by'")
    for read_only in (False, True):
        with pytest.raises(SchemaTooNewError, match="newer release"):
            SessionDB(path, read_only=read_only)


def test_a_newer_but_compatible_layout_is_opened(hermes_home: Path) -> None:
    path = hermes_home / "state.db"
    SessionDB(path).close()
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("UPDATE hermes_layout SET value = '99' WHERE name = 'layout'")
    SessionDB(path).close()


def test_missing_tables_are_created_in_a_file_of_an_older_release(hermes_home: Path) -> None:
    path = hermes_home / "state.db"
    with SessionDB(path) as db:
        db.create_session("s", "cli")
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("DROP TABLE hermes_delivery")
    with SessionDB(path) as db:
        db.end_session("s", "idle")
        db.boundaries.record_delivery(db.boundaries.recent()[0].event_id, "somebody")


def test_network_file_systems_that_break_locks_are_refused(tmp_path: Path) -> None:
    mounts = f"/dev/sda / ext4 rw 0 0\nserver:/x {tmp_path}/my\\040net nfs4 rw 0 0\n"
    (tmp_path / "my net" / "deep").mkdir(parents=True)
    with pytest.raises(NetworkFileSystemError, match="nfs4"):
        filesystem.check_file_system(tmp_path / "my net" / "deep", mounts)
    filesystem.check_file_system(tmp_path, mounts)
    assert filesystem.file_system_of(tmp_path / "my net2", mounts) == "ext4"


def test_a_folder_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(StoreUnavailableError):
        SessionDB(tmp_path / "file" / "state.db")


def test_a_read_only_folder_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "ro"
    folder.mkdir()
    # Root may write anywhere, so the test replaces the system call.
    monkeypatch.setattr(filesystem.os, "access", lambda path, _mode: path != folder)
    with pytest.raises(StoreUnavailableError, match="read-only"):
        SessionDB(folder / "state.db")
    assert list(folder.iterdir()) == []


def test_a_missing_history_is_reported(hermes_home: Path) -> None:
    with pytest.raises(StoreUnavailableError, match="no history"):
        SessionDB(hermes_home / "none.db", read_only=True)
    assert not (hermes_home / "none.db").exists()


def test_only_the_owner_can_read_the_files(hermes_home: Path) -> None:
    path = hermes_home / "deep" / "state.db"
    os.umask(0o022)
    with SessionDB(path) as db:
        db.create_session("s", "cli")
        for file in path.parent.iterdir():
            assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_a_closed_store_is_one_file(hermes_home: Path) -> None:
    with SessionDB(hermes_home / "state.db") as db:
        db.create_session("s", "cli")
        db.list_sessions_rich()
    assert [file.name for file in hermes_home.iterdir()] == ["state.db"]


def test_permissions_of_other_users_on_a_history_are_removed(hermes_home: Path) -> None:
    path = hermes_home / "state.db"
    make_schema_16(path)
    path.chmod(0o644)
    SessionDB(path).close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_foreign_history_is_listed_before_it_is_indexed(hermes_home: Path) -> None:
    path = hermes_home / "state.db"
    make_schema_16(path)
    rows = []
    for number in range(700):
        rows.append(foreign_session(f"s{number:04}", float(number)))
        rows.append(foreign_message(f"s{number:04}", "user", f"hello {number}", float(number)))
    write_as_hermes_agent(path, rows)
    with SessionDB(path, is_recovering=False) as db:
        assert db.index_progress() == (0, 700)
        newest = db.list_sessions_rich(limit=5, order_by_last_active=True)
        assert [row["id"] for row in newest] == [f"s{n:04}" for n in range(699, 694, -1)]
        assert newest[0]["preview"] == "hello 699"
    with SessionDB(path) as db:
        assert db.wait_for_index(30)
        assert db.index_progress() is None
        rows = db.list_sessions_rich(limit=-1)
        assert len(rows) == 700
        assert rows[-1]["preview"] == "hello 0"
    assert {f.status for f in examine(path) if f.name == "session index"} == {"ok"}


def test_interrupted_indexing_is_continued(hermes_home: Path) -> None:
    path = hermes_home / "state.db"
    make_schema_16(path)
    write_as_hermes_agent(path, [foreign_session(f"s{n}", float(n)) for n in range(300)])
    db = SessionDB(path, is_recovering=False)
    refresh_index(db.engine)
    done, total = db.index_progress()
    assert 0 < done < total
    db.close()
    with SessionDB(path) as again:
        assert again.wait_for_index(30)
        assert again.session_count() == 300


def test_many_rows_of_another_program_are_indexed_in_slices(
    hermes_home: Path,
) -> None:
    path = hermes_home / "state.db"
    with SessionDB(path) as db:
        db.create_session("s", "cli")
        db.append_message("s", "user", "ours")
    write_as_hermes_agent(
        path, [foreign_message("s", "user", str(n), float(n)) for n in range(5000)]
    )
    with SessionDB(path) as db:
        for number in range(5):
            db.append_message("s", "user", f"ours {number}")
        assert db.statistics.stats().lifetime_messages == 5006
    assert all(f.status in ("ok", "skipped", "warning") for f in examine(path))
    assert {f.status for f in examine(path) if f.name == "session index"} == {"ok"}


def test_reading_waits_for_a_history_that_is_being_created(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "CREATION_SECONDS", 30.0)
    path, ready = tmp_path / "state.db", tmp_path / "ready.db"
    SessionDB(ready).close()
    path.touch()  # as a process does that has not stored the tables yet

    def create() -> None:
        with closing(sqlite3.connect(ready)) as source, closing(sqlite3.connect(path)) as target:
            source.backup(target)

    creation = threading.Timer(0.2, create)
    creation.start()
    with SessionDB(path, read_only=True) as db:
        assert db.session_count() == 0
    creation.join()
