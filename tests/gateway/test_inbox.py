"""The inbox: unreadable messages, store errors, a clock that is set back."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from hermes_core.errors import StoreError
from hermes_state import SessionDB
from support.gateways import answers, message, started, until

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


async def test_a_message_nobody_can_read_is_settled_and_not_tried_for_ever(
    db: SessionDB, tmp_path: Path, answering: Any
) -> None:
    answering("[{say: Hello.}]")
    row = {"platform": "local", "account": "local", "chat_id": "c1", "session_key": "k"}
    db.receive(**row, message_id="m0", payload={"text": "x", "source": {"platform": "gone"}})
    async with started(db, tmp_path) as service:
        await service.receiver.receive("local", message("hi", "m1"))
        await until(lambda: answers(db) == ["Hello."])
    (result,) = db.find_incoming("m0")
    assert (result["state"], result["attempts"]) == ("failed", 1)


async def test_a_message_nobody_can_read_takes_no_other_along(
    db: SessionDB, tmp_path: Path, answering: Any
) -> None:
    answering("[{say: Hello.}]")
    async with started(db, tmp_path) as service:
        received = message("hi", "m1", group_id="album")  # more may be on its way
        await service.receiver.receive("local", received)
        key = "agent:main:local:dm:c1"
        row = {"platform": "local", "account": "local", "chat_id": "c1", "session_key": key}
        db.receive(**row, message_id="m2", payload={"source": {"platform": "gone"}})
        await until(lambda: answers(db) and db.waiting_places() == 0)
        await until(lambda: db.find_incoming("m2")[0]["state"] == "failed")
    assert answers(db) == ["Hello."]


async def test_a_store_that_refuses_in_mid_turn_is_no_answer(
    db: SessionDB, tmp_path: Path, answering: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    answering("[{say: Hello.}]")
    times: list[int] = []
    real = SessionDB.append_message

    def refusing(self: SessionDB, *values: Any, **names: Any) -> Any:
        times.append(1)
        if len(times) == 1:
            raise StoreError("the disk is full")
        return real(self, *values, **names)

    monkeypatch.setattr(SessionDB, "append_message", refusing)
    async with started(db, tmp_path) as service:
        await service.receiver.receive("local", message("hi", "m1"))
        await until(lambda: answers(db))
    assert answers(db) == ["Hello."]


async def test_a_clock_that_is_set_back_keeps_nobody_waiting(
    db: SessionDB, tmp_path: Path, answering: Any
) -> None:
    answering("[{say: Hello.}]")
    async with started(db, tmp_path) as service:
        received = message("look", "m1", group_id="g")
        await asyncio.to_thread(service.receiver._store, "local", received)
        sql = "UPDATE hermes_inbox SET received_at = received_at + 3600"
        db.engine.write(lambda tx: tx.run(sql))
        service.inbox_workers.wake()
        await until(lambda: answers(db) == ["Hello."])
