"""Append in the main thread until signals say stop.

    obey.py REPORT DATABASE SESSION MODE SIGNALS

MODE is how signals are taken: `flag` (a handler that sets a flag), `interrupt` (Python's
own KeyboardInterrupt), `death` (nothing is set up), `writing` (a handler that stores a
message itself).
"""

from __future__ import annotations

import itertools
import signal
import sys

from reporting import Report

from hermes_core.clock import SystemClock
from hermes_core.ids import MessageIds
from hermes_state import SessionDB

report = Report()
database, session, mode, expected = sys.argv[2:6]
ids = MessageIds(SystemClock())
numbers = itertools.count()
signals = []


def append(author: str) -> None:
    uid = ids.new()
    row = db.append_message(session, "user", f"{next(numbers):06} {author} {uid}", uid=uid)
    report.say("stored", uid=uid, row=row, author=author)


def note(number: int, _frame: object) -> None:
    signals.append(number)


def write(number: int, _frame: object) -> None:
    append("handler")
    signals.append(number)


def obey(handler) -> None:
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, handler)


def talk() -> None:
    report.say("ready")
    while len(signals) < int(expected):
        append("main")


if mode == "writing":
    # Also the very first write may be struck.
    db = SessionDB(database, is_recovering=False)
    obey(write)
else:
    db = SessionDB(database)
db.create_session(session, "cli")
if mode == "flag":
    obey(note)
elif mode == "death":
    obey(signal.SIG_DFL)
elif mode == "interrupt":
    # A shell that starts this in the background would have it ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
try:
    talk()
except KeyboardInterrupt:
    report.say("interrupted")
db.end_session(session, "interrupted by the user")
db.close()
report.say("stopped")
