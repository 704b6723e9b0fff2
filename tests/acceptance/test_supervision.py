"""Failures of listeners and odd answers of providers: the gateway recovers from each in time."""

from __future__ import annotations

import json
import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from acceptance.campaign import size, wait_until
from gateway.platforms.local import socket_path
from hermes_core.config.file import ConfigFile
from hermes_state import SessionDB
from support import discord_server, slack_server
from support.answers import Answers, running_answers
from support.chat import LocalChatClient
from support.discord_setup import discord_setup
from support.gateway_process import GatewayProcess
from support.slack_setup import slack_setup
from support.telegram_server import TelegramServer
from support.telegram_setup import TelegramSetup
from support.waiting import async_wait_until

if TYPE_CHECKING:
    import asyncio
    from collections.abc import AsyncIterator, Callable, Iterator
    from pathlib import Path

    from support.command_line import Hermes

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

FAILURES = size(2, 10)  # of each platform
IDLE_SECONDS = 2
UNEXPECTED = (RuntimeError("not foreseen"), KeyError("field"), TypeError("not a list"))


def chunk(value: object) -> bytes:
    return b"data: " + json.dumps(value).encode() + b"\n\n"


def delta(**fields: object) -> bytes:
    return chunk({"choices": [{"delta": fields}]})


def call(**fields: object) -> bytes:
    return delta(tool_calls=[fields])


ODD_STREAMS = (
    delta(content=["a"]),
    chunk([]),
    chunk("text"),
    chunk({"choices": [None]}),
    call(index="one"),
    call(index=0, function={"name": "terminal", "arguments": {}}),
    call(index=0, function=None),
    b"",
    b"\xff\xfe\x00",
    b"data: {\n\n",
    chunk(None),
    chunk({"choices": {}}),
    chunk({"choices": [{"delta": None}]}),
    chunk({"choices": [{"delta": {"content": 5}}]}),
    chunk({"choices": [{"delta": {"content": {"text": "x"}}}]}),
    chunk({"error": None}),
    chunk({"error": {"message": ["x"]}}),
    chunk({"usage": "many"}),
    chunk({"usage": {"prompt_tokens": "many"}}),
    chunk({"choices": [{"finish_reason": 7, "delta": {}}]}),
    chunk({"choices": [{"delta": {"reasoning": ["x"]}}]}),
    call(index=-1, id=None, function={"name": None, "arguments": None}),
    call(index=10**9, function={"name": "terminal", "arguments": "{"}),
    delta(content="\ud83d"),
    delta(content="x" * 10_000),
    b"data: " + b"9" * 5000 + b"\n\n",
    chunk({"id": [], "model": {}, "choices": [[]]}),
    b"event: error\ndata: nothing\n\n",
    b"<html>busy</html>",
    b": comment only\n\n" * 50,
)


FINE = delta(content="fine") + b"data: [DONE]\n\n"


# Listeners


@pytest.fixture
def db(hermes_home: Path) -> Iterator[SessionDB]:
    with SessionDB() as store:
        yield store


@asynccontextmanager
async def telegram(db: SessionDB, folder: Path) -> AsyncIterator[TelegramSetup]:
    async with TelegramServer() as server:
        server.chats.add(7)
        yield TelegramSetup(server, db, folder)


CHANNELS = {"telegram": (), "slack": (slack_server.DM,), "discord": (discord_server.DM,)}
SETUPS = {"telegram": telegram, "slack": slack_setup, "discord": discord_setup}


@pytest.mark.parametrize("platform", list(SETUPS))
async def test_a_listener_recovers_from_each_failure_within_its_backoff(
    db: SessionDB, tmp_path: Path, platform: str, figures: Callable[..., None]
) -> None:
    setup: Any
    texts, slowest = [], 0.0
    async with SETUPS[platform](db, tmp_path) as setup, setup.connected() as adapter:
        task = listener_task(adapter)
        for number in range(FAILURES):
            await async_wait_until(lambda: adapter.listener.is_running and is_waiting(task))
            inject(task, UNEXPECTED[number % len(UNEXPECTED)])
            failed_at = time.monotonic()
            texts.append(f"message {number}")
            await setup.server.send_as_user(*CHANNELS[platform], texts[-1])
            await setup.inbox.wait_for(len(texts))
            slowest = max(slowest, time.monotonic() - failed_at)
        await async_wait_until(lambda: not adapter.problem)
        failures = adapter.listener.failures
    assert setup.inbox.texts == texts
    # Slack's socket reports any error as a lost connection, which the listener opens again.
    assert failures == (0 if platform == "slack" else FAILURES)
    figures(
        f"failures of the {platform} listener",
        failures=FAILURES,
        lost=0,
        slowest_seconds=slowest,
    )


@pytest.mark.parametrize("platform", list(SETUPS))
async def test_a_message_that_cannot_be_handled_is_quarantined_and_the_others_arrive(
    db: SessionDB, tmp_path: Path, platform: str
) -> None:
    setup: Any
    async with SETUPS[platform](db, tmp_path) as setup, setup.connected() as adapter:
        setup.inbox.fail(3, ValueError("not foreseen"))
        for text in ("one", "two", "three"):
            await setup.server.send_as_user(*CHANNELS[platform], text)
        await setup.inbox.wait_for(2)
        assert not adapter.problem
    assert setup.inbox.texts == ["two", "three"]
    assert [error for _, error in setup.quarantined] == ["ValueError: not foreseen"]


def listener_task(adapter: Any) -> asyncio.Task[None]:
    names = ("_task", "_listen_task", "_session_task")
    return next(task for name in names if (task := getattr(adapter, name, None)) is not None)


def is_waiting(task: asyncio.Task[None]) -> bool:
    return task._fut_waiter is not None  # type: ignore[attr-defined]


def inject(task: asyncio.Task[None], error: Exception) -> None:
    """Raise an error in a task, where it waits."""
    waiter = task._fut_waiter  # type: ignore[attr-defined]
    assert waiter is not None
    waiter.set_exception(error)


# Odd answers


@pytest.fixture
def answers(hermes_home: Path) -> Iterator[Answers]:
    with running_answers() as server:
        config = ConfigFile.of_home()
        config.set("llm.api", "openai")
        config.set("llm.base_url", server.base_url)
        config.set("llm.model", "odd")
        config.set("llm.window", "8000")
        config.set("agent.idle_seconds", str(IDLE_SECONDS))
        server.later_body = FINE  # a tool call may be answered
        yield server


async def test_odd_answers_end_in_a_reply_and_the_gateway_stays_well(
    answers: Answers, figures: Callable[..., None]
) -> None:
    gateway = GatewayProcess()
    gateway.start()
    wait_until(gateway.is_up, "the gateway")
    bodies = ODD_STREAMS[:: size(4, 1)]
    slowest = 0.0
    try:
        async with LocalChatClient(socket_path()) as chat:
            for number, body in enumerate(bodies):
                answers.body = body
                started = time.monotonic()
                await chat.send("hello", f"m{number}", f"c{number}")
                await chat.wait_for(number + 1)
                slowest = max(slowest, time.monotonic() - started)
            answers.is_silent = True
            await chat.send("hello", "silent", "silent")
            await async_wait_until(lambda: any("no progress" in text for text in chat.texts))
            answers.is_silent = False
            answers.body = FINE
            await chat.send("hello", "last", "last")
            await async_wait_until(lambda: chat.texts[-1] == "fine")
    finally:
        gateway.cleanup()
    count = len(bodies) + 1
    figures("odd answers of a provider", streams=count, ended=count, slowest_seconds=slowest)


def test_odd_answers_end_in_the_terminal_too(answers: Answers, hermes: Hermes) -> None:
    for body in ODD_STREAMS[:: size(10, 3)]:
        answers.body = body
        assert hermes("chat", "-q", "hello").code in {0, 1}
    answers.is_silent = True
    finished = hermes("chat", "-q", "hello")
    assert finished.code != 0
    assert "no progress" in finished.out + finished.err
