"""Run `hermes sessions list` in this process, then a plugin's import; report the mapped SQLite.

command_line.py REPORT
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from hermes_cli.main import main

code = main(["sessions", "list"])
import sqlite3  # noqa: E402 - as a plugin does it, when the program already runs

connection = sqlite3.connect(":memory:")
files = {line.split(maxsplit=5)[-1] for line in Path("/proc/self/maps").read_text().splitlines()}
copies = sorted(file for file in files if "sqlite" in Path(file).name or "/apsw/" in file)
with open(sys.argv[1], "ab") as report:  # noqa: PTH123 - the store's own reporting would import it
    fields = {"kind": "mapped", "code": code, "copies": copies, "module": sqlite3.__name__}
    report.write(json.dumps(fields).encode() + b"\n")
    os.fsync(report.fileno())
