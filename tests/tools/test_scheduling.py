"""The distribution of tests over workers."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.scheduling import GROUPS, group_of
from support.waiting import PATIENCE_SECONDS

TESTS = Path(__file__).resolve().parents[1]
TEST_FILE = """
import os, pathlib, pytest

@pytest.mark.parametrize("number", range(6))
def test_records_its_worker(number):
    with pathlib.Path("workers").open("a") as log:
        log.write(os.environ["PYTEST_XDIST_WORKER"] + "\\n")
"""


def workers_of(path: str, folder: Path) -> set[str]:
    """The workers that run the six tests of a file at *path*."""
    file = folder / path
    file.parent.mkdir(parents=True)
    file.write_text(TEST_FILE)
    (folder / "conftest.py").write_text(
        "from support.scheduling import GroupScheduling\n"
        "def pytest_xdist_make_scheduler(config, log):\n"
        "    return GroupScheduling(config, log)\n"
    )
    (folder / "pytest.ini").write_text("[pytest]\n")
    options = ["-p", "no:schemathesis", "-p", "no:hypothesispytest", "-n", "2", "-q"]
    finished = subprocess.run(
        [sys.executable, "-m", "pytest", *options],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(TESTS)},
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_SECONDS,
    )
    assert finished.returncode == 0, finished.stdout
    return set((folder / "workers").read_text().split())


def test_tests_of_a_group_run_in_one_worker(tmp_path: Path) -> None:
    assert len(workers_of("tests/cli/test_launcher.py", tmp_path)) == 1


def test_other_tests_are_distributed(tmp_path: Path) -> None:
    assert len(workers_of("tests/cli/test_other.py", tmp_path)) == 2


@pytest.mark.parametrize(
    ("test_id", "group"),
    [
        ("tests/gateway/test_matrix.py::test_a", "synapse"),
        ("tests/acceptance/test_platform_kills.py::test_every[matrix]", "synapse"),
        ("tests/acceptance/test_platform_kills.py::test_every[slack]", None),
        ("tests/browser/test_keyboard.py::test_a", "browser 1"),
        ("tests/browser/test_chat_page.py::test_a", "browser 2"),
        ("tests/core/test_backoff.py::test_a", None),
    ],
)
def test_a_test_is_grouped_by_its_file(test_id: str, group: str | None) -> None:
    assert group_of(test_id) == group


@pytest.mark.parametrize("group", GROUPS)
def test_every_group_has_a_test_file(group: str) -> None:
    files = [path.relative_to(TESTS.parent).as_posix() for path in TESTS.rglob("test_*.py")]
    candidates = [*files, *(f"{file}::test[matrix]" for file in files)]
    assert group in {group_of(candidate) for candidate in candidates}
