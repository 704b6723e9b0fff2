"""Telegram: aiogram as the client, against a server that speaks the Bot API."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import TYPE_CHECKING, Any

import pytest

from gateway.platforms.base import MessageEvent, MessageType, OutgoingMessage
from gateway.platforms.registry import PlatformRegistry
from gateway.platforms.telegram.adapter import TelegramAdapter
from hermes_core.errors import PlatformDownError, PlatformRefusedError, StoreUnavailableError
from support.adapters import Inbox, waited
from support.telegram_room import GROUP, Room
from support.telegram_server import BOT, TOKEN, Fault, TelegramServer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from hermes_state import SessionDB


@pytest.fixture
async def room(db: SessionDB, tmp_path: Path) -> AsyncIterator[Room]:
    async with TelegramServer() as server:
        server.chats.add(7)
        yield Room(server, db, tmp_path)


async def test_a_message_gets_through_with_its_source_and_id(room: Room) -> None:
    async with room.connected() as adapter:
        number = await room.server.say("hello", date=2_000_000_000)
        event = (await room.inbox.until(1))[0]
        assert adapter.account == "4242"
    assert (event.text, event.message_id) == ("hello", str(number))
    assert event.message_type is MessageType.TEXT
    assert event.timestamp == 2_000_000_000
    assert event.is_addressed
    source = event.source
    assert source is not None
    assert (source.platform.value, source.chat_id, source.chat_type) == ("telegram", "7", "dm")
    assert (source.user_id, source.user_name, source.chat_name) == ("7", "Ann L.", "Ann L.")
    assert source.thread_id is None


async def test_the_registry_makes_it(room: Room) -> None:
    adapter = PlatformRegistry().create_adapter("telegram", room.context())
    assert isinstance(adapter, TelegramAdapter)
    assert adapter.abilities.edit
    assert not adapter.abilities.idempotent


async def test_an_update_is_confirmed_only_after_it_was_kept(room: Room) -> None:
    room.inbox.gate = asyncio.Event()
    async with room.connected():
        await room.server.say("hello")
        await waited(lambda: room.inbox.tries)
        assert room.server.forgotten == []
        room.inbox.gate.set()
        await waited(lambda: room.server.forgotten)
    assert room.inbox.texts == ["hello"]
    assert not room.server.updates


@pytest.mark.parametrize("error", [OSError("disk full"), StoreUnavailableError("it is locked")])
async def test_what_was_not_kept_comes_again_in_its_order(room: Room, error: Exception) -> None:
    for number in range(5):
        await room.server.say(f"m{number}", chat=7 + number % 2)
    room.inbox.fail(2, error)
    async with room.connected():
        await room.inbox.until(5)
        await waited(lambda: not room.server.updates)
    assert room.inbox.texts == ["m0", "m1", "m2", "m3", "m4"]


async def test_what_was_kept_before_a_failure_is_confirmed(room: Room) -> None:
    class Third(Inbox):
        async def __call__(self, event: MessageEvent) -> None:
            if len(self.events) == 2:
                raise OSError("disk full")
            await super().__call__(event)

    room.inbox = Third()
    for number in range(4):
        await room.server.say(f"m{number}")
    async with room.connected():
        await waited(lambda: len(room.server.forgotten) == 2)
        assert len(room.server.updates) == 2
    assert room.inbox.texts == ["m0", "m1"]


async def test_an_abandoned_adapter_leaves_its_messages_to_the_next(room: Room) -> None:
    room.inbox.gate = asyncio.Event()
    async with room.connected():
        await room.server.say("hello")
        await waited(lambda: room.inbox.tries)
    assert room.inbox.texts == []
    room.inbox.gate = None
    async with room.connected():
        await room.inbox.until(1)
    assert room.inbox.texts == ["hello"]


async def test_messages_from_before_the_start_are_not_dropped(room: Room) -> None:
    room.server.webhook = {"url": "https://elsewhere"}
    await room.server.say("while you were away")
    async with room.connected():
        await room.inbox.until(1)
    assert room.server.webhook == {}


async def test_an_update_that_cannot_be_read_holds_up_no_other(
    room: Room, caplog: pytest.LogCaptureFixture
) -> None:
    await room.server.add("message", {"message_id": "not a number", "chat": 5})
    await room.server.say("hello")
    async with room.connected():
        await room.inbox.until(1)
        await waited(lambda: not room.server.updates)
    assert room.inbox.texts == ["hello"]
    assert "is unreadable" in caplog.text


async def test_own_messages_and_service_messages_are_not_received(room: Room) -> None:
    await room.server.say("mine", **{"from": BOT})
    await room.server.say(None, chat=GROUP, new_chat_title="Garden 2")
    await room.server.say("hello")
    async with room.connected():
        await waited(lambda: not room.server.updates)
    assert room.inbox.texts == ["hello"]


async def test_an_edit_has_the_id_of_the_original(room: Room) -> None:
    async with room.connected():
        number = await room.server.say("helo")
        changed = {**room.server.message("hello"), "message_id": number, "edit_date": 1}
        await room.server.add("edited_message", changed)
        first, second = await room.inbox.until(2)
    assert (first.is_edit, second.is_edit) == (False, True)
    assert first.message_id == second.message_id
    assert second.text == "hello"


@pytest.mark.parametrize(
    ("facts", "text", "kind"),
    [
        ({"text": "/new now"}, "/new now", MessageType.COMMAND),
        (
            {"location": {"latitude": 1.5, "longitude": 2.5}},
            "[location: 1.5, 2.5]",
            MessageType.LOCATION,
        ),
        (
            {"contact": {"phone_number": "+1", "first_name": "Bo"}},
            "[contact: Bo, +1]",
            MessageType.TEXT,
        ),
        ({"dice": {"emoji": "🎲", "value": 4}}, "[🎲: 4]", MessageType.TEXT),
    ],
)
async def test_what_has_no_words_is_put_into_some(
    room: Room, facts: dict[str, Any], text: str, kind: MessageType
) -> None:
    async with room.connected():
        await room.server.say(facts.pop("text", None), **facts)
        event = (await room.inbox.until(1))[0]
    assert (event.text, event.message_type) == (text, kind)


# The connection


@pytest.mark.parametrize("token", ["4242:wrong", "no token at all"])
async def test_a_wrong_token_is_refused_with_what_to_do(room: Room, token: str) -> None:
    room.secrets["TELEGRAM_BOT_TOKEN"] = token
    with pytest.raises(PlatformRefusedError, match="@BotFather") as caught:
        await room.adapter().connect(room.inbox)
    assert token not in str(caught.value)


async def test_a_server_that_is_down_is_said_so_and_connected_to_later(room: Room) -> None:
    await room.server.stop()
    adapter = room.adapter()
    with pytest.raises(PlatformDownError):
        await adapter.connect(room.inbox)
    await adapter.disconnect()
    await room.server.start()
    await room.server.say("hello")
    await adapter.connect(room.inbox)
    await room.inbox.until(1)
    await adapter.disconnect()
    await room.server.say("again")
    await adapter.connect(room.inbox)
    await room.inbox.until(2)
    await adapter.disconnect()
    assert room.inbox.texts == ["hello", "again"]


async def test_the_connection_is_mended_after_the_server_was_down(
    room: Room, caplog: pytest.LogCaptureFixture
) -> None:
    async with room.connected():
        await room.server.say("one")
        await room.inbox.until(1)
        await room.server.stop()
        await waited(lambda: "Cannot connect" in caplog.text)
        await room.server.start()
        await room.server.say("two")
        await room.inbox.until(2)
    assert room.inbox.texts == ["one", "two"]


@pytest.mark.parametrize(
    "fault",
    [
        Fault(is_cut_in_mid_answer=True),
        Fault(is_cut=True),
        Fault(502, "Bad Gateway", body="<html>"),
        Fault(500, "Internal Server Error"),
        Fault(429, "Too Many Requests", {"retry_after": 1}),
    ],
)
async def test_an_answer_that_is_lost_loses_no_message(room: Room, fault: Fault) -> None:
    for number in range(3):
        await room.server.say(f"m{number}")
    room.server.plan("getUpdates", fault)
    async with room.connected():
        await room.inbox.until(3)
    assert room.inbox.texts == ["m0", "m1", "m2"]


async def test_another_program_that_polls_is_complained_of_once(
    room: Room, caplog: pytest.LogCaptureFixture
) -> None:
    conflict = Fault(409, "Conflict: terminated by other getUpdates request")
    room.server.plan("getUpdates", *[conflict] * 5)
    async with room.connected():
        await room.server.say("hello")
        await room.inbox.until(1)
    assert caplog.text.count("Another program is polling") == 1


async def test_a_webhook_that_others_set_is_complained_of(
    room: Room, caplog: pytest.LogCaptureFixture
) -> None:
    async with room.connected():
        room.server.webhook = {"url": "https://elsewhere"}
        await waited(lambda: "set a webhook" in caplog.text)
        room.server.webhook = {}
        await room.server.say("hello")
        await room.inbox.until(1)


async def test_a_token_that_is_revoked_is_a_problem_until_it_is_taken_again(room: Room) -> None:
    async with room.connected() as adapter:
        assert adapter.problem == ""
        room.server.is_revoked = True
        await waited(lambda: "@BotFather" in adapter.problem)
        tries = room.server.count("getUpdates")
        await waited(lambda: room.server.count("getUpdates") > tries)
        sent = await adapter.send(OutgoingMessage("7", "hi", "k"))
        assert sent.retryable
        room.server.is_revoked = False
        await waited(lambda: not adapter.problem)
        await room.server.say("hello")
        await room.inbox.until(1)


async def test_another_program_that_goes_on_polling_is_a_problem(room: Room) -> None:
    async with room.connected() as adapter:
        room.server.webhook = {"url": "https://elsewhere"}
        await waited(lambda: "webhook" in adapter.problem)
        room.server.webhook = {}
        await waited(lambda: not adapter.problem)


@pytest.mark.clock
async def test_what_was_written_long_before_the_first_start_is_not_answered(room: Room) -> None:
    long_ago = int(time.time()) - 3600
    await room.server.say("long ago", date=long_ago)
    await room.server.say("just now")
    async with room.connected():
        await waited(lambda: not room.server.updates)
    assert room.inbox.texts == ["just now"]


@pytest.mark.clock
async def test_what_was_written_while_it_was_away_is_answered_however_late(room: Room) -> None:
    hours = 3600
    await room.memory.keep("since:4242", str(int(time.time()) - 20 * hours))  # the first start
    await room.server.say("while you were away", date=int(time.time()) - 10 * hours)
    async with room.connected():
        await room.inbox.until(1)
    assert room.inbox.texts == ["while you were away"]


async def test_the_token_is_in_no_log_and_no_error(
    room: Room, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    secret = TOKEN.partition(":")[2]
    results = []
    file = {"file_id": "gone", "file_unique_id": "gone"}
    async with room.connected() as adapter:
        await room.server.say(document=file)
        room.server.files["gone"] = b"x"
        room.server.plan("file", *[Fault(is_cut_in_mid_answer=True)] * 2)
        await room.inbox.until(1)
        for fault in (Fault(is_cut=True), Fault(500, f"at /bot{TOKEN}/x"), Fault(404, TOKEN)):
            room.server.plan("sendMessage", fault)
            results.append(await adapter.send(OutgoingMessage("7", "hi", "k")))
        await room.server.stop()
        results.append(await adapter.send(OutgoingMessage("7", "hi", "k")))
        await waited(lambda: "Cannot connect" in caplog.text)
        assert secret not in repr(adapter)
    with pytest.raises(PlatformDownError) as caught:
        await room.adapter().connect(room.inbox)
    assert secret not in caplog.text
    assert secret not in str(caught.value)
    assert all(secret not in repr(one) for one in results)
