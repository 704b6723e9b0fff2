"""The runner of the tests."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import run_tests as runner
from support.processes import is_command_running, unique_sleep
from support.waiting import PATIENCE_SECONDS, wait_until

RUNNER = Path(runner.__file__)
TEST_FILE = """
import os, pathlib, subprocess

def test_notes_its_file_system(tmp_path):
    root = pathlib.Path("root")
    root.write_text(str(tmp_path.parent.parent))
    pathlib.Path("in_memory").write_text(str(os.path.ismount(tmp_path.parent.parent)))

def test_fails():
    assert pathlib.Path("passes").exists()
"""
LEAVING_FILE = """
import subprocess, time

def test_leaves_a_process():
    subprocess.Popen(["sh", "-c", "SLEEP & exec true"], start_new_session=True).wait()
    subprocess.Popen("SLEEP".split(), start_new_session=True)
    IS_HANGING and time.sleep(600)
"""
FLAKY_FILE = """
import pathlib

def test_passes_the_second_time():
    mark = pathlib.Path("ran")
    ran_before = mark.exists()
    mark.touch()
    assert ran_before
"""


def start(folder: Path, test_file: str, *options: str) -> subprocess.Popen[str]:
    (folder / "test_it.py").write_text(test_file)
    (folder / "pytest.ini").write_text("[pytest]\n")
    return subprocess.Popen(
        [sys.executable, str(RUNNER), "-q", "-p", "no:schemathesis", *options],
        cwd=folder,
        env={**os.environ, "TMPDIR": str(folder)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def run(folder: Path, test_file: str = TEST_FILE) -> int:
    process = start(folder, test_file)
    process.communicate(timeout=PATIENCE_SECONDS)
    return process.returncode


def test_the_exit_code_is_that_of_pytest(tmp_path: Path) -> None:
    assert run(tmp_path) == pytest.ExitCode.TESTS_FAILED
    (tmp_path / "passes").touch()
    assert run(tmp_path) == pytest.ExitCode.OK


def test_folders_are_in_memory_and_the_mount_ends_with_the_run(tmp_path: Path) -> None:
    probe = tmp_path / "probe"
    probe.mkdir()
    if runner.available_gib() < runner.MIN_AVAILABLE_GIB:
        pytest.skip("too little free memory")
    if not runner.can_mount(probe):
        pytest.skip("nothing can be mounted here")
    assert not os.path.ismount(probe)
    run(tmp_path)
    assert (tmp_path / "in_memory").read_text() == "True"
    assert not Path((tmp_path / "root").read_text()).exists()


def test_a_test_that_would_pass_when_repeated_fails_the_run(tmp_path: Path) -> None:
    assert run(tmp_path, FLAKY_FILE) == pytest.ExitCode.TESTS_FAILED


@pytest.mark.skipif(sys.platform != "linux", reason="orphans are adopted on Linux")
@pytest.mark.parametrize("number", [None, signal.SIGINT, signal.SIGTERM])
def test_nothing_is_left_running_also_after_an_interrupted_run(
    tmp_path: Path, number: signal.Signals | None
) -> None:
    sleep = unique_sleep()
    content = LEAVING_FILE.replace("SLEEP", sleep).replace("IS_HANGING", str(number is not None))
    process = start(tmp_path, content)
    if number is not None:
        wait_until(lambda: is_command_running(sleep))
        process.send_signal(number)
    process.communicate(timeout=PATIENCE_SECONDS)
    assert not is_command_running(sleep)
