"""Waiting for a condition, with a deadline that a busy machine does not reach."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

PATIENCE_SECONDS = 120.0


def wait_until(
    is_true: Callable[[], object], seconds: float = PATIENCE_SECONDS, what: str = "the condition"
) -> None:
    """Wait until something holds; fail the test when it does not come to hold."""
    deadline = time.monotonic() + seconds
    while not is_true():
        assert time.monotonic() < deadline, f"waited {seconds:.0f} s in vain for {what}"
        time.sleep(0.02)


def when(is_true: Callable[[], object], act: Callable[[], object]) -> threading.Thread:
    """Do something as soon as a condition holds, while the test does something else."""

    def wait_and_act() -> None:
        wait_until(is_true)
        act()

    thread = threading.Thread(target=wait_and_act, daemon=True)
    thread.start()
    return thread
