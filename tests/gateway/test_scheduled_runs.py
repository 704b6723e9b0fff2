"""Scheduled runs: from a job that is due to its result in a chat."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from gateway.config import GatewayConfig, Platform, PlatformConfig
from gateway.schedules.run_handler import NO_ACCESS
from hermes_conversation.scheduled_jobs import (
    JobRequest,
    chat_requester,
    create_job,
    local_requester,
)
from hermes_core.clock import ManualClock
from hermes_core.config.file import ConfigFile
from hermes_core.roles import Role
from hermes_state import SessionDB
from hermes_state.schedules.repository import DueRuns
from support.gateways import conversation_texts, local_message, running_gateway
from support.identities import act_as_dead_process
from support.waiting import async_wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from gateway.process.service import GatewayService
    from hermes_state.schedules.rows import Occurrence, ScheduledJob

pytestmark = pytest.mark.clock

CHAT = {"platform": "local", "chat_id": "c1", "chat_type": "dm", "user_id": "u1"}
RISKY = "{name: terminal, arguments: {command: rm -rf build}}"
MINUTE = 60.0


@pytest.fixture
def clock(db: SessionDB) -> ManualClock:
    """The clock of the scheduler; each job is made at its first moment."""
    return ManualClock(db.clock.now())


def add(
    db: SessionDB,
    schedule: str = "every 1 minute",
    prompt: str = "report",
    chat: dict[str, Any] | None = None,
    role: Role = Role.OWNER,
    **more: Any,
) -> ScheduledJob:
    return create_job(db, chat_requester(chat or CHAT, role), JobRequest(schedule, prompt, **more))


def make_due(db: SessionDB, clock: ManualClock) -> None:
    """Set the clock to the next occurrence of the job that was made last."""
    clock.set(max(job.next_at or 0.0 for job in db.schedules.all()))


def sent_texts(db: SessionDB) -> list[str]:
    rows = db.engine.read(
        lambda reader: reader.rows("SELECT payload FROM hermes_outbox ORDER BY outbox_id")
    )
    return [json.loads(row[0])["text"] for row in rows]


async def ended(db: SessionDB, count: int = 1) -> list[Occurrence]:
    """The first runs, when that many have ended."""

    def runs() -> list[Occurrence]:
        return [each for each in db.schedules.history() if each.ended_at is not None]

    await async_wait_until(lambda: len(runs()) >= count)
    return runs()


async def run_due(service: GatewayService, db: SessionDB, count: int = 1) -> list[Occurrence]:
    """Hand over what is due and wait until that many runs have ended."""
    service.scheduler.tick()
    service.inbox_workers.wake()
    return await ended(db, count)


async def test_a_job_runs_in_a_conversation_of_its_own_and_its_answer_is_sent(
    db: SessionDB, tmp_path: Path, answering: Any, clock: ManualClock
) -> None:
    answering("[{say: Hello.}, {say: All is well., cost: 0.25}]")
    async with running_gateway(db, tmp_path, clock=clock) as service:
        await service.receiver.receive("a", local_message("hi", "m1"))
        await async_wait_until(lambda: sent_texts(db) == ["Hello."])
        job = add(db)
        make_due(db, clock)
        [run] = await run_due(service, db)
        await async_wait_until(lambda: db.schedules.totals()[job.job_id].dollars > 0)
        await async_wait_until(lambda: len(conversation_texts(db)) == 3)
        await async_wait_until(lambda: db.get_session(run.session_id)["ended_at"])
    assert sent_texts(db) == ["Hello.", "All is well."]
    assert conversation_texts(db) == ["hi", "Hello.", "All is well."]  # so that it can be answered
    row = db.get_session(run.session_id)
    assert (row["source"], row["end_reason"]) == ("cron", "cron_complete")
    assert [message["content"] for message in db.get_messages(run.session_id)] == [
        "report",
        "All is well.",
    ]
    totals = db.schedules.totals()[job.job_id]
    assert (totals.runs, totals.dollars, totals.last_state) == (1, 0.25, "done")
    assert totals.tokens > 0


async def test_a_reminder_is_sent_without_a_model(
    db: SessionDB, tmp_path: Path, clock: ManualClock
) -> None:
    add(db, "in 1 minute", "tea is ready", kind="reminder")
    async with running_gateway(db, tmp_path, clock=clock) as service:
        make_due(db, clock)
        [run] = await run_due(service, db)
    assert sent_texts(db) == ["Reminder: tea is ready"]
    assert (run.state, run.session_id) == ("done", None)
    assert db.schedules.all() == []


async def test_a_late_reminder_says_when_it_was_due(
    db: SessionDB, tmp_path: Path, clock: ManualClock
) -> None:
    add(db, "in 1 minute", "tea is ready", kind="reminder")
    clock.advance(3600)
    async with running_gateway(db, tmp_path, clock=clock) as service:
        await run_due(service, db)
    assert sent_texts(db)[0].startswith("Reminder (due ")


@pytest.mark.parametrize(
    ("policy", "states", "missed"),
    [("once", ["done"], [4]), ("all", ["done"] * 5, [0] * 5), ("skip", ["skipped"], [4])],
)
async def test_the_policy_decides_after_a_downtime(
    policy: str,
    states: list[str],
    missed: list[int],
    db: SessionDB,
    tmp_path: Path,
    clock: ManualClock,
) -> None:
    add(db, "every 10 minutes", "water", kind="reminder", catch_up=policy)
    clock.advance(55 * MINUTE)
    async with running_gateway(db, tmp_path, clock=clock) as service:
        runs = await run_due(service, db, len(states))
        assert service.scheduler.tick() == 0
    assert [run.state for run in runs] == states
    assert [run.missed for run in runs] == missed


async def test_a_clock_that_is_set_back_repeats_nothing(
    db: SessionDB, tmp_path: Path, clock: ManualClock
) -> None:
    add(db, "every 10 minutes", "water", kind="reminder")
    async with running_gateway(db, tmp_path, clock=clock) as service:
        clock.advance(11 * MINUTE)
        await run_due(service, db)
        clock.jump(-30 * MINUTE)
        assert service.scheduler.tick() == 0
        clock.jump(30 * MINUTE)
        assert service.scheduler.tick() == 0
        clock.advance(10 * MINUTE)
        assert len(await run_due(service, db, 2)) == 2
    assert sent_texts(db) == ["Reminder: water"] * 2


async def test_a_job_with_a_number_of_runs_ends(
    db: SessionDB, tmp_path: Path, clock: ManualClock
) -> None:
    add(db, "every 1 minute", "water", kind="reminder", catch_up="all", runs_left=2)
    clock.advance(10 * MINUTE)
    async with running_gateway(db, tmp_path, clock=clock) as service:
        await run_due(service, db, 2)
        assert service.scheduler.tick() == 0
    assert sent_texts(db) == ["Reminder: water"] * 2
    assert [job.state for job in db.schedules.all(with_done=True)] == ["done"]


async def test_failures_are_reported_and_pause_the_job(
    db: SessionDB, tmp_path: Path, answering: Any, clock: ManualClock
) -> None:
    answering("[{fail: {status: 401}}, {fail: {status: 401}}]")
    ConfigFile.of_home().set("gateway.job_failures", "2")
    job = add(db)
    async with running_gateway(db, tmp_path, clock=clock) as service:
        for count in (1, 2):
            make_due(db, clock)
            runs = await run_due(service, db, count)
        clock.advance(10 * MINUTE)
        assert service.scheduler.tick() == 0
    assert [run.state for run in runs] == ["failed", "failed"]
    first, second = sent_texts(db)
    assert first.startswith(f"Scheduled job {job.job_id} (report)")
    assert "failed: " in first
    assert f"is paused. `hermes cron resume {job.job_id}` continues it." in second
    assert db.schedules.get(job.job_id).state == "paused"


async def test_runs_that_wait_when_their_job_is_paused_are_skipped(
    db: SessionDB, tmp_path: Path, answering: Any, clock: ManualClock
) -> None:
    server = answering("[{fail: {status: 401}}, {fail: {status: 401}}]")
    ConfigFile.of_home().set("gateway.job_failures", "2")
    add(db, "every 10 minutes", catch_up="all")
    clock.advance(55 * MINUTE)
    async with running_gateway(db, tmp_path, clock=clock) as service:
        runs = await run_due(service, db, 5)
    assert sorted(run.state for run in runs) == ["failed"] * 2 + ["skipped"] * 3
    assert len(server.requests) == 2
    assert len(sent_texts(db)) == 2


async def test_a_run_that_its_process_did_not_finish_is_reported_and_not_repeated(
    db: SessionDB, tmp_path: Path, answering: Any, clock: ManualClock
) -> None:
    server = answering("[{say: again}]")
    job = add(db)
    due = DueRuns((job.next_at,), 0, None, None, None)
    with SessionDB() as dead:
        act_as_dead_process(dead, "gone")
        dead.schedules.hand_over(
            job,
            due,
            lambda each: {
                "text": "report",
                "source": CHAT,
                "occurrence_id": each.occurrence_id,
            },
        )
        dead.inbox.claim()
        [occurrence] = dead.schedules.history()
        dead.schedules.start(occurrence, "cron_1", {})
    db.sweep()
    async with running_gateway(db, tmp_path, clock=clock):
        [run] = await ended(db)
    assert run.state == "interrupted"
    assert [text for text in sent_texts(db) if "was interrupted" in text] == sent_texts(db) != []
    assert server.requests == []


async def test_stopping_the_gateway_interrupts_a_run_and_reports_it(
    db: SessionDB, tmp_path: Path, answering: Any, clock: ManualClock
) -> None:
    server = answering("[{say: a b c d e f g h i j k l, pause: 30}]")
    add(db)
    async with running_gateway(db, tmp_path, clock=clock, drain=0.1) as service:
        make_due(db, clock)
        service.scheduler.tick()
        service.inbox_workers.wake()
        await async_wait_until(lambda: service.scheduled_runs.all_running() and server.requests)
    assert [run.state for run in db.schedules.history()] == ["interrupted"]
    assert "was interrupted" in sent_texts(db)[0]


async def test_what_needs_approval_is_refused_in_a_run(
    db: SessionDB, tmp_path: Path, answering: Any, clock: ManualClock
) -> None:
    server = answering(f"[{{say: Sure., calls: [{RISKY}]}}, {{say: Could not.}}]")
    add(db)
    async with running_gateway(db, tmp_path, clock=clock) as service:
        make_due(db, clock)
        await run_due(service, db)
    result = server.requests[1]["messages"][-1]
    assert result["role"] == "tool"
    assert "no user can be asked" in result["content"]
    assert sent_texts(db) == ["Could not."]
    names = {tool["function"]["name"] for tool in server.requests[0]["tools"]}
    assert "terminal" in names
    assert "schedule" not in names


async def test_a_run_has_no_more_rights_than_its_person_had_or_has(
    db: SessionDB, tmp_path: Path, answering: Any, clock: ManualClock
) -> None:
    server = answering("[{say: one}, {say: two}]")
    fields = {"allowed_users": ["ada", "bob"], "allow_admin_from": ["ada"]}
    config = GatewayConfig(platforms={Platform.TELEGRAM: PlatformConfig(True, extra=fields)})
    for user, role in (("ada", Role.GUEST), ("bob", Role.OWNER)):
        chat = {"platform": "telegram", "chat_id": user, "chat_type": "dm", "user_id": user}
        add(db, chat=chat, role=role, runs_left=1)
    async with running_gateway(db, tmp_path, config, clock=clock) as service:
        make_due(db, clock)
        await run_due(service, db, 2)
    offered = [
        {tool["function"]["name"] for tool in request.get("tools", [])}
        for request in server.requests
    ]
    assert sorted("read_file" in names for names in offered) == [False, True]  # guest and member


async def test_the_job_of_a_person_without_access_does_not_run(
    db: SessionDB, tmp_path: Path, answering: Any, clock: ManualClock
) -> None:
    server = answering("[{say: one}]")
    chat = {"platform": "telegram", "chat_id": "eve", "chat_type": "dm", "user_id": "eve"}
    add(db, chat=chat, role=Role.MEMBER)
    async with running_gateway(db, tmp_path, clock=clock) as service:
        make_due(db, clock)
        [run] = await run_due(service, db)
    assert (run.state, run.error) == ("failed", NO_ACCESS)
    assert server.requests == []


async def test_a_result_for_the_owner_goes_to_the_chat_used_last(
    db: SessionDB, tmp_path: Path, answering: Any, clock: ManualClock
) -> None:
    answering("[{say: Hello.}, {say: News.}]")
    create_job(db, local_requester(), JobRequest("every 1 minute", "report"))
    async with running_gateway(db, tmp_path, clock=clock) as service:
        make_due(db, clock)
        [run] = await run_due(service, db)
        assert "No direct chat of the owner is known" in str(run.error)
        await service.receiver.receive("a", local_message("hi", "m1"))
        await async_wait_until(lambda: sent_texts(db) == ["Hello."])
        make_due(db, clock)
        await run_due(service, db, 2)
    assert sent_texts(db) == ["Hello.", "News."]


async def test_a_requested_run_starts_at_once_also_of_a_paused_job(
    db: SessionDB, tmp_path: Path, answering: Any, clock: ManualClock
) -> None:
    answering("[{say: Now.}]")
    job = add(db)
    db.schedules.pause(job.job_id, "later")
    db.schedules.request_run(job.job_id)
    async with running_gateway(db, tmp_path, clock=clock):
        [run] = await ended(db)
    assert (run.is_manual, run.state) == (True, "done")
    assert db.schedules.get(job.job_id).next_at == job.next_at


async def test_a_conversation_that_a_dead_process_left_open_is_ended(
    db: SessionDB, tmp_path: Path, answering: Any, clock: ManualClock
) -> None:
    answering("[{say: Now.}]")
    add(db)
    async with running_gateway(db, tmp_path, clock=clock) as service:
        make_due(db, clock)
        [run] = await run_due(service, db)
        await async_wait_until(lambda: db.get_session(run.session_id)["ended_at"])
        db.reopen_session(run.session_id)
        service.scheduled_runs.end_conversations()
        assert db.get_session(run.session_id)["ended_at"] is None  # its process may still do it
        service.scheduled_runs.end_conversations(-1.0)
    assert db.get_session(run.session_id)["end_reason"] == "cron_complete"


async def test_the_cost_of_a_run_includes_its_sub_agents(
    db: SessionDB, tmp_path: Path, answering: Any, clock: ManualClock
) -> None:
    task = "{name: delegate_task, arguments: {tasks: [{goal: Look it up.}]}}"
    answering(
        f"[{{calls: [{task}], cost: 0.25}}, {{say: Found., cost: 0.5}}, {{say: Done., cost: 1}}]"
    )
    job = add(db)
    async with running_gateway(db, tmp_path, clock=clock) as service:
        make_due(db, clock)
        await run_due(service, db)
        await async_wait_until(lambda: db.schedules.totals()[job.job_id].dollars == 1.75)
