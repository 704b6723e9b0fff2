"""Run turns on a recorded file system; save the disk operations.

record.py REPORT DATABASE SYNCHRONOUS LOG TURNS
"""

from __future__ import annotations

import pickle
import random
import sys
from pathlib import Path

import recorded_files
from reporting import Report

database, synchronous, log_path, turns = sys.argv[2:6]
files, log = recorded_files.install(synchronous)

from hermes_core.clock import SystemClock  # noqa: E402 - the store takes the driver as it is
from hermes_core.ids import MessageIds  # noqa: E402
from hermes_state import SessionDB  # noqa: E402
from hermes_state.store_settings import StoreSettings  # noqa: E402

report = Report()
chance = random.Random(7)
ids = MessageIds(SystemClock())


def acknowledge(uid: str, row: int) -> None:
    assert row > 0
    log.append(("acknowledged", uid))


db = SessionDB(database, settings=StoreSettings(draft_interval_ms=1))
db.create_session("one", "cli")
for turn in range(int(turns)):
    uid = ids.new()
    text = "word " * chance.choice((1, 20, 400, 2000))
    acknowledge(uid, db.append_message("one", "user", text, uid=uid))
    uid = ids.new()
    draft = db.messages.draft("one", uid=uid)
    draft.write("streaming ")
    draft.flush()
    draft.write("more")
    acknowledge(uid, draft.finish())
    if turn % 20 == 19:
        db.create_session(f"side {turn}", "cli")
        db.end_session(f"side {turn}", "done")
        db.edits.undo("one")
        db.edits.redo("one")
settings = db.engine.write(
    lambda tx: (tx.value("PRAGMA journal_mode"), tx.value("PRAGMA synchronous"))
)
db.close()
Path(log_path).write_bytes(pickle.dumps(log))
counts = {kind: sum(item[0] == kind for item in log) for kind in ("write", "sync", "acknowledged")}
report.write("recorded", settings=settings, **counts)
