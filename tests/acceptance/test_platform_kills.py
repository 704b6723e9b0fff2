"""Chat platforms under kill -9: no message is lost or handled twice."""

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
from acceptance.chat_platform import count_unsettled
from gateway.outbound.sender import DUPLICATE_NOTE
from hermes_state import SessionDB
from support import platform_chats
from support.gateway_process import GatewayProcess
from support.waiting import PATIENCE_SECONDS, async_wait_until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator
    from pathlib import Path

    from support.platform_chats import PlatformChats

MESSAGE_NAME = re.compile(r"c\d+-m\d+")
MESSAGES, KILLS = size(12, 300), size(2, 60)
# The event before each kill, in rotation; None is a random time, also during the start.
MOMENTS = ("delivery", "answer", None)
MOMENT_SECONDS = 15.0


class MessageSender:
    """Sends messages as users, numbered per chat."""

    def __init__(self, chats: PlatformChats) -> None:
        self._chats = chats
        self._numbers = itertools.count()
        self.sent: dict[str, list[str]] = {chat: [] for chat in chats.chats}

    async def send(self, count: int) -> None:
        """Send *count* messages with short random pauses."""
        for _ in range(count):
            index = next(self._numbers) % len(self._chats.chats)
            chat = self._chats.chats[index]
            text = f"c{index}-m{len(self.sent[chat])}"
            await self._chats.send_as_user(chat, text)
            self.sent[chat].append(text)
            await asyncio.sleep(random.uniform(0, 0.1))


@pytest.fixture(params=["telegram", "matrix", "encrypted-matrix", "discord", "slack", "email"])
async def chats(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[PlatformChats]:
    async with AsyncExitStack() as stack:
        if request.param == "matrix":
            synapse = request.getfixturevalue("synapse")
            yield await stack.enter_async_context(platform_chats.on_matrix(synapse))
        elif request.param == "encrypted-matrix":
            synapse = request.getfixturevalue("synapse")
            started = platform_chats.on_encrypted_matrix(synapse, tmp_path / "app")
            yield await stack.enter_async_context(started)
        elif request.param == "email":
            mail_server = request.getfixturevalue("mail_server")
            yield await stack.enter_async_context(platform_chats.on_email(mail_server))
        else:
            yield await stack.enter_async_context(getattr(platform_chats, f"on_{request.param}")())


@pytest.fixture
def gateway(model: None, chats: PlatformChats, hermes_home: Path) -> Iterator[GatewayProcess]:
    """A gateway for the platform; not yet started."""
    path = hermes_home / "config.yaml"
    platforms = {chats.platform: {"enabled": True, **chats.options}}
    path.write_text(f"{path.read_text()}platforms: {json.dumps(platforms)}\n")
    result = GatewayProcess(chats.platform)
    yield result
    result.cleanup()


def start(gateway: GatewayProcess, chats: PlatformChats) -> None:
    gateway.start(**chats.variables, **{f"{chats.platform.upper()}_ALLOWED_USERS": "*"})


async def count_answers(chats: PlatformChats) -> int:
    return sum([len(await chats.answers(chat)) for chat in chats.chats])


async def wait_for_kill_time(gateway: GatewayProcess, chats: PlatformChats, number: int) -> None:
    """Wait for a time to kill the gateway: mostly while a message is in flight.

    Times out where everything is already delivered or answered.
    """
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(MOMENT_SECONDS):
            await _wait_for_event(gateway, chats, MOMENTS[number % len(MOMENTS)])
    await asyncio.sleep(random.uniform(0, 0.05))


async def _wait_for_event(gateway: GatewayProcess, chats: PlatformChats, kind: str | None) -> None:
    match kind:
        case "delivery":
            before = chats.deliveries()
            await async_wait_until(lambda: gateway.is_up() and chats.deliveries() != before)
        case "answer":
            before = await count_answers(chats)
            while await count_answers(chats) == before:  # noqa: ASYNC110 - it is in another process
                await asyncio.sleep(0.01)
        case None:
            await asyncio.sleep(random.uniform(0, 1.5))


async def wait_until_answered(chats: PlatformChats, sender: MessageSender) -> None:
    """Wait until every message is answered."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while handled(chats) != sender.sent or await asyncio.to_thread(count_unsettled):  # noqa: ASYNC110
            await asyncio.sleep(0.05)


async def campaign(gateway: GatewayProcess, chats: PlatformChats, sender: MessageSender) -> None:
    start(gateway, chats)
    await async_wait_until(gateway.is_up)
    await sender.send(
        len(chats.chats)
    )  # the bot can only query chats it has received a message from
    await wait_until_answered(chats, sender)
    share = (MESSAGES - len(chats.chats)) // (KILLS + 1)
    for number in range(KILLS):
        sending = asyncio.create_task(sender.send(share))
        await wait_for_kill_time(gateway, chats, number)
        gateway.kill()
        await sending
        if number % 2:
            chats.drop_unconfirmed()
        start(gateway, chats)
    await sender.send(MESSAGES - len(chats.chats) - KILLS * share)
    await wait_until_answered(chats, sender)
    await async_wait_until(gateway.is_up)
    assert await asyncio.to_thread(gateway.stop) == 0


def turns(db: SessionDB, chats: PlatformChats, chat: str) -> tuple[list[str], list[str]]:
    """The user and assistant texts of a chat, from its history."""
    key = f"agent:main:{chats.platform}:dm:{chat}"
    rows = db.list_sessions_rich(limit=-1, session_key=key)
    assert len(rows) <= 1, "a chat has one conversation"
    messages = [message for row in rows for message in db.get_messages(row["id"])]
    prompts = [str(message["content"]) for message in messages if message["role"] == "user"]
    return prompts, [
        str(message["content"]) for message in messages if message["role"] == "assistant"
    ]


def handled(chats: PlatformChats) -> dict[str, list[str]]:
    with SessionDB(is_recovering=False) as db:
        prompts = {chat: turns(db, chats, chat)[0] for chat in chats.chats}
    return {chat: MESSAGE_NAME.findall("\n".join(texts)) for chat, texts in prompts.items()}


async def count_repeated(chats: PlatformChats, chat: str, expected: list[str]) -> int:
    """The number of repeated answers; asserts that all arrived in order."""
    received = [answer.removeprefix(DUPLICATE_NOTE) for answer in await chats.answers(chat)]
    assert [text for text, _ in itertools.groupby(received)] == expected
    return len(received) - len(expected)


@pytest.mark.slow
@pytest.mark.timeout(1800)
async def test_every_message_is_answered_once_whatever_platform_it_comes_from(
    gateway: GatewayProcess, chats: PlatformChats, figures: Callable[..., None]
) -> None:
    sender = MessageSender(chats)
    await campaign(gateway, chats, sender)
    with SessionDB() as db:
        result = {chat: turns(db, chats, chat) for chat in chats.chats}
    prompts = {item: MESSAGE_NAME.findall("\n".join(texts)) for item, (texts, _) in result.items()}
    lost = sum(len(set(sender.sent[chat]) - set(names)) for chat, names in prompts.items())
    handled_twice = sum(len(names) - len(set(names)) for names in prompts.values())
    assert all(len(texts) == len(answers) for texts, answers in result.values())
    repeated = sum(
        [await count_repeated(chats, chat, answers) for chat, (_, answers) in result.items()]
    )
    figures(
        f"{chats.platform}, kill -9",
        messages=MESSAGES,
        kills=gateway.kills,
        turns=sum(len(texts) for texts, _ in result.values()),
        lost=lost,
        handled_twice=handled_twice,
        replies_sent_again=repeated,
    )
    assert prompts == sender.sent  # every message once, in order
    assert repeated == 0 or not chats.is_idempotent
