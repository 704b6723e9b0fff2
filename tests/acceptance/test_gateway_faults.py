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
from acceptance.chat_platform import CHAT_COUNT, ChatPlatform, count_unsettled
from gateway.platforms.local import socket_path
from hermes_core.config.file import ConfigFile
from hermes_state import SessionDB
from support.chat import LocalChatClient
from support.gateway_process import GatewayProcess
from support.model_servers import model_servers
from support.plugin_folders import make_plugin

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

RECORDER_CODE = """
import os

def register(ctx):
    def record(event_id, kind, session_id, epoch, **fields):
        handle = os.open({path!r}, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(handle, f"{{event_id}} {{kind}} {{session_id}} {{epoch}}\\n".encode())
        os.fsync(handle)
        os.close(handle)
    ctx.register_hook("on_session_boundary", record)
"""


@pytest.fixture
def gateway() -> Iterator[GatewayProcess]:
    result = GatewayProcess()
    yield result
    result.cleanup()


def start(gateway: GatewayProcess) -> None:
    gateway.start()
    wait_until(gateway.is_up, "the gateway")


def assert_answered_once(count: int) -> None:
    """Assert that every message is stored once and answered."""
    with SessionDB() as db:
        assert_healthy(db.db_path)
        rows = db.list_sessions_rich(limit=-1, source="local")
        messages = [message for row in rows for message in db.get_messages(row["id"])]
        users = "\n".join(
            str(message["content"]) for message in messages if message["role"] == "user"
        )
        texts = users.split()
        assert len(texts) == len(set(texts)) == count
        roles = {message["role"] for message in messages}
        assert roles == {"user", "assistant"}


async def deliver_all(platform: ChatPlatform) -> None:
    """Deliver every message and wait until all are answered."""
    is_over = False
    delivery = asyncio.create_task(platform.connect_until(lambda: is_over))
    async with asyncio.timeout(1200):
        while not platform.is_delivered or await asyncio.to_thread(count_unsettled):  # noqa: ASYNC110
            await asyncio.sleep(0.2)
    is_over = True
    await delivery


async def test_an_unreachable_model_is_reported_and_retry_works_once_it_is_back(
    gateway: GatewayProcess, hermes_home: Path
) -> None:
    with model_servers() as start_server:
        address = start_server("[]").base_url
    config = ConfigFile.of_home()
    config.set("llm.api", "openai")
    config.set("llm.base_url", address)
    config.set("llm.model", "scripted")
    config.set("llm.window", "8000")
    start(gateway)
    async with LocalChatClient(socket_path()) as chat:
        await chat.send("hello", "m1")
        (text,) = await chat.wait_for(1)
        assert "The turn failed" in text or "Cannot answer" in text
    gateway.stop()
    with model_servers() as start_server:
        config.set("llm.base_url", start_server("[{say: Hello again.}]").base_url)
        start(gateway)
        async with LocalChatClient(socket_path()) as chat:
            await chat.send("/retry", "m2")
            assert "Hello again." in await chat.wait_for(1)
    with SessionDB() as db:
        (row,) = db.list_sessions_rich(source="local")
        contents = [str(message["content"]) for message in db.get_messages(row["id"])]
    assert contents == ["hello", "Hello again."]


@pytest.mark.usefixtures("model")
async def test_a_locked_database_delays_messages_but_loses_none(
    gateway: GatewayProcess, hermes_home: Path, tmp_path: Path, figures: Callable[..., None]
) -> None:
    config = ConfigFile.of_home()
    config.set("store.busy_seconds", "1")
    seconds, count = size(5, 60), size(40, 200)
    start(gateway)
    platform = ChatPlatform(socket_path(), count)
    with Worker("hold_lock.py", tmp_path, hermes_home / "state.db", seconds) as holder:
        holder.wait_for("locked")
        await deliver_all(platform)
    assert gateway.stop() == 0
    assert_answered_once(count)
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
    """Write until the disk is full."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT)
    with contextlib.suppress(OSError):
        while os.write(handle, bytes(4096)):
            pass
    os.close(handle)


async def test_a_full_disk_delays_messages_but_loses_none(
    small_disk: Path, gateway: GatewayProcess, model: Any
) -> None:
    """Messages that cannot be stored are not confirmed; the platform delivers them again."""
    start(gateway)
    count = 40
    platform = ChatPlatform(socket_path(), count)
    ballast = small_disk / "ballast"
    fill(ballast)
    delivery = asyncio.create_task(deliver_all(platform))
    await asyncio.sleep(3)
    ballast.unlink()
    await delivery
    assert gateway.stop() == 0
    assert_answered_once(count)


@pytest.mark.usefixtures("model")
async def test_every_boundary_is_delivered_however_often_the_gateway_is_killed(
    gateway: GatewayProcess, hermes_home: Path, tmp_path: Path, figures: Callable[..., None]
) -> None:
    record_path = tmp_path / "boundaries"
    make_plugin(hermes_home, "recorder", RECORDER_CODE.format(path=str(record_path)))
    ConfigFile.of_home().set("plugins.enabled", "recorder")
    rounds, kills = size(30, 1000), size(5, 200)
    platform = ChatPlatform(socket_path(), CHAT_COUNT * 2)
    for chat in range(CHAT_COUNT):
        lines = [f"c{chat}-n{number}" for number in range(rounds // CHAT_COUNT)]
        texts = [text for line in lines for text in (line, f"/new {line}-new")]
        platform.waiting[chat] = [f"c{chat}-m{number}" for number in range(len(texts))]
        platform.texts |= dict(zip(platform.waiting[chat], texts, strict=True))
    gateway.start()
    delivery = asyncio.create_task(deliver_all(platform))
    for _ in range(kills):
        await asyncio.sleep(random.uniform(0.4, 1.2))
        gateway.kill()
        gateway.start()
    await delivery
    wait_until(gateway.is_up, "the last start")
    with SessionDB(is_recovering=False) as db:
        sql = "SELECT count(*) FROM hermes_boundary WHERE state <> 'delivered'"
        wait_until(lambda: not db.engine.read(lambda r: r.value(sql)), "the last event")
    assert gateway.stop() == 0
    with SessionDB() as db:
        events = db.boundaries.recent(limit=100_000)
    finals = [event for event in events if event.is_final]
    recorded = [line.split()[0] for line in record_path.read_text().splitlines()]
    lost = {event.event_id for event in events} - set(recorded)
    per_epoch = {(event.session_id, event.epoch) for event in finals}
    figures(
        "gateway, boundaries", kills=gateway.kills, events=len(events), finals=len(finals),
        lost=len(lost), delivered_twice=len(recorded) - len(set(recorded)),
    )  # fmt: skip
    assert not lost
    assert len(per_epoch) == len(finals)
    assert sum(event.kind == "new" for event in finals) == rounds
    assert set(recorded) == {event.event_id for event in events}
