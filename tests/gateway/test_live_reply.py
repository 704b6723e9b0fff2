"""An answer while it is written, in a real client of a chat platform."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import pytest

from gateway.config import (
    GatewayConfig,
    Platform,
    PlatformConfig,
    StreamingConfig,
)
from gateway.platforms.base import Abilities, SendResult
from hermes_core import media_store
from support.adapters import PNG
from support.gateways import guest_config, local_message, outbox_texts, running_gateway
from support.telegram_server import Fault, TelegramServer
from support.telegram_setup import TelegramSetup
from support.waiting import async_wait_until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from gateway.platforms.base import OutgoingMessage
    from hermes_state import SessionDB


STREAMED_WORDS = " ".join(f"word{number}" for number in range(30))

CURSOR = "▉"

SLOW = "one two three four five six seven eight"


@pytest.fixture
async def setup(db: SessionDB, tmp_path: Path) -> AsyncIterator[TelegramSetup]:
    async with TelegramServer() as server:
        yield TelegramSetup(server, db, tmp_path)


def config(**streaming: Any) -> GatewayConfig:
    everybody = PlatformConfig(True, extra={"allowed_users": ["*"]})
    return GatewayConfig(
        platforms={Platform.TELEGRAM: everybody},
        streaming=StreamingConfig(**{"enabled": True, "edit_interval": 0.2, **streaming}),
    )


def sent_texts(setup: TelegramSetup) -> list[str]:
    """The current texts of the bot's messages."""
    return [item.text for item in setup.server.sent]


async def test_an_answer_grows_in_one_message_and_ends_without_the_cursor(
    setup: TelegramSetup, db: SessionDB, tmp_path: Path, answering: Any
) -> None:
    answering(f"[{{say: {STREAMED_WORDS}, pause: 0.05}}]")
    async with running_gateway(db, tmp_path, config(), {"telegram": setup.adapter()}):
        await setup.server.send_as_user("tell me")
        await async_wait_until(lambda: any(CURSOR in item for item in sent_texts(setup)))
        await async_wait_until(lambda: sent_texts(setup) == [STREAMED_WORDS])
        assert setup.server.count("editMessageText") >= 2
        assert setup.server.count("sendMessage") == 1
        assert setup.server.count("sendChatAction") >= 1


async def test_without_streaming_the_answer_is_sent_at_once(
    setup: TelegramSetup, db: SessionDB, tmp_path: Path, answering: Any
) -> None:
    answering(f"[{{say: {STREAMED_WORDS}, pause: 0.02}}]")
    async with running_gateway(db, tmp_path, config(enabled=False), {"telegram": setup.adapter()}):
        await setup.server.send_as_user("tell me")
        await async_wait_until(lambda: sent_texts(setup) == [STREAMED_WORDS])
        assert setup.server.count("editMessageText") == 0


async def test_a_rejected_preview_does_not_hold_back_the_answer(
    setup: TelegramSetup, db: SessionDB, tmp_path: Path, answering: Any
) -> None:
    answering(f"[{{say: {STREAMED_WORDS}, pause: 0.05}}]")
    setup.server.plan("editMessageText", *[Fault(429, "Too Many Requests", {"retry_after": 1})] * 3)
    async with running_gateway(db, tmp_path, config(), {"telegram": setup.adapter()}):
        await setup.server.send_as_user("tell me")
        await async_wait_until(lambda: sent_texts(setup) == [STREAMED_WORDS])


async def test_after_a_restart_the_answer_replaces_the_partial_text(
    setup: TelegramSetup, db: SessionDB, tmp_path: Path, answering: Any
) -> None:
    answering(f"[{{say: {STREAMED_WORDS}, pause: 0.3}}, {{say: The whole answer.}}]")
    async with running_gateway(db, tmp_path, config(), {"telegram": setup.adapter()}, drain=0):
        await setup.server.send_as_user("tell me")
        await async_wait_until(lambda: any(CURSOR in item for item in sent_texts(setup)))
    assert CURSOR in sent_texts(setup)[0]
    async with running_gateway(db, tmp_path, config(), {"telegram": setup.adapter()}):
        await async_wait_until(lambda: sent_texts(setup) == ["The whole answer."])
    assert setup.server.count("sendMessage") == 1


async def test_a_reply_that_is_not_whole_says_so(
    db: SessionDB, tmp_path: Path, answering: Any
) -> None:
    loop = "{calls: [{name: terminal, arguments: {command: echo again}}]}"
    answering(
        f"[{{say: It ends, finish: length}}, {{say: ''}}, {{say: ''}}, {', '.join([loop] * 5)}]"
    )
    async with running_gateway(db, tmp_path) as service:
        for number in range(1, 4):
            await service.receiver.receive("local", local_message("hi", f"m{number}"))
            await async_wait_until(lambda: len(outbox_texts(db)) == number)  # noqa: B023 - awaited
    cut, empty, repeated = outbox_texts(db)
    assert cut.startswith("It ends\n\n(The answer was cut off")
    assert "empty answer" in empty
    assert "What should it do instead?" in repeated


async def test_a_photo_is_sent_to_the_model_and_stored_once(
    setup: TelegramSetup, db: SessionDB, tmp_path: Path, hermes_home: Path, answering: Any
) -> None:
    answering("[{say: A small picture.}]")
    setup.media = media_store.of_home()
    async with running_gateway(db, tmp_path, config(enabled=False), {"telegram": setup.adapter()}):
        setup.server.files = {"photo": PNG}
        fields = {"file_id": "photo", "file_unique_id": "photo", "file_size": len(PNG)}
        await setup.server.send_as_user(
            caption="what is it?", photo=[{**fields, "width": 9, "height": 9}]
        )
        await async_wait_until(lambda: outbox_texts(db) == ["A small picture."])
    (row, *_) = db.get_messages(db.list_sessions_rich(source="telegram")[0]["id"])
    assert row["content"][1]["image_url"]["url"].startswith("media:")
    assert len(list((hermes_home / "media").glob("*/*"))) == 1


class FaultyTyping:
    """An adapter whose typing indicator raises an unexpected error."""

    abilities: ClassVar = Abilities(typing=True)
    account = "faulty"

    def __init__(self) -> None:
        self.attempts = 0

    async def connect(self, _receive: Any) -> None: ...

    async def disconnect(self) -> None: ...

    async def typing(self, _chat_id: str, _thread_id: str | None = None) -> None:
        self.attempts += 1
        raise ZeroDivisionError("a mistake in an adapter")

    async def send(self, _outgoing: OutgoingMessage) -> SendResult:
        return SendResult(True, message_id="1")


async def test_a_failure_of_the_live_reply_does_not_affect_the_answer(
    db: SessionDB, tmp_path: Path, answering: Any
) -> None:
    answering(f"[{{say: {SLOW}, pause: 0.02}}]")
    faulty = FaultyTyping()
    async with running_gateway(db, tmp_path, guest_config(), {"telegram": faulty}) as service:
        received = local_message("hi", "m1", "guest", platform=Platform.TELEGRAM)
        await service.receiver.receive("faulty", received)
        await async_wait_until(lambda: outbox_texts(db))
    assert outbox_texts(db) == [SLOW]
    assert faulty.attempts == 1
    assert db.chats.find_incoming("m1")[0].attempts == 1
