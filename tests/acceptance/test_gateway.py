"""The gateway under kill -9: every message is answered once, in its order, none is lost."""

from __future__ import annotations

import asyncio
import random
import re
from typing import TYPE_CHECKING

import pytest

from acceptance.campaign import IS_FULL, size, wait_until
from acceptance.chat_platform import CHAT_COUNT, ChatPlatform, count_unsettled
from hermes_state import SessionDB
from support.gateway_process import GatewayProcess

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

MESSAGE_NAME = re.compile(r"c\d+-m\d+")


async def campaign(platform: ChatPlatform, gateway: GatewayProcess, kills: int) -> None:
    gateway.start()
    is_over = False
    delivery = asyncio.create_task(platform.connect_until(lambda: is_over))
    for _ in range(kills):
        await asyncio.sleep(random.uniform(0.4, 1.6))
        gateway.kill()
        gateway.start()
    async with asyncio.timeout(1200):
        while not platform.is_delivered or await asyncio.to_thread(count_unsettled):  # noqa: ASYNC110
            await asyncio.sleep(0.2)
    is_over = True
    await delivery


def assert_crashes_are_announced(db: SessionDB, session_id: str) -> int:
    """The turns that died in a conversation: each has a crash event, then a resume event.

    No message is stored between the two.
    """
    events = db.boundaries.recent(session_id, limit=-1)[::-1]
    crashes, resumptions = events[::2], events[1::2]
    assert {event.kind for event in crashes} <= {"crash"}
    assert {event.kind for event in resumptions} <= {"resume"}
    assert len(crashes) == len(resumptions)
    stored = [message["timestamp"] for message in db.get_messages(session_id)]
    for crash, resumption in zip(crashes, resumptions, strict=True):
        early = [at for at in stored if crash.occurred_at < at < resumption.occurred_at]
        assert early == []
    return len(crashes)


@pytest.mark.slow
@pytest.mark.usefixtures("model")
@pytest.mark.timeout(3600)
async def test_every_message_is_answered_once_however_often_the_gateway_is_killed(
    hermes_home: Path, figures: Callable[..., None]
) -> None:
    count, kills = size(120, 5_000), size(8, 200)
    platform = ChatPlatform(hermes_home / "run" / "gateway.sock", count)
    gateway = GatewayProcess()
    await campaign(platform, gateway, kills)
    wait_until(gateway.is_up, "the last start")
    assert gateway.stop() == 0
    handled, answers, crashes = {}, 0, 0
    with SessionDB() as db:
        for chat in range(CHAT_COUNT):
            rows = db.list_sessions_rich(limit=-1, session_key=f"agent:main:local:dm:chat{chat}")
            assert len(rows) == 1, "a chat has one conversation"
            messages = db.get_messages(rows[0]["id"])
            users = [str(message["content"]) for message in messages if message["role"] == "user"]
            handled[chat] = MESSAGE_NAME.findall("\n".join(users))
            roles = [message["role"] for message in messages]
            assert roles == ["user", "assistant"] * (len(roles) // 2), roles
            answers += len(users)
            crashes += assert_crashes_are_announced(db, rows[0]["id"])
    lost = sum(len(set(platform.sent[chat]) - set(handled[chat])) for chat in range(CHAT_COUNT))
    repeated = sum(len(handled[chat]) - len(set(handled[chat])) for chat in range(CHAT_COUNT))
    figures(
        "gateway, kill -9", messages=count, kills=gateway.kills, turns=answers, lost=lost,
        handled_twice=repeated, replies_sent_again=platform.doubled, turns_killed=crashes,
    )  # fmt: skip
    assert crashes > 0 or not IS_FULL  # the turns are short: few kills may hit none
    assert (lost, repeated) == (0, 0)
    assert handled == platform.sent  # in their order
    assert len(platform.replies) == answers
