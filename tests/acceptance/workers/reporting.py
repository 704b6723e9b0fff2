"""Reports of a worker that survive its death: a line is in the file when `write` returns."""

from __future__ import annotations

import faulthandler
import json
import logging
import os
import sys

from hermes_state.engine.sqlite import driver

driver.install()
faulthandler.enable()
logging.basicConfig(level=logging.WARNING)


class Report:
    """The worker's side of its report; the first argument of the program names the file."""

    def __init__(self) -> None:
        self._descriptor = os.open(sys.argv[1], os.O_WRONLY | os.O_APPEND)

    def write(self, kind: str, **fields: object) -> None:
        """Append one line in one write."""
        line = json.dumps({"kind": kind, **fields}) + "\n"
        os.write(self._descriptor, line.encode())
