"""The IRC adapter on a real ngircd."""

from __future__ import annotations

import asyncio
import subprocess
from typing import TYPE_CHECKING

import pytest

from gateway.platforms.base import ErrorKind, OutgoingMessage
from hermes_core.errors import PlatformDownError, PlatformRefusedError
from support.irc_setup import IrcSetup, plugin_module
from support.ngircd import IrcUser, Ngircd, running_ngircd
from support.waiting import async_wait_until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Ngircd]:
    async with running_ngircd(tmp_path) as running:
        yield running


@pytest.fixture
async def ann(server: Ngircd) -> AsyncIterator[IrcUser]:
    async with IrcUser(server, "Ann") as user:
        yield user


@pytest.fixture
def setup(server: Ngircd, tmp_path: Path) -> IrcSetup:
    return IrcSetup(server.port, tmp_path, channels=["#team"])


async def test_a_direct_message_has_its_sender_and_is_answered(
    setup: IrcSetup, ann: IrcUser
) -> None:
    async with setup.connected() as adapter:
        ann.say("hermes", "hello \x02there\x02")
        [event] = await setup.inbox.wait_for(1)
        assert event.source is not None
        result = await adapter.send(OutgoingMessage(event.source.chat_id, "Hi Ann.", "k1"))
        assert result.success
        assert await ann.wait_for_texts(1) == ["Hi Ann."]
    assert adapter.account == "hermes@127.0.0.1"
    assert (event.text, event.is_addressed, event.source.chat_type) == ("hello there", True, "dm")
    assert (event.source.user_id, event.source.user_name) == ("ann", "Ann")


async def test_in_a_channel_only_a_line_with_the_nick_is_addressed(
    setup: IrcSetup, ann: IrcUser
) -> None:
    async with setup.connected() as adapter:
        await ann.join("#team")
        ann.say("#team", "nice weather, hermes")
        ann.say("#team", "Hermes: what time is it?")
        ann.say("#team", "hermes, !new")
        events = await setup.inbox.wait_for(3)
        assert (await adapter.send(OutgoingMessage("#team", "Noon.", "k1"))).success
        await ann.wait_for_texts(1)
    assert [event.is_addressed for event in events] == [False, True, True]
    assert [event.text for event in events[1:]] == ["what time is it?", "!new"]
    assert {(event.source.chat_id, event.source.chat_type) for event in events if event.source} == {
        ("#team", "channel")
    }
    assert ann.messages[0].target == "#team"


async def test_actions_are_texts_and_other_ctcp_requests_are_ignored(
    setup: IrcSetup, ann: IrcUser
) -> None:
    async with setup.connected():
        ann.say("hermes", "\x01VERSION\x01")
        ann.write("NOTICE hermes :I am a bot")
        ann.say("hermes", "\x01ACTION waves\x01")
        await setup.inbox.wait_for(1)
    assert setup.inbox.texts == ["* waves"]


async def test_a_nick_in_use_is_replaced_and_regained(
    setup: IrcSetup, server: Ngircd, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plugin_module("connection"), "REGAIN_SECONDS", 0.0)
    async with (
        IrcUser(server, "ann") as ann,
        IrcUser(server, "hermes") as other,
        setup.connected() as adapter,
    ):
        await ann.join("#team")
        ann.say("#team", "hermes_: hello")
        [event] = await setup.inbox.wait_for(1)
        assert (event.text, event.is_addressed) == ("hello", True)
        other.write("QUIT :bye")
        while adapter._connection.nick != "hermes":  # it tries again after each line
            ann.say("#team", "hello?")
            await asyncio.sleep(0.01)
        ann.say("#team", "hermes: hello again")
        await async_wait_until(lambda: setup.inbox.texts[-1] == "hello again")


async def test_a_restarted_server_is_connected_again(setup: IrcSetup, server: Ngircd) -> None:
    async with setup.connected() as adapter:
        server.stop()
        await async_wait_until(lambda: adapter.problem)
        result = await adapter.send(OutgoingMessage("ann", "lost?", "k1"))
        assert (result.error_kind, result.may_have_arrived) == (ErrorKind.TRANSIENT, False)
        await server.start()
        async with IrcUser(server, "ann") as ann:
            await ann.wait_for("hermes")
            await async_wait_until(lambda: not adapter.problem)
            ann.say("hermes", "back again")
            await setup.inbox.wait_for(1)
            assert (await adapter.send(OutgoingMessage("ann", "me, too", "k2"))).success


async def test_a_server_that_is_silent_is_noticed(
    setup: IrcSetup, server: Ngircd, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plugin_module("connection"), "PING_AFTER_SECONDS", 0.05)
    monkeypatch.setattr(plugin_module("connection"), "PONG_SECONDS", 0.1)
    async with setup.connected() as adapter:
        server.pause()
        try:
            await async_wait_until(lambda: adapter._connection is None)
        finally:
            server.resume()


async def test_long_text_is_split_between_characters_and_arrives_complete(
    setup: IrcSetup, ann: IrcUser
) -> None:
    text = "äöü🦉" * 300 + "\n\nsecond paragraph " + "word " * 200
    async with setup.connected() as adapter:
        assert (await adapter.send(OutgoingMessage("ann", text, "k1"))).success
        await async_wait_until(lambda: "".join(ann.texts).count("word") == 200)
    assert "�" not in "".join(ann.texts)
    assert "".join(ann.texts).replace(" ", "") == "".join(text.split())


async def test_a_text_cannot_contain_commands_of_the_protocol(
    setup: IrcSetup, ann: IrcUser
) -> None:
    text = "one\r\nQUIT :pwned\rJOIN #evil\n\x01DCC SEND x\x01\0"
    async with setup.connected() as adapter:
        assert (await adapter.send(OutgoingMessage("ann", text, "k1"))).success
        texts = await ann.wait_for_texts(4)
        assert texts == ["one", "QUIT :pwned", "JOIN #evil", "DCC SEND x"]
        for chat in ("ann\r\nQUIT", "ann,#team", "ann x", ":ann", "", "$*", "ann!a@b", "irc.test"):
            result = await adapter.send(OutgoingMessage(chat, "hello", "k2"))
            assert result.error_kind is ErrorKind.NOT_FOUND
        assert (await adapter.send(OutgoingMessage("ann", "still here", "k3"))).success


async def test_errors_of_the_server_are_the_result_of_a_send(setup: IrcSetup) -> None:
    async with setup.connected() as adapter:
        offline = await adapter.send(OutgoingMessage("nobody", "hello", "k1"))
        assert (offline.error_kind, offline.may_have_arrived) == (ErrorKind.TRANSIENT, False)
        unknown = await adapter.send(OutgoingMessage("#nowhere", "hello", "k2"))
        assert unknown.error_kind is ErrorKind.NOT_FOUND


async def test_a_message_that_cannot_be_stored_is_tried_again(
    setup: IrcSetup, ann: IrcUser
) -> None:
    setup.inbox.fail(5)
    async with setup.connected():
        ann.say("hermes", "first")
        ann.say("hermes", "second")
        await setup.inbox.wait_for(2)
    assert setup.inbox.texts == ["first", "second"]


async def test_a_message_that_cannot_be_handled_is_quarantined(
    setup: IrcSetup, ann: IrcUser
) -> None:
    setup.inbox.fail(3, ZeroDivisionError("a bug"))
    async with setup.connected():
        ann.say("hermes", "poison")
        ann.say("hermes", "next")
        await setup.inbox.wait_for(1)
    assert setup.inbox.texts == ["next"]
    assert [error for _, error in setup.quarantined] == ["ZeroDivisionError: a bug"]


async def test_what_was_received_is_stored_before_the_adapter_stops(
    setup: IrcSetup, ann: IrcUser
) -> None:
    async with setup.connected():
        setup.inbox.fail(3)
        ann.say("hermes", "just before the end")
        await async_wait_until(lambda: setup.inbox.attempts)
    assert setup.inbox.texts == ["just before the end"]


async def test_bytes_that_are_not_utf_8_are_replaced(setup: IrcSetup, ann: IrcUser) -> None:
    async with setup.connected():
        ann.write_bytes(b"PRIVMSG hermes :caf\xe9\r\n")
        await setup.inbox.wait_for(1)
    assert setup.inbox.texts == ["caf�"]


async def test_a_server_password_is_sent_and_a_missing_one_is_reported(tmp_path: Path) -> None:
    async with running_ngircd(tmp_path, "sesame") as server:
        setup = IrcSetup(server.port, tmp_path)
        with pytest.raises(PlatformDownError, match="Bad password"):
            await setup.adapter().connect(setup.inbox)
        setup.secrets["IRC_SERVER_PASSWORD"] = "sesame"
        async with setup.connected() as adapter:
            assert adapter.problem == ""


async def test_a_certificate_is_verified(tmp_path: Path) -> None:
    make_certificate(tmp_path)
    async with running_ngircd(tmp_path, has_tls=True) as server, IrcUser(server, "ann") as ann:
        untrusted = IrcSetup(server.tls_port, tmp_path, tls=True)
        with pytest.raises(PlatformDownError, match="certificate verify failed"):
            await untrusted.adapter().connect(untrusted.inbox)
        ca_file = str(tmp_path / "cert.pem")
        trusted = IrcSetup(server.tls_port, tmp_path, tls=True, ca_file=ca_file)
        async with trusted.connected():
            ann.say("hermes", "encrypted")
            await trusted.inbox.wait_for(1)


def make_certificate(folder: Path) -> None:
    command = (
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 "
        "-subj /CN=127.0.0.1 -addext subjectAltName=IP:127.0.0.1 -keyout key.pem -out cert.pem"
    )
    subprocess.run(command.split(), cwd=folder, check=True, capture_output=True)
    (folder / "key.pem").chmod(0o644)  # the server gives up the rights of root first


@pytest.mark.parametrize(
    ("extra", "reason"),
    [
        ({"server": ""}, "platforms.irc.server"),
        ({"server": "irc.example.org"}, "only possible on loopback"),
        ({"nick": "two words"}, "not a valid nick"),
        ({"channels": ["#a,#b"]}, "not a valid channel"),
        ({"tls": True, "ca_file": "/nowhere.pem"}, "cannot be read"),
    ],
)
def test_settings_that_cannot_be_used_are_refused(
    tmp_path: Path, extra: dict[str, object], reason: str
) -> None:
    with pytest.raises(PlatformRefusedError, match=reason):
        IrcSetup(6667, tmp_path, **extra).adapter()
