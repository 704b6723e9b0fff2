"""Gateways that share a history in PostgreSQL: throughput, and CPU time of all processes."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from figures import Figure
from hermes_core.config.file import ConfigFile
from talks import served

if TYPE_CHECKING:
    from support.postgres import PostgresServer
    from surroundings import BenchmarkContext

TESTS: Final = Path(__file__).resolve().parent.parent / "tests"
GATEWAYS: Final = (1, 2, 4)
CHATS: Final = 40
MESSAGES: Final = 1_200
QUICK_CHATS, QUICK_MESSAGES = 4, 8
REPLY_WORDS: Final = 20
WAIT_SECONDS: Final = 300.0
MAX_GROWTH: Final = 1.3


class Measured(NamedTuple):
    """What the messages of a run took."""

    per_second: float
    milliseconds: float  # CPU of all gateways and the server, per message
    server_milliseconds: float


def measure(context: BenchmarkContext) -> list[Figure]:
    """All figures of this benchmark."""
    sys.path.append(str(TESTS))
    from support.postgres import running_postgres  # noqa: PLC0415 - after sys.path

    chats, messages = (QUICK_CHATS, QUICK_MESSAGES) if context.is_quick else (CHATS, MESSAGES)
    counts = GATEWAYS[:2] if context.is_quick else GATEWAYS
    with (
        context.home(),
        served(REPLY_WORDS) as address,
        running_postgres(is_durable=not context.is_quick) as server,
    ):
        config = ConfigFile.of_home()
        for name, value in {
            "llm.api": "openai",
            "llm.base_url": address,
            "llm.model": "scripted",
            "llm.window": "100000",
            "memory.review_turns": "0",
        }.items():
            config.set(name, value)
        runs = {count: asyncio.run(_run(server, count, chats, messages)) for count in counts}
    figures = []
    for count, run in runs.items():
        base = runs[1].milliseconds
        limit = None if count == 1 else MAX_GROWTH
        figures.append(Figure(f"messages per second, gateways: {count}", run.per_second, "/s"))
        name = f"CPU per message with the server, gateways: {count}"
        figures.append(Figure(name, run.milliseconds, "ms", base, limit, "ratio"))
        figures.append(Figure("  of it the server", run.server_milliseconds, "ms"))
    return figures


async def _run(server: PostgresServer, count: int, chat_count: int, messages: int) -> Measured:
    from support.nodes import Node  # noqa: PLC0415 - after sys.path
    from support.waiting import async_wait_until  # noqa: PLC0415 - as above

    with ExitStack() as stack:
        os.environ["HERMES_STORE_URL"] = stack.enter_context(server.history())
        stack.callback(os.environ.pop, "HERMES_STORE_URL")
        home = Path(os.environ["HERMES_HOME"])
        nodes = [Node(f"node{number}", home) for number in range(count)]
        for node in nodes:
            stack.callback(node.remove)
            node.start()
        await async_wait_until(lambda: all(node.state_of("local") for node in nodes))
        await async_wait_until(lambda: any(node.is_connected() for node in nodes))
        connected = next(node for node in nodes if node.is_connected())
        postmaster = int((server.folder / "data" / "postmaster.pid").read_text().split()[0])
        pids = [node.gateway.pid for node in nodes]
        async with _Chats(connected.socket, chat_count) as chats, asyncio.timeout(WAIT_SECONDS):
            await chats.exchange(2 * chat_count)  # conversations are created, modules loaded
            gateways, server_before = _cpu_seconds(pids), _server_seconds(postmaster)
            started = time.perf_counter()
            await chats.exchange(messages)
            seconds = time.perf_counter() - started
            server_used = 1000 * (_server_seconds(postmaster) - server_before) / messages
            used = 1000 * (_cpu_seconds(pids) - gateways) / messages
    return Measured(messages / seconds, used + server_used, server_used)


class _Chats:
    """Users of many chats: each sends the next message when the reply to the last has arrived."""

    def __init__(self, path: Path, count: int) -> None:
        self._path = path
        self._count = count
        self._numbers = itertools.count()

    async def __aenter__(self) -> _Chats:
        self._reader, self._writer = await asyncio.open_unix_connection(str(self._path))
        return self

    async def __aexit__(self, *_error: object) -> None:
        self._writer.close()

    async def exchange(self, count: int) -> None:
        """Send messages and wait for the reply to each."""
        for chat in range(self._count):
            await self._send(f"c{chat}")
        sent, answered = self._count, 0
        while answered < count:
            message = json.loads(await self._reader.readline())
            if "key" not in message:
                continue
            answered += 1
            await self._write({"arrived": message["key"]})
            if sent < count:
                sent += 1
                await self._send(message["chat"])

    async def _send(self, chat: str) -> None:
        await self._write({"chat": chat, "id": str(next(self._numbers)), "text": "hello"})

    async def _write(self, message: dict[str, str]) -> None:
        self._writer.write(json.dumps(message).encode() + b"\n")
        await self._writer.drain()


def _cpu_seconds(pids: list[int], *, with_ended_children: bool = False) -> float:
    """CPU time of processes so far."""
    ticks = 0
    for pid in pids:
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except FileNotFoundError:
            continue  # it has just ended
        ticks += sum(map(int, fields[11 : 15 if with_ended_children else 13]))
    return ticks / os.sysconf("SC_CLK_TCK")


def _server_seconds(postmaster: int) -> float:
    """CPU time of all processes of the server, also of those that have ended."""
    files = Path(f"/proc/{postmaster}/task").glob("*/children")
    children = [int(pid) for file in files for pid in file.read_text().split()]
    return _cpu_seconds([postmaster], with_ended_children=True) + _cpu_seconds(children)
