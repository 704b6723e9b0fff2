"""Append in the main thread until the expected signals have arrived.

    signal_handling.py REPORT DATABASE SESSION MODE SIGNALS

MODE is how signals are handled: `flag` (a handler that sets a flag), `interrupt` (Python's
own KeyboardInterrupt), `death` (default disposition), `writing` (a handler that stores a
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
    report.write("stored", uid=uid, row=row, author=author)


def record(number: int, _frame: object) -> None:
    signals.append(number)


def write(number: int, _frame: object) -> None:
    append("handler")
    signals.append(number)


def install_handler(handler) -> None:
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, handler)


def append_until_signalled() -> None:
    report.write("ready")
    while len(signals) < int(expected):
        append("main")


if mode == "writing":
    # Signals may arrive during the first write.
    db = SessionDB(database, is_recovering=False)
    install_handler(write)
else:
    db = SessionDB(database)
db.create_session(session, "cli")
if mode == "flag":
    install_handler(record)
elif mode == "death":
    install_handler(signal.SIG_DFL)
elif mode == "interrupt":
    # A shell that starts this in the background has set it to ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
try:
    append_until_signalled()
except KeyboardInterrupt:
    report.write("interrupted")
db.end_session(session, "interrupted by the user")
db.close()
report.write("stopped")
