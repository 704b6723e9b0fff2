"""Whether a gateway runs here, and how it is: a lock, a pid file, a file with its state."""

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

KIND: Final = "hermes-gateway"
STATES: Final = ("starting", "running", "degraded", "draining", "stopped", "startup_failed")


def pid_path() -> Path:
    """The file with the process id."""
    return paths.hermes_home() / "gateway.pid"


def state_path() -> Path:
    """The file with the state."""
    return paths.hermes_home() / "gateway_state.json"


def lock_path() -> Path:
    """The file whose lock only a living gateway has."""
    return paths.hermes_home() / "gateway.lock"


@contextlib.contextmanager
def held() -> Iterator[bool]:
    """Be the gateway of this folder; False when another process is."""
    with instance_lock.held(lock_path()) as is_ours:
        if is_ours:
            write_pid_file()
        yield is_ours
        if is_ours:
            remove_pid_file()


def write_pid_file() -> None:
    """Say which process is the gateway."""
    write_atomically(pid_path(), f"{os.getpid()}\n")


def remove_pid_file() -> None:
    """No process is it any more; another process's file is left alone."""
    if read_pid() == os.getpid():
        pid_path().unlink(missing_ok=True)


def read_pid() -> int | None:
    """The process id in the file, alive or not."""
    try:
        return int(pid_path().read_text())
    except (OSError, ValueError):
        return None


def running_pid() -> int | None:
    """The process id of a gateway that runs; None when none does."""
    return read_pid() if instance_lock.is_held(lock_path()) else None


def write_runtime_status(state: str, **facts: Any) -> None:
    """Write down how the gateway is; facts that are not given stay as they were."""
    found = read_runtime_status() or {"kind": KIND, "start_time": time.time(), "platforms": {}}
    if found.get("pid") != os.getpid() or state == "starting":  # a restart keeps the number
        found = {"kind": KIND, "start_time": time.time(), "platforms": {}}
    found |= {"pid": os.getpid(), "argv": sys.argv, "updated_at": time.time()}
    found |= {"gateway_state": state, **facts}
    write_atomically(state_path(), json.dumps(found, indent=2))


def read_runtime_status() -> dict[str, Any] | None:
    """How the gateway is, or was."""
    try:
        found = json.loads(state_path().read_text())
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None
