"""End-to-end encryption on Matrix: two real clients on a real Synapse."""

from __future__ import annotations

import asyncio
import itertools
import json
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from gateway.platforms.base import AdapterContext, ErrorKind, MessageEvent, OutgoingMessage
from gateway.platforms.matrix.adapter import MatrixAdapter, make
from hermes_core.errors import HermesError, PlatformRefusedError
from support.adapters import AdapterSetup, DictMemory, RecordingInbox
from support.matrix_client import ENCRYPTION, EncryptedUser, encrypted_user, position_stored
from support.matrix_verification import EMOJI_NAMES, AppVerification
from support.waiting import async_wait_until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from support.synapse import MatrixUser, Synapse

NUMBERS = itertools.count()
SECRET = "the secret word is plover"  # looked for in what the server stores


class Chat(NamedTuple):
    """A bot, and a user with an app in an encrypted direct chat."""

    setup: AdapterSetup
    bot: MatrixUser
    app: EncryptedUser
    room: str

    @property
    def context(self) -> AdapterContext:
        return self.setup.context()

    def adapter(self) -> MatrixAdapter:
        return make(self.context)

    def stored(self) -> str:
        """What the server stores of the room."""
        return json.dumps(self.app.user.events(self.room))

    def event(self, event_id: str | None) -> dict[str, Any]:
        events = self.app.user.events(self.room)
        return next(item for item in events if item["event_id"] == event_id)


def register_user(synapse: Synapse, name: str) -> MatrixUser:
    return synapse.register_user(f"crypt-{name}{next(NUMBERS)}", name.title())


def setup_of(synapse: Synapse, bot: MatrixUser, folder: Path) -> AdapterSetup:
    secrets = {"MATRIX_HOMESERVER": synapse.url, "MATRIX_ACCESS_TOKEN": bot.token}
    return AdapterSetup(DictMemory(), folder, secrets, {"sync_seconds": 5}, max_bytes=100_000)


@pytest.fixture
async def chat(synapse: Synapse, tmp_path: Path) -> AsyncIterator[Chat]:
    bot, ann = register_user(synapse, "bot"), register_user(synapse, "ann")
    setup = setup_of(synapse, bot, tmp_path)
    setup.owners.add(ann.user_id)
    adapter = make(setup.context())
    await adapter.connect(RecordingInbox())  # the bot was started before people write to it
    await adapter.disconnect()
    async with encrypted_user(ann, tmp_path / "ann") as app:
        room = ann.create_room(bot.user_id, is_direct=True, initial_state=[ENCRYPTION])
        bot.join(room)
        yield Chat(setup, bot, app, room)


class Connected:
    """A connected adapter, and what it has received."""

    def __init__(self, chat: Chat) -> None:
        self.adapter = chat.adapter()
        self.inbox = RecordingInbox()

    async def __aenter__(self) -> tuple[MatrixAdapter, RecordingInbox]:
        try:
            await self.adapter.connect(self.inbox)
        except HermesError:
            await self.adapter.disconnect()
            raise
        return self.adapter, self.inbox

    async def __aexit__(self, *exception: object) -> None:
        if exception[0] is None:
            await position_stored(self.adapter)
        await self.adapter.disconnect()


def bodies(events: list[dict[str, Any]]) -> list[str]:
    return [event["content"]["body"] for event in events]


async def test_a_direct_chat_is_encrypted_both_ways(chat: Chat) -> None:
    async with Connected(chat) as (adapter, received):
        sent = await chat.app.send_text(chat.room, f"hello, {SECRET}")
        [event] = await received.wait_for(1)
        assert (event.text, event.message_id) == (f"hello, {SECRET}", sent)
        outgoing = OutgoingMessage(chat.room, f"reply, {SECRET}", "k1", reply_to=sent)
        reply = await adapter.send(outgoing)
        edit = outgoing._replace(text=f"edited, {SECRET}")
        assert (await adapter.edit(edit, reply.message_id or "")).success
        await adapter.react(chat.room, sent, "👀")
        events = await chat.app.wait_for(2, chat.bot.user_id)
        [reaction] = await chat.app.wait_for(1, chat.bot.user_id, "m.reaction")
    assert events[0]["content"]["body"] == f"reply, {SECRET}"
    assert events[1]["content"]["m.new_content"]["body"] == f"edited, {SECRET}"
    assert reaction["content"]["m.relates_to"]["key"] == "👀"
    assert all(event["was_encrypted"] for event in (*events, reaction))
    assert chat.event(reply.message_id)["type"] == "m.room.encrypted"
    assert SECRET not in chat.stored()


async def test_keys_and_messages_survive_a_restart(chat: Chat) -> None:
    async with Connected(chat) as (_adapter, received):
        await chat.app.send_text(chat.room, "one")
        await received.wait_for(1)
    for text in ("two", "three"):
        await chat.app.send_text(chat.room, text)  # while the gateway is down
    fingerprint = device_keys(chat)
    async with Connected(chat) as (adapter, received):
        await received.wait_for(2)
        assert (await adapter.send(OutgoingMessage(chat.room, "four", "k1"))).success
        await chat.app.wait_for(1, chat.bot.user_id)
    assert received.texts == ["two", "three"]
    assert device_keys(chat) == fingerprint


def device_keys(chat: Chat) -> dict[str, Any]:
    """The keys of the bot, as the server publishes them."""
    body = {"device_keys": {chat.bot.user_id: []}}
    answer: dict[str, Any] = chat.app.user.call("POST", "/_matrix/client/v3/keys/query", body)
    return answer


async def test_the_device_is_cross_signed_once(chat: Chat) -> None:
    first = device_keys(chat)
    async with Connected(chat):
        pass
    again = device_keys(chat)
    user = chat.bot.user_id
    [device] = first["device_keys"][user].values()
    [signing_key] = first["self_signing_keys"][user]["keys"].values()
    assert f"ed25519:{signing_key}" in device["signatures"][user]
    assert again == first


async def test_files_are_encrypted_and_keep_their_names(chat: Chat, tmp_path: Path) -> None:
    path = tmp_path / "invoice-March.txt"
    path.write_text(SECRET)
    async with Connected(chat) as (adapter, received):
        await chat.app.send_file(chat.room, "plan.txt", SECRET.encode(), "text/plain")
        [event] = await received.wait_for(1)
        outgoing = OutgoingMessage(chat.room, "here it is", "k1", file=path)
        assert (await adapter.send(outgoing)).success
        [answer] = await chat.app.wait_for(1, chat.bot.user_id)
    assert (event.media_names, event.media_types) == (["plan.txt"], ["text/plain"])
    with open(event.media_urls[0]) as file:  # noqa: ASYNC230, PTH123
        assert file.read() == SECRET
    content = answer["content"]
    assert (content["filename"], content["body"]) == ("invoice-March.txt", "here it is")
    assert chat.app.open_file(content) == SECRET.encode()
    media = content["file"]["url"].removeprefix("mxc://")
    assert SECRET.encode() not in chat.app.user.download(media)
    assert "invoice" not in chat.stored()


async def test_an_encrypted_message_can_be_deleted_and_replied_to(chat: Chat) -> None:
    async with Connected(chat) as (_adapter, received):
        first = await chat.app.send_text(chat.room, "one")
        relation = {"m.in_reply_to": {"event_id": first}}
        await chat.app.send_text(chat.room, "two", **{"m.relates_to": relation})
        await received.wait_for(2)
        chat.app.user.redact(chat.room, first)
        events = await received.wait_for(3)
    assert (events[1].reply_to_message_id, events[1].reply_to_text) == (first, "one")
    assert (events[2].is_deletion, events[2].message_id) == (True, first)


async def test_nothing_is_sent_in_the_clear_when_nobody_could_read_it(
    synapse: Synapse, chat: Chat
) -> None:
    bob = register_user(synapse, "bob")  # without an app that has uploaded keys
    room = bob.create_room(chat.bot.user_id, initial_state=[ENCRYPTION])
    chat.bot.join(room)
    async with Connected(chat) as (adapter, _received):
        result = await adapter.send(OutgoingMessage(room, SECRET, "k1"))
    assert (result.success, result.error_kind) == (False, ErrorKind.TRANSIENT)
    assert "no device in this room can decrypt" in (result.error or "")
    assert SECRET not in json.dumps(bob.events(room))


async def test_a_room_that_becomes_encrypted_gets_no_plain_text(chat: Chat) -> None:
    room = chat.app.user.create_room(chat.bot.user_id)
    chat.bot.join(room)
    async with Connected(chat) as (adapter, received):
        assert (await adapter.send(OutgoingMessage(room, "in the clear", "k1"))).success
        path = f"/_matrix/client/v3/rooms/{room}/state/m.room.encryption/"
        chat.app.user.call("PUT", path, ENCRYPTION["content"])
        await chat.app.sync()
        await chat.app.send_text(room, "now")
        await received.wait_for(1)
        assert (await adapter.send(OutgoingMessage(room, SECRET, "k2"))).success
        await chat.app.wait_for(2, chat.bot.user_id)
    assert SECRET not in json.dumps(chat.app.user.events(room))


async def test_only_verified_devices_get_messages_where_that_is_set(chat: Chat) -> None:
    chat.setup.extra["only_verified"] = True
    async with Connected(chat) as (adapter, received):
        await chat.app.send_text(chat.room, "hello")
        await received.wait_for(1)
        result = await adapter.send(OutgoingMessage(chat.room, SECRET, "k1"))
    assert (result.success, result.retryable) == (False, True)
    assert "hermes gateway matrix verify" in (result.error or "")
    assert len(chat.app.user.texts_by(chat.room, chat.bot.user_id)) == 0


async def test_a_lost_key_store_is_an_error_that_says_what_to_do(chat: Chat) -> None:
    chat.setup.records.values.clear()
    with pytest.raises(PlatformRefusedError, match=r"key store of .* is lost") as refused:
        async with Connected(chat):
            pass
    assert "hermes gateway matrix reset" in str(refused.value)


async def test_an_access_token_of_another_device_is_an_error(chat: Chat) -> None:
    body = {
        "type": "m.login.password",
        "identifier": {"type": "m.id.user", "user": chat.bot.user_id},
        "password": "password",
    }
    answer = chat.bot.call("POST", "/_matrix/client/v3/login", body)
    chat.setup.secrets["MATRIX_ACCESS_TOKEN"] = answer["access_token"]
    with pytest.raises(PlatformRefusedError, match="belongs to device"):
        async with Connected(chat):
            pass


async def test_a_message_without_its_key_waits_for_it_over_a_restart(chat: Chat) -> None:
    """The key is withheld by taking it out of the bot's store, and given back later."""
    async with Connected(chat) as (_adapter, received):
        await chat.app.send_text(chat.room, "one")
        await received.wait_for(1)
    keys = take_room_keys(chat)
    await chat.app.send_text(chat.room, "two")
    async with Connected(chat) as (_adapter, received):
        await async_wait_until(lambda: waiting(chat))
    chat.setup.records.values.update(keys)
    async with Connected(chat) as (_adapter, received):
        await received.wait_for(1)
        await async_wait_until(lambda: not waiting(chat))
    assert set(received.texts) == {"two"}


def take_room_keys(chat: Chat) -> dict[str, bytes]:
    values = chat.setup.records.values
    return {name: values.pop(name) for name in list(values) if "/room_key/" in name}


def waiting(chat: Chat) -> list[str]:
    return [name for name in chat.setup.records.values if "/waiting/" in name]


async def test_a_message_whose_key_arrives_later_is_received(chat: Chat) -> None:
    async with Connected(chat) as (_adapter, received):
        requests = await chat.app.share_key_later(chat.room)
        await chat.app.send_text(chat.room, "one")
        await async_wait_until(lambda: waiting(chat))
        assert received.texts == []
        for body in requests:
            await chat.app.send_to_device("m.room.encrypted", body)
        await received.wait_for(1)
        await async_wait_until(lambda: not waiting(chat))
    assert received.texts == ["one"]


async def test_a_deleted_message_does_not_wait_for_its_key(chat: Chat) -> None:
    async with Connected(chat) as (_adapter, _received):
        await chat.app.share_key_later(chat.room)
        sent = await chat.app.send_text(chat.room, "one")
        await async_wait_until(lambda: waiting(chat))
        chat.app.user.redact(chat.room, sent)
        await async_wait_until(lambda: not waiting(chat))


async def test_a_chat_is_told_about_a_message_that_cannot_be_read(chat: Chat) -> None:
    chat.setup.extra["key_wait_seconds"] = 1
    async with Connected(chat) as (_adapter, received):
        await chat.app.send_text(chat.room, "one")
        await received.wait_for(1)
    take_room_keys(chat)
    unread = await chat.app.send_text(chat.room, "two")
    async with Connected(chat) as (_adapter, received):
        [notice] = await chat.app.wait_for(1, chat.bot.user_id)
        await async_wait_until(lambda: not waiting(chat))
    assert "could not decrypt a message" in notice["content"]["body"]
    assert notice["content"]["m.relates_to"]["m.in_reply_to"]["event_id"] == unread
    assert received.texts == []


def bot_device(chat: Chat) -> str:
    [device_id] = device_keys(chat)["device_keys"][chat.bot.user_id]
    return str(device_id)


def own_keys(chat: Chat) -> dict[str, str]:
    """The keys of the app's device, as it authenticates them."""
    key = chat.app.client.olm.account.identity_keys["ed25519"]
    return {f"ed25519:{chat.app.device_id}": key}


def shown_emoji(chat: Chat) -> list[str]:
    stored = chat.setup.memory.values.get(f"verification:{chat.bot.user_id}", "{}")  # type: ignore[attr-defined]
    return [name for _emoji, name in json.loads(stored).get("emoji", [])]


@pytest.mark.parametrize("place", ["devices", "room"])
async def test_the_owner_verifies_a_device_by_emoji(chat: Chat, place: str) -> None:
    chat.setup.extra["only_verified"] = True
    async with Connected(chat) as (adapter, received):
        await chat.app.send_text(chat.room, "hello")
        await received.wait_for(1)
        refused = await adapter.send(OutgoingMessage(chat.room, "not yet", "k0"))
        assert not refused.success
        room = chat.room if place == "room" else ""
        app = AppVerification(chat.app, chat.bot.user_id, bot_device(chat), room)
        await app.request()
        assert (await app.wait_for("ready"))["methods"] == ["m.sas.v1"]
        numbers = await app.exchange_keys()
        await async_wait_until(lambda: shown_emoji(chat))
        expected = [EMOJI_NAMES[number] for number in numbers]
        assert shown_emoji(chat) == expected
        await chat.app.send_text(chat.room, "!verify yes")
        macs = await app.confirm(own_keys(chat))
        await app.wait_for("done")
        fingerprint, master_key = bot_keys(chat)
        assert app.authenticates(macs, f"ed25519:{bot_device(chat)}", fingerprint)
        assert app.authenticates(macs, f"ed25519:{master_key}", master_key)
        await async_wait_until(lambda: not shown_emoji(chat))
        assert (await adapter.send(OutgoingMessage(chat.room, "trusted", "k1"))).success
    assert received.texts == ["hello"]


def bot_keys(chat: Chat) -> tuple[str, str]:
    """The fingerprint and the master key of the bot."""
    keys = device_keys(chat)
    device = keys["device_keys"][chat.bot.user_id][bot_device(chat)]
    [master_key] = keys["master_keys"][chat.bot.user_id]["keys"].values()
    return device["keys"][f"ed25519:{bot_device(chat)}"], master_key


async def test_only_the_owner_can_start_a_verification(chat: Chat) -> None:
    chat.setup.owners.clear()
    async with Connected(chat):
        app = AppVerification(chat.app, chat.bot.user_id, bot_device(chat))
        await app.request()
        cancelled = await app.wait_for("cancel")
    assert "only the owner" in cancelled["reason"]


async def test_different_emoji_end_a_verification(chat: Chat) -> None:
    async with Connected(chat) as (adapter, _received):
        app = AppVerification(chat.app, chat.bot.user_id, bot_device(chat))
        await app.request()
        await app.exchange_keys()
        await async_wait_until(lambda: shown_emoji(chat))
        await chat.app.send_text(chat.room, "/verify no")
        cancelled = await app.wait_for("cancel")
        assert cancelled["code"] == "m.mismatched_sas"
        assert adapter.problem == ""


async def test_keys_that_were_not_compared_are_not_trusted(chat: Chat) -> None:
    async with Connected(chat):
        app = AppVerification(chat.app, chat.bot.user_id, bot_device(chat))
        await app.request()
        await app.exchange_keys()
        await async_wait_until(lambda: shown_emoji(chat))
        await chat.app.send_text(chat.room, "/verify yes")
        await app.confirm({f"ed25519:{chat.app.device_id}": "A" * 43})
        assert (await app.wait_for("cancel"))["code"] == "m.key_mismatch"


async def test_an_unexpected_event_is_quarantined_and_the_others_arrive(chat: Chat) -> None:
    async with Connected(chat) as (adapter, received):
        received.fail(3, ValueError("not foreseen"))
        for text in ("one", "two", "three"):
            await chat.app.send_text(chat.room, text)
        await received.wait_for(2)
        assert adapter.problem == ""
    assert received.texts == ["two", "three"]
    assert [error for _, error in chat.setup.quarantined] == ["ValueError: not foreseen"]


async def test_a_message_that_waits_holds_up_no_other_room_and_is_not_lost(chat: Chat) -> None:
    other = chat.app.user.create_room(chat.bot.user_id)
    chat.bot.join(other)
    gate = asyncio.Event()

    class SlowInbox(RecordingInbox):
        async def __call__(self, event: MessageEvent) -> None:
            if event.text == "slow":
                self.attempts += 1
                await gate.wait()
            await super().__call__(event)

    received, stored = SlowInbox(), chat.setup.memory.values  # type: ignore[attr-defined]
    adapter = chat.adapter()
    await adapter.connect(received)
    await chat.app.send_text(chat.room, "slow")
    await async_wait_until(lambda: received.attempts)
    before = stored[f"since:{chat.bot.user_id}"]
    for text in ("one", "two"):
        chat.app.user.send_text(other, text)
        await async_wait_until(lambda text=text: text in received.texts)  # type: ignore[misc]
    assert stored[f"since:{chat.bot.user_id}"] == before
    await adapter.disconnect()
    async with Connected(chat) as (_adapter, again):
        await async_wait_until(lambda: "slow" in again.texts)
