"""The runner that keeps the temporary folders of tests in memory."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import run_in_memory
from support.waiting import PATIENCE_SECONDS

RUNNER = Path(run_in_memory.__file__)
TEST_FILE = """
import os, pathlib

def test_notes_its_file_system(tmp_path):
    root = pathlib.Path("root")
    root.write_text(str(tmp_path.parent.parent))
    pathlib.Path("in_memory").write_text(str(os.path.ismount(tmp_path.parent.parent)))

def test_fails():
    assert pathlib.Path("passes").exists()
"""


def run(folder: Path) -> int:
    (folder / "test_it.py").write_text(TEST_FILE)
    (folder / "pytest.ini").write_text("[pytest]\n")
    return subprocess.run(
        [sys.executable, str(RUNNER), "-q", "-p", "no:schemathesis", "-p", "no:cacheprovider"],
        cwd=folder,
        env={**os.environ, "TMPDIR": str(folder)},
        stdout=subprocess.DEVNULL,
        check=False,
        timeout=PATIENCE_SECONDS,
    ).returncode


def test_the_exit_code_is_that_of_pytest(tmp_path: Path) -> None:
    assert run(tmp_path) == pytest.ExitCode.TESTS_FAILED
    (tmp_path / "passes").touch()
    assert run(tmp_path) == pytest.ExitCode.OK


def test_folders_are_in_memory_and_the_mount_ends_with_the_run(tmp_path: Path) -> None:
    probe = tmp_path / "probe"
    probe.mkdir()
    if run_in_memory.available_gib() < run_in_memory.MIN_AVAILABLE_GIB:
        pytest.skip("too little free memory")
    if not run_in_memory.can_mount(probe):
        pytest.skip("nothing can be mounted here")
    assert not os.path.ismount(probe)
    run(tmp_path)
    assert (tmp_path / "in_memory").read_text() == "True"
    assert not Path((tmp_path / "root").read_text()).exists()
