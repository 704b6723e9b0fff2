"""Chat platforms under kill -9: nothing is lost and nothing handled twice, on any of them."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import random
import re
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

import pytest

from acceptance.campaign import size
from acceptance.chats import unsettled
from gateway.outbound.sender import DUPLICATE_NOTE
from hermes_state import SessionDB
from support import platform_chats
from support.adapters import waited
from support.gateway_process import Gateway
from support.synapse import running

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator
    from pathlib import Path

    from support.platform_chats import PlatformChats

WORD = re.compile(r"c\d+-m\d+")
MESSAGES, KILLS = size(12, 300), size(2, 60)
# What has just happened when it is killed, by turns; None is while it starts, or whenever.
MOMENTS = ("delivery", "answer", None)
PATIENCE_SECONDS = 240.0
MOMENT_SECONDS = 15.0


class Talk:
    """What people say, each message numbered in its chat."""

    def __init__(self, crowd: PlatformChats) -> None:
        self._crowd = crowd
        self._numbers = itertools.count()
        self.said: dict[str, list[str]] = {chat: [] for chat in crowd.chats}

    async def say(self, count: int) -> None:
        """So many messages, with pauses as people make them."""
        for _ in range(count):
            place = next(self._numbers) % len(self._crowd.chats)
            chat = self._crowd.chats[place]
            text = f"c{place}-m{len(self.said[chat])}"
            await self._crowd.say(chat, text)
            self.said[chat].append(text)
            await asyncio.sleep(random.uniform(0, 0.1))


@pytest.fixture(params=["telegram", "matrix", "discord", "slack"])
async def crowd(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[PlatformChats]:
    async with AsyncExitStack() as stack:
        if request.param == "matrix":
            synapse = stack.enter_context(running(tmp_path_factory.mktemp("synapse")))
            yield await stack.enter_async_context(platform_chats.on_matrix(synapse))
        else:
            yield await stack.enter_async_context(getattr(platform_chats, f"on_{request.param}")())


@pytest.fixture
def gateway(model: None, crowd: PlatformChats, hermes_home: Path) -> Iterator[Gateway]:
    """A gateway for the platform; not yet started."""
    path = hermes_home / "config.yaml"
    platforms = {crowd.platform: {"enabled": True, **crowd.options}}
    path.write_text(f"{path.read_text()}platforms: {json.dumps(platforms)}\n")
    result = Gateway()
    yield result
    result.end()


def start(gateway: Gateway, crowd: PlatformChats) -> None:
    gateway.start(**crowd.variables, **{f"{crowd.platform.upper()}_ALLOWED_USERS": "*"})


async def answered(crowd: PlatformChats) -> int:
    return sum([len(await crowd.answers(chat)) for chat in crowd.chats])


async def moment(gateway: Gateway, crowd: PlatformChats, number: int) -> None:
    """Wait for a moment to kill it: mostly one in which something hangs in the air.

    Where all was delivered or answered already, there is none, and any other will do.
    """
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(MOMENT_SECONDS):
            await _something(gateway, crowd, MOMENTS[number % len(MOMENTS)])
    await asyncio.sleep(random.uniform(0, 0.05))


async def _something(gateway: Gateway, crowd: PlatformChats, kind: str | None) -> None:
    match kind:
        case "delivery":
            before = crowd.deliveries()
            await waited(lambda: gateway.is_up() and crowd.deliveries() != before)
        case "answer":
            before = await answered(crowd)
            while await answered(crowd) == before:  # noqa: ASYNC110 - it is in another process
                await asyncio.sleep(0.01)
        case None:
            await asyncio.sleep(random.uniform(0, 1.5))


async def settled(crowd: PlatformChats, talk: Talk) -> None:
    """Wait until everything that was said has been answered."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while handled(crowd) != talk.said or await asyncio.to_thread(unsettled):  # noqa: ASYNC110
            await asyncio.sleep(0.05)


async def campaign(gateway: Gateway, crowd: PlatformChats, talk: Talk) -> None:
    start(gateway, crowd)
    await waited(gateway.is_up)
    await talk.say(len(crowd.chats))  # whom the bot never heard it cannot ask for more
    await settled(crowd, talk)
    share = (MESSAGES - len(crowd.chats)) // (KILLS + 1)
    for number in range(KILLS):
        saying = asyncio.create_task(talk.say(share))
        await moment(gateway, crowd, number)
        gateway.kill()
        await saying
        if number % 2:
            crowd.forget()
        start(gateway, crowd)
    await talk.say(MESSAGES - len(crowd.chats) - KILLS * share)
    await settled(crowd, talk)
    await waited(gateway.is_up)
    assert await asyncio.to_thread(gateway.stop) == 0


def turns(db: SessionDB, crowd: PlatformChats, chat: str) -> tuple[list[str], list[str]]:
    """What was asked and answered in a chat, as its history has it."""
    key = f"agent:main:{crowd.platform}:dm:{chat}"
    rows = db.list_sessions_rich(limit=-1, session_key=key)
    assert len(rows) <= 1, "a chat has one conversation"
    messages = [message for row in rows for message in db.get_messages(row["id"])]
    asked = [str(message["content"]) for message in messages if message["role"] == "user"]
    return asked, [
        str(message["content"]) for message in messages if message["role"] == "assistant"
    ]


def handled(crowd: PlatformChats) -> dict[str, list[str]]:
    with SessionDB(is_recovering=False) as db:
        asked = {chat: turns(db, crowd, chat)[0] for chat in crowd.chats}
    return {chat: WORD.findall("\n".join(texts)) for chat, texts in asked.items()}


async def repeated(crowd: PlatformChats, chat: str, owed: list[str]) -> int:
    """How many answers came again; all of them came, in their order."""
    came = [answer.removeprefix(DUPLICATE_NOTE) for answer in await crowd.answers(chat)]
    assert [text for text, _ in itertools.groupby(came)] == owed
    return len(came) - len(owed)


@pytest.mark.slow
@pytest.mark.timeout(1800)
async def test_every_message_is_answered_once_whatever_platform_it_comes_from(
    gateway: Gateway, crowd: PlatformChats, figures: Callable[..., None]
) -> None:
    talk = Talk(crowd)
    await campaign(gateway, crowd, talk)
    with SessionDB() as db:
        result = {chat: turns(db, crowd, chat) for chat in crowd.chats}
    asked = {item: WORD.findall("\n".join(texts)) for item, (texts, _) in result.items()}
    lost = sum(len(set(talk.said[chat]) - set(words)) for chat, words in asked.items())
    twice = sum(len(words) - len(set(words)) for words in asked.values())
    assert all(len(texts) == len(answers) for texts, answers in result.values())
    again = sum([await repeated(crowd, chat, answers) for chat, (_, answers) in result.items()])
    figures(
        f"{crowd.platform}, kill -9",
        messages=MESSAGES,
        kills=gateway.kills,
        turns=sum(len(texts) for texts, _ in result.values()),
        lost=lost,
        handled_twice=twice,
        replies_sent_again=again,
    )
    assert asked == talk.said  # all of them, once, in their order
    assert again == 0 or not crowd.is_idempotent
