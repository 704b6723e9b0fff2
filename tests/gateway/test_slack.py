"""The Slack adapter, with the real library, on a server that speaks Slack's API."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gateway.platforms.base import MessageEvent, MessageType, OutgoingMessage
from gateway.platforms.slack.messages import SlackFiles
from hermes_core.backoff import Backoff
from hermes_core.errors import PlatformDownError, PlatformRefusedError
from support.adapters import PNG, QUICK_BACKOFF, RecordingInbox
from support.slack_server import (
    ANN,
    APP_TOKEN,
    BOB,
    BOT_TOKEN,
    BOT_USER,
    DM,
    GENERAL,
    SEVERAL,
    TEAM,
    Fault,
    SlackServer,
)
from support.slack_setup import SlackSetup, slack_setup
from support.waiting import PATIENCE_SECONDS, async_wait_until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from hermes_state import SessionDB


@pytest.fixture
async def setup(db: SessionDB, tmp_path: Path) -> AsyncIterator[SlackSetup]:
    async with slack_setup(db, tmp_path) as result:
        yield result


# Messages


async def test_a_direct_message_has_its_sender_and_chat(setup: SlackSetup) -> None:
    async with setup.connected() as adapter:
        message = await setup.server.send_as_user(DM, "hello &amp; <https://x.org|welcome>")
        [event] = await setup.inbox.wait_for(1)
        await setup.wait_for_acknowledgements()
    assert adapter.account == f"{TEAM}:{BOT_USER}"
    assert (event.text, event.message_id) == ("hello & welcome (https://x.org)", message["ts"])
    assert event.is_addressed
    source = event.source
    assert source is not None
    assert (source.chat_id, source.chat_type, source.guild_id) == (DM, "dm", TEAM)
    assert (source.user_id, source.user_name) == (ANN, "Ann")


async def test_in_a_channel_only_a_mention_or_a_reply_is_addressed(setup: SlackSetup) -> None:
    async with setup.connected():
        await setup.server.send_as_user(GENERAL, "nice weather, <@UBOB>")
        await setup.server.send_as_user(
            GENERAL, f"<@{BOT_USER}>: what time is it in <#C1|general>?"
        )
        fields = {"thread_ts": "1.000001", "parent_user_id": BOT_USER}
        await setup.server.send_as_user(GENERAL, "really", **fields)
        events = await setup.inbox.wait_for(3)
    assert [event.is_addressed for event in events] == [False, True, True]
    texts = ["nice weather, @Bob", "what time is it in #general?", "really"]
    assert setup.inbox.texts == texts
    sources = [event.source for event in events if event.source]
    assert [source.chat_type for source in sources] == ["channel", "channel", "thread"]
    assert [source.thread_id for source in sources] == [None, None, "1.000001"]
    assert {source.chat_name for source in sources} == {"general"}


async def test_a_mention_delivered_as_two_events_is_one_message(setup: SlackSetup) -> None:
    async with setup.connected():
        message = await setup.server.send_as_user(SEVERAL, f"<@{BOT_USER}> hi", kind="app_mention")
        again = {**message, "type": "message"}
        await setup.server.deliver(again)
        await setup.wait_for_acknowledgements()
    [event] = setup.inbox.events
    assert event.is_addressed
    assert event.source is not None
    assert event.source.chat_type == "group"


async def test_the_type_of_a_channel_is_looked_up_where_an_event_lacks_it(
    setup: SlackSetup,
) -> None:
    async with setup.connected():
        message = {"type": "app_mention", "user": BOB, "text": f"<@{BOT_USER}>", "ts": "5.0"}
        await setup.server.deliver({**message, "channel": SEVERAL})
        await setup.server.deliver({**message, "channel": GENERAL})
        await setup.server.deliver({**message, "channel": DM})
        events = await setup.inbox.wait_for(3)
    kinds = {event.source.chat_id: event.source.chat_type for event in events if event.source}
    assert kinds == {SEVERAL: "group", GENERAL: "channel", DM: "dm"}


async def test_bots_and_notices_are_acknowledged_and_not_received(setup: SlackSetup) -> None:
    async with setup.connected():
        await setup.server.send_as_user(GENERAL, "a robot's", bot_id="B7")
        await setup.server.send_as_user(GENERAL, "mine", BOT_USER)
        await setup.server.send_as_user(GENERAL, "Ann has joined", subtype="channel_join")
        await setup.server.send_as_user(GENERAL, "old style", subtype="bot_message")
        await setup.server.envelope("slash_commands", {"command": "/x"})
        await setup.server.envelope("events_api", {"event": "nonsense"})
        await setup.server.send_as_user(GENERAL, "a person's")
        await setup.inbox.wait_for(1)
        await setup.wait_for_acknowledgements()
    assert setup.inbox.texts == ["a person's"]


async def test_an_edit_has_the_id_of_its_message_and_a_preview_is_none(setup: SlackSetup) -> None:
    async with setup.connected():
        message = await setup.server.send_as_user(DM, "helo")
        await setup.server.change(message, "helo")
        await setup.server.change(message, "hello")
        events = await setup.inbox.wait_for(2)
        await setup.wait_for_acknowledgements()
    assert [(event.text, event.is_edit) for event in events] == [("helo", False), ("hello", True)]
    assert {event.message_id for event in events} == {message["ts"]}


async def test_a_deletion_names_its_message(setup: SlackSetup) -> None:
    async with setup.connected():
        message = await setup.server.send_as_user(DM, "a mistake")
        await setup.server.delete(message)
        _, deletion = await setup.inbox.wait_for(2)
        await setup.wait_for_acknowledgements()
    assert deletion.source is not None
    named = (deletion.is_deletion, deletion.message_id, deletion.source.chat_id)
    assert named == (True, message["ts"], DM)


async def test_a_message_with_nothing_in_it_is_not_received(setup: SlackSetup) -> None:
    async with setup.connected():
        await setup.server.send_as_user(DM, "")
        await setup.server.send_as_user(DM, "hello")
        await setup.wait_for_acknowledgements()
    assert setup.inbox.texts == ["hello"]


async def test_threads_are_created_where_configured(setup: SlackSetup) -> None:
    setup.extra["reply_in_thread"] = True
    async with setup.connected() as adapter:
        message = await setup.server.send_as_user(GENERAL, f"<@{BOT_USER}> hi")
        await setup.server.send_as_user(DM, "hi")
        events = await setup.inbox.wait_for(2)
        answer = OutgoingMessage(GENERAL, "yes", "k1", thread_id=message["ts"])
        assert (await adapter.send(answer)).success
    assert {event.source.thread_id for event in events if event.source} == {message["ts"], None}
    assert setup.server.messages[GENERAL][-1]["thread_ts"] == message["ts"]


async def test_unresolved_users_and_channels_are_named_by_id(
    setup: SlackSetup,
) -> None:
    setup.server.plan("users.info", Fault("missing_scope"))
    setup.server.plan("conversations.info", Fault("ratelimited", 429, {"Retry-After": "30"}))
    async with setup.connected():
        await setup.server.send_as_user(GENERAL, "hello")
        await setup.server.send_as_user(GENERAL, "again")
        events = await setup.inbox.wait_for(2)
    sources = [event.source for event in events if event.source]
    assert [source.user_name for source in sources] == [ANN, ANN]
    assert [source.chat_name for source in sources] == [None, "general"]


# Files


def contents(event: MessageEvent) -> bytes:
    return Path(event.media_urls[0]).read_bytes()


async def test_files_are_stored_and_a_failed_one_is_noted(setup: SlackSetup) -> None:
    server = setup.server
    lost = server.file("lost.pdf", b"x", "application/pdf")
    del server.files["lost.pdf"]
    large = server.file("large.bin", b"x" * 2000, "application/zip", size=5)
    files = [server.file("a.png", PNG, "image/png"), lost, large]
    async with setup.connected():
        await server.send_as_user(DM, "look", subtype="file_share", files=files)
        [event] = await setup.inbox.wait_for(1)
    assert (event.message_type, event.media_types) == (MessageType.PHOTO, ["image/png"])
    assert contents(event) == PNG
    assert event.text == (
        "look\n[Attached file, download failed: lost.pdf]\n"
        "[Attached file, download failed: large.bin]"
    )


async def test_the_token_is_never_sent_to_another_host(setup: SlackSetup) -> None:
    async with SlackServer() as elsewhere:
        file = elsewhere.file("a.png", PNG, "image/png")
        async with setup.connected():
            await setup.server.send_as_user(DM, "look", subtype="file_share", files=[file])
            [event] = await setup.inbox.wait_for(1)
    assert event.text == "look\n[Attached file, download failed: a.png]"
    assert elsewhere.file_requests == []


@pytest.mark.parametrize(
    ("url", "is_own"),
    [
        ("https://files.slack.com/files-pri/T1-F1/a.png", True),
        ("https://acme.slack.com/files/a.png", True),
        ("http://files.slack.com/a.png", False),
        ("https://files.slack.com.evil.org/a.png", False),
        ("https://evilslack.com/a.png", False),
        ("https://files.slack.com@evil.org/a.png", False),
        ("https://files.slack.com:8443/a.png", False),
        ("", False),
    ],
)
def test_only_addresses_of_slack_may_see_the_token(
    setup: SlackSetup, url: str, is_own: bool
) -> None:
    files = SlackFiles(None, "t", "", setup.media, lambda _event: True)  # type: ignore[arg-type]
    assert files._is_own(url) is is_own


# Nothing is lost


async def test_an_event_is_acknowledged_after_it_was_received_and_not_before(
    setup: SlackSetup,
) -> None:
    async with setup.connected():
        await setup.server.send_as_user(DM, "first")  # the channel that is looked up
        await setup.wait_for_acknowledgements()
        setup.inbox.gate = asyncio.Event()
        message = await setup.server.send_as_user(DM, "hello")
        await async_wait_until(lambda: setup.inbox.attempts == 2)
        assert len(setup.server.acknowledged) == 1
        await setup.server.time_out()
        await setup.server.deliver({**message, "type": "app_mention"})
        setup.inbox.gate.set()
        await setup.wait_for_acknowledgements()
    assert setup.inbox.texts == ["first", "hello"]


async def test_a_message_that_is_not_stored_is_not_acknowledged_and_delivered_again(
    setup: SlackSetup,
) -> None:
    setup.inbox.fail(3)
    async with setup.connected():
        for text in ("one", "two", "three"):
            await setup.server.send_as_user(DM, text)
        await setup.inbox.wait_for(3)
        await setup.wait_for_acknowledgements()
    assert setup.inbox.texts == ["one", "two", "three"]


async def test_an_abandoned_adapter_loses_nothing_and_keeps_the_order(setup: SlackSetup) -> None:
    first = RecordingInbox()
    first.gate = asyncio.Event()
    abandoned = setup.adapter()
    await abandoned.connect(first)
    await setup.server.send_as_user(DM, "one")
    await setup.server.send_as_user(DM, "two")
    await async_wait_until(lambda: first.attempts == 1)
    async with setup.connected():
        await setup.server.send_as_user(DM, "three")
        await setup.inbox.wait_for(3)
        await setup.wait_for_acknowledgements()
    assert setup.inbox.texts == ["one", "two", "three"]
    await abandoned.disconnect()


async def test_messages_from_a_downtime_are_fetched_in_order(setup: SlackSetup) -> None:
    await setup.server.send_as_user(DM, "before the first start")
    setup.server.unacknowledged.clear()
    async with setup.connected() as adapter:
        await setup.server.send_as_user(DM, "zero")
        await setup.wait_for_acknowledgements()
        await setup.wait_for_offset(adapter)
    texts = [f"m{number}" for number in range(450)]
    for text in texts:
        await setup.server.send_as_user(DM, text)
    await setup.server.send_as_user(DM, "a robot's", bot_id="B7")
    setup.server.unacknowledged.clear()  # Slack has stopped retrying
    limited = Fault("ratelimited", 429, {"Retry-After": "0.01"})
    setup.server.plan("conversations.history", limited, Fault(status=503))
    async with setup.connected():
        await setup.server.send_as_user(DM, "live")
        await setup.inbox.wait_for(452)
        await setup.wait_for_acknowledgements()
    assert setup.inbox.texts == ["zero", *texts, "live"]


async def test_the_first_message_of_an_unknown_user_is_read_with_the_next_one(
    setup: SlackSetup,
) -> None:
    async with setup.connected():
        pass
    await setup.server.send_as_user(DM, "anybody there?")
    setup.server.unacknowledged.clear()
    async with setup.connected():
        await setup.server.send_as_user(DM, "hello?")
        await setup.wait_for_acknowledgements()
    assert setup.inbox.texts == ["anybody there?", "hello?"]


@pytest.mark.parametrize("error", ["missing_scope", "not_in_channel", "channel_not_found"])
async def test_a_channel_without_history_access_still_delivers_messages(
    setup: SlackSetup, error: str
) -> None:
    setup.server.plan("conversations.history", Fault(error))
    async with setup.connected():
        await setup.server.send_as_user(GENERAL, "one")
        await setup.server.send_as_user(GENERAL, "two")
        await setup.wait_for_acknowledgements()
    assert setup.inbox.texts == ["one", "two"]


async def test_a_message_that_failed_until_shutdown_is_handled_by_the_next_process(
    setup: SlackSetup,
) -> None:
    first = RecordingInbox()
    first.fail()
    async with setup.connected(first):
        await setup.server.send_as_user(DM, "one")
        await setup.server.send_as_user(DM, "two")
        await async_wait_until(lambda: first.attempts > 2)
    assert len(setup.server.unacknowledged) == 2
    async with setup.connected():
        await setup.wait_for_acknowledgements()
    assert setup.inbox.texts == ["one", "two"]


async def test_the_queue_is_bounded_and_refilled_later(
    setup: SlackSetup, caplog: pytest.LogCaptureFixture
) -> None:
    adapter = setup.factory(setup.context(), backoff=QUICK_BACKOFF, max_queued=5)
    setup.inbox.fail()
    await adapter.connect(setup.inbox)
    texts = [f"m{number}" for number in range(40)]
    for text in texts:
        await setup.server.send_as_user(DM, text)
    await async_wait_until(lambda: "queue is full" in caplog.text)
    assert len(adapter._listener._queues) <= 6
    setup.inbox.recover()
    await setup.inbox.wait_for(40)
    async with asyncio.timeout(PATIENCE_SECONDS):
        while setup.server.unacknowledged:  # until the queue has space for all repeated events
            await setup.server.time_out()
            await asyncio.sleep(0.01)
    await adapter.disconnect()
    assert setup.inbox.texts == texts


@pytest.mark.parametrize("is_asked", [True, False])
async def test_connections_that_do_not_last_are_opened_less_and_less_often(
    setup: SlackSetup, caplog: pytest.LogCaptureFixture, is_asked: bool
) -> None:
    adapter = setup.factory(setup.context(), backoff=Backoff(0.01, 1000.0, factor=1e9))
    await adapter.connect(setup.inbox)
    if is_asked:
        await setup.server.request_reconnect()
        await async_wait_until(lambda: setup.server.opened == 2)
    setup.server.closes_at_once = True
    setup.server.cut_connections()
    await async_wait_until(lambda: "in 1000 s" in caplog.text)
    await adapter.disconnect()
    assert setup.server.opened == 2


async def test_a_connection_that_breaks_is_opened_again(setup: SlackSetup) -> None:
    async with setup.connected():
        await setup.server.send_as_user(DM, "one")
        await setup.wait_for_acknowledgements()
        setup.server.cut_connections()
        await setup.server.send_as_user(DM, "two")
        await setup.wait_for_acknowledgements()
    assert setup.inbox.texts == ["one", "two"]
    assert setup.server.opened == 2


async def test_another_connection_is_opened_when_slack_requests_it(setup: SlackSetup) -> None:
    async with setup.connected():
        await setup.server.request_reconnect()
        await async_wait_until(lambda: setup.server.opened == 2)
        await setup.server.send_as_user(DM, "one")
        await setup.wait_for_acknowledgements()
    assert setup.inbox.texts == ["one"]


async def test_a_server_that_was_down_is_connected_to_again(
    setup: SlackSetup, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    async with setup.connected() as adapter:
        await setup.server.stop()
        await async_wait_until(lambda: "retrying in" in caplog.text)
        await async_wait_until(lambda: adapter.problem)  # shown as lost
        await setup.server.start()
        await async_wait_until(lambda: setup.server.is_connected)
        await async_wait_until(lambda: not adapter.problem)
        await setup.server.send_as_user(DM, "one")
        await setup.wait_for_acknowledgements()
    assert setup.inbox.texts == ["one"]
    matches = [record.getMessage() for record in caplog.records if record.name != "aiohttp.access"]
    secrets = (BOT_TOKEN, APP_TOKEN, "a-secret-ticket")
    assert not [text for text in matches if any(secret in text for secret in secrets)]


# Connecting


@pytest.mark.parametrize("name", ["SLACK_BOT_TOKEN", "SLACK_APP_TOKEN"])
async def test_an_invalid_token_is_rejected_with_a_hint(setup: SlackSetup, name: str) -> None:
    setup.secrets[name] = "not-the-token"
    with pytest.raises(PlatformRefusedError, match=name) as caught:
        async with setup.connected():
            pass
    assert "not-the-token" not in str(caught.value)


async def test_a_revoked_app_token_is_a_problem_until_it_is_accepted_again(
    setup: SlackSetup,
) -> None:
    async with setup.connected() as adapter:
        assert adapter.problem == ""
        setup.server.revoked.add(APP_TOKEN)
        setup.server.cut_connections()
        await async_wait_until(lambda: "SLACK_APP_TOKEN" in adapter.problem)
        setup.server.revoked.clear()
        await async_wait_until(lambda: not adapter.problem)
        await setup.server.send_as_user(DM, "hello")
        await setup.wait_for_acknowledgements()
    assert setup.inbox.texts == ["hello"]


async def test_a_bot_token_that_is_revoked_is_a_problem_and_nothing_is_passed_over(
    setup: SlackSetup,
) -> None:
    async with setup.connected() as adapter:
        await setup.server.send_as_user(DM, "one")
        await setup.wait_for_acknowledgements()
        setup.server.revoked.add(BOT_TOKEN)
        sent = await adapter.send(OutgoingMessage(DM, "hi", "k1"))
        assert (sent.retryable, "SLACK_BOT_TOKEN" in adapter.problem) == (True, True)
        await setup.server.send_as_user(DM, "two")
        setup.server.unacknowledged.clear()
        setup.server.cut_connections()
        tries = len(setup.server.requests)
        await async_wait_until(lambda: len(setup.server.requests) > tries + 3)
        setup.server.revoked.clear()
        await setup.inbox.wait_for(2)
        await async_wait_until(lambda: not adapter.problem)
    assert setup.inbox.texts == ["one", "two"]


async def test_an_invalid_url_is_unavailable_and_not_printed(setup: SlackSetup) -> None:
    setup.server.link = "ws://[a-secret-ticket"
    with pytest.raises(PlatformDownError) as caught:
        async with setup.connected():
            pass
    assert "a-secret-ticket" not in f"{caught.value}{caught.value.__cause__}"


@pytest.mark.parametrize("fault", [Fault("ratelimited", 429), Fault(status=503)])
async def test_a_slack_that_does_not_answer_well_is_down(setup: SlackSetup, fault: Fault) -> None:
    setup.server.plan("auth.test", fault)
    with pytest.raises(PlatformDownError):
        async with setup.connected():
            pass


async def test_a_server_that_does_not_answer_is_down_and_later_not(setup: SlackSetup) -> None:
    adapter = setup.adapter()
    await setup.server.stop()
    with pytest.raises(PlatformDownError):
        await adapter.connect(setup.inbox)
    await adapter.disconnect()
    await setup.server.start()
    await adapter.connect(setup.inbox)
    await adapter.disconnect()
    await adapter.connect(setup.inbox)
    await setup.server.send_as_user(DM, "hello")
    await setup.wait_for_acknowledgements()
    await adapter.disconnect()
    assert setup.inbox.texts == ["hello"]
