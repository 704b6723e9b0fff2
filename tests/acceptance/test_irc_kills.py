"""IRC under kill -9: every stored message is answered once; what the protocol loses is counted.

An IRC server keeps nothing: what is written while the gateway is down is lost, and so is what was
sent to its socket and not stored when it was killed. All else is stored and answered.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import random
import re
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

import pytest

from acceptance.campaign import size
from acceptance.chat_platform import count_unsettled
from gateway.outbound.sender import DUPLICATE_NOTE
from hermes_state import SessionDB
from support.gateway_process import GatewayProcess
from support.ngircd import IrcUser, running_ngircd
from support.waiting import async_wait_until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

MESSAGES_PER_ROUND, KILLS, USER_COUNT = 4, size(3, 60), 3
MESSAGE_NAME = re.compile(r"u\d+-m\d+")
NOTE_LINE = DUPLICATE_NOTE.strip()


class Senders:
    """People who write numbered messages, and what the server did with each."""

    def __init__(self, users: list[IrcUser]) -> None:
        self.users = users
        self.relayed: dict[str, list[str]] = {user.nick: [] for user in users}
        self.undelivered: list[str] = []  # while the agent was not online
        self._numbers = itertools.count()

    async def send(self, count: int) -> list[str]:
        """Send messages; the names of those that the server has passed on."""
        sent = []
        for _ in range(count):
            number = next(self._numbers)
            user = self.users[number % len(self.users)]
            name = f"{user.nick}-m{number}"
            is_online = await user.ask("hermes", name)
            (self.relayed[user.nick] if is_online else self.undelivered).append(name)
            sent += [name] if is_online else []
            await asyncio.sleep(random.uniform(0, 0.03))
        return sent


@pytest.fixture
async def senders(tmp_path: Path, model: None, hermes_home: Path) -> AsyncIterator[Senders]:
    """People on a server, and the configuration of a gateway for it."""
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(running_ngircd(tmp_path))
        path = hermes_home / "config.yaml"
        irc = {
            "enabled": True, "server": "127.0.0.1", "port": server.port, "tls": False,
            "trust_nicks": True, "seconds_per_line": 0.0, "allowed_users": ["*"],
        }  # fmt: skip
        config = {"plugins": {"enabled": ["irc"]}, "platforms": {"irc": irc}}
        lines = [f"{name}: {json.dumps(value)}\n" for name, value in config.items()]
        path.write_text(path.read_text() + "".join(lines))
        users = [IrcUser(server, f"u{number}") for number in range(USER_COUNT)]
        for user in users:
            await stack.enter_async_context(user)
        yield Senders(users)


def stored_names() -> list[str]:
    """The messages in the inbox, in order."""
    with SessionDB(is_recovering=False) as db:
        sql = "SELECT payload FROM hermes_inbox ORDER BY inbox_id"
        rows = db.engine.read(lambda reader: reader.rows(sql))
    return [json.loads(row[0])["text"] for row in rows]


def conversation(db: SessionDB, nick: str) -> tuple[list[str], list[str]]:
    """The messages that the agent has read in a chat, and its answers."""
    rows = db.list_sessions_rich(limit=-1, session_key=f"agent:main:irc:dm:{nick}")
    assert len(rows) <= 1, "a chat has one conversation"
    messages = [message for row in rows for message in db.get_messages(row["id"])]
    texts: dict[str, list[Any]] = {"user": [], "assistant": []}
    for message in messages:
        texts[message["role"]].append(str(message["content"]))
    return MESSAGE_NAME.findall("\n".join(texts["user"])), texts["assistant"]


async def wait_until_settled() -> None:
    while await asyncio.to_thread(count_unsettled):  # noqa: ASYNC110 - another process
        await asyncio.sleep(0.05)


async def campaign(gateway: GatewayProcess, senders: Senders) -> list[str]:
    """Kill the gateway while people write; the messages that must have been stored."""
    certain: list[str] = []
    watcher = senders.users[0]
    for number in range(KILLS):
        gateway.start()
        await watcher.wait_for("hermes")
        sending = asyncio.create_task(senders.send(MESSAGES_PER_ROUND))
        before = len(watcher.messages)
        if number % 3 == 0:
            await async_wait_until(lambda before=before: len(watcher.messages) > before)
        elif number % 3 == 1:
            await asyncio.sleep(random.uniform(0, 0.2))
        gateway.kill()
        await sending
    gateway.start()
    await watcher.wait_for("hermes")
    certain += await senders.send(MESSAGES_PER_ROUND)
    await async_wait_until(lambda: set(certain) <= set(stored_names()))
    await wait_until_settled()
    assert await asyncio.to_thread(gateway.stop) == 0
    return certain


@pytest.mark.slow
@pytest.mark.timeout(1800)
async def test_every_stored_message_is_answered_once(
    senders: Senders, figures: Callable[..., None]
) -> None:
    gateway = GatewayProcess()
    try:
        certain = await campaign(gateway, senders)
    finally:
        gateway.cleanup()
    stored = stored_names()
    repeated = 0
    with SessionDB() as db:
        for user in senders.users:
            read, answers = conversation(db, user.nick)
            assert read == [name for name in stored if name.startswith(f"{user.nick}-")]
            received = [text for text in user.texts if text != NOTE_LINE]
            lines = [line for answer in answers for line in answer.splitlines()]
            assert list(dict.fromkeys(received)) == lines  # each is different
            repeated += len(received) - len(lines)
    relayed = [name for names in senders.relayed.values() for name in names]
    figures(
        "irc, kill -9",
        messages=len(relayed) + len(senders.undelivered),
        kills=gateway.kills,
        undelivered_while_down=len(senders.undelivered),
        lost_at_kill=len(set(relayed) - set(stored)),
        stored=len(stored),
        lines_sent_again=repeated,
    )
    assert len(stored) == len(set(stored))
    assert set(certain) <= set(stored) <= set(relayed)
