"""The status of the gateway of a Hermes folder: lock, PID file and state file."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sys
import time
from typing import TYPE_CHECKING, Final, TypedDict, cast

from hermes_core import human_format, instance_record, paths
from hermes_core.atomic_files import write_atomically

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import Unpack

STATUS_KIND: Final = "hermes-gateway"
HEARTBEAT_SECONDS: Final = 10.0
SILENCE_SECONDS: Final = 45.0  # a gateway that has not written for so long is stopped or hangs
MIN_FREE_BYTES: Final = 100 * 1024**2
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
    with instance_record.hold_lock(lock_path()) as is_ours:
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
    return read_pid() if instance_record.is_lock_held(lock_path()) else None


class RuntimePlatform(TypedDict, total=False):
    """The state of a platform in the state file."""

    state: str
    error_message: str | None
    account: str | None
    updated_at: float | str | None


class TaskFacts(TypedDict):
    """A long-lived task that has failed before."""

    name: str
    is_running: bool
    failures: int
    last_error: str
    failed_at: float | None
    is_platform: bool


class TurnFacts(TypedDict, total=False):
    """How long the running turns take."""

    running: int
    oldest_seconds: float
    silent_seconds: float
    hung: int


class RuntimeFacts(TypedDict, total=False):
    """The live facts of a gateway; `problems` lists what does not work."""

    heartbeat_at: float
    platforms: dict[str, RuntimePlatform]
    problems: list[str]
    turns: TurnFacts
    tasks: list[TaskFacts]
    store_error: str
    free_bytes: int
    waiting_chats: int
    oldest_waiting_seconds: float
    oldest_claimed_seconds: float
    failed_messages: int
    suspect_messages: int


class RuntimeFields(RuntimeFacts, total=False):
    """What a process adds to the state file as it is known."""

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
    is_heartbeat = "heartbeat_at" in fields
    write_atomically(state_path(), json.dumps(data, indent=2), is_synced=not is_heartbeat)


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


def silent_seconds(runtime_status: RuntimeStatus, now: float) -> float:
    """For how long the gateway has not responded; 0 while it does."""
    beat = runtime_status.get("heartbeat_at")
    age = now - beat if beat is not None else 0.0
    return age if age > SILENCE_SECONDS else 0.0


def live_problems(runtime_status: RuntimeStatus, now: float) -> list[str]:
    """What does not work in a running gateway, as sentences."""
    problems = runtime_status.get("problems", [])
    free = shutil.disk_usage(paths.hermes_home()).free
    if free < MIN_FREE_BYTES:  # then the gateway cannot write its state
        text = disk_problem(free)
        return [text, *(problem for problem in problems if problem != text)]
    silent = silent_seconds(runtime_status, now)
    if silent:
        return [f"not responding for {silent:.0f} s: the process is stopped or hangs"]
    return problems


def disk_problem(free_bytes: int) -> str:
    """The sentence about a disk without room."""
    return f"the disk is full: {human_format.size(free_bytes)} left"
