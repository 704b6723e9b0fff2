"""A small history for the commands to show."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from hermes_state import SessionDB
from support.sample_history import CALL, CHAT, OSLO

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def history(hermes_home: Path) -> Path:
    """Two conversations: an ended one with a tool call, an open one from a chat app."""
    now = time.time()
    with SessionDB() as db:
        db.create_session(OSLO, "cli", model="model-a", cwd="/home/somebody")
        db.append_message(OSLO, "user", content="How warm is Oslo?", timestamp=now - 7200)
        db.append_message(OSLO, "assistant", content="", tool_calls=[CALL], timestamp=now - 7199)
        long_output = "\n".join(f"line {number}" for number in range(200))
        db.append_message(
            OSLO, "tool", content=long_output, tool_name="weather", timestamp=now - 7198
        )
        db.append_message(OSLO, "assistant", content="21 degrees.", timestamp=now - 7197)
        db.set_session_title(OSLO, "Weather in Oslo")
        db.end_session(OSLO, "cli_close")
        db.create_session(CHAT, "telegram")
        db.append_message(CHAT, "user", content="Guten Tag, 世界", timestamp=now - 120)
    return hermes_home
