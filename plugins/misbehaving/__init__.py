"""An example of everything a plugin should not do, on demand.

HERMES_MISBEHAVE is one of: import (fails to load), raise, hang, exit (sys.exit), kill
(ends the process), async (fails after waiting), late (takes half a second).
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from typing import Any


def _how() -> str:
    return os.environ.get("HERMES_MISBEHAVE", "")


if _how() == "import":
    raise RuntimeError("the plugin is configured to fail on import")


def boundary(**_facts: Any) -> None:
    """Fail as asked."""
    how = _how()
    if how == "raise":
        raise RuntimeError("the plugin is configured to fail")
    if how == "hang":
        time.sleep(3600)
    if how == "exit":
        sys.exit(3)
    if how == "kill":
        os._exit(9)
    if how == "late":
        time.sleep(0.5)


async def boundary_async(**_facts: Any) -> None:
    """Fail as asked, in an async function."""
    if _how() == "async":
        await asyncio.sleep(0.01)
        raise RuntimeError("the plugin is configured to fail after a delay")


def register(ctx: Any) -> None:
    """Called once, when the plugin is loaded."""
    ctx.register_hook("on_session_boundary", boundary)
    ctx.register_hook("on_session_boundary", boundary_async)
