"""The gateway when something else fails: the model, the disk, the database, a plugin's host."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from acceptance.campaign import Worker, assert_healthy, size, wait_until
from acceptance.chats import CHATS, Platform, unsettled
from gateway.platforms.local import socket_path
from hermes_core.config.file import ConfigFile
from hermes_state import SessionDB
from support.chat import Chat
from support.gateway_process import Gateway
from support.plugin_folders import make_plugin
from support.scripted import serving

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

LISTENER = """
import os

def register(ctx):
    def note(event_id, kind, session_id, epoch, **facts):
        handle = os.open({path!r}, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(handle, f"{{event_id}} {{kind}} {{session_id}} {{epoch}}\\n".encode())
        os.fsync(handle)
        os.close(handle)
    ctx.register_hook("on_session_boundary", note)
"""


@pytest.fixture
def gateway() -> Iterator[Gateway]:
    result = Gateway()
    yield result
    result.end()


def start(gateway: Gateway) -> None:
    gateway.start()
    wait_until(gateway.is_up, "the gateway")


def answered_once(count: int) -> None:
    """Every message stands once in its conversation, and each has its answer."""
    with SessionDB() as db:
        assert_healthy(db.db_path)
        rows = db.list_sessions_rich(limit=-1, source="local")
        messages = [message for row in rows for message in db.get_messages(row["id"])]
        users = "\n".join(
            str(message["content"]) for message in messages if message["role"] == "user"
        )
        words = users.split()
        assert len(words) == len(set(words)) == count
        roles = {message["role"] for message in messages}
        assert roles == {"user", "assistant"}


async def delivered(platform: Platform) -> None:
    """Deliver everything, and wait until all is answered."""
    is_over = False
    going = asyncio.create_task(platform.connect_until(lambda: is_over))
    async with asyncio.timeout(1200):
        while not platform.is_delivered or await asyncio.to_thread(unsettled):  # noqa: ASYNC110
            await asyncio.sleep(0.2)
    is_over = True
    await going


async def test_a_model_that_is_down_is_told_of_and_asked_again_when_it_is_back(
    gateway: Gateway, hermes_home: Path
) -> None:
    with serving() as begin:
        address = begin("[]").base_url
    config = ConfigFile.of_home()
    config.set("llm.api", "openai")
    config.set("llm.base_url", address)
    config.set("llm.model", "scripted")
    config.set("llm.window", "8000")
    start(gateway)
    async with Chat(socket_path()) as chat:
        await chat.say("hello", "m1")
        (text,) = await chat.until(1)
        assert "The turn failed" in text or "Cannot answer" in text
    gateway.stop()
    with serving() as begin:
        config.set("llm.base_url", begin("[{say: Hello again.}]").base_url)
        start(gateway)
        async with Chat(socket_path()) as chat:
            await chat.say("/retry", "m2")
            assert "Hello again." in await chat.until(1)
    with SessionDB() as db:
        (row,) = db.list_sessions_rich(source="local")
        said = [str(message["content"]) for message in db.get_messages(row["id"])]
    assert said == ["hello", "Hello again."]


@pytest.mark.usefixtures("model")
async def test_a_database_that_another_program_locks_delays_and_loses_nothing(
    gateway: Gateway, hermes_home: Path, tmp_path: Path, figures: Callable[..., None]
) -> None:
    config = ConfigFile.of_home()
    config.set("store.busy_seconds", "1")
    seconds, count = size(5, 60), size(40, 200)
    start(gateway)
    platform = Platform(socket_path(), count)
    with Worker("hold_lock.py", tmp_path, hermes_home / "state.db", seconds) as holder:
        holder.wait_for("locked")
        await delivered(platform)
    assert gateway.stop() == 0
    answered_once(count)
    figures("gateway, database locked", seconds=seconds, messages=count, lost=0)


@pytest.fixture
def small_disk(hermes_home: Path) -> Iterator[Path]:
    """The Hermes folder on a disk of 16 MB."""
    command = ["mount", "-t", "tmpfs", "-o", "size=16m,mode=700", "none", str(hermes_home)]
    mounted = subprocess.run(command, capture_output=True, check=False)
    if mounted.returncode:
        pytest.skip(f"mounting is not allowed here: {mounted.stderr.decode().strip()}")
    try:
        yield hermes_home
    finally:
        subprocess.run(["umount", "--lazy", str(hermes_home)], check=True)


def fill(path: Path) -> None:
    """Take up all the room there is."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT)
    with contextlib.suppress(OSError):
        while os.write(handle, bytes(4096)):
            pass
    os.close(handle)


async def test_a_full_disk_delays_and_loses_nothing(
    small_disk: Path, gateway: Gateway, model: Any
) -> None:
    """What does not fit is not confirmed; the platform brings it again."""
    start(gateway)
    count = 40
    platform = Platform(socket_path(), count)
    ballast = small_disk / "ballast"
    fill(ballast)
    going = asyncio.create_task(delivered(platform))
    await asyncio.sleep(3)
    ballast.unlink()
    await going
    assert gateway.stop() == 0
    answered_once(count)


@pytest.mark.usefixtures("model")
async def test_every_boundary_is_heard_however_often_the_gateway_is_killed(
    gateway: Gateway, hermes_home: Path, tmp_path: Path, figures: Callable[..., None]
) -> None:
    heard_path = tmp_path / "heard"
    make_plugin(hermes_home, "listener", LISTENER.format(path=str(heard_path)))
    ConfigFile.of_home().set("plugins.enabled", "listener")
    rounds, kills = size(30, 1000), size(5, 200)
    platform = Platform(socket_path(), CHATS * 2)
    for chat in range(CHATS):
        lines = [f"c{chat}-n{number}" for number in range(rounds // CHATS)]
        texts = [item for line in lines for item in (line, f"/new {line}-new")]
        platform.waiting[chat] = [f"c{chat}-m{number}" for number in range(len(texts))]
        platform.texts |= dict(zip(platform.waiting[chat], texts, strict=True))
    gateway.start()
    going = asyncio.create_task(delivered(platform))
    for _ in range(kills):
        await asyncio.sleep(random.uniform(0.4, 1.2))
        gateway.kill()
        gateway.start()
    await going
    wait_until(gateway.is_up, "the last start")
    with SessionDB(is_recovering=False) as db:
        sql = "SELECT count(*) FROM hermes_boundary WHERE state <> 'delivered'"
        wait_until(lambda: not db.engine.read(lambda r: r.value(sql)), "the last event")
    assert gateway.stop() == 0
    with SessionDB() as db:
        events = db.list_boundaries(limit=100_000)
    finals = [event for event in events if event["is_final"]]
    results = [line.split()[0] for line in heard_path.read_text().splitlines()]
    lost = {event["event_id"] for event in events} - set(results)
    per_epoch = {(item["session_id"], item["epoch"]) for item in finals}
    figures(
        "gateway, boundaries", kills=gateway.kills, events=len(events), finals=len(finals),
        lost=len(lost), heard_twice=len(results) - len(set(results)),
    )  # fmt: skip
    assert not lost
    assert len(per_epoch) == len(finals)
    assert sum(item["kind"] == "new" for item in finals) == rounds
    assert set(results) == {event["event_id"] for event in events}
