"""Chat commands: parsing, commands that concern a turn, commands that run once."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

import pytest

from gateway.config import GatewayConfig
from gateway.inbound import prompt_format
from gateway.inbound.turn_runner import TurnPrompt, read_attachments
from gateway.platforms.base import MessageEvent
from gateway.process.service import GatewayService
from hermes_conversation.conversation import Conversation
from support.gateways import local_message, open_routes, outbox_texts, running_gateway
from support.waiting import PATIENCE_SECONDS, async_wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from gateway.inbound.turn_runner import ReadAttachments
    from hermes_state import SessionDB
    from hermes_state.delivery.rows import IncomingMessage


SLOW = "one two three four five six seven eight"


@pytest.mark.parametrize("text", ["/ ", "/", "/\n", "/ x"])
def test_a_slash_alone_is_not_a_command(text: str) -> None:
    assert MessageEvent(text).get_command() in {None, "x"}


def test_the_arguments_of_a_command_may_be_on_the_next_line() -> None:
    assert MessageEvent("/queue\nDo this").get_command_args() == "Do this"


async def test_a_new_conversation_does_not_wait_for_the_old_turn(
    db: SessionDB, tmp_path: Path, answering: Any
) -> None:
    answering(f"[{{say: {SLOW}, pause: 0.5}}]")
    async with running_gateway(db, tmp_path) as service:
        await service.receiver.receive("local", local_message("first", "m1"))
        await async_wait_until(service.conversations.all_running)
        await service.receiver.receive("local", local_message("/new", "m2"))
        await async_wait_until(lambda: len(outbox_texts(db)) == 2)
    assert "(Stopped.)" in outbox_texts(db)[0]
    assert outbox_texts(db)[1].startswith("New session started")


@pytest.mark.parametrize("command", ["/stop", "/new"])
async def test_a_turn_that_still_reads_its_attachments_is_stopped(
    db: SessionDB, tmp_path: Path, answering: Any, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    answering("[{say: Too late.}]")
    is_read = threading.Event()

    def wait(*arguments: Any) -> ReadAttachments:
        is_read.wait(PATIENCE_SECONDS)
        return read_attachments(*arguments)

    monkeypatch.setattr("gateway.inbound.turn_runner.read_attachments", wait)
    async with running_gateway(db, tmp_path) as service:
        await service.receiver.receive("local", local_message("first", "m1"))
        await async_wait_until(service.conversations.all_running)
        await service.receiver.receive("local", local_message(command, "m2"))
        is_read.set()
        await async_wait_until(lambda: outbox_texts(db))
    assert outbox_texts(db)[0] == "(Stopped.)"


async def test_a_turn_whose_conversation_is_being_opened_is_stopped(
    db: SessionDB, tmp_path: Path, answering: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    answering(f"[{{say: {SLOW * 9}, pause: 0.5}}]")
    is_opening, is_received = threading.Event(), threading.Event()

    def open_slowly(*arguments: Any) -> Conversation:
        is_opening.set()
        is_received.wait(PATIENCE_SECONDS)
        return Conversation(*arguments)

    monkeypatch.setattr("gateway.routing.conversation_cache.Conversation", open_slowly)
    async with running_gateway(db, tmp_path) as service:
        await service.receiver.receive("local", local_message("first", "m1"))
        await async_wait_until(is_opening.is_set)
        await service.receiver.receive("local", local_message("/stop", "m2"))
        is_received.set()
        await async_wait_until(lambda: outbox_texts(db))
    assert outbox_texts(db)[0].endswith("(Stopped.)")


async def test_a_stop_before_the_turn_starts_takes_effect(
    db: SessionDB, tmp_path: Path, answering: Any
) -> None:
    answering("[{say: Never.}]")
    async with running_gateway(db, tmp_path) as service:
        await service.receiver.receive("local", local_message("look", "m1", group_id="album"))
        await service.receiver.receive(
            "local", local_message("/stop", "m2")
        )  # more may be on its way
        await async_wait_until(lambda: outbox_texts(db) and db.inbox.waiting_places() == 0)
    assert outbox_texts(db) == ["(Stopped before the turn started.)"]


@pytest.mark.parametrize("line", ["/stop", "/approve", "/deny"])
async def test_a_command_for_a_turn_that_does_not_run_is_answered(
    db: SessionDB, tmp_path: Path, answering: Any, line: str
) -> None:
    answering("[]")
    async with running_gateway(db, tmp_path) as service:
        await service.receiver.receive("local", local_message(line, "m1"))
        await async_wait_until(lambda: outbox_texts(db))
    assert outbox_texts(db)[0].startswith("No ")


def send_command(db: SessionDB, service: Any, line: str, number: str) -> None:
    """Carry out a command as far as its answer, and be killed before that is noted."""
    asyncio.run(service.receiver.receive("local", local_message(line, number)))
    row = db.inbox.claim()
    assert row is not None
    service.message_handler._answer(_prompt(row))
    db.inbox.requeue(row, is_attempt=False)  # whatever counted it


def _prompt(row: IncomingMessage) -> Any:
    return TurnPrompt([row], [prompt_format.decode(row.payload)])


@pytest.mark.parametrize("line", ["/new", "/resume older", "/undo"])
def test_a_command_runs_once(db: SessionDB, tmp_path: Path, answering: Any, line: str) -> None:
    answering("[]")
    routes = open_routes(db, tmp_path)
    entry = routes.get_or_create_session(local_message("x", "0").source or pytest.fail("no source"))
    key = entry.session_key
    db.create_session("older", "local", is_owned=False, session_key=key)
    for number in range(3):
        db.append_message(entry.session_id, "user", f"q{number}")
        db.append_message(entry.session_id, "assistant", f"a{number}")
    service = GatewayService(db, routes, GatewayConfig(), tmp_path)
    send_command(db, service, line, "m1")
    after = routes.get(key)
    assert after is not None
    left = len(db.get_messages(entry.session_id))
    row = db.inbox.claim()
    assert row is not None
    service.message_handler.handle(row)
    assert routes.get(key) == after
    assert len(db.get_messages(entry.session_id)) == left
    finals = [boundary for boundary in db.boundaries.recent() if boundary.is_final]
    assert len(finals) <= 1
    service.inbox_workers.close()


async def test_after_a_branch_both_conversations_have_desks_of_their_own(
    db: SessionDB, tmp_path: Path, answering: Any
) -> None:
    answering("[{say: A1}, {say: A2}, {say: A3}]")
    async with running_gateway(db, tmp_path) as service:
        for number, line in enumerate(("one", "/branch", "two", "/resume", "three")):
            await service.receiver.receive("local", local_message(line, f"m{number}"))
            await async_wait_until(lambda number=number: len(outbox_texts(db)) == number + 1)
    conversations = {
        tuple(map(str, _said(db, row["id"]))) for row in db.list_sessions_rich(limit=-1)
    }
    assert conversations == {("one", "A1", "two", "A2"), ("one", "A1", "three", "A3")}


def _said(db: SessionDB, session_id: str) -> list[Any]:
    return [item["content"] for item in db.get_messages(session_id)]
