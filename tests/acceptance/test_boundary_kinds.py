"""Every kind of boundary, caused from outside: one event for each session that changes.

A real gateway on its socket, a real terminal, and a plugin that records what it receives. The
table in docs/reference/hooks.md says what each kind announces; these tests count it.
"""

from __future__ import annotations

import asyncio
import os
import signal
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pexpect
import pytest

from acceptance.campaign import wait_until
from gateway.platforms.local import socket_path
from gateway.process.runner import Gateway
from hermes_core.config.file import ConfigFile
from hermes_core.hooks import BoundaryKind
from hermes_state import SessionDB
from support.boundary_watch import KEY, BoundaryWatch, change_route, routed
from support.chat import LocalChatClient
from support.gateway_process import GatewayProcess
from support.model_servers import configured_models, model_argument
from support.plain_terminal import EDITOR, quit_chat, start_chat
from support.waiting import PATIENCE_SECONDS
from support.wire import RpcClient

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from support.command_line import Hermes

SLOW = " ".join(f"word{number}" for number in range(200))
SLOW_TURN = f"{{say: {SLOW}, pause: 0.05}}"
LONG = "tea and cake " * 5000


@pytest.fixture
def watch(hermes_home: Path) -> BoundaryWatch:
    return BoundaryWatch(hermes_home)


@pytest.fixture
def answering(watch: BoundaryWatch) -> Iterator[Callable[[str], Any]]:
    with configured_models() as choose:
        yield choose


@pytest.fixture
def gateway() -> Iterator[GatewayProcess]:
    process = GatewayProcess()
    yield process
    process.cleanup()


def start(gateway: GatewayProcess) -> None:
    gateway.start()
    wait_until(gateway.is_up, "the gateway")


async def say(*texts: str, first: int = 1, chat: str = "c1") -> list[str]:
    """Send messages one after another and wait for each reply."""
    async with LocalChatClient(socket_path()) as client:
        for number, text in enumerate(texts):
            await client.send(text, f"{chat}-m{first + number}", chat=chat)
            await client.wait_for(number + 1)
        return [reply["text"] for reply in client.replies]


# Chats


async def test_new(watch: BoundaryWatch, gateway: GatewayProcess, answering: Any) -> None:
    answering("[]")
    start(gateway)
    await say("hi")
    old = routed()
    await say("/new", first=2)
    assert watch.read() == ([(BoundaryKind.NEW, old)], [old], [routed()])


@pytest.mark.clock
@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        (BoundaryKind.IDLE, {"age": timedelta(hours=3)}),
        (BoundaryKind.DAILY, {"age": timedelta(days=2)}),
        (BoundaryKind.SUSPEND, {"suspended": True}),
    ],
)
async def test_a_message_that_starts_another_conversation(
    watch: BoundaryWatch, gateway: GatewayProcess, answering: Any, kind: str, fields: Any
) -> None:
    answering("[]")
    ConfigFile.of_home().set("session_reset.mode", "daily" if kind == "daily" else "idle")
    ConfigFile.of_home().set("session_reset.idle_minutes", "60")
    start(gateway)
    await say("hi")
    old = routed()
    assert gateway.stop() == 0
    age = fields.pop("age", timedelta())
    change_route(updated_at=datetime.now() - age, **fields)  # noqa: DTZ005 - as entries have it
    start(gateway)
    await say("later", first=2)
    assert watch.read() == ([(kind, old)], [old], [routed()])


async def test_resume(watch: BoundaryWatch, gateway: GatewayProcess, answering: Any) -> None:
    answering("[]")
    start(gateway)
    await say("hi")
    first = routed()
    await say("/new", first=2)
    second = routed()
    await say("/resume", first=3)
    assert routed() == first
    assert watch.read() == (
        [("new", first), ("resume", second), ("resume", first)],
        [first, second],
        [second, first],
    )


async def test_branch(watch: BoundaryWatch, gateway: GatewayProcess, answering: Any) -> None:
    answering("[]")
    start(gateway)
    await say("hi")
    parent = routed()
    replies = await say("/branch Other", first=2)
    branch = routed()
    assert replies == [f"Switched to a new branch: {branch}"]
    assert watch.read() == ([("branch", parent), ("branch", branch)], [parent], [branch])


@pytest.mark.parametrize("has_target_conversation", [True, False])
async def test_a_hand_off_between_chats_moves_the_conversation(
    watch: BoundaryWatch,
    gateway: GatewayProcess,
    answering: Any,
    has_target_conversation: bool,
) -> None:
    answering("[]")
    with ConfigFile.of_home().path.open("a") as file:
        file.write("platforms: {local: {enabled: true, home_channel: {chat_id: home, name: h}}}\n")
    start(gateway)
    home = "agent:main:local:dm:home"
    before = []
    if has_target_conversation:
        await say("hello", chat="home")
        before = [routed(home)]
    await say("hi")
    moved = routed()
    await say("/handoff local", first=2)
    wait_until(lambda: routed() != moved, "the hand-off")
    await say("in the old chat", first=3)
    await say("in the new chat", first=9, chat="home")
    fresh = routed()
    assert (routed(home), fresh == moved) == (moved, False)
    with SessionDB() as db:
        texts = [str(message["content"]) for message in db.get_messages(moved)]
    assert ("in the new chat" in texts, "in the old chat" in texts) == (True, False)
    events, finalized, reset = watch.read()
    assert sorted(events) == sorted(("handoff", item) for item in (moved, *(before or [moved])))
    assert (finalized, sorted(reset)) == (before, sorted([fresh, moved]))
    assert await say("/resume", first=4) == [f"{fresh}  in the old chat"]  # it is elsewhere now
    with SessionDB() as db:
        assert moved in [row["id"] for row in db.list_sessions_rich(session_key=home)]


async def test_compaction(watch: BoundaryWatch, gateway: GatewayProcess, answering: Any) -> None:
    answering("[{say: A.}, {say: B.}, {say: C.}, {say: D.}, {say: A summary.}]")
    start(gateway)
    replies = await say(*(LONG for _ in range(4)), "/compress")
    assert "Summarized" in replies[-1]
    assert watch.read() == ([("compaction", routed())], [], [])


async def sweep_after(
    age: timedelta, kind: str, watch: BoundaryWatch, monkeypatch: pytest.MonkeyPatch
) -> str:
    """Let a sweep find a chat of this age, then write there; the old conversation."""
    runner = Gateway()
    await runner.start()
    await say("hi")
    old = routed()
    await runner.stop()
    change_route(updated_at=datetime.now() - age)  # noqa: DTZ005 - as entries have it
    monkeypatch.setattr("gateway.process.runner.FIRST_SWEEP_SECONDS", 0.1)
    runner = Gateway()
    await runner.start()
    await asyncio.to_thread(watch.wait_for, kind)
    await say("later", first=2)
    await runner.stop()
    return old


@pytest.mark.clock
async def test_expiry(
    watch: BoundaryWatch, answering: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    answering("[]")
    ConfigFile.of_home().set("session_reset.mode", "idle")
    ConfigFile.of_home().set("session_reset.idle_minutes", "60")
    old = await sweep_after(timedelta(hours=3), "expiry", watch, monkeypatch)
    fresh = routed()
    assert watch.read() == ([("expiry", old), ("idle", fresh)], [old], [fresh])


@pytest.mark.clock
async def test_a_route_that_is_not_used_any_longer_is_dropped(
    watch: BoundaryWatch, answering: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    answering("[]")
    old = await sweep_after(timedelta(days=1000), "prune", watch, monkeypatch)
    assert routed() != old
    assert watch.read() == ([("prune", old)], [old], [])


async def test_a_deleted_conversation_stays_deleted(
    watch: BoundaryWatch, gateway: GatewayProcess, answering: Any, hermes: Hermes
) -> None:
    server = answering("[]")
    start(gateway)
    await say("the secret word is xylophone")
    old = routed()
    assert hermes("sessions", "delete", old, "--yes").code == 0
    await say("what is the word?", first=2)
    assert routed() != old
    assert watch.read() == ([("prune", old)], [old], [])
    assert "xylophone" not in str(server.requests[-1])
    listed = hermes("sessions", "list").out
    assert (old in listed, routed() in listed) == (False, True)


async def test_shutdown(watch: BoundaryWatch, gateway: GatewayProcess, answering: Any) -> None:
    answering(f"[{SLOW_TURN}, {{say: Done.}}]")
    ConfigFile.of_home().set("gateway.drain_seconds", "0")
    start(gateway)
    async with LocalChatClient(socket_path()) as client:
        await client.send("hi", "m1")
        wait_until(is_turn_running, "the turn")
        gateway.send_signal(signal.SIGTERM)
        gateway.wait()
    session_id = routed()
    assert watch.read() == ([("shutdown", session_id)], [session_id], [])
    start(gateway)
    async with LocalChatClient(socket_path()) as client:
        await client.send("hi", "m1")  # delivered again
        await client.wait_for(1)
    assert watch.read() == (
        [("shutdown", session_id), ("resume", session_id)],
        [session_id],
        [],
    )


async def test_a_crash_in_a_chat_is_announced_for_the_turn_that_died(
    watch: BoundaryWatch, gateway: GatewayProcess, answering: Any
) -> None:
    answering(f"[{{say: Idle.}}, {SLOW_TURN}, {{say: Done.}}]")
    start(gateway)
    await say("nothing runs here", chat="idle")
    for crashes in (1, 2):
        async with LocalChatClient(socket_path()) as client:
            await client.send("hi", f"m{crashes}")
            wait_until(is_turn_running, "the turn")
        gateway.kill()
        start(gateway)
        async with LocalChatClient(socket_path()) as client:
            await client.send("hi", f"m{crashes}")  # delivered again
            await client.wait_for(1)
        crashed = routed()
        pair = [("crash", crashed), ("resume", crashed)]
        assert watch.read() == (pair * crashes, [crashed] * crashes, [])
        answering(f"[{SLOW_TURN}, {{say: Done.}}]")
        if crashes == 1:
            gateway.stop()
            start(gateway)


def is_turn_running() -> bool:
    """Whether a turn runs in the chat; gateways in PostgreSQL hold other leases, too."""
    with SessionDB(is_recovering=False) as db:
        route = db.routes.of_key(KEY)
        return route is not None and route.session_id in db.leases.running()


async def test_deleting_a_conversation_stops_the_turn_that_runs_in_it(
    watch: BoundaryWatch, gateway: GatewayProcess, answering: Any, hermes: Hermes
) -> None:
    answering(f"[{SLOW_TURN}, {{say: Done.}}]")
    start(gateway)
    async with LocalChatClient(socket_path()) as client:
        await client.send("hi", "m1")
        wait_until(is_turn_running, "the turn")
        old = routed()
        assert hermes("sessions", "delete", old, "--yes").code == 0
        [reply] = await client.wait_for(1)  # the message is not handled again
        assert "was deleted" in reply
        await client.send("again", "m2")
        assert (await client.wait_for(2))[1] == "Done."
    assert routed() != old
    assert watch.read() == ([("prune", old)], [old], [])
    assert old not in hermes("sessions", "list").out


# Terminals


def type_line(child: pexpect.spawn[str], line: str, answer: str) -> None:
    child.expect(EDITOR)
    child.sendline(line)
    child.expect(answer)


def stored_sessions() -> list[str]:
    with SessionDB(is_recovering=False) as db:
        return [row["id"] for row in db.list_sessions_rich(limit=-1)]


def test_switching_in_a_terminal(watch: BoundaryWatch, answering: Any) -> None:
    child = start_chat(answering("[{say: First.}, {say: Second.}, {say: Third.}]"))
    type_line(child, "one", "First")
    (first,) = stored_sessions()
    type_line(child, "/new", "Started a new conversation: ")
    type_line(child, "two", "Second")
    (second,) = set(stored_sessions()) - {first}
    type_line(child, f"/resume {first}", "Resumed")
    type_line(child, "/branch", "Switched to a new branch")
    (branch,) = set(stored_sessions()) - {first, second}
    type_line(child, "three", "Third")
    quit_chat(child)
    assert watch.read() == (
        [
            ("new", first),
            ("resume", second),
            ("branch", branch),  # the first one was only looked at
            ("shutdown", branch),
        ],
        [first, second, branch],
        [second, first, branch],
    )


def test_resuming_in_a_fresh_terminal(watch: BoundaryWatch, answering: Any) -> None:
    with SessionDB() as db:
        db.create_session("older", "cli")
        db.append_message("older", "user", "hello")
        db.end_session("older", "cli_close")
    child = start_chat(answering("[{say: First.}]"))
    type_line(child, "/resume older", "Resumed")
    type_line(child, "one", "First")
    quit_chat(child)
    assert watch.read() == (
        [("shutdown", "older"), ("resume", "older"), ("shutdown", "older")],
        ["older", "older"],
        [],
    )


def test_compaction_in_a_terminal(watch: BoundaryWatch, answering: Any) -> None:
    with SessionDB() as db:
        db.create_session("long", "cli", is_owned=False)
        for _ in range(4):
            db.append_message("long", "user", LONG)
            db.append_message("long", "assistant", "Yes.")
    child = start_chat(answering("[]"), "--resume", "long")
    type_line(child, "/compress", "Summarized")
    quit_chat(child)
    assert watch.read() == ([("compaction", "long"), ("shutdown", "long")], ["long"], [])


def test_a_crash_of_a_terminal(watch: BoundaryWatch, answering: Any) -> None:
    child = start_chat(answering(f"[{SLOW_TURN}]"))
    type_line(child, "go", "word3")
    (session_id,) = stored_sessions()
    child.kill(signal.SIGKILL)
    child.expect(pexpect.EOF)
    child.close()
    assert watch.read() == ([("crash", session_id)], [session_id], [])


async def test_a_hand_off_from_a_terminal(
    watch: BoundaryWatch, gateway: GatewayProcess, answering: Any
) -> None:
    server = answering("[{say: Chat.}, {say: First.}, {say: Second.}, {say: There.}]")
    start(gateway)
    await say("hello")
    before = routed()
    child = start_chat(server)
    type_line(child, "one", "First")
    (moved,) = set(stored_sessions()) - {before}
    type_line(child, "/handoff local", "Started a new conversation")
    type_line(child, "two", "Second")
    (fresh,) = set(stored_sessions()) - {before, moved}
    await asyncio.to_thread(wait_until, lambda: routed() == moved, "the hand-off")
    async with LocalChatClient(socket_path()) as client:
        await client.send("go on", "m2")
        assert await client.wait_for(2) == [f"Continuing {moved}.", "There."]
    await asyncio.to_thread(quit_chat, child)
    events, finalized, reset = watch.read()
    assert sorted(events) == sorted([("handoff", moved), ("handoff", before), ("shutdown", fresh)])
    assert (sorted(finalized), sorted(reset)) == (sorted([before, fresh]), sorted([fresh, moved]))


def test_switching_in_the_terminal_ui(
    watch: BoundaryWatch, answering: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TELEGRAM_BOT_TOKEN", "1:x")
    server = answering("[{say: First.}, {say: Second.}, {say: Third.}, {say: Fourth.}]")
    client = RpcClient()
    try:
        live, stored = open_session(client, model=model_argument(server))
        prompt(client, live)
        live = dispatch(client, live, "new")
        prompt(client, live)
        live = dispatch(client, live, "resume", stored)
        live = dispatch(client, live, "branch")
        prompt(client, live)
        live = dispatch(client, live, "handoff", "telegram")
        prompt(client, live)
        os.kill(client.process.pid, signal.SIGTERM)
        client.process.wait(timeout=PATIENCE_SECONDS)
    finally:
        client.close()
    first, second, branch, last = reversed(stored_sessions())
    assert first == stored
    assert watch.read() == (
        [
            ("new", first),
            ("resume", second),
            ("branch", branch),  # the first one was only looked at
            ("handoff", branch),
            ("shutdown", last),
        ],
        [first, second, last],
        [second, first, branch, last],
    )
    with SessionDB() as db:
        row = db.get_session(branch) or {}
    assert (row["ended_at"], row["handoff_state"]) == (None, "pending")


def open_session(client: RpcClient, **options: str) -> tuple[str, str]:
    opened = client.call("session.create", **options)
    return str(opened["session_id"]), str(opened["stored_session_id"])


def prompt(client: RpcClient, live: str) -> None:
    client.call("prompt.submit", session_id=live, text="go")
    client.wait_for("message.complete")
    wait_until(lambda: not client.call("session.status", session_id=live)["running"], "the turn")


def dispatch(client: RpcClient, live: str, name: str, argument: str = "") -> str:
    result = client.call("command.dispatch", session_id=live, name=name, arg=argument)
    return str(result["session_id"])


async def test_a_terminal_does_not_end_the_conversation_of_a_chat(
    watch: BoundaryWatch, gateway: GatewayProcess, answering: Any
) -> None:
    server = answering("[{say: Chat.}, {say: Terminal.}, {say: Again.}]")
    start(gateway)
    await say("hello")
    shared = routed()
    child = start_chat(server, "--resume", shared)
    type_line(child, "here", "Terminal")
    await asyncio.to_thread(quit_chat, child)
    assert await say("and now?", first=2) == ["Again."]
    assert routed() == shared
    assert watch.read() == ([], [], [])


def test_every_kind_is_caused_here() -> None:
    text = Path(__file__).read_text()
    missing = [kind for kind in BoundaryKind if f'("{kind}"' not in text and kind.name not in text]
    assert missing == []
