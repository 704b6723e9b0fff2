"""Malformed lines on the local socket are answered with an error, and the connection stays open."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

from gateway.platforms.local import LocalAdapter
from support.waiting import PATIENCE_SECONDS

if TYPE_CHECKING:
    from pathlib import Path

    from gateway.platforms.base import MessageEvent

SURROGATE = r'{"chat": "c1", "id": "m1", "text": "\ud800"}'
MESSAGE = '{"chat": "c1", "id": "m2", "text": "hi"}'


@pytest.mark.parametrize(
    "line",
    [
        "[" * 100_000,
        '{"a":' * 100_000,
        SURROGATE,
        SURROGATE.replace('"c1"', r'"\udfff"'),
        r'{"chat": "c1", "id": "m1", "text": "x", "user_name": "\ud800"}',
        r'{"arrived": "\ud800"}',
        "1" * 10_000,
        "\udce9",
    ],
    ids=["deep", "deep-object", "text", "chat", "name", "arrived", "number", "encoding"],
)
async def test_a_malformed_line_is_answered_with_an_error(tmp_path: Path, line: str) -> None:
    stored: list[MessageEvent] = []

    async def receive(event: MessageEvent) -> None:
        json.dumps(event.text, ensure_ascii=False).encode()  # as the store does
        event.source.chat_id.encode() if event.source else None
        stored.append(event)

    adapter = LocalAdapter(tmp_path / "s.sock")
    await adapter.connect(receive)
    reader, writer = await asyncio.open_unix_connection(str(tmp_path / "s.sock"))
    writer.write(line.encode(errors="surrogateescape") + b"\n" + MESSAGE.encode() + b"\n")
    answers: list[dict[str, Any]] = []
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not answers or "received" not in answers[-1]:
            answers.append(json.loads(await reader.readline()))
    writer.close()
    await adapter.disconnect()
    assert [list(answer) for answer in answers] == [["error"], ["received"]]
    assert [event.text for event in stored] == ["hi"]
