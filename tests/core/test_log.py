"""The log file is opened when `logging` is imported, in whichever way that happens."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from support.waiting import PATIENCE_SECONDS

if TYPE_CHECKING:
    from pathlib import Path

INSTALL = """
import sys
from hermes_core import log
log.install()
assert "logging" not in sys.modules
"""
WRITE = """
import logging
logging.getLogger("library").error("an entry")
"""
OWN_MODULE_FIRST = "from hermes_core import log_file"
OTHER_SPECIFICATION = """
import importlib.util
spec = importlib.util.find_spec("logging")
import logging
spec.loader.exec_module(importlib.util.module_from_spec(spec))
"""
# Python goes on with the finder after the one that imports `logging`.
FINDER_THAT_LOGS = """
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "zipapp":
            import logging
            logging.getLogger("finder").debug("looking for %s", name)
sys.meta_path.insert(len(sys.meta_path) - 1, Finder())
import zipapp
"""
# As programs that are packed into one file have.
ONE_LOADER_FOR_ALL = """
from importlib.machinery import PathFinder
class Finder:
    loaders = {}
    def find_spec(self, name, path=None, target=None):
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None:
            self.loaders[name], spec.loader = spec.loader, self
        return spec
    def create_module(self, spec):
        return None
    def exec_module(self, module):
        self.loaders[module.__name__].exec_module(module)
sys.meta_path.insert(1, Finder())
import logging, zipapp
"""


def run(script: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-I", "-c", script],
        check=False, capture_output=True, text=True, timeout=PATIENCE_SECONDS,
    )  # fmt: skip


@pytest.mark.parametrize(
    "library", [OWN_MODULE_FIRST, OTHER_SPECIFICATION, FINDER_THAT_LOGS, ONE_LOADER_FOR_ALL]
)
def test_entries_are_written_once(hermes_home: Path, library: str) -> None:
    assert run(INSTALL + library + WRITE).stderr == ""
    entries = (hermes_home / "logs" / "hermes.log").read_text().splitlines()
    assert [entry.rpartition(": ")[2] for entry in entries] == ["an entry"]


def test_the_imported_module_has_the_loader_that_python_gives_it(hermes_home: Path) -> None:
    del hermes_home
    checks = (
        "import logging, inspect\n"
        "print(type(logging.__loader__).__name__, type(logging.__spec__.loader).__name__)\n"
        "assert 'class Logger' in inspect.getsource(logging)\n"
    )
    assert run(INSTALL + checks).stdout == "SourceFileLoader SourceFileLoader\n"
