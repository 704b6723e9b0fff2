"""Loops that wait with a time limit end when they are cancelled."""

from __future__ import annotations

import re
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2] / "src"
# In Python 3.11 it loses a cancellation that comes when the awaited event happens; these end
# anyway.
ALLOWED = {
    "gateway/process/connections.py": 1,
    "gateway/process/live_facts.py": 1,
    "gateway/platforms/discord/listener.py": 1,
    "gateway/platforms/local.py": 1,
    "hermes_plugin_host/callbacks.py": 1,
}


def test_no_loop_waits_with_a_function_that_loses_cancellations() -> None:
    found = {
        path.relative_to(SOURCE).as_posix(): count
        for path in SOURCE.rglob("*.py")
        if (count := len(re.findall(r"asyncio\.wait_for\(", path.read_text("utf-8"))))
    }
    assert found == ALLOWED
