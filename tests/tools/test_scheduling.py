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
    with pathlib.Path("runs").open("a") as log:
        log.write(os.environ["PYTEST_XDIST_WORKER"] + " " + pathlib.Path(__file__).stem + "\\n")
"""


def run(folder: Path, *paths: str, workers: int) -> list[list[str]]:
    """Run six tests of each file; the worker and the file of each, as they ran."""
    for path in paths:
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(TEST_FILE)
    (folder / "conftest.py").write_text(
        "from support.scheduling import GroupScheduling\n"
        "def pytest_xdist_make_scheduler(config, log):\n"
        "    return GroupScheduling(config, log)\n"
    )
    (folder / "pytest.ini").write_text("[pytest]\n")
    options = ["-p", "no:schemathesis", "-p", "no:hypothesispytest", "-n", str(workers), "-q"]
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
    return [line.split() for line in (folder / "runs").read_text().splitlines()]


def workers_of(path: str, folder: Path) -> set[str]:
    """The workers that run the six tests of a file at *path*."""
    return {worker for worker, _ in run(folder, path, workers=2)}


def test_tests_of_a_group_run_in_one_worker(tmp_path: Path) -> None:
    assert len(workers_of("tests/cli/test_launcher.py", tmp_path)) == 1


def test_other_tests_are_distributed(tmp_path: Path) -> None:
    assert len(workers_of("tests/cli/test_other.py", tmp_path)) == 2


def test_groups_start_in_the_order_of_their_list_before_other_tests(tmp_path: Path) -> None:
    files = ("tests/cli/test_a.py", "tests/cli/test_launcher.py", "tests/state/test_postgres.py")
    order = [file for _, file in run(tmp_path, *files, workers=1)]
    assert order == ["test_postgres"] * 6 + ["test_launcher"] * 6 + ["test_a"] * 6


@pytest.mark.parametrize(
    ("test_id", "group"),
    [
        ("tests/gateway/test_matrix.py::test_a", "synapse"),
        ("tests/acceptance/test_platform_kills.py::test_every[matrix]", "synapse"),
        ("tests/acceptance/test_platform_kills.py::test_every[slack]", None),
        ("tests/acceptance/test_supervision.py::test_a[telegram]", "telegram"),
        ("tests/browser/test_keyboard.py::test_a", "browser, demo"),
        ("tests/browser/test_chat_page.py::test_a", "browser, chat"),
        ("tests/browser/test_sign_in.py::test_a", "browser"),
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
