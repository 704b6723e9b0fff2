"""A large prune does not block writers."""

from __future__ import annotations

import time

import pytest

from acceptance.campaign import IS_FULL, Contents, Worker, assert_healthy, percentile, size
from hermes_state import SessionDB

# Sessions pruned, and processes that append meanwhile. The promise is about one of them;
# two wait for each other as well, so how long they wait is only reported.
PROMISED = (500, 1)
LARGER = [(4000, 1), (4000, 2)]
CASES = [PROMISED, *(LARGER if IS_FULL else [])]
MESSAGES = 60
PROMISED_SECONDS = 0.5
NOISE_FACTOR = 5


def make_history(state_db, sessions):
    with SessionDB(state_db) as db:
        for number in range(sessions):
            name = f"old{number:04}"
            db.create_session(name, "old", is_owned=False)
            text = f"{name} {'word ' * 60}"
            turns = [{"role": "user", "content": f"{text}{turn}"} for turn in range(MESSAGES)]
            db.append_messages_batch(name, turns)
            db.end_session(name, "done")
        assert db.message_count() == sessions * MESSAGES


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize(("sessions", "writers"), CASES)
def test_a_prune_does_not_block_writers(sessions, writers, state_db, tmp_path, figures):
    stop = tmp_path / "stop"
    make_history(state_db, sessions)
    appenders = [
        Worker("append_steadily.py", tmp_path, state_db, f"writer{number}", stop)
        for number in range(writers)
    ]
    for worker in appenders:
        worker.wait_for("ready")
    time.sleep(size(2, 20))  # the control: the same writers on the same disk, without a prune
    with Worker("prune.py", tmp_path, state_db, "old") as prune:
        assert prune.wait(600) == 0, prune.error_output()
        began, trashed, purged = (prune.reports(k)[0] for k in ("began", "trashed", "purged"))
    stop.touch()
    for worker in appenders:
        assert worker.wait() == 0, worker.error_output()
    stored = [report for worker in appenders for report in worker.reports("stored")]
    refused = [report for worker in appenders for report in worker.reports("refused")]
    before = [report["waited"] for report in stored if report["at"] < began["at"]]
    during = [
        report["waited"]
        for report in stored
        if began["at"] <= report["at"] + report["waited"] and report["at"] <= purged["at"]
    ]
    contents = Contents(state_db)
    missing = contents.missing([report["uid"] for report in stored])
    figures(
        f"prune of {sessions} sessions, {writers} appending",
        messages=sessions * MESSAGES,
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
    assert trashed["count"] == purged["count"] == sessions
    assert len(during) > 5
    assert refused == []
    assert [report for report in stored if report["row"] == 0] == []
    assert missing == []
    assert len(contents.rows) == len(stored)
    if writers == 1:
        assert max(during) < max(PROMISED_SECONDS, NOISE_FACTOR * max(before))
    assert contents.integrity == [("ok",)]
    assert_healthy(state_db)
