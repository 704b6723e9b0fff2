"""Waiting for a condition, with a deadline that a busy machine does not reach."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

PATIENCE_SECONDS = 120.0


def wait_until(
    is_true: Callable[[], object], seconds: float = PATIENCE_SECONDS, what: str = "the condition"
) -> None:
    """Wait until a condition holds; fail the test after the deadline."""
    deadline = time.monotonic() + seconds
    while not is_true():
        assert time.monotonic() < deadline, f"timed out after {seconds:.0f} s waiting for {what}"
        time.sleep(0.02)


async def async_wait_until(
    is_true: Callable[[], object], seconds: float = PATIENCE_SECONDS
) -> None:
    """Wait until a condition holds, while the event loop runs."""
    async with asyncio.timeout(seconds):
        while not is_true():  # noqa: ASYNC110 - the condition changes elsewhere
            await asyncio.sleep(0.005)


def act_when(is_true: Callable[[], object], act: Callable[[], object]) -> threading.Thread:
    """Run an action in a thread as soon as a condition holds."""

    def wait_and_act() -> None:
        wait_until(is_true)
        act()

    thread = threading.Thread(target=wait_and_act, daemon=True)
    thread.start()
    return thread
