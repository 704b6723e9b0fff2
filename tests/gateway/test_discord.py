"""The Discord adapter, with the real library, on a server that speaks Discord's API."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from gateway.platforms.base import ErrorKind, MessageEvent, MessageType, OutgoingMessage
from gateway.platforms.cursors import Cursors
from hermes_core.backoff import Backoff
from hermes_core.errors import PlatformDownError, PlatformRefusedError
from support.adapters import PNG, QUICK, Inbox, ServerSetup, waited
from support.discord_server import (
    ANN,
    BOB,
    BOT,
    BOT_ID,
    BOT_ROLE,
    DM,
    GENERAL,
    GUILD,
    OTHER_BOT,
    THREAD,
    DiscordServer,
    Fault,
)
from support.discord_setup import discord_setup

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from hermes_state import SessionDB


@pytest.fixture
async def setup(db: SessionDB, tmp_path: Path) -> AsyncIterator[ServerSetup]:
    async with discord_setup(db, tmp_path) as result:
        yield result


# Messages


async def test_a_direct_message_comes_in_with_who_and_where(setup: ServerSetup) -> None:
    async with setup.connected() as adapter:
        said = await setup.server.say(DM, "hello")
        [event] = await setup.inbox.until(1)
    assert adapter.account == str(BOT_ID)
    assert (event.text, event.message_id, event.is_addressed) == ("hello", said["id"], True)
    source = event.source
    assert source is not None
    assert (source.chat_id, source.chat_type) == (str(DM), "dm")
    assert (source.user_id, source.user_name) == (ANN["id"], "Ann")


def reference(message: dict[str, Any]) -> dict[str, Any]:
    return {"message_id": message["id"], "channel_id": message["channel_id"]}


async def test_in_a_channel_only_a_mention_or_a_reply_is_addressed(setup: ServerSetup) -> None:
    async with setup.connected():
        mine = setup.server.message(GENERAL, "I am here", BOT)
        facts = {"type": 19, "message_reference": reference(mine)}
        await setup.server.say(GENERAL, "nice weather")
        await setup.server.say(GENERAL, f"<@{BOT_ID}>: what time is it?", mentions=[BOT])
        await setup.server.say(GENERAL, f"and <@{BOB['id']}>, <@&{BOT_ROLE}>?", mentions=[BOB])
        await setup.server.say(GENERAL, "really", **facts, referenced_message=mine)
        events = await setup.inbox.until(4)
    assert [event.is_addressed for event in events] == [False, True, True, True]
    assert setup.inbox.texts == ["nice weather", "what time is it?", "and @Bob, ?", "really"]
    assert (events[3].reply_to_message_id, events[3].reply_to_text) == (mine["id"], "I am here")
    source = events[0].source
    assert source is not None
    assert (source.chat_type, source.chat_name, source.guild_id) == (
        "channel",
        "general",
        str(GUILD),
    )


async def test_a_thread_is_a_part_of_its_channel_and_is_answered_in(setup: ServerSetup) -> None:
    async with setup.connected() as adapter:
        said = await setup.server.say(THREAD, "in here")
        [event] = await setup.inbox.until(1)
        source = event.source
        assert source is not None
        assert (source.chat_type, source.chat_id) == ("thread", str(GENERAL))
        assert source.thread_id == str(THREAD)
        answer = OutgoingMessage(source.chat_id, "yes", "k1", source.thread_id)
        assert (await adapter.send(answer)).success
        await adapter.react(source.chat_id, said["id"], "👀")
    assert setup.server.texts(THREAD) == ["in here", "yes"]
    [path] = [path for method, path, _ in setup.server.asked if method == "PUT"]
    assert path.startswith(f"channels/{THREAD}/messages/{said['id']}/reactions/")


async def test_bots_and_what_the_server_says_are_not_received(setup: ServerSetup) -> None:
    async with setup.connected():
        await setup.server.say(GENERAL, "mine", BOT)
        await setup.server.say(GENERAL, "a robot's", OTHER_BOT)
        await setup.server.say(GENERAL, "by a hook", webhook_id="77")
        await setup.server.say(GENERAL, "", type=7)
        await setup.server.say(GENERAL, "a person's")
        await setup.inbox.until(1)
    assert setup.inbox.texts == ["a person's"]


async def test_an_edit_has_the_id_of_its_message_and_a_preview_is_none(setup: ServerSetup) -> None:
    async with setup.connected():
        said = await setup.server.say(DM, "helo")
        await setup.inbox.until(1)
        await setup.server.change(said)
        await setup.server.change(said, "hello")
        events = await setup.inbox.until(2)
    assert [(event.text, event.is_edit) for event in events] == [("helo", False), ("hello", True)]
    assert {event.message_id for event in events} == {said["id"]}


def contents(event: MessageEvent) -> bytes:
    return Path(event.media_urls[0]).read_bytes()


async def test_files_are_kept_and_one_that_cannot_be_is_noted(setup: ServerSetup) -> None:
    server = setup.server
    good = server.attachment("a.png", PNG, "image/png")
    lost = server.attachment("lost.pdf", b"x", "application/pdf")
    del server.files["lost.pdf"]
    large = server.attachment("large.bin", b"x" * 2000, "application/zip")
    async with setup.connected():
        await server.say(DM, "look", attachments=[good, lost, large])
        [event] = await setup.inbox.until(1)
    assert (event.message_type, event.media_types) == (MessageType.PHOTO, ["image/png"])
    assert contents(event) == PNG
    assert event.text == (
        "look\n[Attached file, download failed: lost.pdf]\n"
        "[Attached file, download failed: large.bin]"
    )


async def test_no_more_of_a_file_is_read_than_is_taken(setup: ServerSetup) -> None:
    lying = setup.server.attachment("large.bin", b"x" * 2000, "application/zip", size=5)
    async with setup.connected():
        await setup.server.say(DM, "look", attachments=[lying])
        [event] = await setup.inbox.until(1)
    assert event.text == "look\n[Attached file, download failed: large.bin]"


async def test_a_file_elsewhere_is_not_fetched(setup: ServerSetup) -> None:
    async with DiscordServer() as elsewhere:
        file = elsewhere.attachment("a.png", PNG, "image/png")
        async with setup.connected():
            await setup.server.say(DM, "look", attachments=[file])
            [event] = await setup.inbox.until(1)
    assert event.text == "look\n[Attached file, download failed: a.png]"
    assert elsewhere.file_requests == []


async def test_a_message_with_nothing_in_it_is_not_received(setup: ServerSetup) -> None:
    async with setup.connected():
        await setup.server.say(DM, "")
        await setup.server.say(GENERAL, f"<@{BOT_ID}>", mentions=[BOT])
        await setup.server.say(DM, "hello")
        await setup.inbox.until(2)
    assert sorted(setup.inbox.texts) == ["", "hello"]


async def test_a_voice_message_is_one(setup: ServerSetup) -> None:
    voice = {"duration_secs": 1.5, "waveform": "AA=="}
    spoken = setup.server.attachment("voice.ogg", b"ogg", "audio/ogg", **voice)
    async with setup.connected():
        await setup.server.say(DM, "", attachments=[spoken], flags=1 << 13)
        [event] = await setup.inbox.until(1)
    assert (event.message_type, event.text) == (MessageType.VOICE, "")


# Nothing is lost


async def test_a_message_that_is_not_kept_comes_again_and_in_order(setup: ServerSetup) -> None:
    setup.inbox.fail(3)
    async with setup.connected():
        for text in ("one", "two", "three"):
            await setup.server.say(DM, text)
        await setup.inbox.until(3)
    assert setup.inbox.texts == ["one", "two", "three"]


async def test_a_channel_that_waits_does_not_keep_others_waiting(setup: ServerSetup) -> None:
    held = asyncio.Event()
    events: list[str] = []

    async def receive(event: MessageEvent) -> None:
        if event.text == "slow":
            await held.wait()
        events.append(event.text)

    adapter = setup.adapter()
    await adapter.connect(receive)
    await setup.server.say(DM, "slow")
    await setup.server.say(GENERAL, "quick")
    await waited(lambda: events == ["quick"])
    held.set()
    await waited(lambda: len(events) == 2)
    await adapter.disconnect()


async def test_what_was_written_while_it_was_away_is_fetched_in_order(setup: ServerSetup) -> None:
    await setup.server.say(DM, "before the first start")
    async with setup.connected() as adapter:
        await setup.server.say(DM, "zero")
        await setup.inbox.until(1)
        await setup.noted(adapter)
    texts = [f"m{number}" for number in range(230)]
    for text in texts:
        await setup.server.say(DM, text)
    setup.server.plan("GET messages", Fault(503, {"message": "later"}))
    async with setup.connected():
        await setup.server.say(DM, "live")
        await setup.inbox.until(232)
    assert setup.inbox.texts == ["zero", *texts, "live"]


async def test_channels_that_were_never_heard_are_looked_at_too(setup: ServerSetup) -> None:
    await setup.server.say(GENERAL, "before the first start")
    await asyncio.sleep(0.002)  # ids count milliseconds
    async with setup.connected():
        pass
    await setup.server.say(GENERAL, "a server's channel")
    await setup.server.say(THREAD, "a thread")
    await setup.server.say(DM, "a stranger's first words")
    async with setup.connected():
        await setup.inbox.until(2)
        assert set(setup.inbox.texts) == {"a server's channel", "a thread"}
        await setup.server.say(DM, "hello?")
        await setup.inbox.until(4)
    assert setup.inbox.texts[2:] == ["a stranger's first words", "hello?"]


async def test_an_abandoned_adapter_loses_nothing_and_keeps_the_order(setup: ServerSetup) -> None:
    first = Inbox()
    abandoned = setup.adapter()
    await abandoned.connect(first)
    await setup.server.say(DM, "kept")
    await setup.server.say(GENERAL, "kept too")
    await first.until(2)
    first.gate = asyncio.Event()
    await setup.server.say(DM, "one")
    await setup.server.say(DM, "two")
    await setup.server.say(THREAD, "never heard before")
    await waited(lambda: first.tries == 4)
    async with setup.connected():
        await setup.server.say(DM, "three")
        await setup.inbox.until(4)
    direct = [
        event.text for event in setup.inbox.events if event.source and event.source.chat_id == "100"
    ]
    assert direct == ["one", "two", "three"]
    assert setup.inbox.texts.count("never heard before") == 1
    assert len(setup.inbox.texts) == 4
    await abandoned.disconnect()


async def test_a_message_that_failed_until_the_end_comes_to_the_next_one(
    setup: ServerSetup,
) -> None:
    first = Inbox()
    first.fail()
    async with setup.connected(first):
        await setup.server.say(DM, "one")
        await setup.server.say(DM, "two")
        await waited(lambda: first.tries > 2)
    async with setup.connected():
        await setup.inbox.until(2)
    assert setup.inbox.texts == ["one", "two"]


async def test_a_connection_that_breaks_is_resumed(setup: ServerSetup) -> None:
    async with setup.connected():
        await setup.server.say(DM, "one")
        await setup.inbox.until(1)
        setup.server.cut()
        await setup.server.say(DM, "two")
        await waited(lambda: setup.server.resumed == 1)
        await setup.server.say(DM, "three")
        await setup.inbox.until(3)
    assert setup.inbox.texts == ["one", "two", "three"]
    assert len(setup.server.identified) == 1


async def test_a_session_that_is_lost_is_begun_anew_and_its_gap_filled(setup: ServerSetup) -> None:
    async with setup.connected():
        await setup.server.say(DM, "one")
        await setup.inbox.until(1)
        setup.server.forget()
        await setup.server.say(DM, "two")
        await waited(lambda: len(setup.server.identified) == 2)
        await setup.server.say(DM, "three")
        await setup.inbox.until(3)
    assert setup.inbox.texts == ["one", "two", "three"]


async def test_a_server_that_was_down_is_connected_to_again(setup: ServerSetup) -> None:
    async with setup.connected() as adapter:
        await setup.server.say(DM, "one")
        await setup.inbox.until(1)
        await setup.server.stop()
        setup.server.sessions.clear()
        result = await adapter.send(OutgoingMessage(str(DM), "hi", "k1"))
        assert result.error_kind is ErrorKind.TRANSIENT
        await setup.server.say(DM, "two")
        await setup.server.start()
        await setup.inbox.until(2)
        await waited(lambda: setup.server.sessions)
        assert (await adapter.send(OutgoingMessage(str(DM), "hi", "k1"))).success
    assert setup.inbox.texts == ["one", "two"]


async def test_a_channel_whose_history_may_not_be_read_is_still_heard(setup: ServerSetup) -> None:
    fault = Fault(403, {"message": "Missing Access", "code": 50001})
    setup.server.plan("GET messages", fault)
    async with setup.connected():
        await setup.server.say(GENERAL, "hello")
        await setup.inbox.until(1)
    assert setup.inbox.texts == ["hello"]


async def test_a_channel_that_is_gone_is_forgotten(setup: ServerSetup) -> None:
    async with setup.connected() as adapter:
        await setup.server.say(DM, "one")
        await setup.server.say(THREAD, "two")
        await setup.inbox.until(2)
        await setup.noted(adapter)
    del setup.server.channels[THREAD]
    gone = f"channels/{THREAD}"
    async with setup.connected() as adapter:
        await waited(lambda: gone in [path for _, path, _ in setup.server.asked])
        await setup.server.say(DM, "three")
        await setup.inbox.until(3)
        await setup.noted(adapter)
    setup.server.asked.clear()
    async with setup.connected():
        await setup.server.say(DM, "four")
        await setup.inbox.until(4)
    assert not [path for _, path, _ in setup.server.asked if path.startswith(gone)]


async def test_a_message_that_cannot_be_read_does_not_silence_its_channel(
    setup: ServerSetup,
) -> None:
    async with setup.connected():
        await setup.server.say(DM, "one")
        await setup.inbox.until(1)
        await setup.server.say(DM, "odd", type=19, message_reference={"message_id": "no number"})
        await waited(lambda: len(setup.server.identified) == 2)
        await setup.server.say(DM, "two")
        await setup.inbox.until(2)
    assert setup.inbox.texts == ["one", "two"]


async def test_what_waits_does_not_grow_without_end_and_is_fetched_later(
    setup: ServerSetup, caplog: pytest.LogCaptureFixture
) -> None:
    adapter = setup.make(setup.context(), backoff=QUICK, max_queued=5)
    setup.inbox.fail()
    await adapter.connect(setup.inbox)
    texts = [f"m{number}" for number in range(40)]
    for text in texts:
        await setup.server.say(DM, text)
    await waited(lambda: "queue is full" in caplog.text)
    assert len(adapter._listener._queues) <= 6
    setup.inbox.recover()
    await setup.inbox.until(40)
    await setup.server.say(DM, "and now")
    await setup.inbox.until(41)
    await adapter.disconnect()
    assert setup.inbox.texts == [*texts, "and now"]


async def test_channels_that_are_new_at_once_are_all_written_down(setup: ServerSetup) -> None:
    memory = setup.context().memory
    cursors = Cursors(memory, "me", ids_per_hour=1)
    await asyncio.gather(*(cursors.open(str(number), number) for number in range(20)))
    again = Cursors(memory, "me", ids_per_hour=1)
    await again.load(1000)
    assert {channel: again.last(channel) for channel in again.channels} == {
        str(n): n for n in range(20)
    }


# Connecting


async def test_a_token_that_is_wrong_is_refused_with_what_to_do(setup: ServerSetup) -> None:
    setup.secrets["DISCORD_BOT_TOKEN"] = "not-the-token"
    with pytest.raises(PlatformRefusedError, match="DISCORD_BOT_TOKEN") as caught:
        async with setup.connected():
            pass
    assert "not-the-token" not in str(caught.value)


@pytest.mark.parametrize(("code", "words"), [(4014, "MESSAGE CONTENT INTENT"), (4004, "TOKEN")])
async def test_a_gateway_that_shuts_the_door_is_a_refusal(
    setup: ServerSetup, code: int, words: str
) -> None:
    setup.server.shut = code
    with pytest.raises(PlatformRefusedError, match=words):
        async with setup.connected():
            pass


@pytest.mark.parametrize(("code", "words"), [(4014, "MESSAGE CONTENT INTENT"), (4004, "TOKEN")])
async def test_a_door_that_is_shut_later_is_a_problem_until_it_is_open_again(
    setup: ServerSetup, code: int, words: str
) -> None:
    async with setup.connected() as adapter:
        assert adapter.problem == ""
        setup.server.shut = code
        await setup.server.close(code)
        await waited(lambda: words in adapter.problem)
        tries = len(setup.server.identified)
        await waited(lambda: len(setup.server.identified) > tries)
        setup.server.shut = None
        await waited(lambda: not adapter.problem)
        await setup.server.say(DM, "hello")
        await setup.inbox.until(1)


async def test_sessions_that_do_not_last_are_begun_less_and_less_often(
    setup: ServerSetup, caplog: pytest.LogCaptureFixture
) -> None:
    adapter = setup.make(setup.context(), backoff=Backoff(0.01, 1000.0, factor=1e9))
    await adapter.connect(setup.inbox)
    await setup.server.close(4012)  # which the library does not mend by itself
    await waited(lambda: setup.server.sessions)
    await setup.server.close(4012)
    await waited(lambda: "in 1000 s" in caplog.text)
    await adapter.disconnect()


async def test_a_server_that_does_not_answer_is_down_and_later_not(setup: ServerSetup) -> None:
    adapter = setup.adapter()
    await setup.server.stop()
    with pytest.raises(PlatformDownError):
        await adapter.connect(setup.inbox)
    await adapter.disconnect()
    await setup.server.start()
    await adapter.connect(setup.inbox)
    await adapter.disconnect()
    await adapter.connect(setup.inbox)
    await setup.server.say(DM, "hello")
    await setup.inbox.until(1)
    await adapter.disconnect()


async def test_only_what_is_needed_is_asked_for(setup: ServerSetup) -> None:
    async with setup.connected():
        intents = setup.server.identified[0]["intents"]
    assert intents == 1 << 0 | 1 << 9 | 1 << 12 | 1 << 15
