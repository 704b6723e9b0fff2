"""coverage, in a process whose SQLite is ours.

coverage keeps its figures in SQLite and imports `sqlite3`; with the interpreter's own copy
beside ours the process would hold two, which is what the store forbids. So ours is put in
place first. Programs that the tests start are measured the same way where
HERMES_TESTS_MEASURED is `all` (`make coverage`): each start then takes half a second longer.

    python tests/run_with_coverage.py run -m pytest
"""

import os
import sys
from pathlib import Path

from hermes_state.engine.sqlite import driver

driver.install()
# coverage uses these: there is one set of error classes.
KEPT = ("hermes_state.engine.sqlite.dbapi", "hermes_state.engine.database")
for name in [name for name in sys.modules if name.startswith("hermes_")]:
    if not name.startswith(KEPT):
        del sys.modules[name]  # imported again, and measured

ROOT = Path(__file__).resolve().parent.parent
os.environ.setdefault("COVERAGE_RCFILE", str(ROOT / "pyproject.toml"))
os.environ.setdefault("COVERAGE_FILE", str(ROOT / ".coverage"))
os.environ.setdefault("HERMES_TESTS_MEASURED", "1")

from coverage.cmdline import main  # noqa: E402 - after our SQLite

sys.exit(main())
