"""From a message to its reply: a real socket, a real store, a real model server."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from gateway.config import GatewayConfig, Platform, SessionResetPolicy
from gateway.inbound import prompt_format
from gateway.inbound.turn_runner import TurnPrompt
from gateway.platforms.base import MessageEvent
from gateway.platforms.local import LocalAdapter
from gateway.process.service import GatewayService
from gateway.session import SessionSource, SessionStore, local_now
from hermes_core.config.file import ConfigFile
from support.chat import LocalChatClient
from support.drafts import draft_text
from support.gateways import outbox_texts, running_gateway
from support.plugin_folders import make_plugin
from support.waiting import PATIENCE_SECONDS, async_wait_until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from hermes_state import SessionDB

RECORDER_CODE = """
def register(ctx):
    for name in ("on_session_finalize", "on_session_reset"):
        def record(name=name, **fields):
            with open({path!r}, "a") as file:
                file.write(name + chr(10))
        ctx.register_hook(name, record)
"""
SLOW = "one two three four five six seven eight nine ten eleven twelve"


@asynccontextmanager
async def running_service(
    db: SessionDB, folder: Path, drain: float = 10, config: GatewayConfig | None = None
) -> AsyncIterator[LocalChatClient]:
    config = config or GatewayConfig()
    routes = SessionStore(folder, config)
    routes._db = db
    service = GatewayService(db, routes, config, folder)
    await service.start({"local": LocalAdapter(folder / "s.sock")})
    async with LocalChatClient(folder / "s.sock") as chat:
        try:
            yield chat
        finally:
            await service.stop(drain)


def stored_texts(db: SessionDB, chat: str = "c1") -> list[str]:
    key = f"agent:main:local:dm:{chat}"
    rows = db.list_sessions_rich(limit=1, session_key=key, order_by_last_active=True)
    return [str(message["content"]) for message in db.get_messages(rows[0]["id"])]


async def test_a_message_is_answered(db: SessionDB, tmp_path: Path, answering: Any) -> None:
    answering("[{say: Hello there.}]")
    async with running_service(db, tmp_path) as chat:
        await chat.send("hi", "m1")
        assert await chat.wait_for(1) == ["Hello there."]
    assert stored_texts(db) == ["hi", "Hello there."]


async def test_a_repeated_delivery_is_answered_once(
    db: SessionDB, tmp_path: Path, answering: Any
) -> None:
    answering("[{say: A1}, {say: A2}]")
    async with running_service(db, tmp_path) as chat:
        for _ in range(3):
            await chat.send("hi", "m1")
        await chat.wait_for(1)
        await chat.send("and?", "m2")
        assert await chat.wait_for(2) == ["A1", "A2"]
    assert stored_texts(db) == ["hi", "A1", "and?", "A2"]


async def test_three_quick_messages_are_one_question(
    db: SessionDB, tmp_path: Path, answering: Any
) -> None:
    model = answering(f"[{{say: {SLOW}, pause: 0.2}}, {{say: All three.}}]")
    async with running_service(db, tmp_path) as chat:
        await chat.send("count", "m1")
        await async_wait_until(lambda: model.requests)
        for number, text in enumerate(("one thing", "another", "a third")):
            await chat.send(text, f"n{number}")
        assert await chat.wait_for(2) == [SLOW, "All three."]
    assert stored_texts(db)[2] == "one thing\nanother\na third"


async def test_chats_do_not_wait_for_each_other(
    db: SessionDB, tmp_path: Path, answering: Any
) -> None:
    model = answering(f"[{{say: {SLOW}, pause: 0.3}}, {{say: Quick.}}]")
    async with running_service(db, tmp_path) as chat:
        await chat.send("count", "m1", "slow")
        await async_wait_until(lambda: model.requests)
        await chat.send("hi", "m1", "quick")
        assert await chat.wait_for(1) == ["Quick."]
        await chat.wait_for(2)


async def test_commands_start_a_new_conversation_and_return(
    db: SessionDB, tmp_path: Path, answering: Any
) -> None:
    answering("[{say: A1}, {say: B1}, {say: A2}]")
    async with running_service(db, tmp_path) as chat:
        await chat.send("the roses", "m1")
        await chat.wait_for(1)
        await chat.send("/new", "m2")
        assert "New session started" in (await chat.wait_for(2))[1]
        await chat.send("the pump", "m3")
        await chat.wait_for(3)
        await chat.send("/resume", "m4")
        assert "Continuing" in (await chat.wait_for(4))[3]
        await chat.send("and?", "m5")
        assert (await chat.wait_for(5))[4] == "A2"
        await chat.send("/nothing", "m6")
        assert "Unknown command: /nothing" in (await chat.wait_for(6))[5]
    assert stored_texts(db) == ["the roses", "A1", "and?", "A2"]
    kinds = [boundary.kind for boundary in reversed(db.boundaries.recent())]
    assert kinds == ["new", "resume", "resume"]


async def test_users_cannot_continue_conversations_of_others(
    db: SessionDB, tmp_path: Path, answering: Any
) -> None:
    answering("[{say: A1}]")
    async with running_service(db, tmp_path) as chat:
        await chat.send("a secret", "m1", "mine")
        await chat.wait_for(1)
        foreign = db.list_sessions_rich()[0]["id"]
        await chat.send(f"/resume {foreign}", "m1", "yours")
        assert "No conversation matches" in (await chat.wait_for(2))[1]
        await chat.send("/sessions", "m2", "yours")
        assert foreign not in (await chat.wait_for(3))[2]


async def test_an_approval_is_requested_in_the_chat(
    db: SessionDB, tmp_path: Path, answering: Any
) -> None:
    (tmp_path / "old").mkdir()
    call = "{name: terminal, arguments: {command: rm -rf old}}"
    answering(f"[{{calls: [{call}]}}, {{say: Done.}}]")
    async with running_service(db, tmp_path) as chat:
        await chat.send("clean up", "m1")
        assert "rm -rf old" in (await chat.wait_for(1))[0]
        await chat.send("/approve", "m2")
        assert (await chat.wait_for(2))[1] == "Done."
    assert not (tmp_path / "old").exists()


async def test_a_turn_is_stopped_from_the_chat(
    db: SessionDB, tmp_path: Path, answering: Any
) -> None:
    answering(f"[{{say: {SLOW}, pause: 0.5}}]")
    async with running_service(db, tmp_path) as chat:
        await chat.send("count", "m1")
        await async_wait_until(lambda: "one" in draft_text(db))
        await chat.send("/stop", "m2")
        assert (await chat.wait_for(1))[0].endswith("(Stopped.)")


async def test_a_turn_interrupted_by_shutdown_is_answered_by_the_next_process(
    db: SessionDB, tmp_path: Path, answering: Any
) -> None:
    answering(f"[{{say: {SLOW}, pause: 0.5}}, {{say: Whole.}}, {{say: Next.}}]")
    async with running_service(db, tmp_path, drain=0.1) as chat:
        await chat.send("count", "m1")
        await async_wait_until(lambda: "one" in draft_text(db))
        await chat.send("and then?", "m2")
    async with running_service(db, tmp_path) as chat:
        await chat.write({"chat": "c1", "id": "m2", "text": "and then?"})  # registers the chat
        assert await chat.wait_for(2) == ["Whole.", "Next."]
    assert stored_texts(db) == ["count", "Whole.", "and then?", "Next."]


async def test_an_unanswerable_message_is_reported_and_not_retried_forever(
    db: SessionDB, tmp_path: Path, answering: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    answering("[]")
    monkeypatch.setattr(
        "gateway.inbound.turn_runner.TurnRunner.run",
        lambda *_, **__: (_ for _ in ()).throw(RuntimeError("boom")),
    )
    async with running_service(db, tmp_path) as chat:
        await chat.send("hi", "m1")
        assert "interrupted 3 times" in (await chat.wait_for(1))[0]


@pytest.mark.clock
async def test_a_new_conversation_by_policy_is_announced_once(
    db: SessionDB, tmp_path: Path, answering: Any
) -> None:
    answering("[{say: A1}, {say: B1}, {say: B2}]")
    async with running_service(db, tmp_path) as chat:
        await chat.send("hi", "m1")
        await chat.wait_for(1)
    route = db.routes.all()[0]
    long_ago = (local_now() - timedelta(days=3)).isoformat()
    db.routes.put(route._replace(entry={**route.entry, "updated_at": long_ago}))
    policy = GatewayConfig(default_reset_policy=SessionResetPolicy("idle", idle_minutes=60))
    async with running_service(db, tmp_path, config=policy) as chat:
        await chat.send("back again", "m2")
        texts = await chat.wait_for(2)
        assert "new conversation (idle)" in texts[0]
        assert texts[1] == "B1"
        await chat.send("and?", "m3")
        assert (await chat.wait_for(3))[2] == "B2"


async def test_without_a_model_an_error_is_printed(db: SessionDB, tmp_path: Path) -> None:
    async with running_service(db, tmp_path) as chat:
        await chat.send("hi", "m1")
        assert "No model is configured" in (await chat.wait_for(1))[0]


async def test_a_turn_in_a_terminal_has_precedence(
    db: SessionDB, tmp_path: Path, answering: Any
) -> None:
    answering("[{say: A1}, {say: A2}]")
    async with running_service(db, tmp_path) as chat:
        await chat.send("hi", "m1")
        await chat.wait_for(1)
        session = db.routes.all()[0].session_id
        lease = db.leases.acquire(session, "a terminal")
        await chat.send("and?", "m2")
        await asyncio.sleep(1.5)
        assert len(chat.replies) == 1
        db.leases.release(lease)
        assert (await chat.wait_for(2))[1] == "A2"
    assert stored_texts(db) == ["hi", "A1", "and?", "A2"]


async def test_plugins_receive_new_conversations_while_the_gateway_runs(
    db: SessionDB, tmp_path: Path, answering: Any, hermes_home: Path
) -> None:
    path = tmp_path / "hook_calls"
    make_plugin(hermes_home, "recorder", RECORDER_CODE.format(path=str(path)))
    ConfigFile.of_home().set("plugins.enabled", "recorder")
    answering("[{say: A1}]")
    async with running_service(db, tmp_path) as chat:
        await chat.send("hi", "m1")
        await chat.wait_for(1)
        await chat.send("/new", "m2")
        await chat.wait_for(2)
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not path.exists() or len(path.read_text().split()) < 2:  # noqa: ASYNC110
                await asyncio.sleep(0.05)
    assert path.read_text().split() == ["on_session_finalize", "on_session_reset"]


@pytest.mark.parametrize("line", ["/new", "/resume"])
async def test_a_command_that_was_carried_out_before_a_crash_is_not_carried_out_again(
    db: SessionDB, tmp_path: Path, answering: Any, line: str
) -> None:
    answering("[{say: A1}, {say: B1}]")
    async with running_service(db, tmp_path) as chat:
        for number, text in enumerate(("one", "/new", "two")):
            await chat.send(text, f"m{number}")
            await chat.wait_for(number + 1)
    routes = SessionStore(tmp_path, GatewayConfig())
    routes._db = db
    service = GatewayService(db, routes, GatewayConfig(), tmp_path)
    source = routes.list_sessions()[0].origin
    assert source is not None
    await service.receiver.receive("local", MessageEvent(line, source=source, message_id="m9"))
    row = db.inbox.claim()
    assert row is not None
    service.message_handler._answer(
        TurnPrompt([row], [prompt_format.decode(row.payload)])
    )  # and then it is killed
    after = routes.list_sessions()[0].session_id
    db.inbox.requeue(row, is_attempt=True)
    again = db.inbox.claim()
    assert again is not None
    service.message_handler.handle(again)
    assert routes.list_sessions()[0].session_id == after
    service.inbox_workers.close()


@pytest.mark.clock
async def test_text_from_before_a_long_pause_is_not_repeated_in_a_new_conversation(
    db: SessionDB, tmp_path: Path, answering: Any
) -> None:
    answering("[{say: A1}, {say: Never asked for.}]")
    policy = GatewayConfig(default_reset_policy=SessionResetPolicy("idle", idle_minutes=60))
    routes = SessionStore(tmp_path, policy)
    routes._db = db
    service = GatewayService(db, routes, policy, tmp_path)
    source = SessionSource(Platform.LOCAL, "c1", user_id="c1")
    await service.receiver.receive("local", MessageEvent("hi", source=source, message_id="m1"))
    row = db.inbox.claim()
    assert row is not None
    first = routes.get_or_create_session(source)
    prompt = TurnPrompt([row], [prompt_format.decode(row.payload)])
    service._turn_runner.run(prompt, first, is_shared=False)  # and then it is killed
    routes.update_session(first.session_key, updated_at=local_now() - timedelta(days=3))
    db.inbox.requeue(row, is_attempt=True)
    again = db.inbox.claim()
    assert again is not None
    service.message_handler.handle(again)
    assert routes.list_sessions()[0].session_id == first.session_id
    assert stored_texts(db) == ["hi", "A1"]
    service.inbox_workers.close()


async def test_an_album_is_one_message(db: SessionDB, tmp_path: Path, answering: Any) -> None:
    answering("[{say: Two pictures.}]")
    source = SessionSource(Platform.LOCAL, "c1", user_id="c1")
    async with running_gateway(db, tmp_path) as service:
        for number, text in enumerate(("look", "")):
            event = MessageEvent(text, source=source, message_id=f"m{number}", group_id="g1")
            await service.receiver.receive("local", event)
            await asyncio.sleep(0.2)  # as a platform delivers them
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not outbox_texts(db):  # noqa: ASYNC110 - a row on the disk
                await asyncio.sleep(0.02)
        assert await asyncio.to_thread(db.inbox.waiting_places) == 0
    assert outbox_texts(db) == ["Two pictures."]
    assert stored_texts(db) == ["look", "Two pictures."]
