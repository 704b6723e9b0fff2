"""The status of the gateway of a Hermes folder: lock, PID file and state file."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
from typing import TYPE_CHECKING, Final, TypedDict, cast

from hermes_core import instance_lock, paths
from hermes_core.atomic_files import write_atomically

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import Unpack

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


class RuntimePlatform(TypedDict, total=False):
    """The state of a platform in the state file."""

    state: str
    error_message: str | None
    account: str | None
    updated_at: float | str | None


class RuntimeFields(TypedDict, total=False):
    """What a process adds to the state file as it is known."""

    platforms: dict[str, RuntimePlatform]
    http_url: str
    exit_reason: str | None


class RuntimeStatus(RuntimeFields, total=False):
    """The state file."""

    kind: str
    pid: int
    argv: list[str]
    version: str
    start_time: float
    updated_at: float
    gateway_state: str


def write_runtime_status(state: str, **fields: Unpack[RuntimeFields]) -> None:
    """Update the state file; fields that are not given keep their values."""
    data = read_runtime_status()
    if data is None or data.get("pid") != os.getpid() or state == "starting":
        # A restart keeps the PID.
        data = {"kind": STATUS_KIND, "start_time": time.time(), "platforms": {}}
    data |= {"pid": os.getpid(), "argv": sys.argv, "updated_at": time.time()}
    data = {**data, **fields, "gateway_state": state}
    write_atomically(state_path(), json.dumps(data, indent=2))


def read_runtime_status() -> RuntimeStatus | None:
    """The contents of the state file."""
    try:
        data = json.loads(state_path().read_text())
    except (OSError, ValueError):
        return None
    if not isinstance(data, dict):
        return None
    platforms = data.get("platforms")
    items = platforms.items() if isinstance(platforms, dict) else ()
    data["platforms"] = {name: item for name, item in items if isinstance(item, dict)}
    return cast("RuntimeStatus", data)
