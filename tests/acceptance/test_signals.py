"""SIGTERM, SIGHUP, Ctrl-C twice, at any moment: saved is saved, and the process ends."""

from __future__ import annotations

import random
import signal
import time

import pytest

from acceptance.campaign import Contents, Worker, assert_healthy, size
from hermes_state import SessionDB

EXIT_SECONDS = 8.0

KINDS = {
    "SIGTERM, handler sets a flag": ("flag", [signal.SIGTERM]),
    "SIGHUP, handler sets a flag": ("flag", [signal.SIGHUP]),
    "SIGTERM, no handler": ("death", [signal.SIGTERM]),
    "SIGHUP, no handler": ("death", [signal.SIGHUP]),
    "Ctrl-C twice": ("interrupt", [signal.SIGINT, signal.SIGINT]),
    "SIGTERM, handler writes": ("writing", [signal.SIGTERM]),
    "SIGTERM and SIGHUP, handler writes": ("writing", [signal.SIGTERM, signal.SIGHUP]),
}


def strike(worker: Worker, numbers: list[signal.Signals]) -> None:
    time.sleep(random.uniform(0.0, 0.12))
    for number in numbers:
        worker.process.send_signal(number)
        time.sleep(random.uniform(0.0, 0.02))


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("kind", KINDS)
def test_signals_lose_nothing_and_end_the_process(kind, state_db, tmp_path, figures):
    mode, numbers = KINDS[kind]
    times = size(5, 40)
    workers, slowest = [], 0.0
    for number in range(times):
        worker = Worker("signal_handling.py", tmp_path, state_db, f"s{number}", mode, len(numbers))
        with worker:
            worker.wait_for("ready")
            strike(worker, numbers)
            struck = time.monotonic()
            worker.wait(EXIT_SECONDS)
            slowest = max(slowest, time.monotonic() - struck)
            workers.append(worker)
    SessionDB(state_db).close()
    contents = Contents(state_db)
    stored = [report for worker in workers for report in worker.reports("stored")]
    missing = contents.missing([report["uid"] for report in stored])
    assert missing == []
    assert contents.doubled() == 0
    assert contents.integrity == [("ok",)]
    assert_healthy(state_db)
    check_ends(state_db, workers)
    if mode == "writing":
        by_handler = [report for report in stored if report["author"] == "handler"]
        assert len(by_handler) == times * len(numbers)
    if mode in {"flag", "writing"}:
        assert [worker.process.returncode for worker in workers] == [0] * times
    figures(
        kind, signals=times * len(numbers), acknowledged=len(stored), missing=0, doubled=0,
        slowest_exit_seconds=slowest,
    )  # fmt: skip


def check_ends(state_db, workers) -> None:
    with SessionDB(state_db) as db:
        for number, worker in enumerate(workers):
            session = db.get_session(f"s{number}")
            assert session["ended_at"] is not None
            expected = {"crashed"} if not worker.reports("stopped") else {"interrupted by the user"}
            # Cut between the end and the word that it was: either is true.
            assert session["end_reason"] in expected | {"interrupted by the user"}
            finals = [
                boundary for boundary in db.boundaries.recent(f"s{number}") if boundary.is_final
            ]
            assert len(finals) == 1


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("mode", ["raise", "write"])
def test_a_storm_of_signals_neither_hangs_nor_tears_anything(mode, state_db, tmp_path, figures):
    seconds = size(2, 60)
    with Worker("storm.py", tmp_path, state_db, "one", mode, seconds) as worker:
        assert worker.wait(seconds + 30) == 0, worker.error_output()
        counted = worker.reports("counted")[0]
    contents = Contents(state_db)
    assert contents.integrity == [("ok",)]
    assert contents.doubled() == 0
    assert_healthy(state_db)
    known = counted["stored"] + counted["by_handler"] + 2  # one after the storm, and the reply
    if mode == "write":
        assert counted["rows"] == known
        assert counted["by_handler"] > 100
    else:
        # An interrupted write may have been stored; an acknowledged one was.
        assert known <= counted["rows"] <= known + counted["interrupted"]
        assert counted["interrupted"] > 100
    assert counted["shown"] >= counted["stored"] + counted["by_handler"]
    figures(f"a storm of signals ({mode})", **{k: v for k, v in counted.items() if k != "kind"})
