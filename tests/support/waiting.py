"""Waiting for a condition, as long as the suite lets a test run."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

PATIENCE_SECONDS = 900.0  # `timeout` of pytest in pyproject.toml: no wait has a shorter limit


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
