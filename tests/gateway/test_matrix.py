"""The Matrix adapter on a real Synapse."""

from __future__ import annotations

import asyncio
import itertools
import logging
from typing import TYPE_CHECKING

import pytest
from nio import AsyncClient  # type: ignore[import-untyped] # it has no types

from gateway.platforms.base import ErrorKind, MessageType, OutgoingMessage
from gateway.platforms.matrix.adapter import (
    MAX_CONTENT_BYTES,
    MAX_TEXT_CHARS,
    edit_content,
    make,
    text_content,
)
from gateway.platforms.matrix.messages import without_mention
from gateway.platforms.matrix.rooms import MatrixRoom, MatrixRooms
from hermes_core.errors import PlatformDownError, PlatformRefusedError
from support.adapters import DictMemory, RecordingInbox
from support.matrix_setup import MatrixSetup, connected, context_of
from support.synapse import SERVER_NAME, LossyProxy
from support.waiting import async_wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from support.synapse import MatrixUser, Synapse

NUMBERS = itertools.count()
PICTURE = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c489"
    "0000000d49444154789c6360606060000000050001a5f645400000000049454e44ae426082"
)


def register_user(synapse: Synapse, name: str, display_name: str = "") -> MatrixUser:
    return synapse.register_user(f"{name}{next(NUMBERS)}", display_name)


@pytest.fixture
def setup(synapse: Synapse, tmp_path: Path) -> MatrixSetup:
    bot, ann, notes = (
        register_user(synapse, "bot", "Hermes"),
        register_user(synapse, "ann", "Ann"),
        DictMemory(),
    )
    return MatrixSetup(bot, ann, context_of(synapse.url, bot.token, tmp_path, notes), notes)


async def test_a_message_has_its_sender_and_chat(setup: MatrixSetup) -> None:
    room = setup.create_room()
    async with connected(setup) as (adapter, received):
        texts = setup.ann.send_text(room, "hello")
        [event] = await received.wait_for(1)
    assert adapter.account == setup.bot.user_id
    assert (event.text, event.message_id, event.is_addressed) == ("hello", texts, True)
    source = event.source
    assert source is not None
    assert (source.chat_id, source.chat_type) == (room, "dm")
    assert (source.user_id, source.user_name) == (setup.ann.user_id, "Ann")


async def test_own_messages_and_notices_are_not_received(setup: MatrixSetup) -> None:
    room = setup.create_room()
    async with connected(setup) as (adapter, received):
        assert (await adapter.send(OutgoingMessage(room, "mine", "k1"))).success
        setup.ann.send(room, {"msgtype": "m.notice", "body": "a bot"})
        setup.ann.send_text(room, "hello")
        await received.wait_for(1)
    assert received.texts == ["hello"]


async def test_messages_from_before_the_first_start_are_not_answered(setup: MatrixSetup) -> None:
    room = setup.create_room()
    setup.ann.send_text(room, "long ago")
    waiting = setup.ann.create_room(setup.bot.user_id)
    setup.ann.send_text(waiting, "also long ago")
    async with connected(setup) as (_adapter, received):
        assert setup.bot.user_id in setup.ann.members(waiting)
        setup.ann.send_text(room, "now")
        setup.ann.send_text(waiting, "now here")
        await received.wait_for(2)
    assert set(received.texts) == {"now", "now here"}


async def test_an_invitation_is_accepted_and_its_messages_are_handled(setup: MatrixSetup) -> None:
    async with connected(setup) as (_adapter, received):
        room = setup.ann.create_room()
        setup.ann.send_text(room, "not for the bot")
        setup.ann.invite(room, setup.bot.user_id)
        setup.ann.send_text(room, "are you there?")
        await received.wait_for(1)
        assert setup.bot.user_id in setup.ann.members(room)
        setup.ann.send_text(room, "good")
        await received.wait_for(2)
    assert received.texts == ["are you there?", "good"]


async def test_an_invitation_and_messages_during_a_downtime_are_not_lost(
    setup: MatrixSetup,
) -> None:
    async with connected(setup):
        pass
    room = setup.ann.create_room(setup.bot.user_id)
    texts = [f"m{number}" for number in range(70)]
    for text in texts:
        setup.ann.send_text(room, text)
    async with connected(setup) as (_adapter, received):
        await received.wait_for(70)
    assert received.texts == texts


async def test_invitations_are_left_alone_where_that_is_wanted(
    synapse: Synapse, tmp_path: Path
) -> None:
    bot, ann, notes = register_user(synapse, "bot"), register_user(synapse, "ann"), DictMemory()
    context = context_of(synapse.url, bot.token, tmp_path, notes, auto_join=False)
    setup = MatrixSetup(bot, ann, context, notes)
    known = setup.create_room()
    invited = ann.create_room(bot.user_id)
    async with connected(setup) as (_adapter, received):
        ann.send_text(known, "hello")
        await received.wait_for(1)
    assert bot.user_id not in ann.members(invited)


async def test_in_a_group_only_a_mention_or_a_reply_is_addressed(
    setup: MatrixSetup, synapse: Synapse
) -> None:
    room = setup.create_room(register_user(synapse, "bob", "Bob"))
    async with connected(setup) as (adapter, received):
        bot_message = (await adapter.send(OutgoingMessage(room, "I am here", "k1"))).message_id
        setup.ann.send_text(room, "nice weather")
        setup.ann.send_text(room, "Hermes: what time is it?")
        setup.ann.send_text(room, "so?", **{"m.mentions": {"user_ids": [setup.bot.user_id]}})
        setup.ann.send_text(
            room, "really", **{"m.relates_to": {"m.in_reply_to": {"event_id": bot_message}}}
        )
        events = await received.wait_for(4)
    assert [event.is_addressed for event in events] == [False, True, True, True]
    assert received.texts == ["nice weather", "what time is it?", "so?", "really"]
    assert (events[3].reply_to_message_id, events[3].reply_to_text) == (bot_message, "I am here")
    assert {event.source.chat_type for event in events if event.source} == {"group"}


async def test_a_third_member_turns_a_chat_into_a_group(
    setup: MatrixSetup, synapse: Synapse
) -> None:
    room, bob = setup.create_room(), register_user(synapse, "bob")
    async with connected(setup) as (_adapter, received):
        setup.ann.send_text(room, "we two")
        await received.wait_for(1)
        setup.ann.invite(room, bob.user_id)
        bob.join(room)
        setup.ann.send_text(room, "we three")
        events = await received.wait_for(2)
    assert [event.source.chat_type for event in events if event.source] == ["dm", "group"]


async def test_threads_and_edits_keep_their_parent(setup: MatrixSetup) -> None:
    room = setup.create_room()
    async with connected(setup) as (adapter, received):
        root = setup.ann.send_text(room, "the root")
        thread = {"rel_type": "m.thread", "event_id": root, "is_falling_back": True}
        thread["m.in_reply_to"] = {"event_id": root}
        setup.ann.send_text(room, "in the thread", **{"m.relates_to": thread})
        edit = {"rel_type": "m.replace", "event_id": root}
        new = {"msgtype": "m.text", "body": "the new root"}
        setup.ann.send_text(room, "* the new root", **{"m.relates_to": edit, "m.new_content": new})
        events = await received.wait_for(3)
        result = await adapter.send(OutgoingMessage(room, "answer", "k1", thread_id=root))
    assert events[1].source is not None
    assert (events[1].source.thread_id, events[1].reply_to_message_id) == (root, None)
    assert (events[2].is_edit, events[2].message_id, events[2].text) == (True, root, "the new root")
    sent = next(item for item in setup.ann.events(room) if item["event_id"] == result.message_id)
    assert sent["content"]["m.relates_to"]["event_id"] == root


async def test_files_are_stored_by_content(setup: MatrixSetup, synapse: Synapse) -> None:
    room = setup.create_room()
    async with connected(setup) as (_adapter, received):
        url = setup.ann.upload(PICTURE, "dot.png")
        picture = {"msgtype": "m.image", "url": url, "info": {"mimetype": "image/png"}}
        setup.ann.send(room, {**picture, "filename": "dot.png", "body": "look at this"})
        voice = {"msgtype": "m.audio", "org.matrix.msc3245.voice": {}, "body": "voice.ogg"}
        sound = setup.ann.upload(b"sound", "voice.ogg")
        setup.ann.send(room, {**voice, "url": sound, "info": {"mimetype": "audio/ogg"}})
        gone = f"mxc://{SERVER_NAME}/nothing"
        setup.ann.send(room, {"msgtype": "m.file", "url": gone, "body": "gone.pdf"})
        large = {"msgtype": "m.file", "url": url, "body": "huge", "info": {"size": 10**12}}
        setup.ann.send(room, large)
        first, second, third, fourth = await received.wait_for(4)
    assert (first.text, first.message_type) == ("look at this", MessageType.PHOTO)
    assert first.media_types == ["image/png"]
    with open(first.media_urls[0], "rb") as file:  # noqa: ASYNC230, PTH123
        assert file.read() == PICTURE
    assert (second.message_type, len(second.media_urls)) == (MessageType.VOICE, 1)
    assert third.text == "[Attached file, download failed: gone.pdf]"
    assert (fourth.text, fourth.media_urls) == ("[Attached file, download failed: huge]", [])


async def test_a_message_that_could_not_be_stored_is_delivered_again(
    setup: MatrixSetup, caplog: pytest.LogCaptureFixture
) -> None:
    room = setup.create_room()
    received = RecordingInbox()
    async with connected(setup, received):
        before = dict(setup.notes.values)
        received.fail(1)
        for text in ("one", "two"):
            setup.ann.send_text(room, text)
        await async_wait_until(lambda: received.attempts)
        assert setup.notes.values == before
        await received.wait_for(2)
        await async_wait_until(lambda: setup.notes.values != before)
    assert received.texts == ["one", "two"]
    assert "the disk is full" in caplog.text


async def test_the_offset_is_stored_only_after_messages_were_received(setup: MatrixSetup) -> None:
    room = setup.create_room()
    received = RecordingInbox()
    async with connected(setup, received):
        received.fail()
        setup.ann.send_text(room, "in vain")
        await async_wait_until(lambda: received.attempts)
    async with connected(setup) as (_adapter, again):
        await again.wait_for(1)
    assert (received.texts, again.texts) == ([], ["in vain"])


async def test_messages_missed_during_a_long_downtime_are_handled_in_order(
    setup: MatrixSetup,
) -> None:
    rooms = [setup.create_room(), setup.create_room()]
    async with connected(setup):
        pass
    texts = [f"m{number}" for number in range(120)]
    for text in texts:
        setup.ann.send_text(rooms[0], text)
    setup.ann.send_text(rooms[1], "elsewhere")
    async with connected(setup) as (_adapter, received):
        events = await received.wait_for(121)
        setup.ann.send_text(rooms[0], "now")
        await received.wait_for(122)
    by_room: dict[str, list[str]] = {item: [] for item in rooms}
    for event in events:
        assert event.source is not None
        by_room[event.source.chat_id].append(event.text)
    assert by_room == {rooms[0]: [*texts, "now"], rooms[1]: ["elsewhere"]}


async def test_the_same_key_is_one_event(setup: MatrixSetup) -> None:
    room = setup.create_room()
    async with connected(setup) as (adapter, _received):
        first = await adapter.send(OutgoingMessage(room, "once", "k1"))
    async with connected(setup) as (adapter, _received):
        again = await adapter.send(OutgoingMessage(room, "once", "k1"))
        other = await adapter.send(OutgoingMessage(room, "twice", "k2"))
    assert first.success
    assert first.message_id == again.message_id != other.message_id
    assert setup.ann.texts_by(room, setup.bot.user_id) == ["once", "twice"]


async def test_a_reply_whose_answer_got_lost_arrives_once(
    setup: MatrixSetup, synapse: Synapse, tmp_path: Path
) -> None:
    room = setup.create_room()
    async with LossyProxy(synapse) as line:
        context = context_of(line.url, setup.bot.token, tmp_path, setup.notes)
        async with connected(setup._replace(context=context)) as (adapter, received):
            line.drops_responses = True
            lost = await adapter.send(OutgoingMessage(room, "once", "k1"))
            line.drops_responses = False
            response = await adapter.send(OutgoingMessage(room, "once", "k1"))
            setup.ann.send_text(room, "thanks")
            await received.wait_for(1)
    assert (lost.error_kind, lost.may_have_arrived) == (ErrorKind.TRANSIENT, True)
    assert response.success
    assert setup.ann.texts_by(room, setup.bot.user_id) == ["once"]


async def test_markdown_is_sent_as_html_and_html_as_text(setup: MatrixSetup) -> None:
    room = setup.create_room()
    async with connected(setup) as (adapter, _received):
        await adapter.send(OutgoingMessage(room, "**bold** <script>", "k1", reply_to="$nothing"))
    content = setup.ann.events(room)[-1]["content"]
    assert content["body"] == "**bold** <script>"
    assert content["formatted_body"] == "<p><strong>bold</strong> &lt;script&gt;</p>"
    assert content["m.relates_to"] == {"m.in_reply_to": {"event_id": "$nothing"}}


async def test_edits_reactions_and_files_arrive(setup: MatrixSetup, tmp_path: Path) -> None:
    room = setup.create_room()
    path = tmp_path / "dot.png"
    path.write_bytes(PICTURE)
    async with connected(setup) as (adapter, _received):
        hers = setup.ann.send_text(room, "hello")
        bot_message = (await adapter.send(OutgoingMessage(room, "first", "k1"))).message_id
        assert bot_message is not None
        for text in ("second", "third"):
            assert (await adapter.edit(OutgoingMessage(room, text, "k1"), bot_message)).success
        await adapter.react(room, hers, "👍")
        assert (await adapter.send(OutgoingMessage(room, "look", "k2", file=path))).success
        missing = await adapter.send(OutgoingMessage(room, "", "k3", file=tmp_path / "none"))
    events = setup.ann.events(room)
    edits = [item["content"].get("m.new_content", {}).get("body") for item in events]
    assert [edit for edit in edits if edit] == ["second", "third"]
    [reaction] = [item["content"] for item in events if item["type"] == "m.reaction"]
    assert reaction["m.relates_to"]["key"] == "👍"
    file = events[-1]["content"]
    assert (file["msgtype"], file["body"], file["filename"]) == ("m.image", "look", "dot.png")
    assert missing.error_kind is ErrorKind.NOT_FOUND


async def test_typing_is_shown(setup: MatrixSetup) -> None:
    room = setup.create_room()
    since = setup.ann.call("GET", "/_matrix/client/v3/sync?timeout=0")["next_batch"]
    async with connected(setup) as (adapter, _received):
        await adapter.typing(room)
        thread = await asyncio.to_thread(
            setup.ann.call, "GET", f"/_matrix/client/v3/sync?timeout=20000&since={since}"
        )
    [event] = thread["rooms"]["join"][room]["ephemeral"]["events"]
    assert event["content"]["user_ids"] == [setup.bot.user_id]


async def test_a_room_without_membership_is_forbidden(setup: MatrixSetup) -> None:
    room = setup.ann.create_room()
    async with connected(setup) as (adapter, _received):
        result = await adapter.send(OutgoingMessage(room, "hello", "k1"))
    assert (result.error_kind, result.may_have_arrived) == (ErrorKind.FORBIDDEN, False)
    assert (
        await adapter.send(OutgoingMessage(room, "hello", "k1"))
    ).error_kind is ErrorKind.TRANSIENT


async def test_a_rate_limited_request_reports_the_delay(
    setup: MatrixSetup, synapse: Synapse
) -> None:
    room = setup.create_room()
    synapse.limit_rate(setup.bot)
    async with connected(setup) as (adapter, _received):
        results = [await adapter.send(OutgoingMessage(room, "hello", f"k{n}")) for n in range(20)]
    refused = next(result for result in results if not result.success)
    assert (refused.error_kind, refused.may_have_arrived) == (ErrorKind.RATE_LIMITED, False)
    assert refused.retry_after is not None
    assert refused.retry_after > 0


async def test_a_text_that_is_too_long_is_distinguished_from_other_errors(
    setup: MatrixSetup,
) -> None:
    room = setup.create_room()
    async with connected(setup) as (adapter, _received):
        fits = await adapter.send(OutgoingMessage(room, "\U0001f600" * MAX_TEXT_CHARS, "k1"))
        edit = OutgoingMessage(room, "\U0001f601" * MAX_TEXT_CHARS, "k1")
        edited = await adapter.edit(edit, fits.message_id or "")
        result = await adapter.send(OutgoingMessage(room, "x" * 70_000, "k2"))
    assert (fits.success, edited.success) == (True, True)
    assert result.error_kind is ErrorKind.TOO_LONG


async def test_messages_in_a_room_marked_as_direct_are_addressed(
    setup: MatrixSetup, synapse: Synapse
) -> None:
    room = setup.create_room(register_user(synapse, "bob"))
    path = f"/_matrix/client/v3/user/{setup.bot.user_id}/account_data/m.direct"
    setup.bot.call("PUT", path, {setup.ann.user_id: [room]})
    async with connected(setup) as (_adapter, received):
        setup.ann.send(room, {"msgtype": "m.location", "body": "here", "geo_uri": "geo:1,2"})
        [event] = await received.wait_for(1)
    assert event.source is not None
    assert (event.source.chat_type, event.is_addressed) == ("group", True)
    assert (event.text, event.message_type) == ("here\ngeo:1,2", MessageType.LOCATION)


async def test_a_wrong_token_is_rejected_and_never_printed(
    synapse: Synapse, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    adapter = make(context_of(synapse.url, "syt_wrong", tmp_path, DictMemory()))
    with pytest.raises(PlatformRefusedError, match="Log the bot in again") as refused:
        await adapter.connect(RecordingInbox())
    await adapter.disconnect()
    assert "syt_wrong" not in caplog.text + str(refused.value) + repr(adapter)


async def test_a_token_that_is_revoked_is_a_problem(setup: MatrixSetup) -> None:
    room = setup.create_room()
    async with connected(setup) as (adapter, _received):
        assert adapter.problem == ""
        setup.bot.call("POST", "/_matrix/client/v3/logout")
        await async_wait_until(lambda: "Log the bot in again" in adapter.problem)
        result = await adapter.send(OutgoingMessage(room, "hello", "k1"))
    assert result.retryable


async def test_a_message_with_nothing_in_it_is_not_received(setup: MatrixSetup) -> None:
    room = setup.create_room()
    async with connected(setup) as (_adapter, received):
        setup.ann.send_text(room, "")
        setup.ann.send_text(room, "hello")
        await received.wait_for(1)
    assert received.texts == ["hello"]


async def test_an_address_that_is_none_is_refused(tmp_path: Path) -> None:
    adapter = make(context_of("ftp://somewhere", "t", tmp_path, DictMemory()))
    with pytest.raises(PlatformRefusedError, match="MATRIX_HOMESERVER"):
        await adapter.connect(RecordingInbox())


async def test_a_server_that_is_down_is_waited_for(
    setup: MatrixSetup, synapse: Synapse, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    room, received = setup.create_room(), RecordingInbox()
    async with LossyProxy(synapse) as line:
        adapter = make(context_of(line.url, setup.bot.token, tmp_path, setup.notes))
        await line.close()
        with pytest.raises(PlatformDownError):
            await adapter.connect(received)
        await adapter.disconnect()
        await line.open()
        await adapter.connect(received)
        setup.ann.send_text(room, "one")
        await received.wait_for(1)
        await line.close()
        result = await adapter.send(OutgoingMessage(room, "not now", "k1"))
        assert (result.error_kind, result.may_have_arrived) == (ErrorKind.TRANSIENT, False)
        await line.open()
        assert (await adapter.send(OutgoingMessage(room, "now", "k1"))).success
        setup.ann.send_text(room, "two")
        await received.wait_for(2)
        await adapter.disconnect()
    assert received.texts == ["one", "two"]
    assert setup.bot.token not in caplog.text


@pytest.mark.parametrize(("people", "kind"), [(["@ann:x"], "dm"), (["@ann:x", "@bob:x"], "group")])
def test_a_room_of_several_people_is_a_group_also_if_it_is_marked_as_direct(
    people: list[str], kind: str
) -> None:
    room = MatrixRoom("@me:x")
    for user in ("@me:x", *people):
        content = {"membership": "join"}
        room.apply({"type": "m.room.member", "state_key": user, "content": content})
    rooms = MatrixRooms(AsyncClient("http://127.0.0.1:1"), "@me:x", ["!room:x"])
    assert rooms.kind("!room:x", room) == kind


def test_the_longest_text_fits_into_an_event() -> None:
    outgoing = OutgoingMessage("!r", "\U0001f600" * MAX_TEXT_CHARS, "k")
    for content in (text_content(outgoing), edit_content(outgoing, "$e")):
        assert len(str(content).encode()) < MAX_CONTENT_BYTES


@pytest.mark.parametrize(
    ("text", "left", "is_named"),
    [
        ("@bot:x.org what now", "what now", True),
        ("@bot: what now", "what now", True),
        ("Hermes, what now", "what now", True),
        ("what now, hermes?", "what now?", True),
        ("I like Hermes a lot", "I like Hermes a lot", True),
        ("Hermesian things", "Hermesian things", False),
        ("@bottom: hello", "@bottom: hello", False),
    ],
)
def test_a_mention_is_detected_and_removed(text: str, left: str, is_named: bool) -> None:
    assert without_mention(text, "@bot:x.org", "Hermes") == (left, is_named)
