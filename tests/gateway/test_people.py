"""Several people: who may decide, who may answer, who sees what."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from gateway.config import GatewayConfig, HomeChannel, Platform, PlatformConfig
from gateway.platforms.base import MessageEvent
from gateway.routing.sources import SessionSource
from hermes_core.config.file import ConfigFile
from support.gateways import answers, said, started
from support.waiting import PATIENCE_SECONDS

if TYPE_CHECKING:
    from pathlib import Path

    from gateway.process.service import GatewayService
    from hermes_state import SessionDB

RISKY = "{name: terminal, arguments: {command: rm -rf build}}"


async def until(condition: Any) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not condition():  # noqa: ASYNC110 - a condition on the disk
            await asyncio.sleep(0.01)


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
    assert all("requires admin rights" in one for one in answers(db))


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
        assert all("requires admin rights" in one for one in answers(db))
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
    listed, found, resumed = answers(db)[2:]
    assert row["id"] not in listed
    assert "kumquat" not in found
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
    assert not any("The code is" in one for one in said(db, "eve", "telegram"))
    assert any("The code is" in one for one in said(db, "ada", "telegram"))  # an admin, directly


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


# Hand-off


async def test_a_conversation_of_the_terminal_goes_on_in_a_chat(
    db: SessionDB, tmp_path: Path, answering: Any
) -> None:
    answering("[{say: Going on.}]")
    db.create_session("cli1", "cli", is_owned=False)
    db.append_message("cli1", "user", "from the terminal")
    db.end_session("cli1", "cli_close")
    db.request_handoff("cli1", "local")
    async with started(db, tmp_path, at_home()) as service:
        await until(lambda: db.get_handoff_state("cli1") == _completed())
        await until(lambda: answers(db) == ["Continuing cli1."])
        source = SessionSource(Platform.LOCAL, "home", user_id="ada")
        event = MessageEvent("and now?", source=source, message_id="m1")
        await service.receiver.receive("local", event)
        await until(lambda: answers(db)[-1] == "Going on.")
    assert [str(one["content"]) for one in db.get_messages("cli1")] == [
        "from the terminal",
        "and now?",
        "Going on.",
    ]
    kinds = {one["kind"] for one in db.list_boundaries()}
    assert "handoff" in kinds


def at_home() -> GatewayConfig:
    home = HomeChannel(Platform.LOCAL, "home", "Home")
    return GatewayConfig(platforms={Platform.LOCAL: PlatformConfig(True, home_channel=home)})


def _completed() -> dict[str, Any]:
    return {"state": "completed", "platform": "local", "error": None}


async def test_a_hand_off_to_nowhere_says_so(db: SessionDB, tmp_path: Path, answering: Any) -> None:
    answering("[]")
    db.create_session("cli1", "cli", is_owned=False)
    db.request_handoff("cli1", "telegram")
    async with started(db, tmp_path):
        await until(lambda: (db.get_handoff_state("cli1") or {})["state"] == "failed")
    assert "Send the agent a message there first" in (db.get_handoff_state("cli1") or {})["error"]
