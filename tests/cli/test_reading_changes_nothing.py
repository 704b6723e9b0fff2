"""Commands that read leave the history byte by byte as it is, whoever wrote it."""

from __future__ import annotations

import hashlib
import json
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
    write_as_hermes_agent,
)

if TYPE_CHECKING:
    from pathlib import Path

    from support.command_line import Hermes

READ_COMMANDS = (
    ["sessions", "list"],
    ["sessions", "list", "--all", "--json"],
    ["sessions", "stats"],
    ["sessions", "show", "s1"],
    ["sessions", "search", "hello"],
    ["sessions", "export", "-", "--all"],
    ["achievements"],
    ["doctor"],
    ["gateway", "status"],
    ["gateway", "channels"],
    ["hooks", "log"],
)


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def journal_bytes(path: Path) -> bytes:
    """The file format numbers: 1 for a rollback journal, 2 for a write-ahead log."""
    return path.read_bytes()[18:20]


def foreign_history(path: Path, mode: str) -> None:
    make_schema_16(path)
    rows = [foreign_session(f"s{n}", float(n)) for n in range(3)]
    rows += [foreign_message(f"s{n}", "user", f"hello {n}", float(n)) for n in range(3)]
    write_as_hermes_agent(path, rows)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(f"PRAGMA journal_mode = {mode}")


def own_history(path: Path) -> None:
    with SessionDB(path) as db:
        db.create_session("s1", "cli")
        db.append_message("s1", "user", "hello 1")
        db.end_session("s1", "cli_close")


@pytest.mark.parametrize("arguments", READ_COMMANDS, ids=" ".join)
@pytest.mark.parametrize("kind", ["DELETE", "WAL", "own"])
def test_a_read_command_changes_no_byte(
    hermes: Hermes, hermes_home: Path, kind: str, arguments: list[str]
) -> None:
    path = hermes_home / "state.db"
    own_history(path) if kind == "own" else foreign_history(path, kind)
    path.chmod(0o600)
    before = digest(path)
    finished = hermes(*arguments)
    assert finished.code == 0, finished.err
    assert digest(path) == before
    assert not (hermes_home / "state.db-wal").exists() or kind != "DELETE"


def test_a_foreign_history_keeps_its_journal_mode_when_it_is_continued(
    hermes: Hermes, hermes_home: Path
) -> None:
    path = hermes_home / "state.db"
    foreign_history(path, "DELETE")
    for _ in range(2):
        assert hermes("sessions", "rename", "s1", "Another name").code == 0
        assert journal_bytes(path) == b"\x01\x01"
    assert "Another name" in hermes("sessions", "list").out
    journal = next(line for line in hermes("doctor").out.splitlines() if "journal mode" in line)
    assert "delete" in journal


def test_the_owner_can_ask_for_a_write_ahead_log(hermes: Hermes, hermes_home: Path) -> None:
    path = hermes_home / "state.db"
    foreign_history(path, "DELETE")
    assert hermes("config", "set", "store.journal_mode", "wal").code == 0
    assert hermes("sessions", "rename", "s1", "Another name").code == 0
    assert journal_bytes(path) == b"\x02\x02"


def test_a_restored_history_of_hermes_uses_a_write_ahead_log(
    hermes: Hermes, hermes_home: Path, tmp_path: Path
) -> None:
    path = hermes_home / "state.db"
    own_history(path)
    backup = str(tmp_path / "b.zip")
    assert hermes("backup", backup).code == 0
    path.unlink()
    assert hermes("restore", backup, "--yes").code == 0
    assert hermes("sessions", "rename", "s1", "Another name").code == 0
    assert journal_bytes(path) == b"\x02\x02"


@pytest.mark.parametrize("name", ["state-schema16.db", "state-schema26.db"])
def test_a_history_of_hermes_agent_is_listed_without_a_change(
    hermes: Hermes, hermes_home: Path, shared_data: Path, name: str
) -> None:
    path = hermes_home / "state.db"
    for suffix in ("", "-wal"):
        if (shared_data / f"{name}{suffix}").exists():
            shutil.copyfile(shared_data / f"{name}{suffix}", f"{path}{suffix}")
    path.chmod(0o600)
    before = digest(path)
    assert hermes("sessions", "list").code == 0
    assert digest(path) == before


def test_what_another_program_wrote_is_listed_at_once(hermes: Hermes, hermes_home: Path) -> None:
    path = hermes_home / "state.db"
    own_history(path)
    with SessionDB(path) as db:
        db.create_session("s2", "cli")
        db.append_message("s2", "user", "hello 2")
        db.end_session("s2", "cli_close")
    far = 4_000_000_000.0
    write_as_hermes_agent(path, [foreign_message("s1", "user", "of another program", far)])
    rows = json.loads(hermes("sessions", "list", "--json").out)
    assert (rows[0]["id"], rows[0]["last_active"]) == ("s1", far)
