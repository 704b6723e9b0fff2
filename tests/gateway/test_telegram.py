"""Telegram: aiogram as the client, against a server that speaks the Bot API."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import TYPE_CHECKING, Any

import pytest

from gateway.platforms.base import MessageEvent, MessageType, OutgoingMessage
from gateway.platforms.registry import PlatformRegistry
from hermes_core.errors import PlatformDownError, PlatformRefusedError, StoreUnavailableError
from support.adapters import RecordingInbox
from support.telegram_server import BOT, TOKEN, Fault, TelegramServer
from support.telegram_setup import GROUP, TelegramSetup
from support.waiting import async_wait_until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from hermes_state import SessionDB


@pytest.fixture
async def setup(db: SessionDB, tmp_path: Path) -> AsyncIterator[TelegramSetup]:
    async with TelegramServer() as server:
        server.chats.add(7)
        yield TelegramSetup(server, db, tmp_path)


async def test_a_message_gets_through_with_its_source_and_id(setup: TelegramSetup) -> None:
    async with setup.connected() as adapter:
        number = await setup.server.send_as_user("hello", date=2_000_000_000)
        event = (await setup.inbox.wait_for(1))[0]
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


async def test_the_registry_creates_the_adapter(setup: TelegramSetup) -> None:
    from gateway.platforms.telegram.adapter import TelegramAdapter  # noqa: PLC0415 - takes seconds

    adapter = PlatformRegistry().create_adapter("telegram", setup.context())
    assert isinstance(adapter, TelegramAdapter)
    assert adapter.abilities.edit
    assert not adapter.abilities.idempotent


async def test_an_update_is_confirmed_only_after_it_was_stored(setup: TelegramSetup) -> None:
    setup.inbox.gate = asyncio.Event()
    async with setup.connected():
        await setup.server.send_as_user("hello")
        await async_wait_until(lambda: setup.inbox.attempts)
        assert setup.server.confirmed == []
        setup.inbox.gate.set()
        await async_wait_until(lambda: setup.server.confirmed)
    assert setup.inbox.texts == ["hello"]
    assert not setup.server.updates


async def test_an_unreachable_platform_is_reported_until_it_is_back(setup: TelegramSetup) -> None:
    async with setup.connected() as adapter:
        await setup.server.stop()
        await async_wait_until(lambda: adapter.problem)
        await setup.server.start()
        await async_wait_until(lambda: not adapter.problem)


async def test_a_listener_that_fails_is_restarted(
    setup: TelegramSetup, monkeypatch: pytest.MonkeyPatch
) -> None:
    from gateway.platforms.telegram.updates import UpdatePoller  # noqa: PLC0415 - takes seconds

    errors = [RuntimeError(f"failure {number}") for number in range(3)]
    poll = UpdatePoller._poll

    async def fail_first(poller: UpdatePoller) -> list[dict[str, Any]]:
        if errors:
            raise errors.pop(0)
        return await poll(poller)

    monkeypatch.setattr(UpdatePoller, "_poll", fail_first)
    async with setup.connected() as adapter:
        await setup.server.send_as_user("hello")
        await setup.inbox.wait_for(1)
        assert (adapter.problem, adapter.listener.failures) == ("", 3)


@pytest.mark.parametrize("error", [OSError("disk full"), StoreUnavailableError("it is locked")])
async def test_messages_that_were_not_stored_are_delivered_again_in_order(
    setup: TelegramSetup, error: Exception
) -> None:
    for number in range(5):
        await setup.server.send_as_user(f"m{number}", chat=7 + number % 2)
    setup.inbox.fail(2, error)
    async with setup.connected():
        await setup.inbox.wait_for(5)
        await async_wait_until(lambda: not setup.server.updates)
    assert [text for text in setup.inbox.texts if text in {"m0", "m2", "m4"}] == ["m0", "m2", "m4"]
    assert [text for text in setup.inbox.texts if text in {"m1", "m3"}] == ["m1", "m3"]


async def test_messages_stored_before_a_failure_are_confirmed(setup: TelegramSetup) -> None:
    class Third(RecordingInbox):
        async def __call__(self, event: MessageEvent) -> None:
            if len(self.events) == 2:
                raise OSError("disk full")
            await super().__call__(event)

    setup.inbox = Third()
    for number in range(4):
        await setup.server.send_as_user(f"m{number}")
    async with setup.connected():
        await async_wait_until(lambda: len(setup.server.confirmed) == 2)
        assert len(setup.server.updates) == 2
    assert setup.inbox.texts == ["m0", "m1"]


async def test_a_slow_download_holds_up_no_other_chat(setup: TelegramSetup) -> None:
    setup.server.files = {"f1": b"contents"}
    setup.server.file_gate = asyncio.Event()
    file = {"file_id": "f1", "file_unique_id": "f1", "file_name": "a.txt"}
    async with setup.connected():
        await setup.server.send_as_user(caption="slow", document=file, chat=7)
        await setup.server.send_as_user("in the same chat", chat=7)
        await async_wait_until(lambda: setup.server.count("getFile"))
        await setup.server.send_as_user("elsewhere", chat=8)
        await setup.inbox.wait_for(1)
        assert setup.inbox.texts == ["elsewhere"]
        assert len(setup.server.updates) == 3  # none is confirmed before the first is stored
        setup.server.file_gate.set()
        await setup.inbox.wait_for(3)
        await async_wait_until(lambda: not setup.server.updates)
    assert setup.inbox.texts == ["elsewhere", "slow", "in the same chat"]


async def test_an_abandoned_adapter_leaves_its_messages_to_the_next(setup: TelegramSetup) -> None:
    setup.inbox.gate = asyncio.Event()
    async with setup.connected():
        await setup.server.send_as_user("hello")
        await async_wait_until(lambda: setup.inbox.attempts)
    assert setup.inbox.texts == []
    setup.inbox.gate = None
    async with setup.connected():
        await setup.inbox.wait_for(1)
    assert setup.inbox.texts == ["hello"]


async def test_messages_from_before_the_start_are_not_dropped(setup: TelegramSetup) -> None:
    setup.server.webhook = {"url": "https://elsewhere"}
    await setup.server.send_as_user("while you were away")
    async with setup.connected():
        await setup.inbox.wait_for(1)
    assert setup.server.webhook == {}


async def test_an_update_that_cannot_be_read_holds_up_no_other(
    setup: TelegramSetup, caplog: pytest.LogCaptureFixture
) -> None:
    await setup.server.add("message", {"message_id": "not a number", "chat": 5})
    await setup.server.send_as_user("hello")
    async with setup.connected():
        await setup.inbox.wait_for(1)
        await async_wait_until(lambda: not setup.server.updates)
    assert setup.inbox.texts == ["hello"]
    assert "is unreadable" in caplog.text
    assert len(setup.quarantined) == 1


async def test_own_messages_and_service_messages_are_not_received(setup: TelegramSetup) -> None:
    await setup.server.send_as_user("mine", **{"from": BOT})
    await setup.server.send_as_user(None, chat=GROUP, new_chat_title="Garden 2")
    await setup.server.send_as_user("hello")
    async with setup.connected():
        await async_wait_until(lambda: not setup.server.updates)
    assert setup.inbox.texts == ["hello"]


async def test_an_edit_has_the_id_of_the_original(setup: TelegramSetup) -> None:
    async with setup.connected():
        number = await setup.server.send_as_user("helo")
        changed = {**setup.server.message("hello"), "message_id": number, "edit_date": 1}
        await setup.server.add("edited_message", changed)
        first, second = await setup.inbox.wait_for(2)
    assert (first.is_edit, second.is_edit) == (False, True)
    assert first.message_id == second.message_id
    assert second.text == "hello"


@pytest.mark.parametrize(
    ("fields", "text", "kind"),
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
async def test_events_without_text_are_described(
    setup: TelegramSetup, fields: dict[str, Any], text: str, kind: MessageType
) -> None:
    async with setup.connected():
        await setup.server.send_as_user(fields.pop("text", None), **fields)
        event = (await setup.inbox.wait_for(1))[0]
    assert (event.text, event.message_type) == (text, kind)


# The connection


@pytest.mark.parametrize("token", ["4242:wrong", "no token at all"])
async def test_a_wrong_token_is_rejected_with_a_hint(setup: TelegramSetup, token: str) -> None:
    setup.secrets["TELEGRAM_BOT_TOKEN"] = token
    with pytest.raises(PlatformRefusedError, match="@BotFather") as caught:
        await setup.adapter().connect(setup.inbox)
    assert token not in str(caught.value)


async def test_an_unreachable_server_is_reported_and_connected_later(
    setup: TelegramSetup,
) -> None:
    await setup.server.stop()
    adapter = setup.adapter()
    with pytest.raises(PlatformDownError):
        await adapter.connect(setup.inbox)
    await adapter.disconnect()
    await setup.server.start()
    await setup.server.send_as_user("hello")
    await adapter.connect(setup.inbox)
    await setup.inbox.wait_for(1)
    await async_wait_until(lambda: setup.server.confirmed)  # else it is delivered again
    await adapter.disconnect()
    await setup.server.send_as_user("again")
    await adapter.connect(setup.inbox)
    await setup.inbox.wait_for(2)
    await adapter.disconnect()
    assert setup.inbox.texts == ["hello", "again"]


async def test_the_connection_is_restored_after_the_server_was_down(
    setup: TelegramSetup, caplog: pytest.LogCaptureFixture
) -> None:
    async with setup.connected():
        await setup.server.send_as_user("one")
        await setup.inbox.wait_for(1)
        await setup.server.stop()
        await async_wait_until(lambda: "Cannot connect" in caplog.text)
        await setup.server.start()
        await setup.server.send_as_user("two")
        await setup.inbox.wait_for(2)
    assert setup.inbox.texts == ["one", "two"]


@pytest.mark.parametrize(
    "fault",
    [
        Fault(is_cut_in_body=True),
        Fault(is_cut=True),
        Fault(502, "Bad Gateway", body="<html>"),
        Fault(500, "Internal Server Error"),
        Fault(429, "Too Many Requests", {"retry_after": 1}),
    ],
)
async def test_an_answer_that_is_lost_loses_no_message(setup: TelegramSetup, fault: Fault) -> None:
    for number in range(3):
        await setup.server.send_as_user(f"m{number}")
    setup.server.plan("getUpdates", fault)
    async with setup.connected():
        await setup.inbox.wait_for(3)
    assert setup.inbox.texts == ["m0", "m1", "m2"]


async def test_another_program_that_polls_is_complained_of_once(
    setup: TelegramSetup, caplog: pytest.LogCaptureFixture
) -> None:
    conflict = Fault(409, "Conflict: terminated by other getUpdates request")
    setup.server.plan("getUpdates", *[conflict] * 5)
    async with setup.connected():
        await setup.server.send_as_user("hello")
        await setup.inbox.wait_for(1)
    assert caplog.text.count("Another program is polling") == 1


async def test_a_webhook_that_others_set_is_complained_of(
    setup: TelegramSetup, caplog: pytest.LogCaptureFixture
) -> None:
    async with setup.connected():
        setup.server.webhook = {"url": "https://elsewhere"}
        await async_wait_until(lambda: "set a webhook" in caplog.text)
        setup.server.webhook = {}
        await setup.server.send_as_user("hello")
        await setup.inbox.wait_for(1)


async def test_a_revoked_token_is_a_problem_until_it_is_accepted_again(
    setup: TelegramSetup,
) -> None:
    async with setup.connected() as adapter:
        assert adapter.problem == ""
        setup.server.is_revoked = True
        await async_wait_until(lambda: "@BotFather" in adapter.problem)
        tries = setup.server.count("getUpdates")
        await async_wait_until(lambda: setup.server.count("getUpdates") > tries)
        sent = await adapter.send(OutgoingMessage("7", "hi", "k"))
        assert sent.retryable
        setup.server.is_revoked = False
        await async_wait_until(lambda: not adapter.problem)
        await setup.server.send_as_user("hello")
        await setup.inbox.wait_for(1)


async def test_another_polling_program_is_a_problem(setup: TelegramSetup) -> None:
    async with setup.connected() as adapter:
        setup.server.webhook = {"url": "https://elsewhere"}
        await async_wait_until(lambda: "webhook" in adapter.problem)
        setup.server.webhook = {}
        await async_wait_until(lambda: not adapter.problem)


@pytest.mark.clock
async def test_messages_from_long_before_the_first_start_are_not_answered(
    setup: TelegramSetup,
) -> None:
    long_ago = int(time.time()) - 3600
    await setup.server.send_as_user("long ago", date=long_ago)
    await setup.server.send_as_user("just now")
    async with setup.connected():
        await async_wait_until(lambda: not setup.server.updates)
    assert setup.inbox.texts == ["just now"]


@pytest.mark.clock
async def test_messages_from_a_downtime_are_answered_however_late(
    setup: TelegramSetup,
) -> None:
    hours = 3600
    await setup.memory.keep("since:4242", str(int(time.time()) - 20 * hours))  # the first start
    await setup.server.send_as_user("while you were away", date=int(time.time()) - 10 * hours)
    async with setup.connected():
        await setup.inbox.wait_for(1)
    assert setup.inbox.texts == ["while you were away"]


async def test_the_token_is_in_no_log_and_no_error(
    setup: TelegramSetup, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    secret = TOKEN.partition(":")[2]
    results = []
    file = {"file_id": "gone", "file_unique_id": "gone"}
    async with setup.connected() as adapter:
        await setup.server.send_as_user(document=file)
        setup.server.files["gone"] = b"x"
        setup.server.plan("file", *[Fault(is_cut_in_body=True)] * 2)
        await setup.inbox.wait_for(1)
        for fault in (Fault(is_cut=True), Fault(500, f"at /bot{TOKEN}/x"), Fault(404, TOKEN)):
            setup.server.plan("sendMessage", fault)
            results.append(await adapter.send(OutgoingMessage("7", "hi", "k")))
        await setup.server.stop()
        results.append(await adapter.send(OutgoingMessage("7", "hi", "k")))
        await async_wait_until(lambda: "Cannot connect" in caplog.text)
        assert secret not in repr(adapter)
    with pytest.raises(PlatformDownError) as caught:
        await setup.adapter().connect(setup.inbox)
    assert secret not in caplog.text
    assert secret not in str(caught.value)
    assert all(secret not in repr(result) for result in results)
