"""A connection test signs in with the stored credentials, and receives and sends nothing."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from gateway.platforms.connection_check import ConnectionCheck, check_connection
from gateway.platforms.registry import PlatformRegistry
from hermes_core.config.file import ConfigFile
from support import discord_server, slack_server, telegram_server

if TYPE_CHECKING:
    from pathlib import Path

    from support.loopback import LoopbackServer


async def check(name: str) -> ConnectionCheck:
    entry = PlatformRegistry().get(name)
    assert entry is not None
    return await asyncio.to_thread(check_connection, entry)


@pytest.mark.parametrize(
    ("name", "server", "keys"),
    [
        ("telegram", telegram_server.TelegramServer, {"telegram": telegram_server.TOKEN}),
        ("discord", discord_server.DiscordServer, {"discord": discord_server.TOKEN}),
        (
            "slack",
            slack_server.SlackServer,
            {"slack_bot": slack_server.BOT_TOKEN, "slack_app": slack_server.APP_TOKEN},
        ),
    ],
)
async def test_a_right_token_names_the_account_and_a_wrong_one_is_refused(
    hermes_home: Path, name: str, server: type[LoopbackServer[object]], keys: dict[str, str]
) -> None:
    config = ConfigFile.of_home()
    async with server() as running:
        address = getattr(running, "base_url", running.address)
        config.set_option("platforms", name, "base_url", address)
        missing = await check(name)
        assert (missing.is_ok, "set " in missing.detail) == (False, True)
        for key, value in keys.items():
            config.set(f"keys.{key}", value)
        found = await check(name)
        assert (found.is_ok, found.detail.startswith("Connected as ")) == (True, True), found
        config.set(f"keys.{next(iter(keys))}", "123:wrong-token")
        wrong = await check(name)
        assert (wrong.is_ok, "rejected the credentials" in wrong.detail) == (False, True), wrong
        assert "wrong-token" not in wrong.detail
    away = await check(name)
    assert (away.is_ok, "Cannot reach" in away.detail) == (False, True)
    assert "wrong-token" not in away.detail


async def test_a_mailbox_without_a_server_says_what_to_set(hermes_home: Path) -> None:
    config = ConfigFile.of_home()
    config.set("keys.email", "secret")
    config.set_variable("EMAIL_ADDRESS", "hermes@example.org")
    assert "imap_host" in (await check("email")).detail
