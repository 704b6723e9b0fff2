"""The status of the gateway of a Hermes folder: lock, PID file and state file."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
from typing import TYPE_CHECKING, Any, Final

from hermes_core import instance_lock, paths
from hermes_core.atomic_files import write_atomically

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

STATUS_KIND: Final = "hermes-gateway"
STATES: Final = ("starting", "running", "degraded", "draining", "stopped", "startup_failed")


def pid_path() -> Path:
    """The PID file."""
    return paths.hermes_home() / "gateway.pid"


def state_path() -> Path:
    """The state file."""
    return paths.hermes_home() / "gateway_state.json"


def lock_path() -> Path:
    """The lock file, locked while a gateway is running."""
    return paths.hermes_home() / "gateway.lock"


@contextlib.contextmanager
def hold_lock() -> Iterator[bool]:
    """Hold the gateway lock of this folder; False if another process has it."""
    with instance_lock.hold_lock(lock_path()) as is_ours:
        if is_ours:
            write_pid_file()
        yield is_ours
        if is_ours:
            remove_pid_file()


def write_pid_file() -> None:
    """Write the PID file."""
    write_atomically(pid_path(), f"{os.getpid()}\n")


def remove_pid_file() -> None:
    """Remove the PID file, unless it belongs to another process."""
    if read_pid() == os.getpid():
        pid_path().unlink(missing_ok=True)


def read_pid() -> int | None:
    """The PID in the file, whether it is running or not."""
    try:
        return int(pid_path().read_text())
    except (OSError, ValueError):
        return None


def running_pid() -> int | None:
    """The PID of the running gateway; None if there is none."""
    return read_pid() if instance_lock.is_lock_held(lock_path()) else None


def write_runtime_status(state: str, **fields: Any) -> None:
    """Update the state file; fields that are not given keep their values."""
    data = read_runtime_status() or {
        "kind": STATUS_KIND,
        "start_time": time.time(),
        "platforms": {},
    }
    if data.get("pid") != os.getpid() or state == "starting":  # a restart keeps the PID
        data = {"kind": STATUS_KIND, "start_time": time.time(), "platforms": {}}
    data |= {"pid": os.getpid(), "argv": sys.argv, "updated_at": time.time()}
    data |= {"gateway_state": state, **fields}
    write_atomically(state_path(), json.dumps(data, indent=2))


def read_runtime_status() -> dict[str, Any] | None:
    """The contents of the state file."""
    try:
        data = json.loads(state_path().read_text())
    except (OSError, ValueError):
        return None
    return data if isinstance(data, dict) else None
