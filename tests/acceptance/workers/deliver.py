"""Deliver boundary events to plugins that record them on disk, until killed or drained.

    deliver.py REPORT DATABASE NOTES PLUGINS MODE

Each plugin writes one line per call to NOTES, in one write, and has it on disk before it
returns. PLUGINS are its names; one named `killer` ends the process instead. MODE is `loop`,
or `drain` (until nothing is due).
"""

from __future__ import annotations

import os
import sys
import time

from reporting import Report

from hermes_plugin_host.callbacks import Callback
from hermes_plugin_host.delivery import Delivery
from hermes_state import SessionDB

HOOKS = ("on_session_finalize", "on_session_reset", "on_session_boundary")


class Plugins:
    """Replaces the plugin manager: callbacks by hook."""

    def __init__(self, names: list[str]) -> None:
        self._callbacks = {
            hook: [Callback(name, hook, self._function(name, hook)) for name in names]
            for hook in HOOKS
        }

    def callbacks(self, hook: str) -> list[Callback]:
        return self._callbacks[hook]

    @staticmethod
    def _function(name: str, hook: str):
        def record(**fields: object) -> None:
            subject = fields.get("event_id") or fields["session_id"]
            began = time.monotonic_ns()
            if name == "killer":
                os.write(notes, f"{name} {hook} {subject} {began} 0 {os.getpid()}\n".encode())
                os._exit(9)
            if name == "slow":
                time.sleep(0.002)
            line = f"{name} {hook} {subject} {began} {time.monotonic_ns()} {os.getpid()}\n"
            os.write(notes, line.encode())
            os.fsync(notes)

        return record


report = Report()
database, path, names, mode = sys.argv[2:6]
notes = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
db = SessionDB(database)
delivery = Delivery(db.boundaries, Plugins(names.split(",")))  # type: ignore[arg-type]
report.write("ready")
while True:
    delivered = delivery.deliver_due()
    if mode == "drain" and not delivered:
        break
    time.sleep(0.001)
db.close()
report.write("drained")
