"""Telegram calling us."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from hermes_core.errors import PlatformRefusedError, StoreUnavailableError
from support.adapters import waited
from support.telegram_room import SECRET, Room
from support.telegram_server import TelegramServer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from hermes_state import SessionDB


@pytest.fixture
async def room(db: SessionDB, tmp_path: Path) -> AsyncIterator[Room]:
    async with TelegramServer() as server:
        server.chats.add(7)
        yield Room(server, db, tmp_path)


@pytest.fixture
def webhook(room: Room) -> str:
    room.extra["webhook_url"] = "https://example.org/hooks/tg"
    return "/hooks/tg"


async def test_a_webhook_hands_over_before_it_answers(room: Room, webhook: str) -> None:
    room.inbox.gate = asyncio.Event()
    async with room.connected():
        update = await room.server.add("message", room.server.message("hello"))
        url = room.front.url + webhook
        answering = asyncio.create_task(room.server.deliver(url, update, SECRET))
        await waited(lambda: room.inbox.tries)
        assert not answering.done()
        room.inbox.gate.set()
        assert await answering == 200
    assert room.inbox.texts == ["hello"]
    assert room.server.webhook["url"] == "https://example.org/hooks/tg"
    assert room.server.webhook["secret_token"] == SECRET
    assert room.server.webhook["max_connections"] == "1"


@pytest.mark.parametrize("secret", [None, "", "wrong", "ünicode"])
async def test_a_webhook_without_the_secret_is_refused(
    room: Room, webhook: str, secret: str | None
) -> None:
    async with room.connected():
        update = await room.server.add("message", room.server.message("hello"))
        assert await room.server.deliver(room.front.url + webhook, update, secret) == 403
    assert room.inbox.texts == []


async def test_a_webhook_answers_with_an_error_when_nothing_was_kept(
    room: Room, webhook: str
) -> None:
    room.inbox.fail(1, OSError("disk full"))
    room.inbox.fail(1, StoreUnavailableError("locked"))
    async with room.connected():
        update = await room.server.add("message", room.server.message("hello"))
        url = room.front.url + webhook
        found = [await room.server.deliver(url, update, SECRET) for _ in range(3)]
    assert found == [503, 503, 200]
    assert room.inbox.texts == ["hello"]


async def test_a_webhook_takes_no_more_than_it_should(room: Room, webhook: str) -> None:
    async with room.connected():
        large = await room.server.add("message", room.server.message("x" * 2_000_000))
        assert await room.server.deliver(room.front.url + webhook, large, SECRET) == 413
        room.server.updates[1] = {"no": "update"}
        assert await room.server.deliver(room.front.url + webhook, 1, SECRET) == 400
    assert room.inbox.texts == []


@pytest.mark.parametrize("secret", ["", "not a good one"])
def test_a_webhook_does_not_start_without_a_secret(room: Room, webhook: str, secret: str) -> None:
    assert webhook
    room.secrets["TELEGRAM_WEBHOOK_SECRET"] = secret
    with pytest.raises(PlatformRefusedError, match="TELEGRAM_WEBHOOK_SECRET"):
        room.adapter()


def test_a_webhook_has_an_https_address(room: Room) -> None:
    room.extra["webhook_url"] = "http://example.org"
    with pytest.raises(PlatformRefusedError, match="https"):
        room.adapter()
