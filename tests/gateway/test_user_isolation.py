"""Several users: roles, approvals and isolation of conversations."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

from gateway.config import GatewayConfig, Platform, PlatformConfig
from gateway.platforms.base import MessageEvent
from gateway.routing.sources import SessionSource
from hermes_agent.memory.facts import AgentMemory
from hermes_core.config.file import ConfigFile
from support.gateways import (
    conversation_texts,
    guest_config,
    local_message,
    outbox_texts,
    running_gateway,
)
from support.waiting import async_wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from gateway.process.service import GatewayService
    from hermes_state import SessionDB


RISKY = "{name: terminal, arguments: {command: rm -rf build}}"


def config(**extra: Any) -> GatewayConfig:
    """A platform where Ada is the owner, and Bob and Eve are members."""
    fields = {"allowed_users": ["ada", "bob", "eve"], "allow_admin_from": ["ada"], **extra}
    return GatewayConfig(platforms={Platform.TELEGRAM: PlatformConfig(True, extra=fields)})


class PlatformUsers:
    """Sends messages as users of a platform, numbered in order."""

    def __init__(self, service: GatewayService, first: int = 0) -> None:
        self._service = service
        self._number = first

    async def send(self, user: str, text: str, chat: str = "", **fields: Any) -> None:
        self._number += 1
        source = SessionSource(
            Platform.TELEGRAM, chat or user, user_id=user, user_name=user, **fields
        )
        event = MessageEvent(text, source=source, message_id=f"m{self._number}")
        await self._service.receiver.receive("bot", event)


async def test_some_commands_are_only_for_the_owner(
    db: SessionDB, tmp_path: Path, answering: Any
) -> None:
    answering("[{say: A1}]")
    async with running_gateway(db, tmp_path, config()) as service:
        users = PlatformUsers(service)
        for line in ("/restart", "/model other", "/handoff matrix"):
            await users.send("bob", line)
        await async_wait_until(lambda: len(outbox_texts(db)) == 3)
    assert all("only available to the owner" in answer for answer in outbox_texts(db))


async def test_only_the_owner_can_answer_approvals(
    db: SessionDB, tmp_path: Path, answering: Any
) -> None:
    answering(f"[{{say: Sure., calls: [{RISKY}]}}, {{say: Done.}}]")
    async with running_gateway(db, tmp_path, config()) as service:
        users = PlatformUsers(service)
        await users.send("ada", "clean up")
        key = "agent:main:telegram:dm:ada"
        await async_wait_until(lambda: service.questions.pending(key))
        for line in ("/approve", "/deny"):
            await users.send("bob", line, chat="ada")
        await async_wait_until(lambda: len(outbox_texts(db)) == 2)
        assert "only available to the owner" in outbox_texts(db)[0]
        assert "Only the user who started this turn" in outbox_texts(db)[1]
        assert service.questions.pending(key) is not None
        await users.send("ada", "/approve")
        await async_wait_until(lambda: "Done." in outbox_texts(db))


async def test_users_cannot_list_or_resume_conversations_of_others(
    db: SessionDB, tmp_path: Path, answering: Any
) -> None:
    answering("[{say: The code is kumquat.}, {say: Hello Eve.}]")
    async with running_gateway(db, tmp_path, config()) as service:
        users = PlatformUsers(service)
        await users.send("bob", "what is the code?")
        await async_wait_until(lambda: len(outbox_texts(db)) == 1)
        (row,) = db.list_sessions_rich(source="telegram")
        await users.send("eve", "hi")
        await async_wait_until(lambda: len(outbox_texts(db)) == 2)
        for line in ("/sessions", "/search kumquat", f"/resume {row['id']}"):
            await users.send("eve", line)
        await async_wait_until(lambda: len(outbox_texts(db)) == 5)
    listed, result, resumed = outbox_texts(db)[2:]
    assert row["id"] not in listed
    assert "kumquat" not in result
    assert "No conversation matches" in resumed


async def test_the_agent_searches_only_the_users_own_chats(
    db: SessionDB, tmp_path: Path, answering: Any
) -> None:
    search = "{name: session_search, arguments: {query: kumquat}}"
    answering(
        f"[{{say: The code is kumquat.}}, {{calls: [{search}]}}, {{say: Nothing.}},"
        f" {{calls: [{search}]}}, {{say: There it is.}}]"
    )
    async with running_gateway(db, tmp_path, config()) as service:
        users = PlatformUsers(service)
        for number, (user, text) in enumerate(
            [("bob", "the code?"), ("eve", "bob's code?"), ("ada", "bob's code?")], 1
        ):
            await users.send(user, text)
            await async_wait_until(lambda number=number: len(outbox_texts(db)) == number)
    assert not any("The code is" in item for item in conversation_texts(db, "eve", "telegram"))
    assert any(
        "The code is" in item for item in conversation_texts(db, "ada", "telegram")
    )  # an admin, directly


async def test_users_over_the_limit_have_to_wait(
    db: SessionDB, tmp_path: Path, answering: Any
) -> None:
    ConfigFile.of_home().set("gateway.user_turns_per_minute", "1")
    answering("[{say: A1}, {say: A2}]")
    async with running_gateway(db, tmp_path, config()) as service:
        users = PlatformUsers(service)
        await users.send("bob", "one")
        await async_wait_until(lambda: len(outbox_texts(db)) == 1)
        await users.send("bob", "two")
        await async_wait_until(lambda: len(outbox_texts(db)) == 2)
        await users.send("ada", "three")
        await async_wait_until(lambda: len(outbox_texts(db)) == 3)
    assert outbox_texts(db)[0] == "A1"
    assert "Rate limit reached" in outbox_texts(db)[1]
    assert outbox_texts(db)[2] == "A2"


async def test_a_selected_model_applies_only_to_its_conversation(
    db: SessionDB, tmp_path: Path, answering: Any
) -> None:
    server = answering("[{say: A1}]")
    server.models.append({"id": "another", "object": "model"})
    async with running_gateway(db, tmp_path, config()) as service:
        replies = await replies_to_ada(db, service, "hi", f"/model {server.base_url}#another")
        assert replies[1] == "Model set to another."
    async with running_gateway(db, tmp_path, config()) as service:  # after a restart
        chosen, _, default = await replies_to_ada(db, service, "/model", "/new", "/model")
        assert chosen.startswith("another\n")
        assert default.startswith("scripted\n")


async def replies_to_ada(db: SessionDB, service: GatewayService, *lines: str) -> list[str]:
    """Send messages one after the other; the reply to each."""
    first = len(outbox_texts(db))
    users = PlatformUsers(service, first)
    for number, line in enumerate(lines, first + 1):
        await users.send("ada", line)
        await async_wait_until(lambda number=number: len(outbox_texts(db)) == number)
    return outbox_texts(db)[first:]


async def test_the_help_lists_what_its_reader_may_use(
    db: SessionDB, tmp_path: Path, answering: Any
) -> None:
    answering("[]")
    async with running_gateway(db, tmp_path, config()) as service:
        users = PlatformUsers(service)
        for number, user in enumerate(("ada", "bob"), 1):
            await users.send(user, "/help")
            await async_wait_until(lambda number=number: len(outbox_texts(db)) == number)
    owner, member = outbox_texts(db)
    assert "/restart - " in owner
    assert "/restart - " not in member
    assert "/new - " in member


async def send_as_member(db: SessionDB, folder: Path, config: GatewayConfig, *lines: str) -> None:
    async with running_gateway(db, folder, config) as service:
        for number, line in enumerate(lines):
            received = local_message(line, f"g{number}", "guest", platform=Platform.TELEGRAM)
            await service.receiver.receive("bot", received)
            await async_wait_until(lambda number=number: len(outbox_texts(db)) == number + 1)


async def test_a_member_sees_no_other_conversation(
    db: SessionDB, tmp_path: Path, answering: Any
) -> None:
    answering("[{say: Hello.}]")
    for number in range(3):
        db.create_session(f"secret{number}", "telegram", is_owned=False)
        db.set_session_title(f"secret{number}", f"Divorce lawyer {number}")
        db.append_message(f"secret{number}", "user", "kumquat")
    await send_as_member(
        db, tmp_path, guest_config(), "hi", "/resume Divorce", "/resume secret", "/search kumquat"
    )
    assert not any(
        "lawyer" in answer or "secret0" in answer or "kumquat" in answer
        for answer in outbox_texts(db)
    )


async def test_the_owners_memory_is_not_in_the_prompt_of_a_member(
    db: SessionDB, tmp_path: Path, answering: Any
) -> None:
    server = answering("[{say: Hello.}]")
    path = AgentMemory(db).path("user")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("- The owner's PIN is 4711\n")
    await send_as_member(db, tmp_path, guest_config(allow_admin_from=["owner"]), "hi")
    assert "4711" not in json.dumps(server.requests)


async def test_a_chat_that_takes_over_a_conversation_gets_its_own_instance(
    db: SessionDB, tmp_path: Path, answering: Any
) -> None:
    answering("[{say: A1}, {say: A2}]")
    config = guest_config(allow_admin_from=["owner"])
    async with running_gateway(db, tmp_path, config) as service:
        await service.receiver.receive("local", local_message("mine", "m1"))
        await async_wait_until(lambda: len(outbox_texts(db)) == 1)
        (owners,) = service._routes.list_sessions()
        received = local_message(
            f"/resume {owners.session_id}", "h1", "guest", platform=Platform.TELEGRAM
        )
        received.internal = True
        await service.receiver.receive("bot", received)
        await async_wait_until(lambda: len(outbox_texts(db)) == 2)
        entry = service._routes.get("agent:main:telegram:dm:c1")
        assert entry is not None
        conversation = await asyncio.to_thread(service.conversations.acquire, entry)
        assert conversation.options.scope_key == entry.session_key
