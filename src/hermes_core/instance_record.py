"""The running instance of a server in a Hermes folder: one at a time, and how to reach it."""

from __future__ import annotations

import contextlib
import json
from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_core import instance_lock, paths
from hermes_core.atomic_files import write_atomically

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class InstanceRecord(NamedTuple):
    """A running server: its URL, and the access token for programs of the same user."""

    url: str
    token: str
    pid: int
    version: str
    certificate: str = ""


class Instance:
    """One kind of server: `run/NAME.lock` is held while it runs, `run/NAME.json` describes it."""

    def __init__(self, name: str) -> None:
        self._lock_name = f"{name}.lock"
        self.file_name = f"{name}.json"

    def is_running(self, home: Path | None = None) -> bool:
        """Whether a process holds the lock; it may not have published its record yet."""
        return instance_lock.is_lock_held((home or paths.hermes_home()) / "run" / self._lock_name)

    def find(self, home: Path | None = None) -> InstanceRecord | None:
        """The record of the running instance; None if none runs or its record is unreadable."""
        if not self.is_running(home):
            return None
        try:
            text = (self._folder(home) / self.file_name).read_text(encoding="utf-8")
            facts = json.loads(text)
            known = {name: facts[name] for name in InstanceRecord._fields if name in facts}
            record = InstanceRecord(**known)
            return record._replace(pid=int(record.pid))
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None

    def publish(self, record: InstanceRecord, home: Path | None = None) -> None:
        """Write the record where the user's other programs find it."""
        write_atomically(self._folder(home) / self.file_name, json.dumps(record._asdict()))

    @contextlib.contextmanager
    def hold(self, home: Path | None = None) -> Iterator[bool]:
        """Hold the lock of the running instance; yields False if another process holds it."""
        record = self._folder(home) / self.file_name
        with instance_lock.hold_lock(self._folder(home) / self._lock_name) as is_acquired:
            if is_acquired:
                record.unlink(missing_ok=True)  # left by a process that was killed
            yield is_acquired
            if is_acquired:
                record.unlink(missing_ok=True)

    @staticmethod
    def _folder(home: Path | None) -> Path:
        return paths.private_folder((home or paths.hermes_home()) / "run")


DAEMON: Final = Instance("serve")
DASHBOARD: Final = Instance("dashboard")
