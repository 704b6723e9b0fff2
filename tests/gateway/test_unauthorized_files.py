"""Files of people without access are not downloaded: anyone could fill the disk."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from gateway.process.config_loader import config_of_home
from gateway.process.http_server import HttpServer
from gateway.process.runner import create_adapters
from support import discord_server, slack_server
from support.adapters import PNG
from support.discord_setup import discord_setup
from support.gateways import running_gateway
from support.slack_setup import slack_setup
from support.telegram_server import ANN, TOKEN, TelegramServer
from support.waiting import async_wait_until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from hermes_state import SessionDB

EVE = {"id": 66, "is_bot": False, "first_name": "Eve"}


@pytest.fixture
async def telegram(
    hermes_home: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[TelegramServer]:
    """A configured bot, whose only user is Ann."""
    async with TelegramServer() as server:
        extra = {"enabled": True, "base_url": server.base_url, "allow_admin_from": [ANN["id"]]}
        platforms = {"telegram": {**extra, "poll_seconds": 1}}
        (hermes_home / "config.yaml").write_text(f"platforms: {json.dumps(platforms)}\n")
        monkeypatch.setenv("TELEGRAM_BOT_TOKEN", TOKEN)
        yield server


async def test_a_file_of_an_unknown_user_is_answered_with_a_code_and_not_stored(
    db: SessionDB, hermes_home: Path, telegram: TelegramServer
) -> None:
    config = config_of_home()
    adapters = create_adapters(db, config, HttpServer("127.0.0.1", 0)).adapters
    telegram.files = {"f1": b"contents"}
    file = {"file_id": "f1", "file_unique_id": "f1", "file_name": "a.bin", "file_size": 8}
    async with running_gateway(db, hermes_home, config, adapters):
        await telegram.send_as_user(None, 66, document=file, **{"from": EVE})
        await async_wait_until(lambda: telegram.sent)
    assert "hermes pairing approve telegram" in telegram.sent[0].text
    assert [path for path in (hermes_home / "media").rglob("*") if path.is_file()] == []
    assert telegram.count("getFile") == 0


@pytest.mark.parametrize("name", ["discord", "slack"])
async def test_files_are_downloaded_only_for_accepted_messages(
    db: SessionDB, tmp_path: Path, name: str
) -> None:
    starts: dict[str, Any] = {"discord": discord_setup, "slack": slack_setup}
    async with starts[name](db, tmp_path) as setup:
        server = setup.server
        setup.is_accepted = lambda event: event.text.startswith("accepted")
        if name == "discord":
            chat: Any = discord_server.DM
            fields = {"attachments": [server.attachment("a.png", PNG, "image/png")]}
        else:
            chat = slack_server.DM
            files = [server.file("a.png", PNG, "image/png")]
            fields = {"subtype": "file_share", "files": files}
        async with setup.connected():
            await server.send_as_user(chat, "other", **fields)
            await server.send_as_user(chat, "accepted", **fields)
            first, second = await setup.inbox.wait_for(2)
    assert (first.text, first.media_urls) == ("other\n[Attached file, not downloaded: a.png]", [])
    assert (second.text, len(second.media_urls)) == ("accepted", 1)
