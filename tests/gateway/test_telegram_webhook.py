"""Telegram calling us."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from hermes_core.errors import PlatformRefusedError, StoreUnavailableError
from support.telegram_server import TelegramServer
from support.telegram_setup import SECRET, TelegramSetup
from support.waiting import async_wait_until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from hermes_state import SessionDB


@pytest.fixture
async def setup(db: SessionDB, tmp_path: Path) -> AsyncIterator[TelegramSetup]:
    async with TelegramServer() as server:
        server.chats.add(7)
        yield TelegramSetup(server, db, tmp_path)


@pytest.fixture
def webhook(setup: TelegramSetup) -> str:
    setup.extra["webhook_url"] = "https://example.org/hooks/tg"
    return "/hooks/tg"


async def test_a_webhook_hands_over_before_it_answers(setup: TelegramSetup, webhook: str) -> None:
    setup.inbox.gate = asyncio.Event()
    async with setup.connected():
        update = await setup.server.add("message", setup.server.message("hello"))
        url = setup.http_server.url + webhook
        answering = asyncio.create_task(setup.server.deliver(url, update, SECRET))
        await async_wait_until(lambda: setup.inbox.attempts)
        assert not answering.done()
        setup.inbox.gate.set()
        assert await answering == 200
    assert setup.inbox.texts == ["hello"]
    assert setup.server.webhook["url"] == "https://example.org/hooks/tg"
    assert setup.server.webhook["secret_token"] == SECRET
    assert setup.server.webhook["max_connections"] == "1"


@pytest.mark.parametrize("secret", [None, "", "wrong", "ünicode"])
async def test_a_webhook_without_the_secret_is_refused(
    setup: TelegramSetup, webhook: str, secret: str | None
) -> None:
    async with setup.connected():
        update = await setup.server.add("message", setup.server.message("hello"))
        assert await setup.server.deliver(setup.http_server.url + webhook, update, secret) == 403
    assert setup.inbox.texts == []


async def test_a_webhook_returns_an_error_when_nothing_was_stored(
    setup: TelegramSetup, webhook: str
) -> None:
    setup.inbox.fail(1, OSError("disk full"))
    setup.inbox.fail(1, StoreUnavailableError("locked"))
    async with setup.connected():
        update = await setup.server.add("message", setup.server.message("hello"))
        url = setup.http_server.url + webhook
        results = [await setup.server.deliver(url, update, SECRET) for _ in range(3)]
    assert results == [503, 503, 200]
    assert setup.inbox.texts == ["hello"]


async def test_a_webhook_limits_the_size_of_a_body(setup: TelegramSetup, webhook: str) -> None:
    async with setup.connected():
        large = await setup.server.add("message", setup.server.message("x" * 2_000_000))
        assert await setup.server.deliver(setup.http_server.url + webhook, large, SECRET) == 413
        setup.server.updates[1] = {"no": "update"}
        assert await setup.server.deliver(setup.http_server.url + webhook, 1, SECRET) == 400
    assert setup.inbox.texts == []


@pytest.mark.parametrize("secret", ["", "not a good one"])
def test_a_webhook_does_not_start_without_a_secret(
    setup: TelegramSetup, webhook: str, secret: str
) -> None:
    assert webhook
    setup.secrets["TELEGRAM_WEBHOOK_SECRET"] = secret
    with pytest.raises(PlatformRefusedError, match="TELEGRAM_WEBHOOK_SECRET"):
        setup.adapter()


def test_a_webhook_has_an_https_address(setup: TelegramSetup) -> None:
    setup.extra["webhook_url"] = "http://example.org"
    with pytest.raises(PlatformRefusedError, match="https"):
        setup.adapter()
