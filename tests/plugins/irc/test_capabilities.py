"""The IRC adapter with IRCv3: login, identities, confirmed messages. ngircd has none of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gateway.platforms.base import ErrorKind, OutgoingMessage
from hermes_core.errors import PlatformRefusedError
from support.irc3_server import Irc3Server
from support.irc_setup import IrcSetup, plugin_module
from support.waiting import async_wait_until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path


@pytest.fixture
async def server() -> AsyncIterator[Irc3Server]:
    async with Irc3Server() as running:
        yield running


@pytest.fixture
def setup(server: Irc3Server, tmp_path: Path) -> IrcSetup:
    result = IrcSetup(server.port, tmp_path, trust_nicks=False)
    result.secrets["IRC_PASSWORD"] = "sesame"
    return result


async def test_the_agent_logs_in_with_sasl(setup: IrcSetup, server: Irc3Server) -> None:
    async with setup.connected():
        assert not [line for line in server.lines if line.startswith("PRIVMSG")]
    assert f"AUTHENTICATE :{server.credentials}" in server.lines


async def test_a_long_password_is_sent_in_chunks(tmp_path: Path) -> None:
    settings = IrcSetup(1, tmp_path)
    settings.secrets["IRC_PASSWORD"] = "x" * 286  # the encoded text has exactly 400 characters
    parsed = plugin_module("settings").IrcSettings.parse(settings.context())
    lines = plugin_module("registration").Registration(parsed)._credentials()
    assert [len(line) for line in lines] == [len(b"AUTHENTICATE :\r\n") + 400, 17]
    assert lines[-1] == b"AUTHENTICATE :+\r\n"


async def test_a_wrong_password_is_refused(setup: IrcSetup) -> None:
    setup.secrets["IRC_PASSWORD"] = "wrong"
    with pytest.raises(PlatformRefusedError, match="Check IRC_PASSWORD"):
        await setup.adapter().connect(setup.inbox)


async def test_a_password_is_not_sent_in_another_way_than_configured(tmp_path: Path) -> None:
    async with Irc3Server("account-tag message-tags") as server:
        setup = IrcSetup(server.port, tmp_path)
        setup.secrets["IRC_PASSWORD"] = "sesame"
        with pytest.raises(PlatformRefusedError, match="does not offer SASL"):
            await setup.adapter().connect(setup.inbox)
        assert not [line for line in server.lines if "sesame" in line]
        setup.extra["nickserv"] = "NickServ"
        async with setup.connected():
            await async_wait_until(
                lambda: "PRIVMSG NickServ :IDENTIFY hermes sesame" in server.lines
            )


async def test_the_identity_of_a_sender_is_the_account(setup: IrcSetup, server: Irc3Server) -> None:
    async with setup.connected():
        server.write(
            "@account=Ann;msgid=m1;time=2026-01-02T03:04:05.678Z "
            ":ann_away!a@test PRIVMSG hermes :hello"
        )
        server.write(":ann!m@test PRIVMSG hermes :hello, I am ann")
        first, second = await setup.inbox.wait_for(2)
    assert first.source is not None
    assert second.source is not None
    assert (first.source.user_id, first.source.chat_id) == ("Ann", "Ann")
    assert (first.message_id, first.timestamp) == ("m1", 1767323045.678)
    assert (second.source.user_id, second.source.chat_id) == (None, "~ann")


async def test_other_bots_are_not_answered(setup: IrcSetup, server: Irc3Server) -> None:
    async with setup.connected():
        server.write("@account=robot;bot :robot!r@test PRIVMSG hermes :hello")
        server.write(":ann!a@test PRIVMSG hermes :hello?")
        await setup.inbox.wait_for(1)
    assert setup.inbox.texts == ["hello?"]


async def test_a_reply_goes_only_to_a_nick_that_is_logged_in(
    setup: IrcSetup, server: Irc3Server
) -> None:
    async with setup.connected():
        server.write("@account=Ann :ann_away!a@test PRIVMSG hermes :hello")
        await setup.inbox.wait_for(1)
    async with setup.connected() as adapter:  # it remembers the nick
        server.accounts["ann_away"] = "Ann"
        assert (await adapter.send(OutgoingMessage("Ann", "Hi.", "k1"))).success
        assert "PRIVMSG ann_away :Hi." in server.lines[-2]
        server.accounts["ann_away"] = "Mallory"
        result = await adapter.send(OutgoingMessage("Ann", "secret", "k2"))
        assert (result.error_kind, result.may_have_arrived) == (ErrorKind.TRANSIENT, False)
        assert not [line for line in server.lines if "secret" in line]
        assert (await adapter.send(OutgoingMessage("~ann", "Hello, guest.", "k3"))).success


async def test_an_echoed_message_has_an_id_and_is_not_received(
    setup: IrcSetup, server: Irc3Server
) -> None:
    async with setup.connected() as adapter:
        result = await adapter.send(OutgoingMessage("#team", "one\ntwo", "k1"))
        assert result.success
        assert (result.message_id or "").startswith("id")
        assert [line for line in server.lines if line.startswith("@label=")][:2] == [
            "@label=1 PRIVMSG #team :one",
            "@label=2 PRIVMSG #team :two",
        ]
        server.drops_messages = True
        result = await adapter.send(OutgoingMessage("#team", "filtered", "k2"))
        assert (result.success, result.may_have_arrived) == (False, True)
    assert not setup.inbox.events


async def test_a_message_without_confirmation_may_have_arrived(
    setup: IrcSetup, server: Irc3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plugin_module("connection"), "CONFIRM_SECONDS", 0.05)
    async with setup.connected() as adapter:
        monkeypatch.setattr(server, "_answer", lambda _line, _tags: None)
        result = await adapter.send(OutgoingMessage("#team", "one", "k1"))
        assert (result.error_kind, result.may_have_arrived) == (ErrorKind.TRANSIENT, True)
        monkeypatch.setattr(server, "_answer", lambda _line, _tags: server.cut())
        result = await adapter.send(OutgoingMessage("#team", "two", "k2"))
        assert (result.error_kind, result.may_have_arrived) == (ErrorKind.TRANSIENT, True)


async def test_malformed_lines_are_ignored_with_a_log_line(
    setup: IrcSetup, server: Irc3Server, caplog: pytest.LogCaptureFixture
) -> None:
    async with setup.connected():
        for line in ("", ":", "@", ":x ", "*** hello", "PRIVMSG", ":a!b@c PRIVMSG hermes", "001"):
            server.write(line)
        server.write(":a!b@c PRIVMSG hermes :fine")
        await setup.inbox.wait_for(1)
    assert setup.inbox.texts == ["fine"]
    assert "IRC line ignored: line without a command" in caplog.text


def test_lines_are_sent_at_a_bounded_rate() -> None:
    now = [0.0]
    flood = plugin_module("connection").FloodControl(2.0, lambda: now[0])
    assert [flood.delay() for _ in range(6)] == [0.0, 0.0, 0.0, 0.0, 2.0, 4.0]
    now[0] = 100.0
    assert flood.delay() == 0.0
