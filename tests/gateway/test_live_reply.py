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
from support.gateways import answers, guest_config, message, started, until
from support.telegram_server import Fault, TelegramServer
from support.telegram_setup import PNG, TelegramSetup, waited

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from gateway.platforms.base import OutgoingMessage
    from hermes_state import SessionDB


WORDS = " ".join(f"word{number}" for number in range(30))

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


def shown(setup: TelegramSetup) -> list[str]:
    """The messages of the bot, as people see them now."""
    return [item.text for item in setup.server.sent]


async def test_an_answer_grows_in_one_message_and_ends_without_the_cursor(
    setup: TelegramSetup, db: SessionDB, tmp_path: Path, answering: Any
) -> None:
    answering(f"[{{say: {WORDS}, pause: 0.05}}]")
    async with started(db, tmp_path, config(), {"telegram": setup.adapter()}):
        await setup.server.say("tell me")
        await waited(lambda: any(CURSOR in item for item in shown(setup)))
        await waited(lambda: shown(setup) == [WORDS])
        assert setup.server.count("editMessageText") >= 2
        assert setup.server.count("sendMessage") == 1
        assert setup.server.count("sendChatAction") >= 1


async def test_without_streaming_it_comes_at_once(
    setup: TelegramSetup, db: SessionDB, tmp_path: Path, answering: Any
) -> None:
    answering(f"[{{say: {WORDS}, pause: 0.02}}]")
    async with started(db, tmp_path, config(enabled=False), {"telegram": setup.adapter()}):
        await setup.server.say("tell me")
        await waited(lambda: shown(setup) == [WORDS])
        assert setup.server.count("editMessageText") == 0


async def test_a_preview_that_is_refused_keeps_nothing_back(
    setup: TelegramSetup, db: SessionDB, tmp_path: Path, answering: Any
) -> None:
    answering(f"[{{say: {WORDS}, pause: 0.05}}]")
    setup.server.plan("editMessageText", *[Fault(429, "Too Many Requests", {"retry_after": 1})] * 3)
    async with started(db, tmp_path, config(), {"telegram": setup.adapter()}):
        await setup.server.say("tell me")
        await waited(lambda: shown(setup) == [WORDS])


async def test_after_a_restart_the_answer_takes_the_place_of_what_was_shown(
    setup: TelegramSetup, db: SessionDB, tmp_path: Path, answering: Any
) -> None:
    answering(f"[{{say: {WORDS}, pause: 0.3}}, {{say: The whole answer.}}]")
    async with started(db, tmp_path, config(), {"telegram": setup.adapter()}, drain=0):
        await setup.server.say("tell me")
        await waited(lambda: any(CURSOR in item for item in shown(setup)))
    assert CURSOR in shown(setup)[0]
    async with started(db, tmp_path, config(), {"telegram": setup.adapter()}):
        await waited(lambda: shown(setup) == ["The whole answer."])
    assert setup.server.count("sendMessage") == 1


async def test_a_photo_is_seen_by_the_model_and_kept_once(
    setup: TelegramSetup, db: SessionDB, tmp_path: Path, hermes_home: Path, answering: Any
) -> None:
    answering("[{say: A small picture.}]")
    setup.media = media_store.of_home()
    async with started(db, tmp_path, config(enabled=False), {"telegram": setup.adapter()}):
        setup.server.files = {"photo": PNG}
        facts = {"file_id": "photo", "file_unique_id": "photo", "file_size": len(PNG)}
        await setup.server.say(caption="what is it?", photo=[{**facts, "width": 9, "height": 9}])
        await waited(lambda: answers(db) == ["A small picture."])
    (row, *_) = db.get_messages(db.list_sessions_rich(source="telegram")[0]["id"])
    assert row["content"][1]["image_url"]["url"].startswith("media:")
    assert len(list((hermes_home / "media").glob("*/*"))) == 1


class FaultyTyping:
    """An adapter whose typing indicator raises an unexpected error."""

    abilities: ClassVar = Abilities(typing=True)
    account = "faulty"

    def __init__(self) -> None:
        self.tries = 0

    async def connect(self, _receive: Any) -> None: ...

    async def disconnect(self) -> None: ...

    async def typing(self, _chat_id: str, _thread_id: str | None = None) -> None:
        self.tries += 1
        raise ZeroDivisionError("a mistake in an adapter")

    async def send(self, _outgoing: OutgoingMessage) -> SendResult:
        return SendResult(True, message_id="1")


async def test_what_goes_wrong_while_an_answer_is_shown_harms_no_answer(
    db: SessionDB, tmp_path: Path, answering: Any
) -> None:
    answering(f"[{{say: {SLOW}, pause: 0.02}}]")
    faulty = FaultyTyping()
    async with started(db, tmp_path, guest_config(), {"telegram": faulty}) as service:
        received = message("hi", "m1", "guest", platform=Platform.TELEGRAM)
        await service.receiver.receive("faulty", received)
        await until(lambda: answers(db))
    assert answers(db) == [SLOW]
    assert faulty.tries == 1
    assert db.find_incoming("m1")[0]["attempts"] == 1
