"""A large prune does not keep anybody from writing."""

from __future__ import annotations

import time

import pytest

from acceptance.campaign import Contents, Worker, assert_healthy, percentile, size
from hermes_state import SessionDB

SESSIONS = size(500, 4000)
MESSAGES = 60
PROMISED_SECONDS = 0.5
NOISE_FACTOR = 5


@pytest.fixture
def long_history(state_db):
    with SessionDB(state_db) as db:
        for number in range(SESSIONS):
            name = f"old{number:04}"
            db.create_session(name, "old", is_owned=False)
            text = f"{name} {'word ' * 60}"
            turns = [{"role": "user", "content": f"{text}{turn}"} for turn in range(MESSAGES)]
            db.append_messages_batch(name, turns)
            db.end_session(name, "done")
    return state_db


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_a_prune_keeps_nobody_waiting(long_history, tmp_path, figures):
    writers = size(1, 2)
    stop = tmp_path / "stop"
    with SessionDB(long_history) as db:
        assert db.message_count() == SESSIONS * MESSAGES
    appenders = [
        Worker("append_steadily.py", tmp_path, long_history, f"writer{number}", stop)
        for number in range(writers)
    ]
    for worker in appenders:
        worker.wait_for("ready")
    time.sleep(size(2, 20))  # the control: the same writers on the same disk, without a prune
    with Worker("prune.py", tmp_path, long_history, "old") as prune:
        assert prune.wait(600) == 0, prune.complaints()
        began, trashed, purged = (prune.said(k)[0] for k in ("began", "trashed", "purged"))
    stop.touch()
    for worker in appenders:
        assert worker.wait() == 0, worker.complaints()
    stored = [fact for worker in appenders for fact in worker.said("stored")]
    refused = [fact for worker in appenders for fact in worker.said("refused")]
    before = [fact["waited"] for fact in stored if fact["at"] < began["at"]]
    during = [
        fact["waited"]
        for fact in stored
        if began["at"] <= fact["at"] + fact["waited"] and fact["at"] <= purged["at"]
    ]
    contents = Contents(long_history)
    missing = contents.missing([fact["uid"] for fact in stored])
    figures(
        f"prune of {SESSIONS} sessions",
        messages=SESSIONS * MESSAGES,
        seconds=purged["at"] - began["at"],
        trash_seconds=trashed["at"] - began["at"],
        appends_meanwhile=len(during),
        failed=len(refused),
        missing=len(missing),
        wait_ms_p50=percentile(during, 0.5) * 1000,
        wait_ms_p99=percentile(during, 0.99) * 1000,
        wait_ms_max=max(during) * 1000,
        control_ms_max=max(before) * 1000,
    )
    assert trashed["count"] == purged["count"] == SESSIONS
    assert len(during) > 5
    assert refused == []
    assert [fact for fact in stored if fact["row"] == 0] == []
    assert missing == []
    assert len(contents.rows) == len(stored)
    assert max(during) < max(PROMISED_SECONDS, NOISE_FACTOR * max(before))
    assert contents.integrity == [("ok",)]
    assert_healthy(long_history)
