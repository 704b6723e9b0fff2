"""Messages that their sender deletes: one that waits is not answered, a stored one is marked."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from acceptance.campaign import wait_until
from gateway.config import GatewayConfig, Platform, PlatformConfig
from gateway.inbound import prompt_format
from gateway.platforms.local import socket_path
from gateway.platforms.matrix.adapter import make
from hermes_core.config.file import ConfigFile
from hermes_state import SessionDB
from support.adapters import DictMemory
from support.chat import LocalChatClient
from support.gateway_process import GatewayProcess
from support.gateways import conversation_texts, local_message, outbox_texts, running_gateway
from support.matrix_setup import MatrixSetup, context_of
from support.model_servers import HeldServer
from support.waiting import PATIENCE_SECONDS, async_wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from support.command_line import Hermes
    from support.synapse import Synapse

SECRET = "the code is 4711"


@pytest.fixture
def gateway(hermes_home: Path) -> Iterator[GatewayProcess]:
    process = GatewayProcess()
    yield process
    process.cleanup()


def unsettled() -> int:
    with SessionDB(is_recovering=False) as db:
        counts = db.chats.mail_counts()["inbox"]
    return sum(counts.values())


async def delete(chat: LocalChatClient, message_id: str) -> None:
    chat.received.pop(message_id, None)
    await chat.write({"chat": "c1", "id": message_id, "deleted": True})
    event = chat.received.setdefault(message_id, asyncio.Event())
    await asyncio.wait_for(event.wait(), PATIENCE_SECONDS)


@pytest.mark.parametrize("busy_mode", ["queue", "steer"])
async def test_a_message_that_is_deleted_while_it_waits_is_not_answered(
    gateway: GatewayProcess, answering: Callable[..., Any], busy_mode: str
) -> None:
    model = answering("[{say: Before.}, {say: After.}]", HeldServer)
    ConfigFile.of_home().set("agent.busy_input", busy_mode)
    gateway.start()
    wait_until(gateway.is_up, "the gateway")
    async with LocalChatClient(socket_path()) as chat:
        await chat.send("a long one", "m1")
        await asyncio.to_thread(wait_until, lambda: bool(model.requests), "the turn")
        await chat.send(SECRET, "m2")
        await delete(chat, "m2")
        model.release()
        assert await chat.wait_for(1) == ["Before."]
        await asyncio.to_thread(wait_until, lambda: unsettled() == 0, "the inbox")
        await chat.send("and now?", "m3")
        assert await chat.wait_for(2) == ["Before.", "After."]
    assert SECRET not in str(model.requests)
    with SessionDB(is_recovering=False) as db:
        assert conversation_texts(db) == ["a long one", "Before.", "and now?", "After."]
        (row,) = db.chats.find_incoming("m2")
    assert (row.state, row.error) == ("done", "deleted by its sender")


async def test_a_stored_message_is_marked_and_no_longer_sent_to_the_model(
    gateway: GatewayProcess, answering: Callable[..., Any], hermes: Hermes
) -> None:
    server = answering("[{say: One.}, {say: Two.}, {say: Three.}]")
    gateway.start()
    wait_until(gateway.is_up, "the gateway")
    async with LocalChatClient(socket_path()) as chat:
        await chat.send(SECRET, "m1")
        await chat.wait_for(1)
        await chat.send("next", "m2")
        await chat.wait_for(2)
        assert SECRET in str(server.requests[-1])
        await delete(chat, "m1")
        await delete(chat, "m1")  # reported twice
        await asyncio.to_thread(wait_until, lambda: unsettled() == 0, "the mark")
        await chat.send("and then?", "m3")
        await chat.wait_for(3)
    assert SECRET not in str(server.requests[-1])
    assert "(deleted by sender)" in str(server.requests[-1])
    shown = hermes("sessions", "show", "last").out
    assert (SECRET in shown, "deleted by sender" in shown) == (True, True)
    assert SECRET not in hermes("sessions", "list").out
    assert SECRET not in hermes("sessions", "search", "4711").out


async def test_the_edit_of_a_deleted_message_is_withdrawn_too(
    db: SessionDB, tmp_path: Path, answering: Callable[..., Any]
) -> None:
    model = answering("[{say: Before.}, {say: After.}]", HeldServer)
    async with running_gateway(db, tmp_path) as service:
        await service.receiver.receive("local", local_message("a long one", "m1"))
        await async_wait_until(service.conversations.all_running)
        await service.receiver.receive("local", local_message(SECRET, "m1", is_edit=True))
        await service.receiver.receive("local", local_message("", "m1", is_deletion=True))
        model.release()
        await async_wait_until(lambda: unsettled() == 0)
    assert outbox_texts(db) == ["Before."]
    uid = prompt_format.message_uid(1)
    session_id = db.routes.all()[0].session_id
    row_id = db.messages.message_of(session_id, uid)
    rows = {row.id: row for row in db.messages.rows(session_id)}
    assert rows[row_id or 0].is_deleted


def test_a_branch_and_a_compacted_conversation_are_marked_too(db: SessionDB) -> None:
    db.create_session("s1", "telegram")
    db.append_message("s1", "user", SECRET, uid="inbox:7")
    db.append_message("s1", "assistant", "Noted.")
    db.edits.branch("s1", "s2")
    assert db.edits.mark_deleted("inbox:7") == ["s1", "s2"]
    for session_id in ("s1", "s2"):
        contents = [item["content"] for item in db.get_messages_as_conversation(session_id)]
        assert contents == ["(deleted by sender)", "Noted."]
    assert db.edits.mark_deleted("inbox:8") == []


async def test_a_redacted_matrix_message_is_not_answered(
    db: SessionDB, synapse: Synapse, tmp_path: Path, answering: Callable[..., Any]
) -> None:
    model = answering("[{say: Before.}, {say: After.}]", HeldServer)
    bot, ann = (synapse.register_user(f"{name}deletions", name) for name in ("bot", "ann"))
    notes = DictMemory()
    setup = MatrixSetup(bot, ann, context_of(synapse.url, bot.token, tmp_path, notes), notes)
    room = setup.create_room()
    allowed = PlatformConfig(True, extra={"allowed_users": [ann.user_id]})
    config = GatewayConfig(platforms={Platform.MATRIX: allowed})
    async with running_gateway(db, tmp_path, config, {"matrix": make(setup.context)}) as service:
        first = await asyncio.to_thread(ann.send_text, room, "a long one")
        await async_wait_until(service.conversations.all_running)
        second = await asyncio.to_thread(ann.send_text, room, SECRET)
        await async_wait_until(lambda: unsettled() == 2)
        await asyncio.to_thread(ann.redact, room, second)
        await async_wait_until(lambda: db.chats.find_incoming(second)[0].error is not None)
        model.release()
        await async_wait_until(lambda: unsettled() == 0)
        await asyncio.to_thread(ann.redact, room, first)
        await async_wait_until(
            lambda: any(row.is_deleted for row in db.messages.rows(db.routes.all()[0].session_id))
        )
    assert outbox_texts(db) == ["Before."]
