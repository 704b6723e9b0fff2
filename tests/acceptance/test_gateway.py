"""The gateway under kill -9: every message is answered once, in its order, none is lost."""

from __future__ import annotations

import asyncio
import json
import random
import re
from typing import TYPE_CHECKING, Any

import pytest

from acceptance.campaign import size, wait_until
from hermes_core.config_file import ConfigFile
from hermes_state import SessionDB
from support.gateway_process import Gateway
from support.scripted import serving

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

CHATS = 10
WORD = re.compile(r"c\d+-m\d+")


class Platform:
    """Delivers messages until they are confirmed, as chat platforms do."""

    def __init__(self, path: Path, count: int) -> None:
        self._path = path
        self.waiting: dict[int, list[str]] = {
            chat: [f"c{chat}-m{number}" for number in range(count // CHATS)]
            for chat in range(CHATS)
        }
        self.sent: dict[int, list[str]] = {chat: list(one) for chat, one in self.waiting.items()}
        self.arrived: dict[str, str] = {}
        self.doubled = 0
        self._confirmed: set[str] = set()

    @property
    def is_delivered(self) -> bool:
        return not any(self.waiting.values())

    async def connect_until(self, is_over: Callable[[], bool]) -> None:
        """Be there, again and again, until something is so."""
        while not is_over():
            try:
                reader, writer = await asyncio.open_unix_connection(str(self._path))
            except OSError:
                await asyncio.sleep(0.05)
                continue
            reading = asyncio.create_task(self._read(reader, writer))
            try:
                await self._deliver(writer, reading, is_over)
            except OSError:
                pass  # killed: what was not confirmed is delivered again
            finally:
                reading.cancel()
                writer.close()

    async def _deliver(
        self,
        writer: asyncio.StreamWriter,
        reading: asyncio.Task[None],
        is_over: Callable[[], bool],
    ) -> None:
        for chat in range(CHATS):  # so that it is known who is where
            await self._say(writer, chat, f"c{chat}-m0")
        while not reading.done() and not is_over():
            for chat, texts in self.waiting.items():
                if texts:
                    await self._say(writer, chat, texts[0])
            await asyncio.sleep(0.02)

    async def _say(self, writer: asyncio.StreamWriter, chat: int, text: str) -> None:
        message = {"chat": f"chat{chat}", "id": text, "text": text}
        writer.write(json.dumps(message).encode() + b"\n")
        await writer.drain()

    async def _read(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            found: dict[str, Any] = json.loads(line)
            if "received" in found:
                self._confirm(found["received"])
            elif "key" in found:
                self.doubled += found["key"] in self.arrived
                self.arrived[found["key"]] = found["text"]
                writer.write(json.dumps({"arrived": found["key"]}).encode() + b"\n")

    def _confirm(self, text: str) -> None:
        chat = int(text[1 : text.index("-")])
        if self.waiting[chat] and self.waiting[chat][0] == text:
            self.waiting[chat].pop(0)


@pytest.fixture
def model(hermes_home: Path) -> Iterator[None]:
    with serving() as start:
        server = start("[]")
        config = ConfigFile.of_home()
        config.set("llm.api", "openai")
        config.set("llm.base_url", server.base_url)
        config.set("llm.model", "scripted")
        config.set("gateway.attempts", "1000")  # a kill here is no fault of the message
        yield


def unsettled() -> int:
    with SessionDB(is_recovering=False) as db:
        sql = "SELECT count(*) FROM hermes_{} WHERE state NOT IN ('done', 'sent')"
        return sum(
            db.engine.read(lambda reader, name=name: reader.value(sql.format(name)))
            for name in ("inbox", "outbox")
        )


async def campaign(platform: Platform, gateway: Gateway, kills: int) -> None:
    gateway.start()
    is_over = False
    going = asyncio.create_task(platform.connect_until(lambda: is_over))
    for _ in range(kills):
        await asyncio.sleep(random.uniform(0.4, 1.6))
        gateway.kill()
        gateway.start()
    async with asyncio.timeout(300):
        while not platform.is_delivered or await asyncio.to_thread(unsettled):  # noqa: ASYNC110
            await asyncio.sleep(0.2)
    is_over = True
    await going


@pytest.mark.slow
@pytest.mark.usefixtures("model")
@pytest.mark.timeout(1800)
async def test_every_message_is_answered_once_however_often_the_gateway_is_killed(
    hermes_home: Path, figures: Callable[..., None]
) -> None:
    count, kills = size(300, 10_000), size(20, 500)
    platform = Platform(hermes_home / "run" / "gateway.sock", count)
    gateway = Gateway()
    await campaign(platform, gateway, kills)
    wait_until(gateway.is_up, "the last start")
    assert gateway.stop() == 0
    said, answers = {}, 0
    with SessionDB() as db:
        for chat in range(CHATS):
            rows = db.list_sessions_rich(limit=-1, session_key=f"agent:main:local:dm:chat{chat}")
            assert len(rows) == 1, "a chat has one conversation"
            messages = db.get_messages(rows[0]["id"])
            users = [str(one["content"]) for one in messages if one["role"] == "user"]
            said[chat] = WORD.findall("\n".join(users))
            roles = [one["role"] for one in messages]
            assert roles == ["user", "assistant"] * (len(roles) // 2), roles
            answers += len(users)
    lost = sum(len(set(platform.sent[chat]) - set(said[chat])) for chat in range(CHATS))
    twice = sum(len(said[chat]) - len(set(said[chat])) for chat in range(CHATS))
    figures(
        "gateway, kill -9", messages=count, kills=gateway.kills, turns=answers, lost=lost,
        handled_twice=twice, replies_sent_again=platform.doubled,
    )  # fmt: skip
    assert (lost, twice) == (0, 0)
    assert said == platform.sent  # in their order
    assert len(platform.arrived) == answers
