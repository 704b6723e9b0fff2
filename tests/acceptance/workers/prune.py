"""Move every session of a source into the trash, then remove each for good.

prune.py REPORT DATABASE SOURCE
"""

from __future__ import annotations

import sys
import time

from reporting import Report

from hermes_state import SessionDB

report = Report()
database, source = sys.argv[2:4]
with SessionDB(database) as db:
    names = [row["id"] for row in db.list_sessions_rich(source, limit=-1)]
    report.write("began", sessions=len(names), at=time.monotonic())
    trashed = db.delete_sessions(names)
    report.write("trashed", count=trashed, at=time.monotonic())
    purged = sum(db.trash.purge(name) for name in names)
    report.write("purged", count=purged, at=time.monotonic())
