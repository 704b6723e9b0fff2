"""However our process ends, nothing that it started is left."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from acceptance.campaign import size, wait_until
from hermes_agent.tools import process_groups
from hermes_agent.tools.base import ToolError
from hermes_agent.tools.jobs import Jobs
from support.waiting import PATIENCE_SECONDS

WORKER = Path(__file__).with_name("workers") / "run_jobs.py"
SRC = Path(__file__).resolve().parents[3] / "src"


def is_alive(pid):
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(b")")[2].split()[0] not in b"ZX"


@pytest.fixture
def marks(tmp_path):
    folder = tmp_path / "marks"
    folder.mkdir()
    return folder


@contextmanager
def started(folder, how="plain"):
    """A process of ours that runs jobs; killed at the latest when the test is over."""
    process = subprocess.Popen(
        [sys.executable, str(WORKER), how, str(folder)],
        env={**os.environ, "PYTHONPATH": str(SRC)},
        stdin=subprocess.DEVNULL,
    )
    marks = [folder / name for name in ("ready", "plain", "deep", "deaf")]
    try:
        wait_until(lambda: all(mark.exists() and mark.read_text() for mark in marks), "jobs")
        yield process
    finally:
        process.kill()
        process.wait()


def pids(folder):
    marks = [mark for mark in folder.iterdir() if mark.read_text().strip()]
    return [int(mark.read_text()) for mark in marks]


def all_ended(folder):
    wait_until(lambda: not any(map(is_alive, pids(folder))), "the end of all children")


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_no_child_survives_our_end(marks, number):
    with started(marks) as process:
        assert all(is_alive(pid) for pid in pids(marks))
        process.send_signal(number)
        process.wait(timeout=PATIENCE_SECONDS)
        all_ended(marks)


def test_no_child_survives_a_kill_at_any_moment(marks):
    """The gate: a command does not run before the watchdog knows of it."""
    for turn in range(size(5, 60)):
        folder = marks / str(turn)
        folder.mkdir()
        with started(folder, "storm") as process:
            time.sleep(random.uniform(0, 0.1))
            process.kill()
            process.wait(timeout=PATIENCE_SECONDS)
            time.sleep(0.2)
            all_ended(folder)


def test_closing_ends_everything_twice_over(tmp_path):
    jobs = Jobs()
    running = [jobs.start("sleep 100", tmp_path) for _ in range(3)]
    for job in running:
        jobs.follow(job)
    watchdog = jobs.watchdog_pid
    jobs.close()
    jobs.close()
    assert not any(is_alive(job.pid) for job in running)
    assert not is_alive(watchdog)
    with pytest.raises(ToolError, match="shutting down"):
        jobs.start("ls", tmp_path)


def test_closing_while_others_start_leaves_nothing(tmp_path):
    jobs, result = Jobs(), []

    def start():
        for _ in range(50):
            try:
                job = jobs.start("sleep 100", tmp_path)
            except ToolError:
                return
            jobs.follow(job)
            result.append(job)

    threads = [threading.Thread(target=start) for _ in range(4)]
    for thread in threads:
        thread.start()
    time.sleep(0.1)
    jobs.close()
    for thread in threads:
        thread.join()
    assert result
    wait_until(lambda: not any(is_alive(job.pid) for job in result), "the end of all jobs")


def test_a_watchdog_that_died_is_replaced(tmp_path):
    with closing(Jobs()) as jobs:
        jobs.follow(jobs.start("sleep 100", tmp_path))
        first = jobs.watchdog_pid
        os.kill(first, signal.SIGKILL)
        wait_until(lambda: not is_alive(first), "the death of the watchdog")
        jobs.follow(jobs.start("sleep 100", tmp_path))
        assert jobs.watchdog_pid != first


def test_a_stopped_process_is_ended(tmp_path):
    with closing(Jobs()) as jobs:
        job = jobs.start("sleep 100", tmp_path)
        jobs.follow(job)
        process_groups.send(job.pid, signal.SIGSTOP)
        job.end()
        assert not job.is_running


def test_finished_jobs_are_forgotten_in_time(tmp_path):
    with closing(Jobs()) as jobs:
        for _ in range(60):
            job = jobs.start("true", tmp_path)
            jobs.follow(job)
            job.process.wait()
        assert len(jobs.all()) <= 51


def test_children_get_the_environment_they_are_given(tmp_path):
    with closing(Jobs({"PATH": os.environ["PATH"], "ONLY": "this"})) as jobs:
        job = jobs.start("env", tmp_path)
        job.listen(lambda: False, lambda _text: None)
        assert "ONLY=this" in job.output.text()
        assert "HERMES_HOME" not in job.output.text()
