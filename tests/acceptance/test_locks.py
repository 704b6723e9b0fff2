"""Three rules: one SQLite per process, no other open of the file, WAL and FULL."""

from __future__ import annotations

from pathlib import Path

import pytest

from acceptance.campaign import Contents, Worker
from hermes_core.errors import StoreError
from hermes_state import SessionDB

NEEDS_PROC = pytest.mark.skipif(
    not Path("/proc/locks").exists(), reason="this system does not show locks in /proc/locks"
)


@NEEDS_PROC
def test_no_operation_drops_the_lock(state_db, tmp_path):
    with Worker("every_operation.py", tmp_path, state_db) as worker:
        assert worker.wait() == 0, worker.error_output()
        steps = worker.reports("step")
        assert len(steps) > 40
        assert [step["name"] for step in steps if not step["locks"]] == []
        assert all("READ" in lock for step in steps for lock in step["locks"])
        # The walk ends with what must never happen, to prove that it would be seen.
        assert worker.reports("control")[0]["locks"] == []


@pytest.fixture
def hostile(state_db, tmp_path):
    with Worker("hostile.py", tmp_path, state_db) as worker:
        assert worker.wait() == 0, worker.error_output()
        yield worker


def test_a_hostile_plugin_cannot_touch_the_file(hostile, state_db):
    others = [report for report in hostile.reports() if report["kind"] not in {"refused", "alive"}]
    assert [report for report in others if report["kind"] != "skipped"] == []
    assert len(hostile.reports("refused")) >= 15
    assert hostile.reports("alive")[0]["row"] > 0
    contents = Contents(state_db)
    assert contents.integrity == [("ok",)]
    assert len(contents.rows) == 2


def test_a_second_sqlite_cannot_open_the_file(hostile):
    if hostile.reports("skipped"):
        pytest.skip("this interpreter has no SQLite of its own")
    names = [report["name"] for report in hostile.reports("refused")]
    assert len([name for name in names if "interpreter" in name]) == 5


def test_a_process_of_the_command_line_maps_one_sqlite(hermes_home, tmp_path):
    with Worker("command_line.py", tmp_path) as worker:
        assert worker.wait() == 0, worker.error_output()
        mapped = worker.reports("mapped")[0]
        assert mapped["code"] == 0
        assert mapped["module"] == "hermes_state.engine.sqlite.dbapi"
        assert len(mapped["copies"]) == 1
        assert "/apsw/" in mapped["copies"][0]


def test_the_writer_uses_a_write_ahead_log_and_waits_for_the_disk(state_db):
    with SessionDB(state_db) as db:
        assert db.engine.write(lambda tx: tx.value("PRAGMA journal_mode")) == "wal"
        full = 2
        assert db.engine.write(lambda tx: tx.value("PRAGMA synchronous")) == full


def test_the_settings_survive_a_new_connection(state_db):
    with SessionDB(state_db) as db:
        with pytest.raises(StoreError):
            db.engine.write(lambda tx: tx.discard_connection())
        assert db.engine.write(lambda tx: tx.value("PRAGMA journal_mode")) == "wal"
        full = 2
        assert db.engine.write(lambda tx: tx.value("PRAGMA synchronous")) == full
