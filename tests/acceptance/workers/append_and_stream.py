"""Append messages and stream replies until killed; report what was acknowledged and shown.

    append_and_stream.py REPORT DATABASE SESSION SHARED_SESSION APPENDS PIECES

Each round appends APPENDS messages, half of them to a conversation that all workers
share, then streams a reply of PIECES pieces.
"""

from __future__ import annotations

import sys
import time

from reporting import Report

from hermes_core.clock import SystemClock
from hermes_core.ids import MessageIds
from hermes_state import SessionDB

PIECE_SECONDS = 0.004

report = Report()
database, session, shared, appends, pieces = sys.argv[2:7]
db = SessionDB(database)
ids = MessageIds(SystemClock())
db.create_session(session, "cli")
report.write("ready", session=session)
number = 0
while True:
    for _ in range(int(appends)):
        uid = ids.new()
        target = shared if number % 2 else session
        began = time.monotonic()
        row_id = db.append_message(target, "user", f"{session} {number:06} {uid}", uid=uid)
        waited = time.monotonic() - began
        report.write("stored", uid=uid, session=target, number=number, row=row_id, waited=waited)
        number += 1
    uid = ids.new()
    draft = db.messages.draft(session, uid=uid)
    for piece in range(int(pieces)):
        text = f"<{uid}:{piece:04}>"
        draft.write(text)
        report.write("shown", uid=uid, text=text, at=time.monotonic())
        time.sleep(PIECE_SECONDS)
    if pieces != "0":
        report.write("finished", uid=uid, row=draft.finish())
