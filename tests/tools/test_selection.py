"""Which tests `make test` runs."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from support.selection import LEFT_OUT, SMOKE, is_quick, may_have_quick_tests
from support.waiting import PATIENCE_SECONDS

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("test_id", "is_in"),
    [
        ("tests/core/test_backoff.py::test_a", True),
        ("tests/state/test_messages.py::test_a[sqlite]", True),
        ("tests/state/test_messages.py::test_a[postgresql]", False),
        ("tests/browser/test_keyboard.py::test_a", False),
        ("tests/gateway/test_matrix_encryption.py::test_a", False),
        *((test_id, True) for test_id in sorted(SMOKE)),
    ],
)
def test_a_test_is_selected_by_its_id(test_id: str, *, is_in: bool) -> None:
    assert is_quick(test_id) is is_in


def test_a_quick_run_reads_the_files_of_its_tests_only() -> None:
    assert not may_have_quick_tests("tests/browser/")
    assert not may_have_quick_tests("tests/browser/test_keyboard.py")
    assert all(may_have_quick_tests(test_id.partition("::")[0]) for test_id in SMOKE)
    assert may_have_quick_tests("tests/acceptance/")


def test_every_smoke_test_and_every_left_out_file_exists() -> None:
    files = sorted({test_id.partition("::")[0] for test_id in SMOKE})
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", *files]
    listed = subprocess.run(
        command, capture_output=True, text=True, check=True, cwd=ROOT, timeout=PATIENCE_SECONDS
    ).stdout.splitlines()
    assert set(listed) >= SMOKE
    paths = [path.relative_to(ROOT).as_posix() for path in (ROOT / "tests").rglob("test_*.py")]
    unused = [
        pattern
        for pattern in LEFT_OUT
        if "::" not in pattern and not pattern.startswith(".*")
        if not any(re.match(pattern, path) for path in paths)
    ]
    assert unused == []
