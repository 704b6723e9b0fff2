"""Coverage in the processes that run tests in parallel.

`run_with_coverage.py` measures the process it starts. With `-n` the tests run in others,
which pytest-xdist starts; each of them measures itself, into a file of its own.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from coverage import Coverage


def start() -> Coverage | None:
    """Begin to measure where that is wanted; our SQLite must be in place already."""
    if not {"HERMES_TESTS_MEASURED", "PYTEST_XDIST_WORKER"} <= os.environ.keys():
        return None
    from coverage import Coverage  # noqa: PLC0415 - imports sqlite3

    for name in [name for name in sys.modules if name.startswith("hermes_")]:
        del sys.modules[name]  # imported again, and measured
    measured = Coverage(config_file=os.environ["COVERAGE_RCFILE"])
    measured.start()
    return measured


def finish(measured: Coverage | None) -> None:
    """Keep what was measured."""
    if measured is not None:
        measured.stop()
        measured.save()
