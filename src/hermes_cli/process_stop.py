"""Ending a process of ours that runs elsewhere: asked to, and waited for."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from typing import TYPE_CHECKING, Final

from hermes_core.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

STOP_SECONDS: Final = 15.0
PAUSE_SECONDS: Final = 0.05


def end(
    process_id: int,
    is_over: Callable[[], bool],
    seconds: float = STOP_SECONDS,
    waiting: Callable[[], object] = lambda: None,
) -> None:
    """Return when it is over; UsageError when it is not after so many seconds."""
    with contextlib.suppress(ProcessLookupError):  # it has just ended
        os.kill(process_id, signal.SIGTERM)
    deadline = time.monotonic() + seconds
    while not is_over():
        if time.monotonic() > deadline:
            raise UsageError(f"process {process_id} does not end; see the log")
        waiting()
        time.sleep(PAUSE_SECONDS)
