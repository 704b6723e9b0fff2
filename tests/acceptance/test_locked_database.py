"""Another program holds the database for longer than we wait: messages wait in the journal."""

from __future__ import annotations

import random
import signal
import time

import pytest

from acceptance.campaign import Contents, Worker, assert_healthy, size, wait_until
from hermes_state import SessionDB

HELD_SECONDS = 3.0

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.fixture
def meet(state_db, tmp_path):
    """Start a worker, lock the database from another program, then continue the worker."""
    workers = []

    def start(way: str, seconds: float = HELD_SECONDS):
        worker = Worker("meet_lock.py", tmp_path, state_db, "one", tmp_path / "go", way)
        workers.append(worker)
        worker.wait_for("ready")
        holder = Worker("hold_lock.py", tmp_path, state_db, seconds)
        workers.append(holder)
        holder.wait_for("locked")
        (tmp_path / "go").touch()
        return worker, holder

    yield start
    for worker in workers:
        worker.kill()


def check(worker, state_db) -> dict[str, int]:
    stored, result = worker.reports("stored"), worker.reports("kept")
    contents = Contents(state_db)
    assert contents.integrity == [("ok",)]
    assert contents.missing([report["uid"] for report in (*stored, *result)]) == []
    assert contents.doubled() == 0
    by_main = [c.split()[0] for _id, _s, c in contents.rows if c.split()[1] == "main"]
    assert by_main == sorted(by_main)
    assert_healthy(state_db)
    assert list((state_db.parent / "spool").iterdir()) == []
    return {"stored": len(stored), "journaled": len(result), "missing": 0, "doubled": 0}


@pytest.mark.parametrize("way", ["on", "two stores"])
def test_messages_wait_and_are_stored_in_order(way, meet, state_db, figures):
    worker, holder = meet(way)
    worker.wait_for("recovered")
    assert worker.wait() == 0, worker.error_output()
    assert holder.wait() == 0
    result = worker.reports("kept")
    assert len(result) >= 3
    assert all("journal" in report["trouble"] for report in result)
    assert all(report["row"] == 0 for report in result)
    assert set(worker.reports("recovered")[0]["trouble"]) == {None}
    figures(f"database locked for 3 s ({way})", **check(worker, state_db))


def test_messages_of_a_killed_process_are_stored_by_the_next(meet, state_db, figures):
    worker, holder = meet("on")
    wait_until(lambda: len(worker.reports("kept")) >= 4, "messages in the journal")
    worker.kill()
    holder.wait()
    with SessionDB(state_db) as db:
        assert db.get_session("one")["end_reason"] == "crashed"
    figures("database locked, then kill -9", **check(worker, state_db))


def test_a_partially_shown_reply_is_kept_when_nothing_follows(meet, state_db):
    worker, holder = meet("stream", 1.0)
    worker.wait_for("shown")
    holder.wait()
    time.sleep(2.0)
    worker.kill()
    with SessionDB(state_db) as db:
        last = db.get_messages("one")[-1]
    assert last["content"] == "the beginning of an answer"
    assert last["finish_reason"] == "interrupted"


def test_a_store_closed_with_messages_waiting_stores_them_when_opened_again(
    meet, state_db, tmp_path
):
    worker, holder = meet("reopen")
    worker.wait_for("closed")
    holder.wait()
    (tmp_path / "go").unlink()
    assert worker.wait() == 0, worker.error_output()
    check(worker, state_db)


def test_a_handler_that_writes_while_messages_wait_does_not_hang(meet, state_db, figures):
    worker, _holder = meet("handler", size(3, 20))
    sent = 0
    wait_until(lambda: bool(worker.reports("kept")), "the first message in the journal")
    for _ in range(size(4, 40)):
        time.sleep(random.uniform(0.05, 0.4))
        if worker.reports("recovered"):
            break
        worker.process.send_signal(signal.SIGUSR1)
        sent += 1
    assert worker.wait(60) == 0, worker.error_output()
    by_handler = [f for f in worker.reports() if f.get("author") == "handler"]
    assert 0 < len(by_handler) <= sent
    figures("database locked, handler writes", signals=sent, **check(worker, state_db))
