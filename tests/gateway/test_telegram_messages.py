"""Incoming Telegram messages: files, groups, topics."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from gateway.platforms.base import ErrorKind, MessageEvent, MessageType, OutgoingMessage
from support.telegram_server import ANN, BOT, Fault, TelegramServer
from support.telegram_setup import GROUP, TelegramSetup

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from hermes_state import SessionDB


@pytest.fixture
async def setup(db: SessionDB, tmp_path: Path) -> AsyncIterator[TelegramSetup]:
    async with TelegramServer() as server:
        server.chats.add(7)
        yield TelegramSetup(server, db, tmp_path)


# Files


def contents(event: MessageEvent) -> bytes:
    return Path(event.media_urls[0]).read_bytes()


def photo(name: str, width: int, size: int = 10) -> dict[str, Any]:
    fields = {"file_id": name, "file_unique_id": name, "file_size": size}
    return {**fields, "width": width, "height": width}


async def test_a_photo_is_received_in_its_largest_size_with_its_caption(
    setup: TelegramSetup,
) -> None:
    setup.server.files = {"small": b"s", "large": b"large"}
    async with setup.connected():
        await setup.server.send_as_user(
            caption="look", photo=[photo("small", 90), photo("large", 800)]
        )
        event = (await setup.inbox.wait_for(1))[0]
    assert (event.text, event.message_type) == ("look", MessageType.PHOTO)
    assert event.media_types == ["image/jpeg"]
    assert contents(event) == b"large"


@pytest.mark.parametrize(
    ("holder", "fields", "kind", "mime"),
    [
        (
            "document",
            {"file_name": "a.pdf", "mime_type": "application/pdf"},
            MessageType.DOCUMENT,
            "application/pdf",
        ),
        ("voice", {"duration": 1, "mime_type": "audio/ogg"}, MessageType.VOICE, "audio/ogg"),
        ("audio", {"duration": 1}, MessageType.AUDIO, "audio/mpeg"),
        (
            "video",
            {"duration": 1, "width": 1, "height": 1},
            MessageType.VIDEO,
            "video/mp4",
        ),
    ],
)
async def test_files_are_stored_by_content(
    setup: TelegramSetup, holder: str, fields: dict[str, Any], kind: MessageType, mime: str
) -> None:
    setup.server.files = {"f1": b"contents", "f2": b"contents"}
    async with setup.connected():
        for name in ("f1", "f2"):
            file = {"file_id": name, "file_unique_id": name, "file_size": 8, **fields}
            await setup.server.send_as_user(**{holder: file})
        first, second = await setup.inbox.wait_for(2)
    assert (first.message_type, first.media_types) == (kind, [mime])
    assert first.media_urls == second.media_urls
    assert contents(first) == b"contents"


@pytest.mark.parametrize("declared_size", [5000, 0])
async def test_a_file_that_is_too_large_leaves_a_note(
    setup: TelegramSetup, declared_size: int
) -> None:
    setup.server.files = {"f1": b"x" * 5000}
    file = {"file_id": "f1", "file_unique_id": "f1", "file_name": "big.bin"}
    async with setup.connected():
        await setup.server.send_as_user(
            caption="see", document={**file, "file_size": declared_size}
        )
        event = (await setup.inbox.wait_for(1))[0]
    assert event.text == "see\n[Attached file, too large to download: big.bin]"
    assert event.media_urls == []


async def test_a_file_that_telegram_does_not_give_leaves_a_note(
    setup: TelegramSetup, caplog: pytest.LogCaptureFixture
) -> None:
    gone = {"file_id": "gone", "file_unique_id": "gone", "file_name": "a.txt"}
    big = {"file_id": "big", "file_unique_id": "big", "file_name": "b.txt"}
    async with setup.connected():
        await setup.server.send_as_user(document=gone)
        await setup.inbox.wait_for(1)
        too_big = Fault(400, "Bad Request: file is too big")
        setup.server.plan("getFile", too_big, too_big)
        await setup.server.send_as_user(document=big)
        await setup.inbox.wait_for(2)
    assert setup.inbox.texts == [
        "[Attached file, download failed: a.txt]",
        "[Attached file, too large to download: b.txt]",
    ]
    assert "download failed" in caplog.text


async def test_a_download_that_is_cut_is_tried_again(setup: TelegramSetup) -> None:
    setup.server.files = {"f1": b"contents"}
    setup.server.plan("file", Fault(is_cut_in_body=True))
    async with setup.connected():
        await setup.server.send_as_user(document={"file_id": "f1", "file_unique_id": "f1"})
        event = (await setup.inbox.wait_for(1))[0]
    assert contents(event) == b"contents"


async def test_the_pictures_of_an_album_belong_together(setup: TelegramSetup) -> None:
    setup.server.files = {"p1": b"1", "p2": b"2"}
    async with setup.connected():
        await setup.server.send_as_user(caption="two", photo=[photo("p1", 9)], media_group_id="g1")
        await setup.server.send_as_user(photo=[photo("p2", 9)], media_group_id="g1")
        events = await setup.inbox.wait_for(2)
    assert [event.group_id for event in events] == ["g1", "g1"]
    assert [event.text for event in events] == ["two", ""]


# Groups and topics


def entity(kind: str, text: str, part: str, **fields: Any) -> dict[str, Any]:
    """An entity over a part of a text, counted as Telegram counts."""
    before = text[: text.index(part)]
    units = [len(item.encode("utf-16-le")) // 2 for item in (before, part)]
    return {"type": kind, "offset": units[0], "length": units[1], **fields}


@pytest.mark.parametrize(
    ("text", "kind", "part", "fields", "expected", "is_addressed"),
    [
        ("hi all", "bold", "hi", {}, "hi all", False),
        ("😀 @hermesbot help", "mention", "@hermesbot", {}, "😀  help", True),
        ("@otherbot help", "mention", "@otherbot", {}, "@otherbot help", False),
        ("Hermes, help", "text_mention", "Hermes", {"user": BOT}, ", help", True),
        ("Ann, help", "text_mention", "Ann", {"user": ANN}, "Ann, help", False),
        ("/new@HermesBot x", "bot_command", "/new@HermesBot", {}, "/new x", True),
        ("/new@OtherBot x", "bot_command", "/new@OtherBot", {}, "/new@OtherBot x", False),
    ],
)
async def test_in_a_group_the_bot_is_meant_when_it_is_named(
    setup: TelegramSetup,
    text: str,
    kind: str,
    part: str,
    fields: dict[str, Any],
    expected: str,
    is_addressed: bool,
) -> None:
    async with setup.connected():
        await setup.server.send_as_user(text, GROUP, entities=[entity(kind, text, part, **fields)])
        event = (await setup.inbox.wait_for(1))[0]
    assert (event.text, event.is_addressed) == (expected, is_addressed)
    assert event.source is not None
    assert (event.source.chat_type, event.source.chat_name) == ("group", "Garden")
    assert (event.source.chat_id, event.source.user_id) == (str(GROUP), "7")


async def test_in_a_group_a_reply_to_the_bot_is_meant_for_it(setup: TelegramSetup) -> None:
    bot_message = {**setup.server.message("I said", GROUP), "from": BOT}
    other = setup.server.message("Ann said", GROUP)
    async with setup.connected():
        await setup.server.send_as_user("and?", GROUP, reply_to_message=bot_message)
        await setup.server.send_as_user("oh", GROUP, reply_to_message=other)
        first, second = await setup.inbox.wait_for(2)
    assert first.is_addressed
    assert first.reply_to_message_id == str(bot_message["message_id"])
    assert first.reply_to_text == "I said"
    assert not second.is_addressed


async def test_senders_as_a_channel_or_group_are_identified_by_it(
    setup: TelegramSetup,
) -> None:
    group = {"id": GROUP, "type": "supergroup", "title": "Garden"}
    everybody = {"id": 1087968824, "is_bot": True, "first_name": "Group"}
    channel = {"id": -100900, "type": "channel", "title": "News"}
    async with setup.connected():
        await setup.server.send_as_user("as admin", GROUP, sender_chat=group, **{"from": everybody})
        post = {**setup.server.message("news", -100900), "chat": channel, "sender_chat": channel}
        del post["from"]
        await setup.server.add("channel_post", post)
        events = await setup.inbox.wait_for(2)
    first, second = (event.source for event in events)
    assert first is not None
    assert second is not None
    assert (first.user_id, first.user_name, first.is_bot) == (str(GROUP), "Garden", False)
    assert (second.user_id, second.chat_type) == ("-100900", "channel")
    assert not events[1].is_addressed


async def test_a_caption_names_the_bot_too(setup: TelegramSetup) -> None:
    setup.server.files = {"p1": b"1"}
    text = "@HermesBot what is this?"
    named = [entity("mention", text, "@HermesBot")]
    async with setup.connected():
        await setup.server.send_as_user(
            chat=GROUP, caption=text, caption_entities=named, photo=[photo("p1", 9)]
        )
        event = (await setup.inbox.wait_for(1))[0]
    assert (event.text, event.is_addressed) == ("what is this?", True)


async def test_a_topic_is_a_thread_both_ways(setup: TelegramSetup) -> None:
    begin = {**setup.server.message(None, GROUP), "from": BOT}
    begin["forum_topic_created"] = {"name": "Roses", "icon_color": 1}
    setup.server.topics = {33}
    async with setup.connected() as adapter:
        topic = {"message_thread_id": 33, "is_topic_message": True, "reply_to_message": begin}
        await setup.server.send_as_user("in it", GROUP, **topic)
        await setup.server.send_as_user("a thread of replies", GROUP, message_thread_id=34)
        first, second = await setup.inbox.wait_for(2)
        assert first.source is not None
        assert second.source is not None
        assert (first.source.thread_id, second.source.thread_id) == ("33", None)
        assert not first.is_addressed, "the topic's beginning is not replied to"
        assert first.reply_to_message_id is None
        await adapter.send(OutgoingMessage(str(GROUP), "here", "k1", thread_id="33"))
        await adapter.send(OutgoingMessage(str(GROUP), "general", "k2", thread_id="1"))
        result = await adapter.send(OutgoingMessage(str(GROUP), "gone", "k3", thread_id="44"))
    assert setup.server.sent[0].fields["message_thread_id"] == "33"
    assert "message_thread_id" not in setup.server.sent[1].fields
    assert result.error_kind is ErrorKind.NOT_FOUND
