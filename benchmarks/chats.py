"""Chats: updating a route, latency of the gateway, many concurrent chats, memory."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import httpx2

from figures import Figure, interleave, median, percentile
from gateway import status
from gateway.config import GatewayConfig, Platform
from gateway.platforms.local import socket_path
from gateway.routing.sources import SessionSource
from gateway.session import SessionStore
from hermes_core.config.file import ConfigFile
from hermes_state import SessionDB
from hermes_state.engine.sqlite.driver import sqlite3
from talks import served

if TYPE_CHECKING:
    from collections.abc import Iterator

    from surroundings import BenchmarkContext

FEW_ROUTES: Final = 100
MANY_ROUTES: Final = 100_000
ROUTE_UPDATES: Final = 300
CHAT_COUNT: Final = 1_000
SINGLE_MESSAGES: Final = 60
CHAT_MESSAGES: Final = 200
COMMITS: Final = 500
COMMITS_PER_MESSAGE: Final = 4
MAX_MESSAGE_MS: Final = 3.3  # CPU
REPLY_WORDS: Final = 20
START_SECONDS: Final = 60


def measure(context: BenchmarkContext) -> list[Figure]:
    """All figures of this benchmark."""
    return [*_routes(context), *_load(context)]


# Routes


def _routes(context: BenchmarkContext) -> list[Figure]:
    many = MANY_ROUTES // 20 if context.is_quick else MANY_ROUTES
    with context.home() as home:
        stores = [_store(home / str(count), count) for count in (FEW_ROUTES, many)]
        few, more = interleave(
            context.rounds(ROUTE_UPDATES), *(lambda store=store: _touch(store) for store in stores)
        )
    base, value = median(few), median(more)
    return [Figure(f"touch one of {many:,} routes", value, "ms", base, 1.5, "ratio")]


def _store(folder: Path, count: int) -> SessionStore:
    folder.mkdir()
    store = SessionStore(folder, GatewayConfig())
    vars(store)["_db"] = SessionDB(folder / "state.db")
    for number in range(count):
        store.get_or_create_session(_source(number))
        if number % 10_000 == 9_999:
            print(f"  {number + 1:,} routes …", flush=True)
    return store


def _source(number: int) -> SessionSource:
    return SessionSource(Platform.TELEGRAM, str(number), user_id=str(number), user_name="User")


def _touch(store: SessionStore) -> None:
    store.get_or_create_session(_source(FEW_ROUTES // 2))


# Load


def _load(context: BenchmarkContext) -> list[Figure]:
    chats = 50 if context.is_quick else CHAT_COUNT
    with context.home(), served(REPLY_WORDS) as address:
        config = ConfigFile.of_home()
        config.set("llm.api", "openai")
        config.set("llm.base_url", address)
        config.set("llm.model", "scripted")
        config.set("llm.window", "100000")
        port = _free_port()
        config.set("memory.review_turns", "0")  # a review is a request of its own
        model = _model_seconds(address)
        least = _cpu_of_request(context, address) + COMMITS_PER_MESSAGE * _cpu_of_commit(context)
        with _gateway(port) as process:
            sequential = asyncio.run(_send_sequentially(context.rounds(SINGLE_MESSAGES)))
            cost = asyncio.run(_cost_of_one_chat(process.pid, port, context.rounds(CHAT_MESSAGES)))
            syncs = _syncs_of_one_chat(process.pid, context.rounds(CHAT_MESSAGES))
            before = _memory(process.pid)
            started = time.perf_counter()
            concurrent = asyncio.run(_send_concurrently(chats))
            total_seconds = time.perf_counter() - started
            used = (_memory(process.pid) - before) / chats
    p50, p95 = (1000 * (percentile(sequential, share) - model) for share in (0.5, 0.95))
    shares = [1000 * (percentile(concurrent, share) - model) for share in (0.5, 0.95)]
    return [
        Figure("update to reply, less the model, p50", p50, "ms", model * 1000),
        Figure("update to reply, less the model, p95", p95, "ms", model * 1000),
        Figure(f"{chats:,} chats at once, all answered", total_seconds * 1000, "ms"),
        Figure("  each, of what it costs alone", total_seconds * 1000 / chats, "ms", p50),
        Figure(f"  update to reply p50 of {chats:,}", shares[0], "ms", p50),
        Figure(f"  update to reply p95 of {chats:,}", shares[1], "ms", p50),
        Figure("memory of an idle chat", used, "KB", limit=200),
        Figure("commits per message of a chat", cost.commits, "", limit=4.5),
        *([Figure("fsyncs per message of a chat", syncs, "")] if syncs is not None else []),
        Figure("CPU per message of a chat", cost.milliseconds, "ms", least, MAX_MESSAGE_MS),
    ]


class MessageCost(NamedTuple):
    """What one message of a chat costs the gateway."""

    commits: float
    milliseconds: float  # CPU


async def _cost_of_one_chat(pid: int, port: int, count: int) -> MessageCost:
    """Send messages to one chat, each after the reply to the one before."""
    async with _Client() as client:
        for number in range(count + 3):
            if number == 3:  # the first ones create the conversation
                before, seconds = await asyncio.to_thread(_commits, port), _cpu_seconds(pid)
            await client.send("one", f"one-{number}")
            await client.receive(number + 1)
        spent = _cpu_seconds(pid) - seconds
        commits = await asyncio.to_thread(_commits, port) - before
    return MessageCost(commits / count, 1000 * spent / count)


def _syncs_of_one_chat(pid: int, count: int) -> float | None:
    """How often the gateway waits for the disk per message; None without strace."""
    if shutil.which("strace") is None:
        return None
    with tempfile.NamedTemporaryFile("r") as report:
        calls = "trace=fsync,fdatasync,sync_file_range,msync"
        command = ["strace", "-f", "-q", "-e", calls, "-e", "signal=none", "-p", str(pid)]
        with subprocess.Popen([*command, "-o", report.name]) as tracer:
            time.sleep(1)  # until it is attached to all threads
            asyncio.run(_send_to_one_chat(count))
            tracer.send_signal(signal.SIGINT)
            tracer.wait()
        return report.read().count("sync(") / count


async def _send_to_one_chat(count: int) -> None:
    async with _Client() as client:
        for number in range(count):
            await client.send("traced", f"traced-{number}")
            await client.receive(number + 1)


def _commits(port: int) -> float:
    """The number of transactions that the gateway has committed, from its metrics."""
    text = httpx2.get(f"http://127.0.0.1:{port}/metrics", trust_env=False).text
    lines = [line for line in text.splitlines() if line.startswith("hermes_store_commits_total")]
    return float(lines[0].split()[-1])


def _cpu_seconds(pid: int) -> float:
    """CPU time of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _cpu_of_commit(context: BenchmarkContext) -> float:
    """CPU time of a bare insert and commit, in milliseconds."""
    rounds = context.rounds(COMMITS)
    with context.folder() as folder, closing(sqlite3.connect(folder / "bare.db")) as connection:
        connection.isolation_level = None
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("CREATE TABLE message (id INTEGER PRIMARY KEY, text TEXT)")
        started = time.process_time()
        for _ in range(rounds):
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("INSERT INTO message (text) VALUES (?)", ("hello",))
            connection.execute("COMMIT")
        return 1000 * (time.process_time() - started) / rounds


def _cpu_of_request(context: BenchmarkContext, address: str) -> float:
    """CPU time of a bare request to the model on a kept connection, in milliseconds."""
    body = {"model": "scripted", "stream": True, "messages": [{"role": "user", "content": "hello"}]}
    rounds = context.rounds(CHAT_MESSAGES)
    with httpx2.Client(timeout=60, trust_env=False) as client:
        for number in range(rounds + 1):
            if number == 1:  # the first one connects
                started = time.process_time()
            with client.stream("POST", f"{address}/chat/completions", json=body) as response:
                for _ in response.iter_raw():
                    pass
        return 1000 * (time.process_time() - started) / rounds


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def _model_seconds(address: str) -> float:
    """Time of the model alone."""
    body = {"model": "scripted", "stream": True, "messages": [{"role": "user", "content": "hi"}]}
    times = []
    with httpx2.Client(timeout=60) as client:
        for _ in range(20):
            started = time.perf_counter()
            client.post(f"{address}/chat/completions", json=body).raise_for_status()
            times.append(time.perf_counter() - started)
    return median(times)


@contextmanager
def _gateway(port: int) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-P", "-m", "gateway.process.main"]
    environment = {**os.environ, "HERMES_GATEWAY_HTTP_PORT": str(port)}
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, env=environment) as process:
        deadline = time.monotonic() + START_SECONDS
        while (status.read_runtime_status() or {}).get("gateway_state") != "running":
            assert time.monotonic() < deadline, "the gateway did not start"
            time.sleep(0.05)
        try:
            yield process
        finally:
            process.terminate()


def _memory(pid: int) -> float:
    """Resident memory of a process, in KB."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return float(line.split()[1])
    return 0.0


class _Client:
    """A socket client that measures the time from each message to its reply."""

    def __init__(self) -> None:
        self._sent: dict[str, float] = {}
        self.times: list[float] = []

    async def __aenter__(self) -> _Client:
        self._reader, self._writer = await asyncio.open_unix_connection(str(socket_path()))
        return self

    async def __aexit__(self, *_error: object) -> None:
        self._writer.close()

    async def send(self, chat: str, message_id: str = "") -> None:
        self._sent[chat] = time.perf_counter()
        await self._write({"chat": chat, "id": message_id or f"{chat}-1", "text": "hello"})

    async def receive(self, count: int) -> None:
        """Read until *count* replies have arrived."""
        while len(self.times) < count:
            message: dict[str, Any] = json.loads(await self._reader.readline())
            if "key" in message:
                self.times.append(time.perf_counter() - self._sent[message["chat"]])
                await self._write({"arrived": message["key"]})

    async def _write(self, message: dict[str, Any]) -> None:
        self._writer.write(json.dumps(message).encode() + b"\n")
        await self._writer.drain()


async def _send_sequentially(count: int) -> list[float]:
    async with _Client() as client:
        for number in range(count + 1):
            await client.send(f"alone{number}")
            await client.receive(number + 1)
    return client.times[1:]  # the first message loads shared modules


async def _send_concurrently(count: int) -> list[float]:
    async with _Client() as client:
        sending = asyncio.create_task(_send_all(client, count))
        await client.receive(count)
        await sending
    return client.times


async def _send_all(client: _Client, count: int) -> None:
    for number in range(count):
        await client.send(f"many{number}")
