"""`make coverage` measures every process of a run, with one SQLite library in each."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """\
import os, sys
import hermes_core.backoff
from hermes_state.engine.sqlite import driver
driver.install()
if os.fork() == 0:
    import hermes_core.schedules.rules
    os._exit(0)
os.wait()
print("_sqlite3" in sys.modules and sys.modules["_sqlite3"] is not driver.sqlite3)
"""


def run(arguments: Iterable[str], **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, *arguments], capture_output=True, check=False, text=True,
        env={**os.environ, **environment},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_process_and_its_forks_are_measured_from_their_first_import(tmp_path: Path) -> None:
    data = str(tmp_path / "data")
    holds_two_libraries = run(
        ["-c", PROGRAM], PYTHONPATH=str(ROOT / "tests" / "measured"), COVERAGE_FILE=data
    )
    assert holds_two_libraries == "False\n"
    run(["-m", "coverage", "combine", "--quiet"], COVERAGE_FILE=data)
    for module in ("backoff", "schedules/rules"):
        include = f"--include={ROOT}/src/hermes_core/{module}.py"
        # Fails if the file was not measured.
        run(["-m", "coverage", "report", include], COVERAGE_FILE=data)
