"""Crashes of the gateway: the message that causes them is given up, and no other."""

from __future__ import annotations

import asyncio
import json
import threading
import time
import urllib.request
from typing import TYPE_CHECKING, Any

import pytest

from acceptance.campaign import wait_until
from gateway import status
from gateway.platforms.local import socket_path
from hermes_core.config.file import ConfigFile
from hermes_state import SessionDB
from support.chat import LocalChatClient
from support.gateway_process import GatewayProcess
from support.gateways import conversation_texts
from support.model_servers import configured_models
from support.plugin_folders import make_plugin
from support.scripted_server import ScriptServer
from support.waiting import PATIENCE_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from hermes_agent.providers.scripted import ModelScript, ScriptStep
    from hermes_core.json_values import JsonObject
    from support.command_line import Hermes

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

BYSTANDERS = 5
KILLER_CODE = """
import os, pathlib, time

mark = pathlib.Path({path!r})

def register(ctx):
    def note(session_id, user_message="", **fields):
        if "poison" in str(user_message):
            mark.write_text(session_id)

    def end_process(session_id, **fields):
        if mark.exists() and mark.read_text() == session_id:
            time.sleep(0.5)  # others start meanwhile
            os._exit(1)

    ctx.register_hook("pre_llm_call", note)
    ctx.register_hook("pre_api_request", end_process)
"""


@pytest.fixture
def gateway() -> Iterator[GatewayProcess]:
    result = GatewayProcess()
    yield result
    result.cleanup()


@pytest.fixture
def answering(hermes_home: Path) -> Iterator[Callable[[str], Any]]:
    with configured_models() as choose:
        yield choose


def start(gateway: GatewayProcess) -> None:
    gateway.start()
    wait_until(gateway.is_up, "the gateway")


def claimed() -> int:
    sql = "SELECT count(*) FROM hermes_inbox WHERE state = 'claimed'"
    with SessionDB(read_only=True) as db:
        return int(db.engine.read(lambda reader: reader.value(sql)))


def replies() -> dict[str, list[str]]:
    """The texts of the replies, by chat."""
    sql = "SELECT target, payload FROM hermes_outbox ORDER BY outbox_id"
    result: dict[str, list[str]] = {}
    with SessionDB(read_only=True) as db:
        for target, payload in db.engine.read(lambda reader: reader.rows(sql)):
            chat = str(json.loads(target)["chat_id"])
            result.setdefault(chat, []).append(str(json.loads(payload)["text"]))
    return result


async def test_messages_that_only_happen_to_be_in_flight_are_answered_after_many_crashes(
    gateway: GatewayProcess, answering: Callable[[str], Any], figures: Callable[..., None]
) -> None:
    slow = "[" + ", ".join(["{say: one two three four five six seven, pause: 0.3}"] * 60) + "]"
    answering(slow)
    start(gateway)
    chats = [f"c{number}" for number in range(BYSTANDERS + 1)]
    async with LocalChatClient(socket_path()) as chat:
        for name in chats:
            await chat.send("hello", f"{name}-1", name)
    for _ in range(3):  # `gateway.attempts`
        wait_until(lambda: claimed() == len(chats), "all turns")
        gateway.kill()
        start(gateway)
    wait_until(lambda: len(replies()) == len(chats), "all replies")
    assert all(texts == ["one two three four five six seven"] for texts in replies().values())
    gateway.stop()
    figures("crashes with bystanders", chats=len(chats), kills=3, given_up=0)


class HangingModel(ScriptServer):
    """A model that does not answer prompts which contain "hang" before it is released."""

    def __init__(self, script: ModelScript) -> None:
        super().__init__(script)
        self.released = threading.Event()

    def next_step(self, body: JsonObject) -> tuple[int, ScriptStep]:
        if "hang" in json.dumps(body["messages"]):
            self.released.wait(PATIENCE_SECONDS)
        return super().next_step(body)


def health() -> dict[str, Any]:
    url = (status.read_runtime_status() or {})["http_url"]
    with urllib.request.urlopen(f"{url}/healthz") as response:  # noqa: S310 - loopback
        return dict(json.load(response))


async def test_after_crashes_suspects_run_one_at_a_time_and_everybody_else_is_answered(
    gateway: GatewayProcess, answering: Callable[..., Any], hermes: Hermes
) -> None:
    model = answering("[" + ", ".join(["{say: fine}"] * 60) + "]", HangingModel)
    start(gateway)
    suspects = ["s1", "s2", "s3"]
    async with LocalChatClient(socket_path()) as chat:
        for name in suspects:
            await chat.send("hang", f"{name}-1", name)
    for _ in range(3):  # `gateway.attempts`
        wait_until(lambda: claimed() == len(suspects), "all turns")
        gateway.kill()
        start(gateway)
    wait_until(lambda: claimed() > 0, "a suspect")
    async with LocalChatClient(socket_path()) as chat:
        for number in range(BYSTANDERS):
            await chat.send("hello", f"c{number}-1", f"c{number}")
        wait_until(lambda: len(replies()) == BYSTANDERS, "the others")
    assert health()["status"] == "degraded"
    assert "that may have caused crashes" in health()["problems"][0]
    wait_until(lambda: "may have caused" in hermes("gateway", "status").out, "the status")
    model.released.set()
    wait_until(lambda: len(replies()) == len(suspects) + BYSTANDERS, "the suspects")
    wait_until(lambda: not health()["problems"], "the end of the phase")
    gateway.stop()


async def test_a_message_that_ends_the_process_is_given_up_and_the_others_are_answered(
    gateway: GatewayProcess, answering: Callable[[str], Any], hermes_home: Path, tmp_path: Path
) -> None:
    mark = tmp_path / "poisoned"
    answering("[" + ", ".join(["{say: fine}"] * 60) + "]")
    make_plugin(hermes_home, "killer", KILLER_CODE.format(path=str(mark)))
    ConfigFile.of_home().set("plugins.enabled", "[killer]")
    start(gateway)
    async with LocalChatClient(socket_path()) as chat:
        await chat.send("hello", "p0", "poisoned")
        await chat.wait_for(1)
        await chat.send("poison", "p1", "poisoned")
        for number in range(BYSTANDERS):
            await chat.send("hello", f"c{number}-1", f"c{number}")
    crashes = 0
    deadline = time.monotonic() + PATIENCE_SECONDS
    while len(replies().get("poisoned", [])) < 2:
        assert time.monotonic() < deadline
        if not gateway.is_running:
            crashes += 1
            start(gateway)
        await asyncio.sleep(0.05)
    assert "will not be retried" in replies()["poisoned"][1]
    assert crashes <= 4
    mark.unlink()
    async with LocalChatClient(socket_path()) as chat:
        await chat.send("and now?", "p2", "poisoned")
        await chat.wait_for(1)
    wait_until(lambda: len(replies()) == BYSTANDERS + 1, "the others")
    assert all(replies()[f"c{number}"] == ["fine"] for number in range(BYSTANDERS))
    gateway.stop()
    with SessionDB() as db:  # the same conversation as before
        assert conversation_texts(db, "poisoned")[:2] == ["hello", "fine"]
