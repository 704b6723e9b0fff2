"""Silent failures are in the log file, from the configured level on."""

from __future__ import annotations

import stat
import subprocess
import sys
from typing import TYPE_CHECKING

from hermes_state import SessionDB
from state.foreign_files import make_schema_16
from support.identities import act_as_dead_process
from support.waiting import PATIENCE_SECONDS

if TYPE_CHECKING:
    from pathlib import Path

    from support.command_line import Hermes


def crashed_session(home: Path) -> None:
    """Create a session of a dead process; its recovery is logged."""
    with SessionDB(home / "state.db") as db:
        act_as_dead_process(db, "gone")
        db.create_session("s", "cli")


def test_an_entry_is_written_for_the_owner_alone(hermes: Hermes, hermes_home: Path) -> None:
    crashed_session(hermes_home)
    assert hermes("sessions", "list").err == ""
    log = hermes_home / "logs" / "hermes.log"
    assert "crash recovery ended" in log.read_text()
    assert stat.S_IMODE(log.stat().st_mode) == 0o600


def test_the_chosen_level_is_honoured(hermes: Hermes, hermes_home: Path) -> None:
    (hermes_home / "config.yaml").write_text("log: {level: error}\n")
    crashed_session(hermes_home)
    hermes("sessions", "list")
    assert not (hermes_home / "logs").exists()


def test_a_quiet_command_writes_no_log(hermes: Hermes, hermes_home: Path) -> None:
    make_schema_16(hermes_home / "state.db")
    hermes("sessions", "list")
    assert not (hermes_home / "logs").exists()


def test_a_new_process_writes_its_first_entry(hermes_home: Path) -> None:
    crashed_session(hermes_home)
    script = "from hermes_cli.main import entry; entry()"
    subprocess.run(
        [sys.executable, "-I", "-c", script, "sessions", "list"],
        check=True, stdout=subprocess.DEVNULL, timeout=PATIENCE_SECONDS,
    )  # fmt: skip
    log = (hermes_home / "logs" / "hermes.log").read_text()
    assert "hermes_state.upkeep.crash_recovery" in log
    assert "crash recovery ended" in log


def test_an_entry_of_a_library_that_is_imported_later_is_written(hermes_home: Path) -> None:
    (hermes_home / "config.yaml").write_text("log: {level: warning}\n")
    script = (
        "from hermes_core import log_file\n"
        "log_file.install()\n"
        "import asyncio.log\n"
        "asyncio.log.logger.info('too little')\n"
        "asyncio.log.logger.error('of a library')\n"
    )
    finished = subprocess.run(
        [sys.executable, "-I", "-c", script],
        check=True, capture_output=True, text=True, timeout=PATIENCE_SECONDS,
    )  # fmt: skip
    assert finished.stderr == ""
    entries = (hermes_home / "logs" / "hermes.log").read_text().splitlines()
    assert [entry.rpartition(": ")[2] for entry in entries] == ["of a library"]


def test_doctor_mends_the_index(hermes: Hermes, hermes_home: Path) -> None:
    with SessionDB(hermes_home / "state.db") as db:
        db.create_session("s", "cli")
        db.append_message("s", "user", "x")
        db.engine.write(lambda tx: tx.run("UPDATE hermes_session_index SET active_count = 9"))
        db.end_session("s", "cli_close")
    assert "is outdated for s" in hermes("doctor").out
    result = hermes("doctor", "--fix")
    assert "Re-indexed 1 session." in result.err
    assert "matches the rows" in result.out
