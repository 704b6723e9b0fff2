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
from support.adapters import PNG, QUICK, Inbox, World, waited
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
from support.discord_world import discord_world

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from hermes_state import SessionDB


@pytest.fixture
async def world(db: SessionDB, tmp_path: Path) -> AsyncIterator[World]:
    async with discord_world(db, tmp_path) as found:
        yield found


# Messages


async def test_a_direct_message_comes_in_with_who_and_where(world: World) -> None:
    async with world.connected() as adapter:
        said = await world.server.say(DM, "hello")
        [event] = await world.inbox.until(1)
    assert adapter.account == str(BOT_ID)
    assert (event.text, event.message_id, event.is_addressed) == ("hello", said["id"], True)
    source = event.source
    assert source is not None
    assert (source.chat_id, source.chat_type) == (str(DM), "dm")
    assert (source.user_id, source.user_name) == (ANN["id"], "Ann")


def reference(message: dict[str, Any]) -> dict[str, Any]:
    return {"message_id": message["id"], "channel_id": message["channel_id"]}


async def test_in_a_channel_only_a_mention_or_a_reply_is_addressed(world: World) -> None:
    async with world.connected():
        mine = world.server.message(GENERAL, "I am here", BOT)
        facts = {"type": 19, "message_reference": reference(mine)}
        await world.server.say(GENERAL, "nice weather")
        await world.server.say(GENERAL, f"<@{BOT_ID}>: what time is it?", mentions=[BOT])
        await world.server.say(GENERAL, f"and <@{BOB['id']}>, <@&{BOT_ROLE}>?", mentions=[BOB])
        await world.server.say(GENERAL, "really", **facts, referenced_message=mine)
        events = await world.inbox.until(4)
    assert [one.is_addressed for one in events] == [False, True, True, True]
    assert world.inbox.texts == ["nice weather", "what time is it?", "and @Bob, ?", "really"]
    assert (events[3].reply_to_message_id, events[3].reply_to_text) == (mine["id"], "I am here")
    source = events[0].source
    assert source is not None
    assert (source.chat_type, source.chat_name, source.guild_id) == (
        "channel",
        "general",
        str(GUILD),
    )


async def test_a_thread_is_a_part_of_its_channel_and_is_answered_in(world: World) -> None:
    async with world.connected() as adapter:
        said = await world.server.say(THREAD, "in here")
        [event] = await world.inbox.until(1)
        source = event.source
        assert source is not None
        assert (source.chat_type, source.chat_id) == ("thread", str(GENERAL))
        assert source.thread_id == str(THREAD)
        answer = OutgoingMessage(source.chat_id, "yes", "k1", source.thread_id)
        assert (await adapter.send(answer)).success
        await adapter.react(source.chat_id, said["id"], "👀")
    assert world.server.texts(THREAD) == ["in here", "yes"]
    [path] = [path for method, path, _ in world.server.asked if method == "PUT"]
    assert path.startswith(f"channels/{THREAD}/messages/{said['id']}/reactions/")


async def test_bots_and_what_the_server_says_are_not_received(world: World) -> None:
    async with world.connected():
        await world.server.say(GENERAL, "mine", BOT)
        await world.server.say(GENERAL, "a robot's", OTHER_BOT)
        await world.server.say(GENERAL, "by a hook", webhook_id="77")
        await world.server.say(GENERAL, "", type=7)
        await world.server.say(GENERAL, "a person's")
        await world.inbox.until(1)
    assert world.inbox.texts == ["a person's"]


async def test_an_edit_has_the_id_of_its_message_and_a_preview_is_none(world: World) -> None:
    async with world.connected():
        said = await world.server.say(DM, "helo")
        await world.inbox.until(1)
        await world.server.change(said)
        await world.server.change(said, "hello")
        events = await world.inbox.until(2)
    assert [(one.text, one.is_edit) for one in events] == [("helo", False), ("hello", True)]
    assert {one.message_id for one in events} == {said["id"]}


def contents(event: MessageEvent) -> bytes:
    return Path(event.media_urls[0]).read_bytes()


async def test_files_are_kept_and_one_that_cannot_be_is_noted(world: World) -> None:
    server = world.server
    good = server.attachment("a.png", PNG, "image/png")
    lost = server.attachment("lost.pdf", b"x", "application/pdf")
    del server.files["lost.pdf"]
    large = server.attachment("large.bin", b"x" * 2000, "application/zip")
    async with world.connected():
        await server.say(DM, "look", attachments=[good, lost, large])
        [event] = await world.inbox.until(1)
    assert (event.message_type, event.media_types) == (MessageType.PHOTO, ["image/png"])
    assert contents(event) == PNG
    assert event.text == (
        "look\n[Attached file, download failed: lost.pdf]\n"
        "[Attached file, download failed: large.bin]"
    )


async def test_no_more_of_a_file_is_read_than_is_taken(world: World) -> None:
    lying = world.server.attachment("large.bin", b"x" * 2000, "application/zip", size=5)
    async with world.connected():
        await world.server.say(DM, "look", attachments=[lying])
        [event] = await world.inbox.until(1)
    assert event.text == "look\n[Attached file, download failed: large.bin]"


async def test_a_file_elsewhere_is_not_fetched(world: World) -> None:
    async with DiscordServer() as elsewhere:
        file = elsewhere.attachment("a.png", PNG, "image/png")
        async with world.connected():
            await world.server.say(DM, "look", attachments=[file])
            [event] = await world.inbox.until(1)
    assert event.text == "look\n[Attached file, download failed: a.png]"
    assert elsewhere.file_requests == []


async def test_a_message_with_nothing_in_it_is_not_received(world: World) -> None:
    async with world.connected():
        await world.server.say(DM, "")
        await world.server.say(GENERAL, f"<@{BOT_ID}>", mentions=[BOT])
        await world.server.say(DM, "hello")
        await world.inbox.until(2)
    assert sorted(world.inbox.texts) == ["", "hello"]


async def test_a_voice_message_is_one(world: World) -> None:
    voice = {"duration_secs": 1.5, "waveform": "AA=="}
    spoken = world.server.attachment("voice.ogg", b"ogg", "audio/ogg", **voice)
    async with world.connected():
        await world.server.say(DM, "", attachments=[spoken], flags=1 << 13)
        [event] = await world.inbox.until(1)
    assert (event.message_type, event.text) == (MessageType.VOICE, "")


# Nothing is lost


async def test_a_message_that_is_not_kept_comes_again_and_in_order(world: World) -> None:
    world.inbox.fail(3)
    async with world.connected():
        for text in ("one", "two", "three"):
            await world.server.say(DM, text)
        await world.inbox.until(3)
    assert world.inbox.texts == ["one", "two", "three"]


async def test_a_channel_that_waits_does_not_keep_others_waiting(world: World) -> None:
    held = asyncio.Event()
    events: list[str] = []

    async def receive(event: MessageEvent) -> None:
        if event.text == "slow":
            await held.wait()
        events.append(event.text)

    adapter = world.adapter()
    await adapter.connect(receive)
    await world.server.say(DM, "slow")
    await world.server.say(GENERAL, "quick")
    await waited(lambda: events == ["quick"])
    held.set()
    await waited(lambda: len(events) == 2)
    await adapter.disconnect()


async def test_what_was_written_while_it_was_away_is_fetched_in_order(world: World) -> None:
    await world.server.say(DM, "before the first start")
    async with world.connected() as adapter:
        await world.server.say(DM, "zero")
        await world.inbox.until(1)
        await world.noted(adapter)
    texts = [f"m{number}" for number in range(230)]
    for text in texts:
        await world.server.say(DM, text)
    world.server.plan("GET messages", Fault(503, {"message": "later"}))
    async with world.connected():
        await world.server.say(DM, "live")
        await world.inbox.until(232)
    assert world.inbox.texts == ["zero", *texts, "live"]


async def test_channels_that_were_never_heard_are_looked_at_too(world: World) -> None:
    await world.server.say(GENERAL, "before the first start")
    await asyncio.sleep(0.002)  # ids count milliseconds
    async with world.connected():
        pass
    await world.server.say(GENERAL, "a server's channel")
    await world.server.say(THREAD, "a thread")
    await world.server.say(DM, "a stranger's first words")
    async with world.connected():
        await world.inbox.until(2)
        assert set(world.inbox.texts) == {"a server's channel", "a thread"}
        await world.server.say(DM, "hello?")
        await world.inbox.until(4)
    assert world.inbox.texts[2:] == ["a stranger's first words", "hello?"]


async def test_an_abandoned_adapter_loses_nothing_and_keeps_the_order(world: World) -> None:
    first = Inbox()
    abandoned = world.adapter()
    await abandoned.connect(first)
    await world.server.say(DM, "kept")
    await world.server.say(GENERAL, "kept too")
    await first.until(2)
    first.gate = asyncio.Event()
    await world.server.say(DM, "one")
    await world.server.say(DM, "two")
    await world.server.say(THREAD, "never heard before")
    await waited(lambda: first.tries == 4)
    async with world.connected():
        await world.server.say(DM, "three")
        await world.inbox.until(4)
    direct = [one.text for one in world.inbox.events if one.source and one.source.chat_id == "100"]
    assert direct == ["one", "two", "three"]
    assert world.inbox.texts.count("never heard before") == 1
    assert len(world.inbox.texts) == 4
    await abandoned.disconnect()


async def test_a_message_that_failed_until_the_end_comes_to_the_next_one(world: World) -> None:
    first = Inbox()
    first.fail()
    async with world.connected(first):
        await world.server.say(DM, "one")
        await world.server.say(DM, "two")
        await waited(lambda: first.tries > 2)
    async with world.connected():
        await world.inbox.until(2)
    assert world.inbox.texts == ["one", "two"]


async def test_a_connection_that_breaks_is_resumed(world: World) -> None:
    async with world.connected():
        await world.server.say(DM, "one")
        await world.inbox.until(1)
        world.server.cut()
        await world.server.say(DM, "two")
        await waited(lambda: world.server.resumed == 1)
        await world.server.say(DM, "three")
        await world.inbox.until(3)
    assert world.inbox.texts == ["one", "two", "three"]
    assert len(world.server.identified) == 1


async def test_a_session_that_is_lost_is_begun_anew_and_its_gap_filled(world: World) -> None:
    async with world.connected():
        await world.server.say(DM, "one")
        await world.inbox.until(1)
        world.server.forget()
        await world.server.say(DM, "two")
        await waited(lambda: len(world.server.identified) == 2)
        await world.server.say(DM, "three")
        await world.inbox.until(3)
    assert world.inbox.texts == ["one", "two", "three"]


async def test_a_server_that_was_down_is_connected_to_again(world: World) -> None:
    async with world.connected() as adapter:
        await world.server.say(DM, "one")
        await world.inbox.until(1)
        await world.server.stop()
        world.server.sessions.clear()
        result = await adapter.send(OutgoingMessage(str(DM), "hi", "k1"))
        assert result.error_kind is ErrorKind.TRANSIENT
        await world.server.say(DM, "two")
        await world.server.start()
        await world.inbox.until(2)
        await waited(lambda: world.server.sessions)
        assert (await adapter.send(OutgoingMessage(str(DM), "hi", "k1"))).success
    assert world.inbox.texts == ["one", "two"]


async def test_a_channel_whose_history_may_not_be_read_is_still_heard(world: World) -> None:
    fault = Fault(403, {"message": "Missing Access", "code": 50001})
    world.server.plan("GET messages", fault)
    async with world.connected():
        await world.server.say(GENERAL, "hello")
        await world.inbox.until(1)
    assert world.inbox.texts == ["hello"]


async def test_a_channel_that_is_gone_is_forgotten(world: World) -> None:
    async with world.connected() as adapter:
        await world.server.say(DM, "one")
        await world.server.say(THREAD, "two")
        await world.inbox.until(2)
        await world.noted(adapter)
    del world.server.channels[THREAD]
    gone = f"channels/{THREAD}"
    async with world.connected() as adapter:
        await waited(lambda: gone in [path for _, path, _ in world.server.asked])
        await world.server.say(DM, "three")
        await world.inbox.until(3)
        await world.noted(adapter)
    world.server.asked.clear()
    async with world.connected():
        await world.server.say(DM, "four")
        await world.inbox.until(4)
    assert not [path for _, path, _ in world.server.asked if path.startswith(gone)]


async def test_a_message_that_cannot_be_read_does_not_silence_its_channel(world: World) -> None:
    async with world.connected():
        await world.server.say(DM, "one")
        await world.inbox.until(1)
        await world.server.say(DM, "odd", type=19, message_reference={"message_id": "no number"})
        await waited(lambda: len(world.server.identified) == 2)
        await world.server.say(DM, "two")
        await world.inbox.until(2)
    assert world.inbox.texts == ["one", "two"]


async def test_what_waits_does_not_grow_without_end_and_is_fetched_later(
    world: World, caplog: pytest.LogCaptureFixture
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
    await world.server.say(DM, "and now")
    await world.inbox.until(41)
    await adapter.disconnect()
    assert world.inbox.texts == [*texts, "and now"]


async def test_channels_that_are_new_at_once_are_all_written_down(world: World) -> None:
    memory = world.context().memory
    cursors = Cursors(memory, "me", ids_per_hour=1)
    await asyncio.gather(*(cursors.open(str(number), number) for number in range(20)))
    again = Cursors(memory, "me", ids_per_hour=1)
    await again.load(1000)
    assert {one: again.last(one) for one in again.channels} == {str(n): n for n in range(20)}


# Connecting


async def test_a_token_that_is_wrong_is_refused_with_what_to_do(world: World) -> None:
    world.secrets["DISCORD_BOT_TOKEN"] = "not-the-token"
    with pytest.raises(PlatformRefusedError, match="DISCORD_BOT_TOKEN") as caught:
        async with world.connected():
            pass
    assert "not-the-token" not in str(caught.value)


@pytest.mark.parametrize(("code", "words"), [(4014, "MESSAGE CONTENT INTENT"), (4004, "TOKEN")])
async def test_a_gateway_that_shuts_the_door_is_a_refusal(
    world: World, code: int, words: str
) -> None:
    world.server.shut = code
    with pytest.raises(PlatformRefusedError, match=words):
        async with world.connected():
            pass


@pytest.mark.parametrize(("code", "words"), [(4014, "MESSAGE CONTENT INTENT"), (4004, "TOKEN")])
async def test_a_door_that_is_shut_later_is_a_problem_until_it_is_open_again(
    world: World, code: int, words: str
) -> None:
    async with world.connected() as adapter:
        assert adapter.problem == ""
        world.server.shut = code
        await world.server.close(code)
        await waited(lambda: words in adapter.problem)
        tries = len(world.server.identified)
        await waited(lambda: len(world.server.identified) > tries)
        world.server.shut = None
        await waited(lambda: not adapter.problem)
        await world.server.say(DM, "hello")
        await world.inbox.until(1)


async def test_sessions_that_do_not_last_are_begun_less_and_less_often(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    adapter = world.make(world.context(), backoff=Backoff(0.01, 1000.0, factor=1e9))
    await adapter.connect(world.inbox)
    await world.server.close(4012)  # which the library does not mend by itself
    await waited(lambda: world.server.sessions)
    await world.server.close(4012)
    await waited(lambda: "in 1000 s" in caplog.text)
    await adapter.disconnect()


async def test_a_server_that_does_not_answer_is_down_and_later_not(world: World) -> None:
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
    await world.inbox.until(1)
    await adapter.disconnect()


async def test_only_what_is_needed_is_asked_for(world: World) -> None:
    async with world.connected():
        intents = world.server.identified[0]["intents"]
    assert intents == 1 << 0 | 1 << 9 | 1 << 12 | 1 << 15
