"""Gateways on several machines with one history: who is connected, who answers, who dies."""

from __future__ import annotations

import asyncio
import itertools
import json
import random
import re
import time
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from acceptance.campaign import percentile, size
from acceptance.chat_platform import count_unsettled
from gateway.outbound.sender import DUPLICATE_NOTE
from gateway.process.main import CONFIG_EXIT_CODE
from hermes_core.config.file import ConfigFile
from hermes_core.json_values import objects_in
from hermes_state import SessionDB
from support import telegram_server
from support.chat import LocalChatClient
from support.model_servers import configured_models
from support.nodes import Node
from support.postgres import running_postgres
from support.scripted_server import ScriptServer
from support.waiting import async_wait_until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator
    from pathlib import Path

    from hermes_agent.providers.scripted import ModelScript
    from hermes_core.json_values import JsonObject
    from support.postgres import PostgresServer

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]

NODE_TIMEOUT_SECONDS = 5  # a loaded machine may not run a process for 3 seconds
MESSAGE_NAME = re.compile(r"c\d+-m\d+")
CHATS, MESSAGES = size(6, 50), size(48, 2000)
KILLS, FREEZES = size(3, 60), size(1, 12)
BUSY_CHATS, BUSY_MESSAGES = size(12, 40), size(3, 50)  # per chat
OUTAGE_SECONDS, MAX_OUTAGE_LINES = 6, 3
MAX_TURNS = 4  # per machine
SLOW_ANSWERS = str([{"say": "word " * 300, "pause": 1}] * (MAX_TURNS + 2))


@pytest.fixture
def server() -> Iterator[PostgresServer]:
    with running_postgres() as result:
        yield result


@pytest.fixture
def url(server: PostgresServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    with server.history() as address:
        monkeypatch.setenv("HERMES_STORE_URL", address)
        monkeypatch.setenv("HERMES_STORE_NODE_TIMEOUT_SECONDS", str(NODE_TIMEOUT_SECONDS))
        yield address


@pytest.fixture
def answering(url: str) -> Iterator[Callable[[str], Any]]:
    """Start a model with steps."""
    del url
    with configured_models(llm__window="8000", memory__review_turns="0") as start_model:
        yield start_model


@pytest.fixture
def nodes(hermes_home: Path) -> Iterator[Callable[..., list[Node]]]:
    """Create machines; called after the settings are made."""
    created: list[Node] = []

    def create(*names: str, platform: str = "") -> list[Node]:
        created.extend(Node(name, hermes_home, platform) for name in names)
        return created

    yield create
    for node in created:
        node.remove()


async def start_two(nodes: Callable[..., list[Node]]) -> list[Node]:
    """Start a machine that connects, and one that waits."""
    first, second = nodes("first", "second")
    first.start()
    await async_wait_until(first.is_connected)
    second.start()
    await async_wait_until(lambda: second.state_of("local") == "standby")
    return [first, second]


def count_rows(table: str) -> int:
    with SessionDB(is_recovering=False) as db:
        return int(db.engine.read(lambda r: r.value(f"SELECT count(*) FROM {table}")))


def session_of(text: str) -> str:
    with SessionDB(is_recovering=False) as db:
        sql = "SELECT session_id FROM messages WHERE role = 'user' AND content = ?"
        return str(db.engine.read(lambda reader: reader.value(sql, (text,))))


async def test_another_machine_connects_when_the_connected_one_is_killed(
    answering: Callable[[str], Any], nodes: Callable[..., list[Node]]
) -> None:
    answering("[{say: one}, {say: two}]")
    first, second = await start_two(nodes)
    async with LocalChatClient(first.socket) as chat:
        await chat.send("hello", "m1")
        assert await chat.wait_for(1)
    first.gateway.kill()
    await async_wait_until(second.is_connected)
    async with LocalChatClient(second.socket) as chat:
        await chat.send("again", "m2")
        assert await chat.wait_for(1)
    assert await asyncio.to_thread(second.gateway.stop) == 0


async def test_a_frozen_gateway_that_wakes_gives_up_what_was_taken_over(
    answering: Callable[[str], Any], nodes: Callable[..., list[Node]]
) -> None:
    answering("[{say: one}]")
    first, second = await start_two(nodes)
    first.freeze()
    try:
        await async_wait_until(second.is_connected)
    finally:
        first.wake()
    await async_wait_until(lambda: first.state_of("local") == "standby")
    async with LocalChatClient(second.socket) as chat:
        await chat.send("hello", "m1")
        assert await chat.wait_for(1)
    assert await asyncio.to_thread(second.gateway.stop) == 0
    await async_wait_until(first.is_connected)


def history_of(text: str) -> list[tuple[str, str]]:
    """Role and content of the conversation that starts with a prompt."""
    session_id = session_of(text)
    with SessionDB(is_recovering=False) as db:
        return [
            (str(row["role"]), str(row["content"]).strip()) for row in db.get_messages(session_id)
        ]


def boundaries_of(text: str) -> list[tuple[str, str]]:
    session_id = session_of(text)
    sql = "SELECT kind, reason FROM hermes_boundary WHERE session_id = ? ORDER BY sequence"
    with SessionDB(is_recovering=False) as db:
        return db.engine.read(lambda reader: reader.rows(sql, (session_id,)))


def is_registered(name: str) -> bool:
    with SessionDB(is_recovering=False) as db:
        return any(process.name == name for process in db.nodes.all())


def log_of(node: Node) -> str:
    return (node.home / "logs" / "gateway.jsonl").read_text("utf-8")


async def test_the_history_after_a_freeze_is_that_of_a_machine_that_never_froze(
    answering: Callable[[str], Any], nodes: Callable[..., list[Node]]
) -> None:
    slow = {"say": "late " * 40, "pause": 0.25}  # streamed before, during and after the freeze
    answering(str([slow, {"say": "one"}, {"say": "two"}, {"say": "three"}]))
    first, second = await start_two(nodes)
    async with LocalChatClient(first.socket) as chat:
        await chat.send("first", "m1")
        await async_wait_until(lambda: count_rows("hermes_draft") > 0)
        first.freeze()
    await async_wait_until(second.is_connected)
    async with LocalChatClient(second.socket) as chat:
        await async_wait_until(lambda: len(history_of("first")) == 2)
        await chat.send("second", "m2")
        await async_wait_until(lambda: len(history_of("first")) == 4)
        first.wake()
        await async_wait_until(lambda: "taken over" in log_of(first))
        await chat.send("third", "m3")
        await async_wait_until(lambda: len(history_of("first")) == 6)
    before = boundaries_of("first")
    first.gateway.kill()
    await async_wait_until(lambda: not is_registered("first"))
    user = [("user", text) for text in ("first", "second", "third")]
    answers = [("assistant", text) for text in ("one", "two", "three")]
    pairs = zip(user, answers, strict=True)
    assert history_of("first") == list(itertools.chain.from_iterable(pairs))
    assert boundaries_of("first") == before
    assert count_rows("hermes_draft") == 0


async def test_a_gateway_with_other_settings_does_not_join(
    answering: Callable[[str], Any], nodes: Callable[..., list[Node]]
) -> None:
    answering("[{say: one}]")
    first, second = nodes("first", "second")
    first.start()
    await async_wait_until(first.is_connected)
    config = second.home / "config.yaml"
    config.write_text(f"{config.read_text()}session_reset: {{idle_minutes: 7}}\n")
    second.start()
    assert await asyncio.to_thread(second.gateway.wait) == CONFIG_EXIT_CODE
    reason = second.status()["exit_reason"]
    assert "session_reset.idle_minutes is '7' here and '1440' on first." in reason
    assert await asyncio.to_thread(first.gateway.stop) == 0
    second.start()
    await async_wait_until(second.is_connected)


async def test_a_chat_with_a_working_folder_waits_for_the_machine_that_has_it(
    answering: Callable[[str], Any], nodes: Callable[..., list[Node]], tmp_path: Path
) -> None:
    answering("[{say: one}, {say: two}]")
    ConfigFile.of_home().set("gateway.workspace", str(tmp_path))
    first, second = await start_two(nodes)
    async with LocalChatClient(first.socket) as chat:
        await chat.send("hello", "m1")
        assert await chat.wait_for(1) == ["one"]
    first.gateway.kill()
    await async_wait_until(second.is_connected)
    async with LocalChatClient(second.socket) as chat:
        await chat.send("again", "m2")
        notice = "works with files on first, which is not running"
        await async_wait_until(lambda: any(notice in reply["text"] for reply in chat.replies))
        with SessionDB(is_recovering=False) as db:
            assert db.nodes.release("first") == 1
        await async_wait_until(lambda: chat.replies[-1]["text"] == "two")


async def test_commands_in_the_chat_of_a_machine_that_is_down_are_answered_by_another(
    answering: Callable[[str], Any], nodes: Callable[..., list[Node]], tmp_path: Path
) -> None:
    answering("[{say: one}, {say: two}]")
    ConfigFile.of_home().set("gateway.workspace", str(tmp_path))
    first, second = await start_two(nodes)
    async with LocalChatClient(first.socket) as chat:
        await chat.send("hello", "m1")
        assert await chat.wait_for(1) == ["one"]
    first.gateway.kill()
    await async_wait_until(second.is_connected)

    def has_reply(text: str) -> bool:
        return any(text in reply["text"] for reply in chat.replies)

    async with LocalChatClient(second.socket) as chat:
        await chat.send("again", "m2")
        for number, (command, reply) in enumerate(
            [("/status", "model"), ("/help", "/resume"), ("/stop", "No turn is running.")]
        ):
            await chat.send(command, f"c{number}")
            await async_wait_until(lambda: has_reply(reply))  # noqa: B023 - run now
        assert not has_reply("two")
        await chat.send("/new", "m3")  # would put the message before it into another conversation
        with SessionDB(is_recovering=False) as db:
            assert db.nodes.release("first") == 1
        await async_wait_until(lambda: has_reply("New session started."))
        # The turn of the message has ended, by its answer or by the command after it.
        assert has_reply("two") or has_reply("(Stopped.)")
        assert session_of("again") == session_of("hello")


async def test_a_new_conversation_can_be_started_while_a_machine_is_down(
    answering: Callable[[str], Any], nodes: Callable[..., list[Node]], tmp_path: Path
) -> None:
    answering("[{say: one}]")
    ConfigFile.of_home().set("gateway.workspace", str(tmp_path))
    first, second = await start_two(nodes)
    async with LocalChatClient(first.socket) as chat:
        await chat.send("hello", "m1")
        assert await chat.wait_for(1) == ["one"]
    first.gateway.kill()
    await async_wait_until(second.is_connected)
    async with LocalChatClient(second.socket) as chat:
        await chat.send("/new", "m2")
        await async_wait_until(lambda: "New session started." in str(chat.replies))
        with SessionDB(is_recovering=False) as db:
            assert db.nodes.release("first") == 1  # the chat has not moved


async def test_a_gateway_returns_when_the_server_was_away_for_long(
    answering: Callable[[str], Any], nodes: Callable[..., list[Node]], server: PostgresServer
) -> None:
    answering("[{say: one}]")
    ConfigFile.of_home().set("store.busy_seconds", "1")
    (only,) = nodes("only")
    only.start()
    await async_wait_until(only.is_connected)
    await asyncio.to_thread(server.stop)
    await async_wait_until(lambda: only.status().get("gateway_state") == "starting")
    await asyncio.to_thread(server.start)
    await async_wait_until(only.is_connected)
    async with LocalChatClient(only.socket) as chat:
        await chat.send("hello", "m1")
        assert await chat.wait_for(1) == ["one"]


async def test_an_outage_of_the_server_is_logged_without_tracebacks(
    answering: Callable[[str], Any], nodes: Callable[..., list[Node]], server: PostgresServer
) -> None:
    answering("[{say: one}]")
    ConfigFile.of_home().set("store.busy_seconds", "1")
    (only,) = nodes("only")
    only.start()
    await async_wait_until(only.is_connected)
    await asyncio.to_thread(server.stop)
    await async_wait_until(lambda: only.status().get("gateway_state") == "starting")
    await asyncio.sleep(OUTAGE_SECONDS)
    await asyncio.to_thread(server.start)
    await async_wait_until(only.is_connected)
    lines = (only.home / "logs" / "gateway.jsonl").read_text().splitlines()
    entries = [json.loads(line) for line in lines]
    assert [entry for entry in entries if "traceback" in entry] == []
    serious = [entry["message"] for entry in entries if entry["level"] in {"warning", "error"}]
    assert len(serious) <= MAX_OUTAGE_LINES, serious
    assert any("reachable again" in entry["message"] for entry in entries)


class Fault(NamedTuple):
    """A machine that was killed or frozen, and the time from its start to its end."""

    node: str
    start: float
    end: float

    def explains(self, first: Ask, second: Ask) -> bool:
        """Whether it took a message from the machine that asked the model first."""
        lost = self.end + NODE_TIMEOUT_SECONDS
        return self.node == first.node and self.start < second.time and first.time < lost


class Ask(NamedTuple):
    """A request of a machine to the model."""

    node: str
    time: float


class ObservedServer(ScriptServer):
    """A model that knows which machine asked it to answer which message, and when."""

    def __init__(self, script: ModelScript) -> None:
        super().__init__(script)
        self.asks: dict[str, list[Ask]] = {}

    def record(self, body: JsonObject, headers: dict[str, str]) -> None:
        super().record(body, headers)
        prompt: Any = objects_in(body, "messages")[-1]
        ask = Ask(headers["authorization"].removeprefix("Bearer "), time.monotonic())
        for name in MESSAGE_NAME.findall(str(prompt["content"])):
            self.asks.setdefault(name, []).append(ask)


class TelegramNodes:
    """Machines that share the account of a bot, and the users who write to it."""

    def __init__(
        self, server: telegram_server.TelegramServer, nodes: list[Node], model: ObservedServer
    ) -> None:
        self.faults: list[Fault] = []
        self.server = server
        self.model = model
        self.nodes = nodes
        self.sent: dict[int, list[str]] = {}

    def start(self, node: Node) -> None:
        variables = {"TELEGRAM_BOT_TOKEN": telegram_server.TOKEN, "TELEGRAM_ALLOWED_USERS": "*"}
        node.start({**variables, "HERMES_LLM_KEY": node.name})  # its requests carry its name

    def connected(self) -> Node | None:
        return next((node for node in self.nodes if node.is_connected("telegram")), None)

    async def send(self, chat: int, text: str) -> None:
        await self.server.send_as_user(text, chat)
        self.sent.setdefault(chat, []).append(text)

    def answers(self, chat: int) -> list[str]:
        return [message.text for message in self.server.sent if message.chat_id == chat]

    def prompts(self) -> dict[int, list[str]]:
        """The names of the messages that were handled, by chat."""
        found: dict[int, list[str]] = {}
        with SessionDB(is_recovering=False) as db:
            for chat in self.sent:
                key = f"agent:main:telegram:dm:{chat}"
                rows = db.list_sessions_rich(limit=-1, session_key=key)
                assert len(rows) <= 1, "a chat has one conversation"
                texts = [
                    str(message["content"])
                    for row in rows
                    for message in db.get_messages(row["id"])
                    if message["role"] == "user"
                ]
                found[chat] = MESSAGE_NAME.findall("\n".join(texts))
        return found

    def asked_again(self) -> list[str]:
        """The names of the messages that the model was asked to answer more than once."""
        return sorted(name for name, asks in self.model.asks.items() if len(asks) > 1)

    def asked_again_without_cause(self) -> list[str]:
        """Those of them that were not taken from a machine by a fault in between."""
        return [
            f"{name}: {first} {second}"
            for name in self.asked_again()
            for first, second in itertools.pairwise(self.model.asks[name])
            if not any(fault.explains(first, second) for fault in self.faults)
        ]

    def disordered(self) -> list[int]:
        """The chats whose history is not that of a machine without faults: prompt, its echo, …"""
        result = []
        with SessionDB(is_recovering=False) as db:
            for chat in self.sent:
                (row,) = db.list_sessions_rich(
                    limit=-1, session_key=f"agent:main:telegram:dm:{chat}"
                )
                messages = db.get_messages(row["id"])
                roles = [message["role"] for message in messages]
                names = [MESSAGE_NAME.findall(str(message["content"])) for message in messages]
                is_right = (
                    roles == ["user", "assistant"] * (len(roles) // 2) and names[::2] == names[1::2]
                )
                is_open = (db.get_session(row["id"]) or {})["ended_at"] is None
                if not is_right or not is_open:
                    result.append(chat)
        return result

    async def wait_until_answered(self) -> None:
        async with asyncio.timeout(600):
            while not await asyncio.to_thread(self.is_answered):  # noqa: ASYNC110 - by processes
                await asyncio.sleep(0.1)

    def is_answered(self) -> bool:
        return self.prompts() == self.sent and not count_unsettled()


@pytest.fixture
async def telegram(
    request: pytest.FixtureRequest,
    hermes_home: Path,
    answering: Callable[..., Any],
    nodes: Callable[..., list[Node]],
) -> AsyncIterator[TelegramNodes]:
    model = answering(getattr(request, "param", "[]"), ObservedServer)
    async with telegram_server.TelegramServer() as server:
        path = hermes_home / "config.yaml"
        options = {"enabled": True, "base_url": server.base_url, "poll_seconds": 1}
        path.write_text(
            f"{path.read_text()}platforms: {json.dumps({'telegram': options})}\n"
            f"gateway: {{attempts: 1000, max_concurrent_sessions: {MAX_TURNS}}}\n"
        )
        yield TelegramNodes(server, nodes("one", "two", "three", platform="telegram"), model)


def handling_processes(chats: list[int]) -> dict[int, tuple[str, int]]:
    """The machine and process that handle the first message of each chat."""
    sql = """
        SELECT i.chat_id, p.host, p.pid FROM hermes_inbox i
        JOIN hermes_process p ON p.process_id = i.process_id WHERE i.state = 'claimed'
    """
    with SessionDB(is_recovering=False) as db:
        rows = db.engine.read(lambda reader: reader.rows(sql))
    return {int(chat): (host, pid) for chat, host, pid in rows if int(chat) in chats}


@pytest.mark.parametrize("telegram", [SLOW_ANSWERS], indirect=True)
async def test_turns_are_spread_and_a_turn_on_another_machine_is_stopped(
    telegram: TelegramNodes,
) -> None:
    one, two, _ = telegram.nodes
    telegram.start(one)
    await async_wait_until(lambda: one.is_connected("telegram"))
    telegram.start(two)
    await async_wait_until(lambda: two.state_of("telegram") == "standby")
    chats = list(range(11, 11 + MAX_TURNS + 1))
    for chat in chats:
        await telegram.send(chat, f"c{chat}-m0")
    await async_wait_until(lambda: len(handling_processes(chats)) == len(chats))
    (elsewhere,) = [
        chat for chat, (name, _) in handling_processes(chats).items() if name == two.name
    ]
    await telegram.server.send_as_user("/stop", elsewhere)
    await async_wait_until(lambda: telegram.answers(elsewhere))
    assert "(Stopped" in telegram.answers(elsewhere)[-1]  # perhaps before the turn started
    assert len(handling_processes(chats)) == len(chats) - 1


async def send_all(setup: TelegramNodes, names: Iterator[tuple[int, str]]) -> None:
    for chat, text in names:
        await setup.send(chat, text)
        await asyncio.sleep(random.uniform(0, 0.1))


async def disturb(setup: TelegramNodes, node: Node, *, is_freeze: bool) -> None:
    """Kill and restart a machine, or freeze it for longer than its lease."""
    start = time.monotonic()
    if is_freeze:
        node.freeze()
        await asyncio.sleep(NODE_TIMEOUT_SECONDS + 2)
        node.wake()
        setup.faults.append(Fault(node.name, start, time.monotonic()))
        return
    await asyncio.to_thread(node.gateway.kill)
    setup.faults.append(Fault(node.name, start, time.monotonic()))
    await asyncio.sleep(random.uniform(0, 1))
    setup.start(node)


async def measure_take_over(setup: TelegramNodes, pid: int) -> float:
    """Seconds until another process than that with *pid* is connected."""
    started = time.monotonic()

    def is_taken_over() -> bool:
        connected = [node for node in setup.nodes if node.is_connected("telegram")]
        return any(node.gateway.pid != pid for node in connected)

    await async_wait_until(is_taken_over)
    return time.monotonic() - started


async def test_machines_that_die_and_freeze_lose_nothing_and_handle_nothing_twice(
    telegram: TelegramNodes, figures: Callable[..., None]
) -> None:
    for node in telegram.nodes:
        telegram.start(node)
    await async_wait_until(lambda: all(node.is_up() for node in telegram.nodes))
    numbers = itertools.count()
    names = ((11 + n % CHATS, f"c{n % CHATS}-m{n // CHATS}") for n in numbers)
    faults = random.sample([False] * KILLS + [True] * FREEZES, KILLS + FREEZES)
    share = MESSAGES // (len(faults) + 1)
    take_overs: list[float] = []
    for is_freeze in faults:
        sending = asyncio.create_task(send_all(telegram, itertools.islice(names, share)))
        await asyncio.sleep(random.uniform(0, 1))
        await async_wait_until(lambda: telegram.connected() is not None)
        node = random.choice(telegram.nodes)
        is_connected, pid = node.is_connected("telegram"), node.gateway.pid
        fault = asyncio.create_task(disturb(telegram, node, is_freeze=is_freeze))
        if is_connected:
            take_overs.append(await measure_take_over(telegram, pid))
        await fault
        await sending
    rest = MESSAGES - share * len(faults)
    await send_all(telegram, itertools.islice(names, rest))
    await telegram.wait_until_answered()
    prompts = telegram.prompts()
    handled_twice = sum(len(names) - len(set(names)) for names in prompts.values())
    repeated = 0
    for chat in telegram.sent:
        answers = [answer.removeprefix(DUPLICATE_NOTE) for answer in telegram.answers(chat)]
        repeated += len(answers) - len([text for text, _ in itertools.groupby(answers)])
    with SessionDB(is_recovering=False) as db:
        workers = db.engine.read(
            lambda r: r.value("SELECT count(DISTINCT process_id) FROM hermes_inbox")
        )
    figures(
        "several machines",
        machines=len(telegram.nodes),
        messages=sum(map(len, telegram.sent.values())),
        chats=CHATS,
        kills=KILLS,
        freezes=FREEZES,
        lost=sum(len(set(sent) - set(prompts[chat])) for chat, sent in telegram.sent.items()),
        handled_twice=handled_twice,
        replies_sent_again=repeated,
        histories_out_of_order=len(telegram.disordered()),
        asked_again=len(telegram.asked_again()),
        asked_again_without_cause=len(telegram.asked_again_without_cause()),
        processes_with_turns=workers,
        take_overs=len(take_overs),
        take_over_seconds_highest=percentile(take_overs, 1.0),
    )
    assert prompts == telegram.sent  # every message once, in order
    assert telegram.disordered() == []
    assert telegram.asked_again_without_cause() == []
    assert workers > 1 or not take_overs


async def chat_with(setup: TelegramNodes, chat: int) -> None:
    """Write to a chat, each message after the answer to the one before it."""
    for number in range(BUSY_MESSAGES):
        await setup.send(chat, f"c{chat}-m{number}")
        await async_wait_until(lambda number=number: len(setup.answers(chat)) > number)


@pytest.mark.parametrize("machines", [2, 3])
async def test_busy_machines_ask_the_model_once_for_each_message(
    telegram: TelegramNodes, figures: Callable[..., None], machines: int
) -> None:
    telegram.nodes = telegram.nodes[:machines]
    for node in telegram.nodes:
        config = node.home / "config.yaml"
        config.write_text(config.read_text().replace(f"sessions: {MAX_TURNS}", "sessions: 32"))
        telegram.start(node)
    await async_wait_until(lambda: all(node.is_up() for node in telegram.nodes))
    await chat_with(telegram, 10)
    with SessionDB(is_recovering=False) as db:  # small tables, whose size the server knows
        db.engine.write(lambda tx: tx.update_planner())
    await asyncio.gather(*[chat_with(telegram, chat) for chat in range(11, 11 + BUSY_CHATS)])
    await telegram.wait_until_answered()
    conflicts = sum(log_of(node).count("could not serialize") for node in telegram.nodes)
    figures(
        f"{machines} busy machines",
        machines=machines,
        messages=sum(map(len, telegram.sent.values())),
        chats=BUSY_CHATS,
        asked_again=len(telegram.asked_again()),
        failed_by_conflicts=conflicts,
    )
    assert telegram.asked_again() == []
    assert telegram.disordered() == []
    assert conflicts == 0
