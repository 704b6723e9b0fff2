"""Matrix under kill -9: a real gateway and a real Synapse; nothing is lost, nothing is doubled."""

from __future__ import annotations

import asyncio
import random
import re
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Self

import pytest

from gateway import status
from hermes_core.config_file import ConfigFile
from hermes_state import SessionDB
from support.scripted import serving
from support.synapse import running

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from support.synapse import Person, Synapse

ROOMS, MESSAGES, KILLS = 4, 40, 6
WORD = re.compile(r"r\d+-m\d+")
CONFIG = "platforms:\n  matrix: {enabled: true, sync_seconds: 5}\n"


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

    def is_connected(self) -> bool:
        found = status.read_runtime_status() or {}
        is_ours = self._process is not None and found.get("pid") == self._process.pid
        matrix = (found.get("platforms") or {}).get("matrix") or {}
        return is_ours and matrix.get("state") == "connected"

    def end(self, number: signal.Signals) -> int:
        assert self._process is not None
        assert self._process.poll() is None, "it ended by itself"
        self._process.send_signal(number)
        return self._process.wait(timeout=60)


class Room:
    """A room of the bot's and one person; each message is numbered."""

    def __init__(self, number: int, ann: Person, bot: Person) -> None:
        self.room_id = ann.room(bot.user_id)
        bot.join(self.room_id)
        self._ann = ann
        self._bot = bot
        self._number = number
        self.said: list[str] = []

    def say(self) -> None:
        text = f"r{self._number}-m{len(self.said)}"
        self._ann.say(self.room_id, text)
        self.said.append(text)

    def answers(self) -> list[str]:
        """What the bot said in it; a text put in the place of another is no other message."""
        return [
            str(one["content"]["body"])
            for one in self._ann.seen(self.room_id)
            if one["type"] == "m.room.message"
            and one["sender"] == self._bot.user_id
            and "m.new_content" not in one["content"]
        ]


@pytest.fixture(scope="module")
def synapse(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Synapse]:
    with running(tmp_path_factory.mktemp("synapse")) as server:
        yield server


@pytest.fixture
def rooms(
    synapse: Synapse, hermes_home: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[list[Room]]:
    """Rooms that a gateway of this folder would listen to, with a model that answers."""
    bot, ann = synapse.person("bot", "Hermes"), synapse.person("ann", "Ann")
    monkeypatch.setenv("MATRIX_HOMESERVER", synapse.url)
    monkeypatch.setenv("MATRIX_ACCESS_TOKEN", bot.token)
    monkeypatch.setenv("MATRIX_ALLOWED_USERS", "*")
    with serving() as start:
        server = start("[]")
        config = ConfigFile.of_home()
        config.set("llm.api", "openai")
        config.set("llm.base_url", server.base_url)
        config.set("llm.model", "scripted")
        config.set("gateway.attempts", "1000")  # a kill here is no fault of the message
        path = hermes_home / "config.yaml"
        path.write_text(path.read_text() + CONFIG)
        yield [Room(number, ann, bot) for number in range(ROOMS)]


async def waited(is_so: Callable[[], object], seconds: float = 120) -> None:
    async with asyncio.timeout(seconds):
        while not is_so():  # noqa: ASYNC110 - what is waited for is in another process
            await asyncio.sleep(0.02)


def handled(rooms: list[Room]) -> list[list[str]]:
    """What was asked in each room, as the history has it."""
    with SessionDB(is_recovering=False) as db:
        return [
            WORD.findall("\n".join(content for role, content in history(db, one) if role == "user"))
            for one in rooms
        ]


def history(db: SessionDB, room: Room) -> list[tuple[str, str]]:
    key = f"agent:main:matrix:dm:{room.room_id}"
    rows = db.list_sessions_rich(limit=-1, session_key=key)
    assert len(rows) <= 1, "a room has one conversation"
    return [
        (str(one["role"]), str(one["content"]))
        for row in rows
        for one in db.get_messages(row["id"])
    ]


def unsettled() -> int:
    with SessionDB(is_recovering=False) as db:
        sql = "SELECT count(*) FROM hermes_{} WHERE state NOT IN ('done', 'sent')"
        return sum(
            db.engine.read(lambda reader, name=name: reader.value(sql.format(name)))
            for name in ("inbox", "outbox")
        )


async def write(rooms: list[Room], count: int) -> None:
    """Somebody writes, with pauses as people make them."""
    for _ in range(count):
        least = min(rooms, key=lambda one: len(one.said))
        await asyncio.to_thread(least.say)
        await asyncio.sleep(random.uniform(0, 0.2))


async def campaign(rooms: list[Room], gateway: Gateway) -> None:
    gateway.start()
    await waited(gateway.is_connected)  # what was said before a first start is not answered
    share = MESSAGES // (KILLS + 1)
    for number in range(KILLS):
        answered = sum(len(one.answers()) for one in rooms)
        writing = asyncio.create_task(write(rooms, share))
        if number % 2:  # in the middle of answering; else whenever
            await waited(lambda least=answered: sum(len(o.answers()) for o in rooms) > least)
        await asyncio.sleep(random.uniform(0, 1.5))
        assert gateway.end(signal.SIGKILL) == -signal.SIGKILL
        await writing
        gateway.start()
    await write(rooms, MESSAGES - KILLS * share)
    async with asyncio.timeout(240):
        expected = [one.said for one in rooms]
        while await asyncio.to_thread(handled, rooms) != expected or unsettled():  # noqa: ASYNC110
            await asyncio.sleep(0.2)
    assert await asyncio.to_thread(gateway.end, signal.SIGTERM) == 0


@pytest.mark.slow
@pytest.mark.timeout(900)
async def test_every_message_is_answered_once_and_no_reply_is_doubled(rooms: list[Room]) -> None:
    with Gateway() as gateway:
        await campaign(rooms, gateway)
    assert sum(len(one.said) for one in rooms) == MESSAGES
    with SessionDB() as db:
        for room in rooms:
            messages = history(db, room)
            roles = [role for role, _content in messages]
            assert roles == ["user", "assistant"] * (len(roles) // 2), roles
            asked = [content for role, content in messages if role == "user"]
            assert WORD.findall("\n".join(asked)) == room.said  # none lost, none twice, in order
            answers = [content for role, content in messages if role == "assistant"]
            assert room.answers() == answers
