"""Append until a file appears; write each acknowledged message's text to a file.

append_until_stopped.py SESSION ACKNOWLEDGED STOP
"""

from __future__ import annotations

import sys
from pathlib import Path

from hermes_state.engine.sqlite import driver

driver.install()

from hermes_state import SessionDB  # noqa: E402 - one SQLite per process

session, acknowledged, stop = sys.argv[1:4]
with SessionDB() as db, Path(acknowledged).open("w", encoding="ascii", buffering=1) as report:
    db.create_session(session, "cli")
    number = 0
    while not Path(stop).exists():
        text = f"{session} {number}"
        db.append_message(session, "user", text)
        report.write(text + "\n")
        number += 1
    db.end_session(session, "done")
