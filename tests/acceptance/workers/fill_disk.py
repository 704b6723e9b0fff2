"""Append until the disk is full; continue after a signal file appears.

fill_disk.py REPORT DATABASE SESSION GO_FILE
"""

from __future__ import annotations

import itertools
import sys
import time
from pathlib import Path

from reporting import Report

from hermes_core.clock import SystemClock
from hermes_core.errors import HermesError
from hermes_core.ids import MessageIds
from hermes_state import SessionDB

REFUSALS = 3
KEPT = 20
AFTERWARDS = 30

report = Report()
database, session, go = sys.argv[2:5]
ids = MessageIds(SystemClock())
numbers = itertools.count()
db = SessionDB(database)
db.create_session(session, "cli")


def append(length: int) -> str:
    uid, number = ids.new(), next(numbers)
    text = f"{number:06} {uid} {'x' * length}"
    try:
        row = db.append_message(session, "user", text, uid=uid)
    except HermesError as error:
        kind = type(error).__name__
        report.write("refused", uid=uid, error=kind, text=str(error))
        return "refused"
    report.write("stored" if row else "kept", uid=uid, row=row, trouble=db.trouble())
    return "stored" if row else "kept"


outcomes = []
while outcomes.count("refused") < REFUSALS and outcomes.count("kept") < KEPT:
    outcomes.append(append(4000))
report.write("full", trouble=db.trouble())
while not Path(go).exists():
    time.sleep(0.01)
for _ in range(AFTERWARDS):
    append(200)
report.write("recovered", trouble=db.trouble())
db.end_session(session, "done")
db.close()
report.write("stopped")
