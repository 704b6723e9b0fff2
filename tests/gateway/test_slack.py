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
from support.adapters import PNG, QUICK, Inbox, waited
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
from support.slack_world import Team, slack_world
from support.waiting import PATIENCE_SECONDS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from hermes_state import SessionDB


@pytest.fixture
async def world(db: SessionDB, tmp_path: Path) -> AsyncIterator[Team]:
    async with slack_world(db, tmp_path) as found:
        yield found


# Messages


async def test_a_direct_message_comes_in_with_who_and_where(world: Team) -> None:
    async with world.connected() as adapter:
        said = await world.server.say(DM, "hello &amp; <https://x.org|welcome>")
        [event] = await world.inbox.until(1)
        await world.acknowledged()
    assert adapter.account == f"{TEAM}:{BOT_USER}"
    assert (event.text, event.message_id) == ("hello & welcome (https://x.org)", said["ts"])
    assert event.is_addressed
    source = event.source
    assert source is not None
    assert (source.chat_id, source.chat_type, source.guild_id) == (DM, "dm", TEAM)
    assert (source.user_id, source.user_name) == (ANN, "Ann")


async def test_in_a_channel_only_a_mention_or_a_reply_is_addressed(world: Team) -> None:
    async with world.connected():
        await world.server.say(GENERAL, "nice weather, <@UBOB>")
        await world.server.say(GENERAL, f"<@{BOT_USER}>: what time is it in <#C1|general>?")
        facts = {"thread_ts": "1.000001", "parent_user_id": BOT_USER}
        await world.server.say(GENERAL, "really", **facts)
        events = await world.inbox.until(3)
    assert [one.is_addressed for one in events] == [False, True, True]
    texts = ["nice weather, @Bob", "what time is it in #general?", "really"]
    assert world.inbox.texts == texts
    sources = [one.source for one in events if one.source]
    assert [one.chat_type for one in sources] == ["channel", "channel", "thread"]
    assert [one.thread_id for one in sources] == [None, None, "1.000001"]
    assert {one.chat_name for one in sources} == {"general"}


async def test_a_mention_that_comes_as_two_events_is_one_message(world: Team) -> None:
    async with world.connected():
        said = await world.server.say(SEVERAL, f"<@{BOT_USER}> hi", kind="app_mention")
        again = {**said, "type": "message"}
        await world.server.deliver(again)
        await world.acknowledged()
    [event] = world.inbox.events
    assert event.is_addressed
    assert event.source is not None
    assert event.source.chat_type == "group"


async def test_the_kind_of_a_channel_is_asked_for_where_an_event_does_not_say_it(
    world: Team,
) -> None:
    async with world.connected():
        said = {"type": "app_mention", "user": BOB, "text": f"<@{BOT_USER}>", "ts": "5.0"}
        await world.server.deliver({**said, "channel": SEVERAL})
        await world.server.deliver({**said, "channel": GENERAL})
        await world.server.deliver({**said, "channel": DM})
        events = await world.inbox.until(3)
    kinds = {one.source.chat_id: one.source.chat_type for one in events if one.source}
    assert kinds == {SEVERAL: "group", GENERAL: "channel", DM: "dm"}


async def test_bots_and_notices_are_acknowledged_and_not_received(world: Team) -> None:
    async with world.connected():
        await world.server.say(GENERAL, "a robot's", bot_id="B7")
        await world.server.say(GENERAL, "mine", BOT_USER)
        await world.server.say(GENERAL, "Ann has joined", subtype="channel_join")
        await world.server.say(GENERAL, "old style", subtype="bot_message")
        await world.server.envelope("slash_commands", {"command": "/x"})
        await world.server.envelope("events_api", {"event": "nonsense"})
        await world.server.say(GENERAL, "a person's")
        await world.inbox.until(1)
        await world.acknowledged()
    assert world.inbox.texts == ["a person's"]


async def test_an_edit_has_the_id_of_its_message_and_a_preview_is_none(world: Team) -> None:
    async with world.connected():
        said = await world.server.say(DM, "helo")
        await world.server.change(said, "helo")
        await world.server.change(said, "hello")
        events = await world.inbox.until(2)
        await world.acknowledged()
    assert [(one.text, one.is_edit) for one in events] == [("helo", False), ("hello", True)]
    assert {one.message_id for one in events} == {said["ts"]}


async def test_a_message_with_nothing_in_it_is_not_received(world: Team) -> None:
    async with world.connected():
        await world.server.say(DM, "")
        await world.server.say(DM, "hello")
        await world.acknowledged()
    assert world.inbox.texts == ["hello"]


async def test_threads_are_made_where_that_is_wanted(world: Team) -> None:
    world.extra["reply_in_thread"] = True
    async with world.connected() as adapter:
        said = await world.server.say(GENERAL, f"<@{BOT_USER}> hi")
        await world.server.say(DM, "hi")
        events = await world.inbox.until(2)
        answer = OutgoingMessage(GENERAL, "yes", "k1", thread_id=said["ts"])
        assert (await adapter.send(answer)).success
    assert {one.source.thread_id for one in events if one.source} == {said["ts"], None}
    assert world.server.messages[GENERAL][-1]["thread_ts"] == said["ts"]


async def test_people_and_channels_that_cannot_be_looked_up_are_called_by_id(
    world: Team,
) -> None:
    world.server.plan("users.info", Fault("missing_scope"))
    world.server.plan("conversations.info", Fault("ratelimited", 429, {"Retry-After": "30"}))
    async with world.connected():
        await world.server.say(GENERAL, "hello")
        await world.server.say(GENERAL, "again")
        events = await world.inbox.until(2)
    sources = [one.source for one in events if one.source]
    assert [one.user_name for one in sources] == [ANN, ANN]
    assert [one.chat_name for one in sources] == [None, "general"]


# Files


def contents(event: MessageEvent) -> bytes:
    return Path(event.media_urls[0]).read_bytes()


async def test_files_are_kept_and_one_that_cannot_be_is_noted(world: Team) -> None:
    server = world.server
    lost = server.file("lost.pdf", b"x", "application/pdf")
    del server.files["lost.pdf"]
    large = server.file("large.bin", b"x" * 2000, "application/zip", size=5)
    files = [server.file("a.png", PNG, "image/png"), lost, large]
    async with world.connected():
        await server.say(DM, "look", subtype="file_share", files=files)
        [event] = await world.inbox.until(1)
    assert (event.message_type, event.media_types) == (MessageType.PHOTO, ["image/png"])
    assert contents(event) == PNG
    assert event.text == (
        "look\n[Attached file, download failed: lost.pdf]\n"
        "[Attached file, download failed: large.bin]"
    )


async def test_the_token_is_never_sent_to_another_host(world: Team) -> None:
    async with SlackServer() as elsewhere:
        file = elsewhere.file("a.png", PNG, "image/png")
        async with world.connected():
            await world.server.say(DM, "look", subtype="file_share", files=[file])
            [event] = await world.inbox.until(1)
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
def test_only_addresses_of_slack_may_see_the_token(world: Team, url: str, is_own: bool) -> None:
    files = SlackFiles(None, "t", "", world.media)  # type: ignore[arg-type]
    assert files._is_own(url) is is_own


# Nothing is lost


async def test_an_event_is_acknowledged_after_it_was_received_and_not_before(
    world: Team,
) -> None:
    async with world.connected():
        await world.server.say(DM, "first")  # whose channel is looked at
        await world.acknowledged()
        world.inbox.gate = asyncio.Event()
        said = await world.server.say(DM, "hello")
        await waited(lambda: world.inbox.tries == 2)
        assert len(world.server.acknowledged) == 1
        await world.server.run_out_of_time()
        await world.server.deliver({**said, "type": "app_mention"})
        world.inbox.gate.set()
        await world.acknowledged()
    assert world.inbox.texts == ["first", "hello"]


async def test_a_message_that_is_not_kept_is_not_acknowledged_and_comes_again(
    world: Team,
) -> None:
    world.inbox.fail(3)
    async with world.connected():
        for text in ("one", "two", "three"):
            await world.server.say(DM, text)
        await world.inbox.until(3)
        await world.acknowledged()
    assert world.inbox.texts == ["one", "two", "three"]


async def test_an_abandoned_adapter_loses_nothing_and_keeps_the_order(world: Team) -> None:
    first = Inbox()
    first.gate = asyncio.Event()
    abandoned = world.adapter()
    await abandoned.connect(first)
    await world.server.say(DM, "one")
    await world.server.say(DM, "two")
    await waited(lambda: first.tries == 1)
    async with world.connected():
        await world.server.say(DM, "three")
        await world.inbox.until(3)
        await world.acknowledged()
    assert world.inbox.texts == ["one", "two", "three"]
    await abandoned.disconnect()


async def test_what_was_written_while_it_was_away_is_fetched_in_order(world: Team) -> None:
    await world.server.say(DM, "before the first start")
    world.server.unacknowledged.clear()
    async with world.connected() as adapter:
        await world.server.say(DM, "zero")
        await world.acknowledged()
        await world.noted(adapter)
    texts = [f"m{number}" for number in range(450)]
    for text in texts:
        await world.server.say(DM, text)
    await world.server.say(DM, "a robot's", bot_id="B7")
    world.server.unacknowledged.clear()  # Slack has given up
    limited = Fault("ratelimited", 429, {"Retry-After": "0.01"})
    world.server.plan("conversations.history", limited, Fault(status=503))
    async with world.connected():
        await world.server.say(DM, "live")
        await world.inbox.until(452)
        await world.acknowledged()
    assert world.inbox.texts == ["zero", *texts, "live"]


async def test_the_first_words_of_a_stranger_are_read_with_the_next_ones(world: Team) -> None:
    async with world.connected():
        pass
    await world.server.say(DM, "anybody there?")
    world.server.unacknowledged.clear()
    async with world.connected():
        await world.server.say(DM, "hello?")
        await world.acknowledged()
    assert world.inbox.texts == ["anybody there?", "hello?"]


@pytest.mark.parametrize("error", ["missing_scope", "not_in_channel", "channel_not_found"])
async def test_a_channel_whose_history_may_not_be_read_is_still_heard(
    world: Team, error: str
) -> None:
    world.server.plan("conversations.history", Fault(error))
    async with world.connected():
        await world.server.say(GENERAL, "one")
        await world.server.say(GENERAL, "two")
        await world.acknowledged()
    assert world.inbox.texts == ["one", "two"]


async def test_a_message_that_failed_until_the_end_comes_to_the_next_one(world: Team) -> None:
    first = Inbox()
    first.fail()
    async with world.connected(first):
        await world.server.say(DM, "one")
        await world.server.say(DM, "two")
        await waited(lambda: first.tries > 2)
    assert len(world.server.unacknowledged) == 2
    async with world.connected():
        await world.acknowledged()
    assert world.inbox.texts == ["one", "two"]


async def test_what_waits_does_not_grow_without_end_and_is_fetched_later(
    world: Team, caplog: pytest.LogCaptureFixture
) -> None:
    adapter = world.make(world.context(), backoff=QUICK, max_queued=5)
    world.inbox.fail()
    await adapter.connect(world.inbox)
    texts = [f"m{number}" for number in range(40)]
    for text in texts:
        await world.server.say(DM, text)
    await waited(lambda: "queue is full" in caplog.text)
    assert len(adapter._listener._queues) <= 6
    world.inbox.recover()
    await world.inbox.until(40)
    async with asyncio.timeout(PATIENCE_SECONDS):
        while world.server.unacknowledged:  # until there is room for all that comes again
            await world.server.run_out_of_time()
            await asyncio.sleep(0.01)
    await adapter.disconnect()
    assert world.inbox.texts == texts


@pytest.mark.parametrize("is_asked", [True, False])
async def test_connections_that_do_not_last_are_opened_less_and_less_often(
    world: Team, caplog: pytest.LogCaptureFixture, is_asked: bool
) -> None:
    adapter = world.make(world.context(), backoff=Backoff(0.01, 1000.0, factor=1e9))
    await adapter.connect(world.inbox)
    if is_asked:
        await world.server.ask_for_another()
        await waited(lambda: world.server.opened == 2)
    world.server.is_short = True
    world.server.cut()
    await waited(lambda: "in 1000 s" in caplog.text)
    await adapter.disconnect()
    assert world.server.opened == 2


async def test_a_connection_that_breaks_is_opened_again(world: Team) -> None:
    async with world.connected():
        await world.server.say(DM, "one")
        await world.acknowledged()
        world.server.cut()
        await world.server.say(DM, "two")
        await world.acknowledged()
    assert world.inbox.texts == ["one", "two"]
    assert world.server.opened == 2


async def test_another_connection_is_opened_when_slack_asks_for_it(world: Team) -> None:
    async with world.connected():
        await world.server.ask_for_another()
        await waited(lambda: world.server.opened == 2)
        await world.server.say(DM, "one")
        await world.acknowledged()
    assert world.inbox.texts == ["one"]


async def test_a_server_that_was_down_is_connected_to_again(
    world: Team, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    async with world.connected():
        await world.server.stop()
        await waited(lambda: "retrying in" in caplog.text)
        await world.server.start()
        await waited(lambda: world.server.is_connected)
        await world.server.say(DM, "one")
        await world.acknowledged()
    assert world.inbox.texts == ["one"]
    told = [one.getMessage() for one in caplog.records if one.name != "aiohttp.access"]
    secrets = (BOT_TOKEN, APP_TOKEN, "a-secret-ticket")
    assert not [text for text in told if any(secret in text for secret in secrets)]


# Connecting


@pytest.mark.parametrize("name", ["SLACK_BOT_TOKEN", "SLACK_APP_TOKEN"])
async def test_a_token_that_is_wrong_is_refused_with_what_to_do(world: Team, name: str) -> None:
    world.secrets[name] = "not-the-token"
    with pytest.raises(PlatformRefusedError, match=name) as caught:
        async with world.connected():
            pass
    assert "not-the-token" not in str(caught.value)


async def test_an_app_token_that_is_revoked_is_a_problem_until_it_is_taken_again(
    world: Team,
) -> None:
    async with world.connected() as adapter:
        assert adapter.problem == ""
        world.server.revoked.add(APP_TOKEN)
        world.server.cut()
        await waited(lambda: "SLACK_APP_TOKEN" in adapter.problem)
        world.server.revoked.clear()
        await waited(lambda: not adapter.problem)
        await world.server.say(DM, "hello")
        await world.acknowledged()
    assert world.inbox.texts == ["hello"]


async def test_a_bot_token_that_is_revoked_is_a_problem_and_nothing_is_passed_over(
    world: Team,
) -> None:
    async with world.connected() as adapter:
        await world.server.say(DM, "one")
        await world.acknowledged()
        world.server.revoked.add(BOT_TOKEN)
        sent = await adapter.send(OutgoingMessage(DM, "hi", "k1"))
        assert (sent.retryable, "SLACK_BOT_TOKEN" in adapter.problem) == (True, True)
        await world.server.say(DM, "two")
        world.server.unacknowledged.clear()
        world.server.cut()
        tries = len(world.server.asked)
        await waited(lambda: len(world.server.asked) > tries + 3)
        world.server.revoked.clear()
        await world.inbox.until(2)
        await waited(lambda: not adapter.problem)
    assert world.inbox.texts == ["one", "two"]


async def test_an_address_that_is_none_is_down_and_not_shown(world: Team) -> None:
    world.server.link = "ws://[a-secret-ticket"
    with pytest.raises(PlatformDownError) as caught:
        async with world.connected():
            pass
    assert "a-secret-ticket" not in f"{caught.value}{caught.value.__cause__}"


@pytest.mark.parametrize("fault", [Fault("ratelimited", 429), Fault(status=503)])
async def test_a_slack_that_does_not_answer_well_is_down(world: Team, fault: Fault) -> None:
    world.server.plan("auth.test", fault)
    with pytest.raises(PlatformDownError):
        async with world.connected():
            pass


async def test_a_server_that_does_not_answer_is_down_and_later_not(world: Team) -> None:
    adapter = world.adapter()
    await world.server.stop()
    with pytest.raises(PlatformDownError):
        await adapter.connect(world.inbox)
    await adapter.disconnect()
    await world.server.start()
    await adapter.connect(world.inbox)
    await adapter.disconnect()
    await adapter.connect(world.inbox)
    await world.server.say(DM, "hello")
    await world.acknowledged()
    await adapter.disconnect()
    assert world.inbox.texts == ["hello"]
