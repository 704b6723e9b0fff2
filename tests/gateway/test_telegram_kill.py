"""Telegram under kill -9: a real gateway, killed again and again, loses and doubles nothing."""

from __future__ import annotations

import asyncio
import json
import random
import re
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Self

import pytest

from hermes_core.config_file import ConfigFile
from hermes_state import SessionDB
from support.scripted import serving
from support.telegram_server import TOKEN, TelegramServer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

CHATS = (11, 12, 13, 14, 15)
MESSAGES, KILLS = 60, 8
# What has just happened when it is killed, by turns; None is while it starts or whenever.
MOMENTS = ("delivered", "sent", "delivered", None)
WORD = re.compile(r"c\d+-m\d+")
CONFIG = "platforms:\n  telegram: {{enabled: true, base_url: '{url}', poll_seconds: 2}}\n"


class Gateway:
    """The process, killed and started again."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait(timeout=30)

    def start(self) -> None:
        self._process = subprocess.Popen([sys.executable, "-P", "-m", "gateway.process"])

    def end(self, number: signal.Signals) -> int:
        assert self._process is not None
        assert self._process.poll() is None, "it ended by itself"
        self._process.send_signal(number)
        return self._process.wait(timeout=60)


class People:
    """Those who write, each message numbered in its chat."""

    def __init__(self, server: TelegramServer) -> None:
        self._server = server
        self._waiting = [(chat, f"c{chat}-m{n}") for n in range(MESSAGES // 5) for chat in CHATS]
        self.said: dict[int, list[str]] = {chat: [] for chat in CHATS}

    async def say(self, most: int) -> None:
        """Some of them write, with pauses as people make them."""
        for chat, text in self._waiting[:most]:
            await self._server.say(text, chat)
            self.said[chat].append(text)
            await asyncio.sleep(random.uniform(0, 0.2))
        del self._waiting[:most]


@pytest.fixture
def model(hermes_home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TELEGRAM_BOT_TOKEN", TOKEN)
    monkeypatch.setenv("TELEGRAM_ALLOWED_USERS", "*")
    with serving() as start:
        server = start("[]")
        config = ConfigFile.of_home()
        config.set("llm.api", "openai")
        config.set("llm.base_url", server.base_url)
        config.set("llm.model", "scripted")
        config.set("gateway.attempts", "1000")  # a kill here is no fault of the message
        yield


async def waited(is_so: Callable[[], object], seconds: float = 120) -> None:
    async with asyncio.timeout(seconds):
        while not is_so():  # noqa: ASYNC110 - what is waited for is in another process
            await asyncio.sleep(0.002)


def unsettled() -> int:
    with SessionDB(is_recovering=False) as db:
        sql = "SELECT count(*) FROM hermes_{} WHERE state NOT IN ('done', 'sent')"
        return sum(
            db.engine.read(lambda reader, name=name: reader.value(sql.format(name)))
            for name in ("inbox", "outbox")
        )


async def moment(server: TelegramServer, number: int) -> None:
    """Wait for a moment to kill it: mostly one in which something hangs in the air."""
    name = MOMENTS[number % len(MOMENTS)]
    if name is None:
        await asyncio.sleep(random.uniform(0, 6))
        return
    counted = len(getattr(server, name))
    await waited(lambda: len(getattr(server, name)) > counted)
    await asyncio.sleep(random.uniform(0, 0.05))


async def campaign(server: TelegramServer, people: People, gateway: Gateway) -> None:
    for number in range(KILLS):
        writing = asyncio.create_task(people.say(MESSAGES // (KILLS + 1)))
        gateway.start()
        await moment(server, number)
        assert gateway.end(signal.SIGKILL) == -signal.SIGKILL
        await writing
    gateway.start()
    await people.say(MESSAGES)
    await waited(lambda: not server.updates)
    async with asyncio.timeout(240):
        while await asyncio.to_thread(unsettled):  # noqa: ASYNC110 - it is in another process
            await asyncio.sleep(0.2)
    assert await asyncio.to_thread(gateway.end, signal.SIGTERM) == 0


@pytest.mark.slow
@pytest.mark.usefixtures("model")
@pytest.mark.timeout(900)
async def test_every_message_is_answered_once_however_often_the_gateway_is_killed(
    hermes_home: Path,
) -> None:
    async with TelegramServer() as server:
        path = hermes_home / "config.yaml"
        path.write_text(path.read_text() + CONFIG.format(url=server.base_url))
        people = People(server)
        with Gateway() as gateway:
            await campaign(server, people, gateway)
    handled: dict[int, list[str]] = {}
    turns = 0
    with SessionDB() as db:
        for chat in CHATS:
            rows = db.list_sessions_rich(limit=-1, session_key=f"agent:main:telegram:dm:{chat}")
            assert len(rows) == 1, "a chat has one conversation"
            messages = db.get_messages(rows[0]["id"])
            roles = [one["role"] for one in messages]
            assert roles == ["user", "assistant"] * (len(roles) // 2), roles
            users = [str(one["content"]) for one in messages if one["role"] == "user"]
            handled[chat] = WORD.findall("\n".join(users))
            turns += len(users)
    assert sum(map(len, people.said.values())) == MESSAGES
    assert handled == people.said  # none lost, none twice, in their order
    answered = {
        (one.chat_id, json.loads(one.facts["reply_parameters"])["message_id"])
        for one in server.sent
    }
    assert len(answered) == turns
