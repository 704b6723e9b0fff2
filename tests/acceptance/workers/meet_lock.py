"""Append while another program holds the database.

    meet_lock.py REPORT DATABASE SESSION GO_FILE WAY

WAY says how: `on` (until the database takes messages again, then stop), `two stores` (as
`on`, through two stores of this process in turn), `reopen` (close while messages wait, open
again later), `handler` (a signal handler stores messages too), `stream` (show one piece of a
reply, then nothing more).
"""

from __future__ import annotations

import itertools
import signal
import sys
import time
from pathlib import Path

from reporting import Report

from hermes_core.clock import SystemClock
from hermes_core.ids import MessageIds
from hermes_state import SessionDB

BUSY_SECONDS = 0.3
AFTERWARDS = 5

report = Report()
database, session, go, way = sys.argv[2:6]
ids = MessageIds(SystemClock())
numbers = itertools.count()


def open_store() -> SessionDB:
    return SessionDB(database, busy_seconds=BUSY_SECONDS)


def append(db: SessionDB, author: str = "main") -> int:
    uid, number = ids.new(), next(numbers)
    row = db.append_message(session, "user", f"{number:06} {author} {uid}", uid=uid)
    kind = "stored" if row else "kept"
    report.write(kind, uid=uid, row=row, author=author, trouble=db.trouble())
    return row


def append_until_stored(stores: list[SessionDB]) -> None:
    done = 0
    for db in itertools.cycle(stores):
        done += append(db) > 0
        if done == AFTERWARDS:
            return


stores = [open_store()]
if way == "two stores":
    stores.append(open_store())
stores[0].create_session(session, "cli")
append(stores[0])
if way == "handler":
    signal.signal(signal.SIGUSR1, lambda *_: append(stores[0], "handler"))
report.write("ready")
while not Path(go).exists():
    time.sleep(0.005)
if way == "stream":
    stores[0].messages.draft(session).write("the beginning of an answer")
    report.write("shown")
    time.sleep(60)
if way == "reopen":
    for _ in range(3):
        append(stores[0])
    stores[0].close()
    report.write("closed")
    while Path(go).exists():
        time.sleep(0.005)
    stores[0] = open_store()
append_until_stored(stores)
report.write("recovered", trouble=[db.trouble() for db in stores])
stores[0].end_session(session, "done")
for db in stores:
    db.close()
report.write("stopped")
