"""The running instance of a server in a Hermes folder: one at a time, and how to reach it."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import time
from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_core import paths
from hermes_core.atomic_files import write_atomically
from hermes_core.paths import FILE_MODE, private_folder

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MAX_LOCK_ATTEMPTS: Final = 20
RETRY_SECONDS: Final = 0.05


@contextlib.contextmanager
def hold_lock(path: Path) -> Iterator[bool]:
    """Try to acquire the lock for the context; yields whether it succeeded."""
    private_folder(path.parent)
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, FILE_MODE)
    try:
        yield _lock_exclusively(handle)
    finally:
        os.close(handle)


def is_lock_held(path: Path) -> bool:
    """Whether a running process holds the lock."""
    try:
        handle = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return not _try_lock(handle, fcntl.LOCK_SH)
    finally:
        os.close(handle)


def _lock_exclusively(handle: int) -> bool:
    """Acquire the lock exclusively, retrying while only checks hold it."""
    for _ in range(MAX_LOCK_ATTEMPTS):
        if _try_lock(handle, fcntl.LOCK_EX):
            return True
        if not _try_lock(handle, fcntl.LOCK_SH):
            return False  # held exclusively
        fcntl.flock(handle, fcntl.LOCK_UN)
        time.sleep(RETRY_SECONDS)
    return False


def _try_lock(handle: int, kind: int) -> bool:
    try:
        fcntl.flock(handle, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


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
        return is_lock_held((home or paths.hermes_home()) / "run" / self._lock_name)

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
        with hold_lock(self._folder(home) / self._lock_name) as is_acquired:
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
