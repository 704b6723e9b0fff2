"""Budgets per day: what exceeds them waits, and continues the next day or when they are raised."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import pytest

from gateway.inbound import budgets as budgets_module
from gateway.inbound.budgets import Budgets, DailyLimits, UserKey
from hermes_conversation.scheduled_jobs import (
    JobRequest,
    chat_requester,
    create_job,
    default_zone,
)
from hermes_core.clock import ManualClock
from hermes_core.config.file import ConfigFile
from hermes_core.roles import Role
from hermes_core.schedules.rules import local_time
from hermes_state import SessionDB
from hermes_state.schedules.rows import RunUsage
from support.chat import LocalChatClient
from support.gateways import running_gateway
from support.waiting import async_wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.clock

ADA, BOB = UserKey("telegram", "ada"), UserKey("telegram", "bob")
BERLIN = ZoneInfo("Europe/Berlin")
EVENING = 1_774_810_800.0  # 2026-03-29 21:00 in Berlin, a day of 23 hours
CHAT = {"platform": "local", "chat_id": "c1", "chat_type": "dm", "user_id": "c1"}


@pytest.fixture
def manual(hermes_home: Path) -> Iterator[tuple[SessionDB, ManualClock]]:
    clock = ManualClock(EVENING)
    with SessionDB(hermes_home / "other.db", clock=clock) as db:
        yield db, clock


def limited(db: SessionDB, **limits: Any) -> Budgets:
    return Budgets(db, lambda: DailyLimits(**limits), BERLIN)


def test_a_persons_budget_ends_with_the_day_in_the_configured_zone(
    manual: tuple[SessionDB, ManualClock],
) -> None:
    db, clock = manual
    budgets = limited(db, user_dollars=1.0)
    budgets.add(ADA, RunUsage(10, 0.6))
    assert budgets.exceeded(ADA) is None
    budgets.add(ADA, RunUsage(10, 0.6))
    exceeded = limited(db, user_dollars=1.0).exceeded(ADA)  # also after a restart
    assert exceeded == ("Your daily budget of $1 is used up.", EVENING + 3 * 3600)
    assert budgets.exceeded(BOB) is None
    clock.set(exceeded.until - 1)
    assert budgets.exceeded(ADA) is not None
    clock.set(exceeded.until)
    assert budgets.exceeded(ADA) is None


def test_tokens_of_all_people_count_together(manual: tuple[SessionDB, ManualClock]) -> None:
    budgets = limited(manual[0], all_tokens=1000)
    budgets.add(ADA, RunUsage(600))
    budgets.add(BOB, RunUsage(400))
    exceeded = budgets.exceeded(UserKey("matrix", "carl"))
    assert exceeded is not None
    assert exceeded.reason == "The daily budget of 1,000 tokens for all people is used up."


def test_without_a_limit_nothing_is_recorded(manual: tuple[SessionDB, ManualClock]) -> None:
    db, _ = manual
    limited(db).add(ADA, RunUsage(600, 5.0))
    assert limited(db, user_dollars=0.1, user_tokens=1).exceeded(ADA) is None


def test_a_person_is_notified_once_a_day(manual: tuple[SessionDB, ManualClock]) -> None:
    db, clock = manual
    budgets = limited(db, user_tokens=1)
    budgets.add(ADA, RunUsage(600))
    for _ in range(3):
        exceeded = budgets.exceeded(ADA)
        assert exceeded is not None
        budgets.notify(ADA, exceeded, "telegram", {"chat_id": "1"}, budgets_module.MESSAGES_WAIT)
    reply = db.outbox.claim()
    assert reply is not None
    assert reply.payload["text"] == (
        "Your daily budget of 1 tokens is used up. Your messages are on hold until "
        "2026-03-30 00:00 CEST, or until the budget is raised. Nothing is lost."
    )
    db.outbox.settle(reply.outbox_id)
    db.engine.flush()
    assert db.outbox.claim() is None
    clock.advance(86400)


def outbox_texts(db: SessionDB) -> list[str]:
    rows = db.engine.read(
        lambda reader: reader.rows("SELECT payload FROM hermes_outbox ORDER BY outbox_id")
    )
    return [json.loads(row[0])["text"] for row in rows]


async def test_messages_wait_for_a_budget_and_are_answered_when_it_is_raised(
    db: SessionDB, tmp_path: Path, answering: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(budgets_module, "REREAD_SECONDS", 0.0)
    server = answering("[{say: one, cost: 2}, {say: two}, {say: three}]")
    ConfigFile.of_home().set("gateway.user_dollars_per_day", "1.5")
    async with running_gateway(db, tmp_path), LocalChatClient(tmp_path / "s.sock") as chat:
        await chat.send("first", "m1")
        assert await chat.wait_for(1) == ["one"]
        await async_wait_until(lambda: db.chats.spending_of_all(today(db)) == 2.0)
        await chat.send("second", "m2")
        notice = (await chat.wait_for(2))[1]
        assert notice.startswith("Your daily budget of $1.5 is used up. Your messages are on hold")
        await chat.send("third", "m3")
        await chat.send("/whoami", "m4")
        assert "Role: owner" in (await chat.wait_for(3))[2]
        assert len(server.requests) == 1
        ConfigFile.of_home().set("gateway.user_dollars_per_day", "10")
        assert (await chat.wait_for(4))[3] == "two"
    assert "second" in json.dumps(server.requests[1])
    assert "third" in json.dumps(server.requests)
    assert db.paused_places.all() == []


async def test_a_budget_that_is_set_later_applies_without_a_restart(
    db: SessionDB, tmp_path: Path, answering: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(budgets_module, "REREAD_SECONDS", 0.0)
    server = answering("[{say: one, cost: 2}, {say: two, cost: 2}, {say: three}]")
    config = ConfigFile.of_home()
    async with running_gateway(db, tmp_path), LocalChatClient(tmp_path / "s.sock") as chat:
        await chat.send("first", "m1")
        await chat.wait_for(1)
        config.set("gateway.user_dollars_per_day", "1.5")
        await chat.send("second", "m2")
        assert (await chat.wait_for(2))[1] == "two"
        await async_wait_until(lambda: db.chats.spending_of_all(today(db)) == 2.0)
        config.path.write_text(config.path.read_text().replace("1.5", "much"))
        await chat.send("third", "m3")
        assert "daily budget of $1.5 is used up" in (await chat.wait_for(3))[2]
    assert len(server.requests) == 2


def today(db: SessionDB) -> str:
    return local_time(db.clock.now(), default_zone()).date().isoformat()


async def test_jobs_wait_for_a_budget_and_run_when_it_is_raised(
    db: SessionDB, tmp_path: Path, answering: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(budgets_module, "REREAD_SECONDS", 0.0)
    server = answering("[{say: done}]")
    ConfigFile.of_home().set("gateway.tokens_per_day", "10")
    db.chats.add_tokens("telegram", "x", today(db), 50)
    request = JobRequest("every 10 minutes", "report", catch_up="skip")
    job = create_job(db, chat_requester(CHAT, Role.OWNER), request)
    clock = ManualClock(float(job.next_at or 0) + 1)
    async with running_gateway(db, tmp_path, clock=clock) as service:
        for _ in range(3):
            assert service.scheduler.tick() == 0
            clock.advance(600)
        await async_wait_until(lambda: outbox_texts(db))
        [notice] = outbox_texts(db)
        assert "for all people is used up. Your scheduled jobs are on hold until" in notice
        assert db.schedules.get(job.job_id).is_held
        assert db.schedules.history() == []
        ConfigFile.of_home().set("gateway.tokens_per_day", "100000")
        await async_wait_until(lambda: [run.state for run in db.schedules.history()] == ["done"])
    assert len(server.requests) == 1
    assert outbox_texts(db)[1:] == ["done"]


async def test_a_run_that_is_handed_over_already_waits_too(
    db: SessionDB, tmp_path: Path, answering: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(budgets_module, "REREAD_SECONDS", 0.0)
    answering("[{say: one, cost: 5}, {say: two}]")
    ConfigFile.of_home().set("gateway.user_dollars_per_day", "1")
    request = JobRequest("every 10 minutes", "report", catch_up="all", runs_left=2)
    job = create_job(db, chat_requester(CHAT, Role.OWNER), request)
    clock = ManualClock(float(job.next_at or 0) + 700)
    async with running_gateway(db, tmp_path, clock=clock):
        await async_wait_until(lambda: len(db.paused_places.all()) == 1)
        assert [run.state for run in db.schedules.history()] == ["waiting", "done"]
        ConfigFile.of_home().set("gateway.user_dollars_per_day", "100")
        await async_wait_until(lambda: db.schedules.history()[0].state == "done")


async def test_commands_that_run_a_turn_are_refused_instead(
    db: SessionDB, tmp_path: Path, answering: Any
) -> None:
    server = answering("[{say: one, cost: 5}, {say: two}]")
    ConfigFile.of_home().set("gateway.user_dollars_per_day", "1")
    async with running_gateway(db, tmp_path), LocalChatClient(tmp_path / "s.sock") as chat:
        await chat.send("first", "m1")
        await chat.wait_for(1)
        await async_wait_until(lambda: db.chats.spending_of_all(today(db)) == 5.0)
        await chat.send("/retry", "m2")
        assert (await chat.wait_for(2))[1] == (
            "Your daily budget of $1 is used up. Try again tomorrow."
        )
    assert len(server.requests) == 1
