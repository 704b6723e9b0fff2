"""Example plugin that fails on demand, to test the isolation of plugins.

HERMES_MISBEHAVE is one of: import (fails to load), raise, hang, exit (sys.exit), kill
(kills the process), async (fails after a delay), late (takes half a second).
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from typing import Any


def _failure_mode() -> str:
    return os.environ.get("HERMES_MISBEHAVE", "")


if _failure_mode() == "import":
    raise RuntimeError("the plugin is configured to fail on import")


def boundary(**_facts: Any) -> None:
    """Fail as configured."""
    mode = _failure_mode()
    if mode == "raise":
        raise RuntimeError("the plugin is configured to fail")
    if mode == "hang":
        time.sleep(3600)
    if mode == "exit":
        sys.exit(3)
    if mode == "kill":
        os._exit(9)
    if mode == "late":
        time.sleep(0.5)


async def boundary_async(**_facts: Any) -> None:
    """Fail as configured, in an async function."""
    if _failure_mode() == "async":
        await asyncio.sleep(0.01)
        raise RuntimeError("the plugin is configured to fail after a delay")


def register(ctx: Any) -> None:
    """Register the callbacks; called once, when the plugin is loaded."""
    ctx.register_hook("on_session_boundary", boundary)
    ctx.register_hook("on_session_boundary", boundary_async)
