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
from support.adapters import PNG, QUICK_BACKOFF, RecordingInbox, ServerSetup
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
from support.waiting import async_wait_until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from hermes_state import SessionDB


@pytest.fixture
async def setup(db: SessionDB, tmp_path: Path) -> AsyncIterator[ServerSetup]:
    async with discord_setup(db, tmp_path) as result:
        yield result


# Messages


async def test_a_direct_message_has_its_sender_and_chat(setup: ServerSetup) -> None:
    async with setup.connected() as adapter:
        message = await setup.server.send_as_user(DM, "hello")
        [event] = await setup.inbox.wait_for(1)
    assert adapter.account == str(BOT_ID)
    assert (event.text, event.message_id, event.is_addressed) == ("hello", message["id"], True)
    source = event.source
    assert source is not None
    assert (source.chat_id, source.chat_type) == (str(DM), "dm")
    assert (source.user_id, source.user_name) == (ANN["id"], "Ann")


def reference(message: dict[str, Any]) -> dict[str, Any]:
    return {"message_id": message["id"], "channel_id": message["channel_id"]}


async def test_in_a_channel_only_a_mention_or_a_reply_is_addressed(setup: ServerSetup) -> None:
    async with setup.connected():
        bot_message = setup.server.message(GENERAL, "I am here", BOT)
        fields = {"type": 19, "message_reference": reference(bot_message)}
        await setup.server.send_as_user(GENERAL, "nice weather")
        await setup.server.send_as_user(GENERAL, f"<@{BOT_ID}>: what time is it?", mentions=[BOT])
        await setup.server.send_as_user(
            GENERAL, f"and <@{BOB['id']}>, <@&{BOT_ROLE}>?", mentions=[BOB]
        )
        await setup.server.send_as_user(GENERAL, "really", **fields, referenced_message=bot_message)
        events = await setup.inbox.wait_for(4)
    assert [event.is_addressed for event in events] == [False, True, True, True]
    assert setup.inbox.texts == ["nice weather", "what time is it?", "and @Bob, ?", "really"]
    assert (events[3].reply_to_message_id, events[3].reply_to_text) == (
        bot_message["id"],
        "I am here",
    )
    source = events[0].source
    assert source is not None
    assert (source.chat_type, source.chat_name, source.guild_id) == (
        "channel",
        "general",
        str(GUILD),
    )


async def test_a_thread_is_a_part_of_its_channel_and_is_answered_in(setup: ServerSetup) -> None:
    async with setup.connected() as adapter:
        message = await setup.server.send_as_user(THREAD, "in here")
        [event] = await setup.inbox.wait_for(1)
        source = event.source
        assert source is not None
        assert (source.chat_type, source.chat_id) == ("thread", str(GENERAL))
        assert source.thread_id == str(THREAD)
        answer = OutgoingMessage(source.chat_id, "yes", "k1", source.thread_id)
        assert (await adapter.send(answer)).success
        await adapter.react(source.chat_id, message["id"], "👀")
    assert setup.server.texts(THREAD) == ["in here", "yes"]
    [path] = [path for method, path, _ in setup.server.requests if method == "PUT"]
    assert path.startswith(f"channels/{THREAD}/messages/{message['id']}/reactions/")


async def test_messages_of_bots_and_the_server_are_ignored(setup: ServerSetup) -> None:
    async with setup.connected():
        await setup.server.send_as_user(GENERAL, "mine", BOT)
        await setup.server.send_as_user(GENERAL, "a robot's", OTHER_BOT)
        await setup.server.send_as_user(GENERAL, "by a hook", webhook_id="77")
        await setup.server.send_as_user(GENERAL, "", type=7)
        await setup.server.send_as_user(GENERAL, "a person's")
        await setup.inbox.wait_for(1)
    assert setup.inbox.texts == ["a person's"]


async def test_an_edit_has_the_id_of_its_message_and_a_preview_is_none(setup: ServerSetup) -> None:
    async with setup.connected():
        message = await setup.server.send_as_user(DM, "helo")
        await setup.inbox.wait_for(1)
        await setup.server.change(message)
        await setup.server.change(message, "hello")
        events = await setup.inbox.wait_for(2)
    assert [(event.text, event.is_edit) for event in events] == [("helo", False), ("hello", True)]
    assert {event.message_id for event in events} == {message["id"]}


async def test_deletions_name_their_messages(setup: ServerSetup) -> None:
    async with setup.connected():
        sent = [await setup.server.send_as_user(DM, text) for text in ("one", "two", "three")]
        await setup.server.delete(sent[0])
        await setup.server.delete(*sent[1:])
        events = await setup.inbox.wait_for(6)
    deletions = [event for event in events if event.is_deletion]
    assert [event.message_id for event in deletions] == [message["id"] for message in sent]
    assert {event.source.chat_id for event in deletions if event.source} == {str(DM)}


def contents(event: MessageEvent) -> bytes:
    return Path(event.media_urls[0]).read_bytes()


async def test_files_are_stored_and_a_failed_one_is_noted(setup: ServerSetup) -> None:
    server = setup.server
    good = server.attachment("a.png", PNG, "image/png")
    lost = server.attachment("lost.pdf", b"x", "application/pdf")
    del server.files["lost.pdf"]
    large = server.attachment("large.bin", b"x" * 2000, "application/zip")
    async with setup.connected():
        await server.send_as_user(DM, "look", attachments=[good, lost, large])
        [event] = await setup.inbox.wait_for(1)
    assert (event.message_type, event.media_types) == (MessageType.PHOTO, ["image/png"])
    assert contents(event) == PNG
    assert event.text == (
        "look\n[Attached file, download failed: lost.pdf]\n"
        "[Attached file, download failed: large.bin]"
    )


async def test_a_file_is_read_only_up_to_the_limit(setup: ServerSetup) -> None:
    lying = setup.server.attachment("large.bin", b"x" * 2000, "application/zip", size=5)
    async with setup.connected():
        await setup.server.send_as_user(DM, "look", attachments=[lying])
        [event] = await setup.inbox.wait_for(1)
    assert event.text == "look\n[Attached file, download failed: large.bin]"


async def test_a_file_elsewhere_is_not_fetched(setup: ServerSetup) -> None:
    async with DiscordServer() as elsewhere:
        file = elsewhere.attachment("a.png", PNG, "image/png")
        async with setup.connected():
            await setup.server.send_as_user(DM, "look", attachments=[file])
            [event] = await setup.inbox.wait_for(1)
    assert event.text == "look\n[Attached file, download failed: a.png]"
    assert elsewhere.file_requests == []


async def test_a_message_with_nothing_in_it_is_not_received(setup: ServerSetup) -> None:
    async with setup.connected():
        await setup.server.send_as_user(DM, "")
        await setup.server.send_as_user(GENERAL, f"<@{BOT_ID}>", mentions=[BOT])
        await setup.server.send_as_user(DM, "hello")
        await setup.inbox.wait_for(2)
    assert sorted(setup.inbox.texts) == ["", "hello"]


async def test_a_voice_message_is_one(setup: ServerSetup) -> None:
    voice = {"duration_secs": 1.5, "waveform": "AA=="}
    spoken = setup.server.attachment("voice.ogg", b"ogg", "audio/ogg", **voice)
    async with setup.connected():
        await setup.server.send_as_user(DM, "", attachments=[spoken], flags=1 << 13)
        [event] = await setup.inbox.wait_for(1)
    assert (event.message_type, event.text) == (MessageType.VOICE, "")


# Nothing is lost


async def test_a_message_that_is_not_stored_is_delivered_again_in_order(setup: ServerSetup) -> None:
    setup.inbox.fail(3)
    async with setup.connected():
        for text in ("one", "two", "three"):
            await setup.server.send_as_user(DM, text)
        await setup.inbox.wait_for(3)
    assert setup.inbox.texts == ["one", "two", "three"]


async def test_a_blocked_channel_does_not_delay_others(setup: ServerSetup) -> None:
    held = asyncio.Event()
    events: list[str] = []

    async def receive(event: MessageEvent) -> None:
        if event.text == "slow":
            await held.wait()
        events.append(event.text)

    adapter = setup.adapter()
    await adapter.connect(receive)
    await setup.server.send_as_user(DM, "slow")
    await setup.server.send_as_user(GENERAL, "quick")
    await async_wait_until(lambda: events == ["quick"])
    held.set()
    await async_wait_until(lambda: len(events) == 2)
    await adapter.disconnect()


async def test_messages_from_a_downtime_are_fetched_in_order(setup: ServerSetup) -> None:
    await setup.server.send_as_user(DM, "before the first start")
    async with setup.connected() as adapter:
        await setup.server.send_as_user(DM, "zero")
        await setup.inbox.wait_for(1)
        await setup.wait_for_offset(adapter)
    texts = [f"m{number}" for number in range(230)]
    for text in texts:
        await setup.server.send_as_user(DM, text)
    setup.server.plan("GET messages", Fault(503, {"message": "later"}))
    async with setup.connected():
        await setup.server.send_as_user(DM, "live")
        await setup.inbox.wait_for(232)
    assert setup.inbox.texts == ["zero", *texts, "live"]


async def test_channels_without_received_messages_are_checked_too(setup: ServerSetup) -> None:
    await setup.server.send_as_user(GENERAL, "before the first start")
    await asyncio.sleep(0.002)  # ids count milliseconds
    async with setup.connected():
        pass
    await setup.server.send_as_user(GENERAL, "a server's channel")
    await setup.server.send_as_user(THREAD, "a thread")
    await setup.server.send_as_user(DM, "a stranger's first words")
    async with setup.connected():
        await setup.inbox.wait_for(2)
        assert set(setup.inbox.texts) == {"a server's channel", "a thread"}
        await setup.server.send_as_user(DM, "hello?")
        await setup.inbox.wait_for(4)
    assert setup.inbox.texts[2:] == ["a stranger's first words", "hello?"]


async def test_an_abandoned_adapter_loses_nothing_and_keeps_the_order(setup: ServerSetup) -> None:
    first = RecordingInbox()
    abandoned = setup.adapter()
    await abandoned.connect(first)
    await setup.server.send_as_user(DM, "kept")
    await setup.server.send_as_user(GENERAL, "kept too")
    await first.wait_for(2)
    first.gate = asyncio.Event()
    await setup.server.send_as_user(DM, "one")
    await setup.server.send_as_user(DM, "two")
    await setup.server.send_as_user(THREAD, "never heard before")
    await async_wait_until(lambda: first.attempts == 4)
    async with setup.connected():
        await setup.server.send_as_user(DM, "three")
        await setup.inbox.wait_for(4)
    direct = [
        event.text for event in setup.inbox.events if event.source and event.source.chat_id == "100"
    ]
    assert direct == ["one", "two", "three"]
    assert setup.inbox.texts.count("never heard before") == 1
    assert len(setup.inbox.texts) == 4
    await abandoned.disconnect()


async def test_a_message_that_failed_until_shutdown_is_handled_by_the_next_process(
    setup: ServerSetup,
) -> None:
    first = RecordingInbox()
    first.fail()
    async with setup.connected(first):
        await setup.server.send_as_user(DM, "one")
        await setup.server.send_as_user(DM, "two")
        await async_wait_until(lambda: first.attempts > 2)
    async with setup.connected():
        await setup.inbox.wait_for(2)
    assert setup.inbox.texts == ["one", "two"]


async def test_a_connection_that_breaks_is_resumed(setup: ServerSetup) -> None:
    async with setup.connected():
        await setup.server.send_as_user(DM, "one")
        await setup.inbox.wait_for(1)
        setup.server.cut_connections()
        await setup.server.send_as_user(DM, "two")
        await async_wait_until(lambda: setup.server.resumed == 1)
        await setup.server.send_as_user(DM, "three")
        await setup.inbox.wait_for(3)
    assert setup.inbox.texts == ["one", "two", "three"]
    assert len(setup.server.identified) == 1


async def test_a_lost_session_is_restarted_and_its_gap_filled(setup: ServerSetup) -> None:
    async with setup.connected():
        await setup.server.send_as_user(DM, "one")
        await setup.inbox.wait_for(1)
        setup.server.drop_sessions()
        await setup.server.send_as_user(DM, "two")
        await async_wait_until(lambda: len(setup.server.identified) == 2)
        await setup.server.send_as_user(DM, "three")
        await setup.inbox.wait_for(3)
    assert setup.inbox.texts == ["one", "two", "three"]


async def test_a_server_that_was_down_is_connected_to_again(setup: ServerSetup) -> None:
    async with setup.connected() as adapter:
        await setup.server.send_as_user(DM, "one")
        await setup.inbox.wait_for(1)
        await setup.server.stop()
        setup.server.sessions.clear()
        result = await adapter.send(OutgoingMessage(str(DM), "hi", "k1"))
        assert result.error_kind is ErrorKind.TRANSIENT
        await async_wait_until(lambda: adapter.problem)  # shown as lost
        await setup.server.send_as_user(DM, "two")
        await setup.server.start()
        await setup.inbox.wait_for(2)
        assert not adapter.problem
        await async_wait_until(lambda: setup.server.sessions)
        assert (await adapter.send(OutgoingMessage(str(DM), "hi", "k1"))).success
    assert setup.inbox.texts == ["one", "two"]


async def test_a_channel_without_history_access_still_delivers_messages(setup: ServerSetup) -> None:
    fault = Fault(403, {"message": "Missing Access", "code": 50001})
    setup.server.plan("GET messages", fault)
    async with setup.connected():
        await setup.server.send_as_user(GENERAL, "hello")
        await setup.inbox.wait_for(1)
    assert setup.inbox.texts == ["hello"]


async def test_a_deleted_channel_is_dropped(setup: ServerSetup) -> None:
    async with setup.connected() as adapter:
        await setup.server.send_as_user(DM, "one")
        await setup.server.send_as_user(THREAD, "two")
        await setup.inbox.wait_for(2)
        await setup.wait_for_offset(adapter)
    del setup.server.channels[THREAD]
    gone = f"channels/{THREAD}"
    async with setup.connected() as adapter:
        await async_wait_until(lambda: gone in [path for _, path, _ in setup.server.requests])
        await setup.server.send_as_user(DM, "three")
        await setup.inbox.wait_for(3)
        await setup.wait_for_offset(adapter)
    setup.server.requests.clear()
    async with setup.connected():
        await setup.server.send_as_user(DM, "four")
        await setup.inbox.wait_for(4)
    assert not [path for _, path, _ in setup.server.requests if path.startswith(gone)]


async def test_a_message_that_cannot_be_read_does_not_silence_its_channel(
    setup: ServerSetup,
) -> None:
    async with setup.connected():
        await setup.server.send_as_user(DM, "one")
        await setup.inbox.wait_for(1)
        await setup.server.send_as_user(
            DM, "odd", type=19, message_reference={"message_id": "no number"}
        )
        await setup.server.send_as_user(DM, "two")
        await setup.inbox.wait_for(2)
    assert setup.inbox.texts == ["one", "two"]
    assert len(setup.server.identified) == 1  # the connection stays
    assert len(setup.quarantined) == 1


async def test_the_queue_is_bounded_and_refilled_later(
    setup: ServerSetup, caplog: pytest.LogCaptureFixture
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
    await setup.server.send_as_user(DM, "and now")
    await setup.inbox.wait_for(41)
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


async def test_an_invalid_token_is_rejected_with_a_hint(setup: ServerSetup) -> None:
    setup.secrets["DISCORD_BOT_TOKEN"] = "not-the-token"
    with pytest.raises(PlatformRefusedError, match="DISCORD_BOT_TOKEN") as caught:
        async with setup.connected():
            pass
    assert "not-the-token" not in str(caught.value)


@pytest.mark.parametrize(("code", "phrase"), [(4014, "MESSAGE CONTENT INTENT"), (4004, "TOKEN")])
async def test_a_rejected_identify_is_a_permanent_failure(
    setup: ServerSetup, code: int, phrase: str
) -> None:
    setup.server.close_code = code
    with pytest.raises(PlatformRefusedError, match=phrase):
        async with setup.connected():
            pass


@pytest.mark.parametrize(("code", "phrase"), [(4014, "MESSAGE CONTENT INTENT"), (4004, "TOKEN")])
async def test_a_revoked_access_is_a_problem_until_it_is_restored(
    setup: ServerSetup, code: int, phrase: str
) -> None:
    async with setup.connected() as adapter:
        assert adapter.problem == ""
        setup.server.close_code = code
        await setup.server.close(code)
        await async_wait_until(lambda: phrase in adapter.problem)
        tries = len(setup.server.identified)
        await async_wait_until(lambda: len(setup.server.identified) > tries)
        setup.server.close_code = None
        await async_wait_until(lambda: not adapter.problem)
        await setup.server.send_as_user(DM, "hello")
        await setup.inbox.wait_for(1)


async def test_short_sessions_are_restarted_with_backoff(
    setup: ServerSetup, caplog: pytest.LogCaptureFixture
) -> None:
    adapter = setup.factory(setup.context(), backoff=Backoff(0.01, 1000.0, factor=1e9))
    await adapter.connect(setup.inbox)
    await setup.server.close(4012)  # which the library does not mend by itself
    await async_wait_until(lambda: setup.server.sessions)
    await setup.server.close(4012)
    await async_wait_until(lambda: "in 1000 s" in caplog.text)
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
    await setup.server.send_as_user(DM, "hello")
    await setup.inbox.wait_for(1)
    await adapter.disconnect()


async def test_only_required_values_are_prompted_for(setup: ServerSetup) -> None:
    async with setup.connected():
        intents = setup.server.identified[0]["intents"]
    assert intents == 1 << 0 | 1 << 9 | 1 << 12 | 1 << 15
