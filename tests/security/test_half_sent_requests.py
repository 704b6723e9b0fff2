"""Requests whose body is never completed: the gateway ends them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

from gateway.platforms.request_body import IDLE_SECONDS, read_body
from hermes_state import SessionDB
from support.api_setup import API_KEY, COMPLETIONS, ApiSetup
from support.webhook_setup import WebhookSetup

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CLIENTS = 20
PATIENCE_SECONDS = 20
SHORT_IDLE_SECONDS = 1.0


@pytest.fixture
def db(hermes_home: Path) -> Iterator[SessionDB]:
    with SessionDB() as store:
        yield store


@pytest.fixture(autouse=True)
def short_time_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten the time without a byte; the one of the gateway ends requests as well."""
    assert read_body.__defaults__ == (IDLE_SECONDS,)
    assert SHORT_IDLE_SECONDS < IDLE_SECONDS < PATIENCE_SECONDS
    monkeypatch.setattr(read_body, "__defaults__", (SHORT_IDLE_SECONDS,))


async def send_half(url: str, path: str, *headers: str) -> bytes:
    """Send the head and a part of the body; what the server answers until it closes."""
    parts = urlsplit(url)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
    lines = [f"POST {path} HTTP/1.1", f"Host: {parts.netloc}", "Content-Length: 1000", *headers]
    writer.write("\r\n".join([*lines, "", '{"title":']).encode())
    async with asyncio.timeout(PATIENCE_SECONDS):
        answer = await reader.read()
    writer.close()
    return answer


async def test_a_half_sent_delivery_is_ended(db: SessionDB, tmp_path: Path) -> None:
    setup = WebhookSetup(db, tmp_path)
    async with setup.connected():
        calls = [send_half(setup.http_server.url, "/webhooks/reviews") for _ in range(CLIENTS)]
        answers = await asyncio.gather(*calls)
        assert (await setup.call({"title": "A fix"})).status_code == 202
    assert all(answer.startswith(b"HTTP/1.1 408 ") for answer in answers)


async def test_a_half_sent_api_request_is_ended(db: SessionDB, tmp_path: Path) -> None:
    setup = ApiSetup(db, tmp_path)
    async with setup.open():
        authorization = f"Authorization: Bearer {API_KEY}"
        answer = await send_half(setup.http_server.url, COMPLETIONS, authorization)
        assert b"HTTP/1.1 408 " in answer
        assert b"request_timeout" in answer
        refused = await send_half(setup.http_server.url, COMPLETIONS)
        assert b"HTTP/1.1 401 " in refused
