"""Append and stream while the disk returns errors; say what was acknowledged and refused.

    fiu-run -x suffer.py REPORT DATABASE SESSION POINTS PROBABILITY ROUNDS

The preloaded libfiu asks this program at each call whether it shall fail, so the errors
are counted where they are made.
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
asked: Counter[str] = Counter()
is_calm = True

ASK = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p
)


@ASK
def shall_fail(name: bytes, _number: int, _info: int, _flags: int) -> int:
    asked[name.decode()] += 1
    if is_calm or random.random() >= float(probability):
        return 0
    injected[name.decode()] += 1
    return 1


def say(kind: str, **facts: object) -> None:
    """Report without errors of our own making."""
    global is_calm  # noqa: PLW0603 - the callback has no other way to know
    was_calm, is_calm = is_calm, True
    report.say(kind, **facts)
    is_calm = was_calm


libfiu = ctypes.CDLL("libfiu.so.0")
libfiu.fiu_enable_external.argtypes = (
    ctypes.c_char_p, ctypes.c_int, ctypes.c_void_p, ctypes.c_uint, ASK,
)  # fmt: skip


def keep(kind: str, uid: str, act) -> None:
    began = time.monotonic()
    try:
        row = act()
    except HermesError as error:
        say("refused", uid=uid, error=type(error).__name__)
    else:
        say(kind if row else "kept", uid=uid, row=row, waited=time.monotonic() - began)


def stream(uid: str) -> int:
    draft = db.draft(session, uid=uid)
    for piece in range(5):
        draft.write(f"<{uid} {piece}>")
        draft.flush()
    return draft.finish()


db = SessionDB(database, busy_seconds=1)
db.create_session(session, "cli")
for point in points.split(","):
    assert libfiu.fiu_enable_external(point.encode(), 1, errno.EIO, 0, shall_fail) == 0
say("ready")
is_calm = False
for number in range(int(rounds)):
    uid = ids.new()
    text = f"{number:06} {uid}"
    keep("stored", uid, lambda: db.append_message(session, "user", text, uid=uid))  # noqa: B023
    if number % 10 == 9:
        uid = ids.new()
        keep("stored", uid, lambda: stream(uid))  # noqa: B023
is_calm = True
uid = ids.new()
row = db.append_message(session, "user", f"999999 {uid}", uid=uid)
say("stored" if row else "kept", uid=uid, row=row, waited=0.0)
say("recovered", row=row, trouble=db.trouble(), injected=injected, asked=asked)
db.close()
say("stopped")
