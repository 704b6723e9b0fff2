"""Write boundary events: begin and end sessions, some of them in other ways.

announce.py REPORT DATABASE SESSIONS PAUSE_SECONDS
"""

from __future__ import annotations

import sys
import time

from reporting import Report

from hermes_state import SessionDB

report = Report()
database, sessions, pause = sys.argv[2:5]
db = SessionDB(database)
for number in range(int(sessions)):
    session = f"s{number:05}"
    db.create_session(session, "cli")
    if number % 5 == 0:
        db.edits.branch(session, f"{session}-branch")  # announced, and not an end
    reason = "session_reset" if number % 3 == 0 else "cli_close"
    new = f"{session}-next" if number % 3 == 0 else None
    db.end_session(session, reason, new_session_id=new)
    report.write("ended", session=session)
    time.sleep(float(pause))
db.close()
report.write("done")
