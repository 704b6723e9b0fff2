"""Commands with `!` and plain answers to approvals, for apps that intercept the slash."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest

from gateway.config import Platform
from gateway.platforms.base import MessageEvent
from gateway.routing.sources import SessionSource
from support.gateways import outbox_texts, running_gateway
from support.hostile_people import ChatPeople, telegram_config
from support.waiting import async_wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from hermes_state import SessionDB

RISKY = "[{calls: [{name: terminal, arguments: {command: rm -rf build}}]}, {say: Finished.}]"
KEY = "agent:main:telegram:dm:ada"
OWNER = telegram_config(allowed_users=["ada", "bob"], allow_admin_from=["ada"])


async def test_a_command_can_start_with_an_exclamation_mark(
    db: SessionDB, tmp_path: Path, answering: Any
) -> None:
    answering("[{say: Hello.}]")
    async with running_gateway(db, tmp_path, OWNER) as service:
        people = ChatPeople(db, service)
        assert "Role: owner" in await people.ask("ada", "!whoami")
        assert "New session started" in await people.ask("ada", "!NEW")
        assert "only available to the owner" in await people.ask("bob", "!restart")


@pytest.mark.parametrize("text", ["!important: buy milk", "! new", "!", "!!new", "!newest idea"])
async def test_other_text_after_an_exclamation_mark_is_a_message(
    db: SessionDB, tmp_path: Path, answering: Any, text: str
) -> None:
    server = answering("[{say: Hello.}]")
    async with running_gateway(db, tmp_path, OWNER) as service:
        assert await ChatPeople(db, service).ask("ada", text) == "Hello."
    assert server.requests[0]["messages"][-1]["content"] == text


@pytest.mark.parametrize(
    ("text", "is_allowed"),
    [("yes", True), ("Yes!", True), (" ok. ", True), ("👍", True), ("no", False), ("Nope", False)],
)
async def test_a_plain_yes_or_no_answers_an_approval(
    db: SessionDB, tmp_path: Path, answering: Any, text: str, is_allowed: bool
) -> None:
    server = answering(RISKY)
    (tmp_path / "build").mkdir()
    async with running_gateway(db, tmp_path, OWNER) as service:
        people = ChatPeople(db, service)
        await people.send("ada", "clean up")
        await async_wait_until(lambda: service.questions.pending(KEY))
        await people.send("ada", text)
        await async_wait_until(lambda: "Finished." in outbox_texts(db))
    assert (tmp_path / "build").exists() is not is_allowed
    assert text not in [item["content"] for item in server.requests[-1]["messages"]]


@pytest.mark.parametrize("text", ["yes, and then push it", "maybe", "no idea", "/answer once"])
async def test_other_text_does_not_answer_an_approval(
    db: SessionDB, tmp_path: Path, answering: Any, text: str
) -> None:
    answering(RISKY)
    async with running_gateway(db, tmp_path, OWNER) as service:
        people = ChatPeople(db, service)
        await people.send("ada", "clean up")
        await async_wait_until(lambda: service.questions.pending(KEY))
        await people.send("ada", text)
        assert service.questions.pending(KEY) is not None
        await people.send("ada", "!deny")
        await async_wait_until(lambda: "Finished." in outbox_texts(db))


async def test_a_plain_yes_from_before_the_question_approves_nothing(
    db: SessionDB, tmp_path: Path, answering: Any
) -> None:
    """It was meant for an earlier question, or waited at the platform."""
    answering(RISKY)
    (tmp_path / "build").mkdir()
    async with running_gateway(db, tmp_path, OWNER) as service:
        people = ChatPeople(db, service)
        await people.send("ada", "clean up")
        await async_wait_until(lambda: service.questions.pending(KEY))
        source = SessionSource(Platform.TELEGRAM, "ada", user_id="ada")
        late = MessageEvent("yes", source=source, message_id="late", timestamp=time.time() - 30)
        await service.receiver.receive("bot", late)
        assert service.questions.pending(KEY) is not None
        await people.send("ada", "no")
        await async_wait_until(lambda: "Finished." in outbox_texts(db))
    assert (tmp_path / "build").exists()


async def test_a_plain_yes_of_another_person_approves_nothing(
    db: SessionDB, tmp_path: Path, answering: Any
) -> None:
    answering(RISKY)
    (tmp_path / "build").mkdir()
    async with running_gateway(db, tmp_path, OWNER) as service:
        people = ChatPeople(db, service)
        await people.send("ada", "clean up")
        await async_wait_until(lambda: service.questions.pending(KEY))
        await people.send("bob", "yes", chat="ada")
        assert service.questions.pending(KEY) is not None
        await people.send("ada", "no")
        await async_wait_until(lambda: "Finished." in outbox_texts(db))
    assert (tmp_path / "build").exists()
