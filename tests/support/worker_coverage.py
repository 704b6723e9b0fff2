"""Coverage in the worker processes of pytest-xdist.

`run_with_coverage.py` measures the process it starts. With `-n` the tests run in worker
processes; each of them measures itself and writes its own data file.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from coverage import Coverage


def start() -> Coverage | None:
    """Start coverage if requested; the SQLite driver must be installed before."""
    if not {"HERMES_TESTS_MEASURED", "PYTEST_XDIST_WORKER"} <= os.environ.keys():
        return None
    from coverage import Coverage  # noqa: PLC0415 - imports sqlite3

    for name in [name for name in sys.modules if name.startswith("hermes_")]:
        if not name.startswith("hermes_state.engine.sqlite.dbapi"):  # coverage uses it
            del sys.modules[name]  # imported again under coverage
    coverage = Coverage(config_file=os.environ["COVERAGE_RCFILE"])
    coverage.start()
    return coverage


def finish(coverage: Coverage | None) -> None:
    """Save the data."""
    if coverage is not None:
        coverage.stop()
        coverage.save()
