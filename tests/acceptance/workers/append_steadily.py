"""Append until a file appears; report how long each append took.

append_steadily.py REPORT DATABASE SESSION STOP_FILE
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from reporting import Report

from hermes_core.clock import SystemClock
from hermes_core.errors import HermesError
from hermes_core.ids import MessageIds
from hermes_state import SessionDB

PAUSE_SECONDS = 0.002

report = Report()
database, session, stop = sys.argv[2:5]
ids = MessageIds(SystemClock())
with SessionDB(database) as db:
    db.create_session(session, "cli")
    report.write("ready")
    number = 0
    while not Path(stop).exists():
        uid = ids.new()
        began = time.monotonic()
        try:
            row = db.append_message(session, "user", f"{session} {number:06} {uid}", uid=uid)
        except HermesError as error:
            report.write("refused", uid=uid, error=repr(error))
        else:
            report.write("stored", uid=uid, row=row, waited=time.monotonic() - began, at=began)
        number += 1
        time.sleep(PAUSE_SECONDS)
    db.end_session(session, "done")
report.write("stopped")
