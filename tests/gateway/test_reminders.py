"""`/remind` in chats, and the tool with which the agent schedules jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from gateway.config import GatewayConfig, Platform, PlatformConfig
from gateway.platforms.base import MessageEvent
from gateway.routing.sources import SessionSource
from hermes_core.config.file import ConfigFile
from support.gateways import outbox_texts, running_gateway
from support.waiting import async_wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from gateway.process.service import GatewayService
    from hermes_state import SessionDB

pytestmark = pytest.mark.clock

ADD_CALL = "{name: schedule, arguments: {action: add, schedule: daily 7:30, text: Read the news}}"
REMIND_CALL = "{name: schedule, arguments: {action: remind, schedule: in 20 minutes, text: tea}}"
REMOVE_CALL = "{name: schedule, arguments: {action: remove, number: 1}}"
LIST_CALL = "{name: schedule, arguments: {action: list}}"


def config() -> GatewayConfig:
    """Ada is the owner, Bob a member, everyone else a guest."""
    fields = {"allowed_users": ["ada", "bob", "*"], "allow_admin_from": ["ada"]}
    return GatewayConfig(platforms={Platform.TELEGRAM: PlatformConfig(True, extra=fields)})


class Users:
    """Sends messages of people, and waits for the reply to each."""

    def __init__(self, service: GatewayService, db: SessionDB) -> None:
        self._service = service
        self._db = db
        self._count = 0

    async def send(self, user: str, text: str) -> None:
        self._count += 1
        source = SessionSource(Platform.TELEGRAM, user, user_id=user, user_name=user)
        event = MessageEvent(text, source=source, message_id=f"m{self._count}")
        await self._service.receiver.receive("bot", event)

    async def ask(self, user: str, text: str) -> str:
        before = len(outbox_texts(self._db))
        await self.send(user, text)
        await async_wait_until(lambda: len(outbox_texts(self._db)) > before)
        return outbox_texts(self._db)[-1]


async def test_reminders_are_set_listed_and_removed_by_their_person(
    db: SessionDB, tmp_path: Path
) -> None:
    async with running_gateway(db, tmp_path, config()) as service:
        users = Users(service, db)
        reply = await users.ask("bob", "/remind 20m take out the bread")
        assert reply.startswith("Reminder 1 set for ")
        assert "take out the bread" in reply
        assert "then every monday 9:00" in await users.ask("ada", "/remind every monday 9:00 plan")
        assert "take out the bread" in await users.ask("bob", "/remind list")
        assert "plan" not in await users.ask("bob", "/remind list")
        assert "No reminder '2'" in await users.ask("bob", "/remind remove 2")
        assert await users.ask("bob", "/remind remove 1") == "Removed 1: take out the bread"
        assert await users.ask("bob", "/remind list") == (
            "No reminders. Set one with /remind 20m TEXT."
        )
        assert "Usage: /remind" in await users.ask("bob", "/remind")
        assert "Start with the time" in await users.ask("bob", "/remind me of tea")
        assert "100 years away" in await users.ask("bob", "/remind 9999-12-31T23:59:59+00:00 x")
        assert "Start with the time" in await users.ask("bob", f"/remind {'9' * 5000}m tea")
        assert "not available to guests" in await users.ask("eve", "/remind 20m tea")
    [job] = db.schedules.all()
    assert (job.kind, job.platform, job.user_id) == ("reminder", "telegram", "ada")
    assert job.target == {"platform": "telegram", "chat_id": "ada", "thread_id": None}


async def test_a_message_that_is_handled_again_sets_one_reminder(
    db: SessionDB, tmp_path: Path
) -> None:
    async with running_gateway(db, tmp_path, config()) as service:
        users = Users(service, db)
        await users.ask("ada", "/remind 20m tea")
        row = db.inbox.get(1)
        entry = service._routes.list_sessions()[0]
        event = MessageEvent("/remind 20m tea", source=entry.origin, message_id="m1")
        uid = f"inbox:{row.inbox_id}"
        assert "Reminder 1" in service.message_handler._commands.run(entry, event, uid).text
    assert len(db.schedules.all()) == 1


@pytest.mark.parametrize("mode", ["workspace", "full"])
async def test_the_agent_schedules_a_job_after_an_approval(
    mode: str, db: SessionDB, tmp_path: Path, answering: Any
) -> None:
    ConfigFile.of_home().set("agent.approvals", mode)
    server = answering(f"[{{calls: [{LIST_CALL}]}}, {{calls: [{ADD_CALL}]}}, {{say: Scheduled.}}]")
    key = "agent:main:telegram:dm:ada"
    async with running_gateway(db, tmp_path, config()) as service:
        users = Users(service, db)
        await users.send("ada", "read me the news every morning")
        await async_wait_until(lambda: service.questions.pending(key))
        assert db.schedules.all() == []
        await users.send("ada", "/approve")
        await async_wait_until(lambda: "Scheduled." in outbox_texts(db))
    assert server.requests[1]["messages"][-1]["content"] == "jobs: []"  # without a question
    [job] = db.schedules.all()
    assert (job.kind, job.schedule, job.prompt) == ("job", "daily 7:30", "Read the news")
    assert (job.user_id, job.role) == ("ada", "owner")


async def test_a_denied_job_is_not_scheduled(db: SessionDB, tmp_path: Path, answering: Any) -> None:
    server = answering(f"[{{calls: [{ADD_CALL}]}}, {{say: All right.}}]")
    key = "agent:main:telegram:dm:ada"
    async with running_gateway(db, tmp_path, config()) as service:
        users = Users(service, db)
        await users.send("ada", "read me the news")
        await async_wait_until(lambda: service.questions.pending(key))
        await users.send("ada", "/deny not now")
        await async_wait_until(lambda: "All right." in outbox_texts(db))
    assert "not now" in server.requests[1]["messages"][-1]["content"]
    assert db.schedules.all() == []


async def test_nothing_is_scheduled_in_plan_mode(
    db: SessionDB, tmp_path: Path, answering: Any
) -> None:
    server = answering(f"[{{calls: [{ADD_CALL}]}}, {{say: All right.}}]")
    ConfigFile.of_home().set("agent.approvals", "plan")
    async with running_gateway(db, tmp_path, config()) as service:
        await Users(service, db).ask("ada", "read me the news")
    assert "Plan mode" in server.requests[1]["messages"][-1]["content"]
    assert db.schedules.all() == []


@pytest.mark.parametrize("answer", ["yes", "Ok.", "/answer 1"])
async def test_a_member_approves_an_own_reminder_of_the_agent(
    answer: str, db: SessionDB, tmp_path: Path, answering: Any
) -> None:
    answering(
        f"[{{calls: [{REMIND_CALL}]}}, {{say: Done.}}, {{calls: [{REMOVE_CALL}]}}, {{say: Gone.}}]"
    )
    key = "agent:main:telegram:dm:bob"
    async with running_gateway(db, tmp_path, config()) as service:
        users = Users(service, db)
        await users.send("bob", "remind me of tea")
        await async_wait_until(lambda: service.questions.pending(key))
        assert db.schedules.all() == []
        await users.send("bob", answer)
        await async_wait_until(lambda: "Done." in outbox_texts(db))
        [job] = db.schedules.all()
        await users.send("bob", "remove it")
        await async_wait_until(lambda: service.questions.pending(key))
        await users.send("bob", answer)
        await async_wait_until(lambda: "Gone." in outbox_texts(db))
    assert (job.kind, job.prompt, job.user_id, job.role) == ("reminder", "tea", "bob", "member")
    assert job.target == {"platform": "telegram", "chat_id": "bob", "thread_id": None}
    assert db.schedules.all() == []


@pytest.mark.parametrize("answer", ["no", "yes, but at six", "/answer 2"])
async def test_a_member_can_decline_an_own_reminder(
    answer: str, db: SessionDB, tmp_path: Path, answering: Any
) -> None:
    server = answering(f"[{{calls: [{REMIND_CALL}]}}, {{say: All right.}}]")
    async with running_gateway(db, tmp_path, config()) as service:
        users = Users(service, db)
        await users.send("bob", "remind me of tea")
        await async_wait_until(lambda: service.questions.pending("agent:main:telegram:dm:bob"))
        await users.send("bob", answer)
        await async_wait_until(lambda: "All right." in outbox_texts(db))
    assert db.schedules.all() == []
    assert "denied" in server.requests[1]["messages"][-1]["content"]


async def test_a_member_sets_no_reminder_in_plan_mode(
    db: SessionDB, tmp_path: Path, answering: Any
) -> None:
    server = answering(f"[{{calls: [{REMIND_CALL}]}}, {{say: All right.}}]")
    ConfigFile.of_home().set("agent.approvals", "plan")
    async with running_gateway(db, tmp_path, config()) as service:
        await Users(service, db).ask("bob", "remind me of tea")
    assert "Plan mode" in server.requests[1]["messages"][-1]["content"]


async def test_a_member_cannot_schedule_a_job_through_the_agent_without_the_owner(
    db: SessionDB, tmp_path: Path, answering: Any
) -> None:
    server = answering(f"[{{calls: [{ADD_CALL}]}}, {{say: Use /remind.}}]")
    async with running_gateway(db, tmp_path, config()) as service:
        await Users(service, db).ask("bob", "read me the news")
    assert "needs approval" in server.requests[1]["messages"][-1]["content"]
    assert db.schedules.all() == []
