"""Background processes that outlive the terminal."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from typing import TYPE_CHECKING, Final

from hermes_core import paths
from hermes_core.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def start(log: Path, module: str, *arguments: str) -> int:
    """Run a module in a new session with its output in *log*; returns its PID.

    It is a child of this process, which must wait for it.
    """
    paths.private_folder(log.parent)
    command = [sys.executable, "-P", "-m", module, *arguments]
    write = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    return os.posix_spawn(
        command[0],
        command,
        paths.environment(),
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, str(log), write, paths.FILE_MODE),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ],
        setsid=True,
    )


def exit_status(process_id: int) -> int | None:
    """The wait status of a process of `start` that has ended; None while it runs."""
    ended_id, status = os.waitpid(process_id, os.WNOHANG)
    return status if ended_id else None


STOP_SECONDS: Final = 15.0
POLL_SECONDS: Final = 0.05


def end(
    process_id: int,
    is_over: Callable[[], bool],
    seconds: float = STOP_SECONDS,
    waiting: Callable[[], object] = lambda: None,
) -> None:
    """Stop a process and wait for its end; raises UsageError after *seconds*."""
    with contextlib.suppress(ProcessLookupError):  # it has just ended
        os.kill(process_id, signal.SIGTERM)
    deadline = time.monotonic() + seconds
    while not is_over():
        if time.monotonic() > deadline:
            raise UsageError(f"process {process_id} does not exit; see the log")
        waiting()
        time.sleep(POLL_SECONDS)
