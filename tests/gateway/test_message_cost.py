"""What a chat message costs the store."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

from gateway import supervision
from gateway.inbound import inbox_workers
from hermes_core.config.file import ConfigFile
from hermes_state.engine.sqlite import writer
from support.gateways import running_gateway

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pytest

    from hermes_state import SessionDB

MESSAGES = 20


async def talk(path: Path, numbers: range) -> None:
    """Send messages on the local socket, each after the reply to the one before."""
    reader, stream = await asyncio.open_unix_connection(str(path))
    for number in numbers:
        message = {"chat": "c1", "id": str(number), "text": f"hello {number}"}
        stream.write(json.dumps(message).encode() + b"\n")
        while "key" not in (line := json.loads(await reader.readline())):
            pass
        stream.write(json.dumps({"arrived": line["key"]}).encode() + b"\n")
    stream.close()


async def test_the_inbox_is_looked_at_once_after_a_message(
    db: SessionDB, tmp_path: Path, answering: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[str] = []
    look = supervision.read_or_none

    async def read_or_none(read: Callable[[], object], step: str) -> object:
        looks.append(step)
        return await look(read, step)

    monkeypatch.setattr(supervision, "read_or_none", read_or_none)
    monkeypatch.setattr(inbox_workers, "POLL_SECONDS", 60.0)
    answering("[" + "{say: Hello.}, " * (MESSAGES + 3) + "]")
    async with running_gateway(db, tmp_path):
        await talk(tmp_path / "s.sock", range(2))  # the conversation is created
        looks.clear()
        await talk(tmp_path / "s.sock", range(2, 2 + MESSAGES))
    assert looks.count("inbox claim") <= MESSAGES + 3


async def test_a_message_costs_four_commits(
    db: SessionDB, tmp_path: Path, answering: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Receipt; lease and prompt; answer, usage and reply; claim of the reply."""
    monkeypatch.setattr(writer, "SOON_SECONDS", 60.0)  # however slow the machine is
    ConfigFile.of_home().set("memory.review_turns", "0")
    answering("[" + "{say: Hello.}, " * (MESSAGES + 3) + "]")
    async with running_gateway(db, tmp_path):
        await talk(tmp_path / "s.sock", range(2))  # the conversation is created
        before = db.engine.commits
        await talk(tmp_path / "s.sock", range(2, 2 + MESSAGES))
        commits = db.engine.commits - before
    assert commits <= 4 * MESSAGES + 2  # heartbeats of a slow run
    db.set_meta("name", "value")  # carries the last settlement
    states = db.engine.read(lambda reader: reader.rows("SELECT state FROM hermes_outbox"))
    assert {state for (state,) in states} == {"sent"}
