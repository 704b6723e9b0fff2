"""Write on the main thread while signals strike it thousands of times a second.

    storm.py REPORT DATABASE SESSION MODE SECONDS

MODE is what the handler does: `raise` (as Ctrl-C does) or `write` (it stores messages and
streams text itself).
"""

from __future__ import annotations

import itertools
import signal
import sys
import time

from reporting import Report

from hermes_state import SessionDB

INTERVALS_SECONDS = {"raise": 0.0007, "write": 0.00013}
DEEPEST = 3


class StormError(BaseException):
    """Raised by the handler; like KeyboardInterrupt, not an Exception."""


report = Report()
database, session, mode, seconds = sys.argv[2:6]
numbers = itertools.count()
counts = {"stored": 0, "interrupted": 0, "by_handler": 0}
state = {"is_armed": False, "depth": 0}


def append(author: str) -> None:
    assert db.append_message(session, "user", f"{author} {next(numbers)}") > 0


def interrupt(*_signal: object) -> None:
    if state["is_armed"]:
        raise StormError


def write(*_signal: object) -> None:
    if state["depth"] < DEEPEST:
        state["depth"] += 1
        append("handler")
        draft.write("h")
        counts["by_handler"] += 1
        state["depth"] -= 1


db = SessionDB(database)
db.create_session(session, "cli")
draft = db.messages.draft(session)
report.write("ready")
signal.signal(signal.SIGALRM, interrupt if mode == "raise" else write)
interval = INTERVALS_SECONDS[mode]
signal.setitimer(signal.ITIMER_REAL, interval, interval)
end = time.monotonic() + float(seconds)
while time.monotonic() < end:
    try:
        state["is_armed"] = True
        append("main")
        draft.write("m")
        state["is_armed"] = False
        counts["stored"] += 1
    except StormError:
        counts["interrupted"] += 1
    finally:
        state["is_armed"] = False
signal.setitimer(signal.ITIMER_REAL, 0)
append("main")
draft.finish()
report.write("counted", rows=db.message_count(session), shown=len(draft.text()), **counts)
db.end_session(session, "done")
db.close()
report.write("stopped")
