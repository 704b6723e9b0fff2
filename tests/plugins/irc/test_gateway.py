"""IRC with a gateway: from a line on a real ngircd to the reply."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from gateway.config import GatewayConfig, Platform, PlatformConfig
from support.gateways import running_gateway
from support.irc_setup import IrcSetup
from support.ngircd import IrcUser, running_ngircd
from support.waiting import async_wait_until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from gateway.process.service import GatewayService
    from hermes_state import SessionDB
    from support.command_line import Hermes

RISKY = "[{calls: [{name: terminal, arguments: {command: rm -rf build}}]}, {say: Finished.}]"


@asynccontextmanager
async def irc_gateway(
    db: SessionDB, folder: Path, **extra: Any
) -> AsyncIterator[tuple[GatewayService, IrcUser, IrcUser]]:
    """A gateway on a server, and two people."""
    async with running_ngircd(folder) as server:
        setup = IrcSetup(server.port, folder, channels=["#team"], **extra)
        config = GatewayConfig(
            platforms={Platform("irc"): PlatformConfig(enabled=True, extra=setup.extra)}
        )
        async with (
            IrcUser(server, "ann") as ann,
            IrcUser(server, "bob") as bob,
            running_gateway(db, folder, config, {"irc": setup.adapter()}) as service,
        ):
            yield service, ann, bob


OWNER = {"allow_admin_from": ["ann"], "allowed_users": ["ann", "bob"]}


async def test_a_question_is_answered_where_it_was_asked(
    db: SessionDB, tmp_path: Path, answering: Any
) -> None:
    answering("[{say: Twelve.}, {say: In the channel.}]")
    async with irc_gateway(db, tmp_path, **OWNER) as (_service, ann, bob):
        ann.say("hermes", "how many?")
        assert await ann.wait_for_texts(1) == ["Twelve."]
        await ann.join("#team")
        await bob.join("#team")
        bob.say("#team", "nice weather")
        bob.say("#team", "hermes: where?")
        assert await ann.wait_for_texts(4) == [
            "Twelve.", "nice weather", "hermes: where?", "In the channel.",
        ]  # fmt: skip


async def test_commands_start_with_an_exclamation_mark(
    db: SessionDB, tmp_path: Path, answering: Any
) -> None:
    answering("[{say: Hello.}]")
    async with irc_gateway(db, tmp_path, **OWNER) as (_service, ann, bob):
        ann.say("hermes", "!whoami")
        assert "Role: owner" in (await ann.wait_for_texts(1))[0]
        bob.say("hermes", "!restart")
        assert "only available to the owner" in (await bob.wait_for_texts(1))[0]
        await ann.join("#team")
        ann.say("#team", "hermes: !new")
        assert "New session started" in (await ann.wait_for_texts(2))[1]


async def test_a_plain_yes_approves(db: SessionDB, tmp_path: Path, answering: Any) -> None:
    answering(RISKY)
    (tmp_path / "build").mkdir()
    async with irc_gateway(db, tmp_path, **OWNER) as (service, ann, _bob):
        ann.say("hermes", "clean up")
        await async_wait_until(lambda: service.questions.pending("agent:main:irc:dm:ann"))
        await async_wait_until(lambda: "rm -rf build" in " ".join(ann.texts))
        ann.say("hermes", "yes")
        await async_wait_until(lambda: "Finished." in ann.texts)
    assert not (tmp_path / "build").exists()


async def test_a_nick_without_an_account_is_not_the_owner(
    db: SessionDB, tmp_path: Path, answering: Any
) -> None:
    answering("[{say: Hello.}]")
    settings = {"trust_nicks": False, "allowed_chats": ["#team"]}
    async with irc_gateway(db, tmp_path, **OWNER, **settings) as (_service, ann, _bob):
        ann.say("hermes", "it is me, ann")
        await ann.join("#team")
        ann.say("#team", "hermes: !whoami")
        assert "Role: guest" in (await ann.wait_for_texts(1))[0]
    assert len(ann.texts) == 1  # no answer and no pairing code in the direct chat


async def test_an_unknown_person_is_paired(db: SessionDB, tmp_path: Path, answering: Any) -> None:
    answering("[{say: Welcome.}]")
    async with irc_gateway(db, tmp_path) as (_service, ann, _bob):
        ann.say("hermes", "hello")
        await async_wait_until(lambda: "pairing approve irc" in " ".join(ann.texts))
        [code] = [line.split()[-1] for line in ann.texts if "pairing approve" in line]
        assert db.pairings.approve("irc", code) is not None
        ann.say("hermes", "hello again")
        await async_wait_until(lambda: "Welcome." in ann.texts)


async def test_the_plugin_is_enabled_and_configured_by_command(
    hermes: Hermes, hermes_home: Path
) -> None:
    assert "`hermes plugins enable irc`" in hermes("gateway", "add", "irc").err
    assert hermes("plugins", "enable", "irc").code == 0
    assert "server: irc.example.org" in hermes("gateway", "add", "irc").out
    assert json.loads(hermes("plugins", "info", "irc", "--json").out)["platforms"] == ["irc"]
