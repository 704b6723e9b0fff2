"""Append and stream while the disk returns errors; report what was acknowledged and refused.

    fiu-run -x io_errors.py REPORT DATABASE SESSION POINTS PROBABILITY ROUNDS

The preloaded libfiu calls back into this program before each system call, so the
injected errors are counted here.
"""

from __future__ import annotations

import ctypes
import errno
import random
import sys
import time
from collections import Counter

from reporting import Report

from hermes_core.clock import SystemClock
from hermes_core.errors import HermesError
from hermes_core.ids import MessageIds
from hermes_state import SessionDB

report = Report()
database, session, points, probability, rounds = sys.argv[2:7]
ids = MessageIds(SystemClock())
injected: Counter[str] = Counter()
callbacks: Counter[str] = Counter()
is_paused = True

CALLBACK = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p
)


@CALLBACK
def should_fail(name: bytes, _number: int, _info: int, _flags: int) -> int:
    callbacks[name.decode()] += 1
    if is_paused or random.random() >= float(probability):
        return 0
    injected[name.decode()] += 1
    return 1


def report_paused(kind: str, **fields: object) -> None:
    """Write a report line while no errors are injected."""
    global is_paused  # noqa: PLW0603 - the callback takes no argument for it
    was_paused, is_paused = is_paused, True
    report.write(kind, **fields)
    is_paused = was_paused


libfiu = ctypes.CDLL("libfiu.so.0")
libfiu.fiu_enable_external.argtypes = (
    ctypes.c_char_p, ctypes.c_int, ctypes.c_void_p, ctypes.c_uint, CALLBACK,
)  # fmt: skip


def attempt(kind: str, uid: str, act) -> None:
    began = time.monotonic()
    try:
        row = act()
    except HermesError as error:
        report_paused("refused", uid=uid, error=type(error).__name__)
    else:
        report_paused(kind if row else "kept", uid=uid, row=row, waited=time.monotonic() - began)


def stream(uid: str) -> int:
    draft = db.messages.draft(session, uid=uid)
    for piece in range(5):
        draft.write(f"<{uid} {piece}>")
        draft.flush()
    return draft.finish()


db = SessionDB(database, busy_seconds=1)
db.create_session(session, "cli")
for point in points.split(","):
    assert libfiu.fiu_enable_external(point.encode(), 1, errno.EIO, 0, should_fail) == 0
report_paused("ready")
is_paused = False
for number in range(int(rounds)):
    uid = ids.new()
    text = f"{number:06} {uid}"
    attempt("stored", uid, lambda: db.append_message(session, "user", text, uid=uid))  # noqa: B023
    if number % 10 == 9:
        uid = ids.new()
        attempt("stored", uid, lambda: stream(uid))  # noqa: B023
is_paused = True
uid = ids.new()
row = db.append_message(session, "user", f"999999 {uid}", uid=uid)
report_paused("stored" if row else "kept", uid=uid, row=row, waited=0.0)
report_paused("recovered", row=row, trouble=db.trouble(), injected=injected, callbacks=callbacks)
db.close()
report_paused("stopped")
