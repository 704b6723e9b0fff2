"""The gateway on a history of an older hermes-agent, and on a statement that always fails."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hermes_core.config.file import ConfigFile
from hermes_state import SessionDB
from hermes_state.messages.history import MessageRepository
from state.foreign_files import make_schema_16
from support.gateways import local_message, outbox_texts, running_gateway
from support.waiting import async_wait_until

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


async def test_sessions_are_listed_and_resumed_on_a_schema_without_keys(
    hermes_home: Path, tmp_path: Path, answering: Any
) -> None:
    answering("[{say: Hello.}, {say: Hello again.}]")
    make_schema_16(hermes_home / "state.db")
    with SessionDB() as db:
        async with running_gateway(db, tmp_path) as service:
            for number, text in enumerate(["hello", "/sessions", "hello again"]):
                await service.receiver.receive("local", local_message(text, f"m{number}"))
                await async_wait_until(lambda count=number + 1: len(outbox_texts(db)) == count)
        first, listed, last = outbox_texts(db)
    assert (first, last) == ("Hello.", "Hello again.")
    assert "hello" in listed


async def test_a_message_whose_statement_always_fails_is_given_up(
    db: SessionDB, tmp_path: Path, answering: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    answering("[{say: Hello.}]")
    ConfigFile.of_home().set("gateway.attempts", "2")
    real = MessageRepository.append_message

    def fail_for_one(self: MessageRepository, session_id: str, *values: Any, **names: Any) -> Any:
        if "broken" in str((values, names)):
            return self.engine.read(lambda reader: reader.rows("SELECT gone FROM sessions"))
        return real(self, session_id, *values, **names)

    monkeypatch.setattr(MessageRepository, "append_message", fail_for_one)
    async with running_gateway(db, tmp_path) as service:
        await service.receiver.receive("local", local_message("broken", "m1"))
        await async_wait_until(lambda: outbox_texts(db))
        assert "interrupted 2 times" in outbox_texts(db)[0]
        await service.receiver.receive("local", local_message("hi", "m2"))
        await async_wait_until(lambda: "Hello." in outbox_texts(db))
