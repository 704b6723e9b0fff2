"""Measures the coverage of a Python process from its first import on.

`make coverage` puts this folder on PYTHONPATH, so that pytest, its workers and every program that
a test starts are measured. Each writes a data file of its own, also one that ends with `os._exit`
or SIGTERM; what a killed process ran is lost.

coverage imports `sqlite3` to store its figures. A process of Hermes may hold one SQLite library
only, and modules that are imported before the measurement are not measured, so coverage gets a
module that loads the SQLite of Hermes when the figures are saved.
"""

import atexit
import importlib
import importlib.util
import os
import sys
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parents[2]
OWN_SQLITE = "hermes_state.engine.sqlite.dbapi"


class LateSqlite(ModuleType):
    """The SQLite library of the process, loaded with the first use."""

    def __getattr__(self, name: str) -> object:
        loaded = next((each for each in (OWN_SQLITE, "sqlite3") if each in sys.modules), OWN_SQLITE)
        return getattr(importlib.import_module(loaded), name)


def measure() -> None:
    """Start the measurement of this process and its forks."""
    sys.modules["sqlite3"] = LateSqlite("sqlite3")
    from coverage import Coverage  # noqa: PLC0415 - after the module above

    del sys.modules["sqlite3"]
    os.environ.setdefault("COVERAGE_FILE", str(ROOT / ".coverage"))
    coverage = Coverage(config_file=str(ROOT / "pyproject.toml"))
    coverage.start()
    atexit.register(coverage.save)


if importlib.util.find_spec("coverage"):  # not in Synapse's environment
    measure()
