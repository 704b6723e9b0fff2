"""Several people: who may decide, who may answer, who sees what."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

from gateway.config import GatewayConfig, Platform, PlatformConfig
from gateway.platforms.base import MessageEvent
from gateway.routing.sources import SessionSource
from hermes_agent.memory.files import MemoryFiles
from hermes_core.config.file import ConfigFile
from support.gateways import answers, guest_config, message, said, started, until

if TYPE_CHECKING:
    from pathlib import Path

    from gateway.process.service import GatewayService
    from hermes_state import SessionDB


RISKY = "{name: terminal, arguments: {command: rm -rf build}}"


def config(**extra: Any) -> GatewayConfig:
    """A place where everybody may write and Ada decides."""
    facts = {"allowed_users": ["*"], "allow_admin_from": ["ada"], **extra}
    return GatewayConfig(platforms={Platform.TELEGRAM: PlatformConfig(True, extra=facts)})


class Talk:
    """Messages of people on a platform; numbered as they come."""

    def __init__(self, service: GatewayService) -> None:
        self._service = service
        self._number = 0

    async def say(self, user: str, text: str, chat: str = "", **facts: Any) -> None:
        self._number += 1
        source = SessionSource(
            Platform.TELEGRAM, chat or user, user_id=user, user_name=user, **facts
        )
        event = MessageEvent(text, source=source, message_id=f"m{self._number}")
        await self._service.receiver.receive("bot", event)


async def test_a_command_for_admins_is_for_admins(
    db: SessionDB, tmp_path: Path, answering: Any
) -> None:
    answering("[{say: A1}]")
    async with started(db, tmp_path, config()) as service:
        talk = Talk(service)
        for line in ("/restart", "/model other", "/memory", "/handoff matrix"):
            await talk.say("bob", line)
        await until(lambda: len(answers(db)) == 4)
    assert all("requires admin rights" in answer for answer in answers(db))


async def test_what_may_run_is_decided_by_an_admin_and_nobody_else(
    db: SessionDB, tmp_path: Path, answering: Any
) -> None:
    answering(f"[{{say: Sure., calls: [{RISKY}]}}, {{say: Done.}}]")
    group = {"chat": "g1", "chat_type": "group", "thread_id": "t1"}
    async with started(db, tmp_path, config()) as service:
        talk = Talk(service)
        await talk.say("bob", "clean up", **group)
        key = "agent:main:telegram:group:g1:t1"
        await until(lambda: service.questions.pending(key))
        for user in ("bob", "eve"):
            await talk.say(user, "/approve", **group)
        await until(lambda: len(answers(db)) == 2)
        assert all("requires admin rights" in answer for answer in answers(db))
        await talk.say("eve", "/deny", **group)
        await until(lambda: len(answers(db)) == 3)
        assert "Only the user who started this turn" in answers(db)[-1]
        assert service.questions.pending(key) is not None
        await talk.say("ada", "/approve", **group)
        await until(lambda: "Done." in answers(db))


async def test_nobody_sees_lists_or_resumes_what_others_said(
    db: SessionDB, tmp_path: Path, answering: Any
) -> None:
    answering("[{say: The code is kumquat.}, {say: Hello Eve.}]")
    async with started(db, tmp_path, config()) as service:
        talk = Talk(service)
        await talk.say("bob", "what is the code?")
        await until(lambda: len(answers(db)) == 1)
        (row,) = db.list_sessions_rich(source="telegram")
        await talk.say("eve", "hi")
        await until(lambda: len(answers(db)) == 2)
        for line in ("/sessions", "/search kumquat", f"/resume {row['id']}"):
            await talk.say("eve", line)
        await until(lambda: len(answers(db)) == 5)
    listed, result, resumed = answers(db)[2:]
    assert row["id"] not in listed
    assert "kumquat" not in result
    assert "No conversation matches" in resumed


async def test_the_agent_finds_for_somebody_only_what_was_said_in_their_chat(
    db: SessionDB, tmp_path: Path, answering: Any
) -> None:
    search = "{name: session_search, arguments: {query: kumquat}}"
    answering(
        f"[{{say: The code is kumquat.}}, {{calls: [{search}]}}, {{say: Nothing.}},"
        f" {{calls: [{search}]}}, {{say: There it is.}}]"
    )
    async with started(db, tmp_path, config()) as service:
        talk = Talk(service)
        for number, (user, text) in enumerate(
            [("bob", "the code?"), ("eve", "bob's code?"), ("ada", "bob's code?")], 1
        ):
            await talk.say(user, text)
            await until(lambda number=number: len(answers(db)) == number)
    assert not any("The code is" in item for item in said(db, "eve", "telegram"))
    assert any("The code is" in item for item in said(db, "ada", "telegram"))  # an admin, directly


async def test_people_are_let_wait_who_ask_for_too_much(
    db: SessionDB, tmp_path: Path, answering: Any
) -> None:
    ConfigFile.of_home().set("gateway.user_turns_per_minute", "1")
    answering("[{say: A1}, {say: A2}]")
    async with started(db, tmp_path, config()) as service:
        talk = Talk(service)
        await talk.say("bob", "one")
        await until(lambda: len(answers(db)) == 1)
        await talk.say("bob", "two")
        await until(lambda: len(answers(db)) == 2)
        await talk.say("ada", "three")
        await until(lambda: len(answers(db)) == 3)
    assert answers(db)[0] == "A1"
    assert "Rate limit reached" in answers(db)[1]
    assert answers(db)[2] == "A2"


async def test_a_model_that_was_chosen_stays_chosen_for_the_conversation_alone(
    db: SessionDB, tmp_path: Path, answering: Any
) -> None:
    server = answering("[{say: A1}, {say: A2}]")
    other = f"{server.base_url}#another"
    async with started(db, tmp_path, config()) as service:
        talk = Talk(service)
        await talk.say("ada", "hi")
        await until(lambda: len(answers(db)) == 1)
        await talk.say("ada", f"/model {other}")
        await until(lambda: len(answers(db)) == 2)
    async with started(db, tmp_path, config()) as service:  # after a restart
        talk = Talk(service)
        talk._number = 10
        await talk.say("ada", "/model")
        await until(lambda: "another" in answers(db)[-1])
        await talk.say("ada", "/new")
        await talk.say("ada", "/model")
        await until(lambda: len(answers(db)) == 5)
        assert answers(db)[-1] == "scripted"


async def asked(db: SessionDB, folder: Path, config: GatewayConfig, *lines: str) -> None:
    async with started(db, folder, config) as service:
        for number, line in enumerate(lines):
            received = message(line, f"g{number}", "guest", platform=Platform.TELEGRAM)
            await service.receiver.receive("bot", received)
            await until(lambda number=number: len(answers(db)) == number + 1)


async def test_a_guest_is_told_of_no_other_conversation(
    db: SessionDB, tmp_path: Path, answering: Any
) -> None:
    answering("[{say: Hello.}]")
    for number in range(3):
        db.create_session(f"secret{number}", "telegram", is_owned=False)
        db.set_session_title(f"secret{number}", f"Divorce lawyer {number}")
        db.append_message(f"secret{number}", "user", "kumquat")
    await asked(
        db, tmp_path, guest_config(), "hi", "/resume Divorce", "/resume secret", "/search kumquat"
    )
    assert not any(
        "lawyer" in answer or "secret0" in answer or "kumquat" in answer for answer in answers(db)
    )


async def test_what_is_remembered_of_the_owner_is_not_in_the_prompt_of_a_guest(
    db: SessionDB, tmp_path: Path, answering: Any
) -> None:
    server = answering("[{say: Hello.}]")
    path = MemoryFiles().path("user")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("- The owner's PIN is 4711\n")
    await asked(db, tmp_path, guest_config(allow_admin_from=["owner"]), "hi")
    assert "4711" not in json.dumps(server.requests)
    names = [tool["function"]["name"] for tool in server.requests[0]["tools"]]
    assert "memory" not in names


async def test_a_chat_that_takes_a_conversation_over_gets_a_desk_of_its_own(
    db: SessionDB, tmp_path: Path, answering: Any
) -> None:
    answering("[{say: A1}, {say: A2}]")
    config = guest_config(allow_admin_from=["owner"])
    async with started(db, tmp_path, config) as service:
        await service.receiver.receive("local", message("mine", "m1"))
        await until(lambda: len(answers(db)) == 1)
        (owners,) = service._routes.list_sessions()
        received = message(
            f"/resume {owners.session_id}", "h1", "guest", platform=Platform.TELEGRAM
        )
        received.internal = True
        await service.receiver.receive("bot", received)
        await until(lambda: len(answers(db)) == 2)
        entry = service._routes.get("agent:main:telegram:dm:c1")
        assert entry is not None
        conversation = await asyncio.to_thread(service.conversations.acquire, entry)
        assert conversation.options.scope_key == entry.session_key
