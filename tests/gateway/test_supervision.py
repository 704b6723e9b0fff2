"""Long-lived tasks are restarted, bad updates set aside, and the owner is told of outages."""

from __future__ import annotations

import asyncio
import errno
import json
from typing import TYPE_CHECKING, Any

import pytest

from gateway import status
from gateway.config import GatewayConfig
from gateway.inbound import inbox_workers
from gateway.inbound.turn_runner import RunningTurns, TurnTimes
from gateway.platforms.quarantine import MAX_TRIES, UpdateFailedError, UpdateGuard
from gateway.process.live_facts import find_problems
from gateway.process.service import LOST_SECONDS, OutageNotices
from gateway.supervision import Supervisor
from hermes_agent.events import TextDelta, ToolStarted
from hermes_agent.messages import ToolCall
from hermes_core.backoff import Backoff
from hermes_core.errors import StoreUnavailableError
from support.adapters import QUICK_BACKOFF
from support.chat import LocalChatClient
from support.gateways import running_gateway
from support.waiting import async_wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from gateway.status import RuntimePlatform
    from hermes_state import SessionDB


# Tasks


async def test_a_failed_task_is_restarted_and_its_failures_are_counted() -> None:
    supervisor = Supervisor(QUICK_BACKOFF)
    starts: list[int] = []

    async def work() -> None:
        starts.append(len(starts))
        if len(starts) < 4:
            raise RuntimeError("not foreseen")
        await asyncio.Event().wait()

    task = supervisor.start("work", work)
    await async_wait_until(lambda: len(starts) == 4)
    [record] = supervisor.records
    assert (record.failures, record.last_error) == (3, "RuntimeError: not foreseen")
    assert (record.is_running, record.problem) == (True, "")
    task.cancel()


async def test_a_task_between_two_starts_is_a_problem() -> None:
    supervisor = Supervisor(Backoff(60.0, 60.0))

    async def work() -> None:
        raise RuntimeError("not foreseen")

    task = supervisor.start("work", work)
    [record] = supervisor.records
    await async_wait_until(lambda: record.failures)
    assert record.problem == "work: RuntimeError: not foreseen"
    task.cancel()


async def test_a_task_that_returns_is_not_started_again() -> None:
    supervisor = Supervisor(QUICK_BACKOFF)
    starts: list[int] = []

    async def work() -> None:
        starts.append(1)

    await supervisor.start("work", work)
    assert starts == [1]
    assert not supervisor.records[0].problem


@pytest.mark.parametrize("name", ["inbox", "maintenance", "hand-offs", "local sender 1"])
async def test_the_gateway_goes_on_after_the_failure_of_any_of_its_tasks(
    db: SessionDB, tmp_path: Path, answering: Any, name: str
) -> None:
    answering("[{say: Hello.}]")
    async with running_gateway(db, tmp_path) as service:
        record = next(item for item in service.supervisor.records if item.name == name)
        task = next(item for item in asyncio.all_tasks() if item.get_name() == name)
        inject(task, RuntimeError("not foreseen"))
        await async_wait_until(lambda: record.failures == 1 and record.is_running)
        async with LocalChatClient(tmp_path / "s.sock") as chat:
            await chat.send("hi", "m1")
            assert await chat.wait_for(1) == ["Hello."]


def inject(task: asyncio.Task[None], error: Exception) -> None:
    """Raise an error in a task, where it waits."""
    waiter = task._fut_waiter  # type: ignore[attr-defined]
    assert waiter is not None
    if isinstance(waiter, asyncio.Task):
        inject(waiter, error)
    else:
        waiter.set_exception(error)


# Updates


class Quarantined(list[tuple[str, object, str]]):
    async def __call__(self, update_id: str, content: object, error: str) -> None:
        self.append((update_id, content, error))


async def fail(error: Exception) -> None:
    raise error


async def test_an_update_that_always_fails_is_set_aside_after_some_tries() -> None:
    quarantined = Quarantined()
    guard = UpdateGuard(quarantined)
    for _ in range(MAX_TRIES - 1):
        with pytest.raises(UpdateFailedError):
            await guard.handle("7", {"a": 1}, fail(TypeError("odd")))
    await guard.handle("7", {"a": 1}, fail(TypeError("odd")))
    assert quarantined == [("7", {"a": 1}, "TypeError: odd")]


async def test_failures_of_the_store_are_not_those_of_the_update() -> None:
    quarantined = Quarantined()
    guard = UpdateGuard(quarantined)
    for _ in range(2 * MAX_TRIES):
        with pytest.raises(StoreUnavailableError):
            await guard.handle("7", {}, fail(StoreUnavailableError("locked")))
    assert not quarantined


def test_a_quarantined_update_is_stored_and_can_be_deleted(db: SessionDB) -> None:
    db.inbox.quarantine("telegram", "7", '{"update_id": 7}', "TypeError: odd")
    db.inbox.quarantine("telegram", "7", '{"update_id": 7}', "TypeError: odd")
    [failed] = db.inbox.failed()
    assert (failed.platform, failed.content) == ("telegram", '{"update_id": 7}')
    assert (db.inbox.count_failed(), db.inbox.waiting_places()) == (1, 0)
    assert db.inbox.delete_failed(failed.inbox_id)
    assert not db.inbox.failed()


# Turns and commands


def test_the_times_of_turns_show_the_longest_silence() -> None:
    now = [0.0]
    turns = RunningTurns(100.0, lambda: now[0])
    turns.start(1)
    now[0] = 50.0
    turns.start(2)
    turns.progress(1, TextDelta("a"))
    now[0] = 120.0
    assert turns.times() == TurnTimes(2, 120.0, 70.0, 0)
    turns.end(1)
    turns.end(2)
    assert turns.times() == TurnTimes()


def test_a_turn_that_outlived_its_deadline_is_hung() -> None:
    now = [0.0]
    turns = RunningTurns(100.0, lambda: now[0])
    turns.start(1)
    turns.start(2)
    turns.progress(2, ToolStarted(ToolCall("c1", "run_command", "{}")))  # a tool may take an hour
    now[0] = 130.0
    assert turns.times().hung == 1
    now[0] = 3800.0
    assert turns.times().hung == 2


async def test_commands_are_answered_while_turns_take_all_slots(
    db: SessionDB, tmp_path: Path, answering: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inbox_workers, "OWNER_TURNS", 0)
    model = answering("[{hang: 60}, {hang: 60}]")
    config = GatewayConfig(max_concurrent_sessions=2)
    async with (
        running_gateway(db, tmp_path, config, drain=0),
        LocalChatClient(tmp_path / "s.sock") as chat,
    ):
        for name in ("a", "b"):
            await chat.send("hi", f"{name}1", name)
        await async_wait_until(lambda: len(model.requests) == 2)
        await chat.send("/help", "c1", "c")
        [text] = await chat.wait_for(1)
        assert "/new" in text
        await chat.send("hi", "d1", "d")  # waits for a place
        await chat.send("/whoami", "d2", "d")
        await chat.wait_for(2)


async def test_a_full_disk_does_not_stop_the_heartbeat(
    db: SessionDB, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running_gateway(db, tmp_path) as service:

        def fail(*_facts: object, **_more: object) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr(status, "write_runtime_status", fail)
        await service.beat()
        first = service.facts.current["heartbeat_at"]
        await service.beat()
        assert service.facts.current["heartbeat_at"] > first
        monkeypatch.undo()


# Outages


def states(state: str, error: str | None = None) -> dict[str, RuntimePlatform]:
    return {"matrix": {"state": state, "error_message": error}}


def stored(db: SessionDB) -> list[str]:
    rows = db.engine.read(
        lambda reader: reader.rows("SELECT payload FROM hermes_outbox ORDER BY outbox_id")
    )
    return [str(json.loads(row[0])["text"]) for row in rows]


def test_the_owner_is_told_when_a_platform_is_lost_and_back(db: SessionDB) -> None:
    now = [0.0]
    watch = OutageNotices(db, GatewayConfig(), ["telegram:7"], lambda: now[0])
    watch.update(states("connected"))
    watch.update(states("lost", "Token revoked."))
    now[0] = LOST_SECONDS / 2
    watch.update(states("lost", "Token revoked."))
    assert not stored(db)
    now[0] = LOST_SECONDS
    watch.update(states("lost", "Token revoked."))
    watch.update(states("lost", "Token revoked."))
    now[0] = 5 * 60.0
    watch.update(states("connected"))
    watch.update(states("connected"))
    assert stored(db) == [
        "Hermes: matrix is not connected: Token revoked.",
        "Hermes: matrix is connected again, after 5 min.",
    ]


def test_the_end_of_an_outage_is_told_after_a_restart_too(db: SessionDB) -> None:
    now = [0.0]
    watch = OutageNotices(db, GatewayConfig(), ["telegram:7"], lambda: now[0])
    watch.update(states("lost", "Token revoked."))
    now[0] = LOST_SECONDS
    watch.update(states("lost", "Token revoked."))
    restarted = OutageNotices(db, GatewayConfig(), ["telegram:7"], lambda: now[0])
    now[0] = 7200.0
    restarted.update(states("lost", "Token revoked."))
    restarted.update(states("connected"))
    assert stored(db) == [
        "Hermes: matrix is not connected: Token revoked.",
        "Hermes: matrix is connected again, after 120 min.",
    ]


def test_a_short_outage_is_not_mentioned(db: SessionDB) -> None:
    now = [0.0]
    watch = OutageNotices(db, GatewayConfig(), ["telegram:7"], lambda: now[0])
    watch.update(states("down"))
    now[0] = LOST_SECONDS - 1
    watch.update(states("connected"))
    assert not stored(db)


def test_problems_are_sentences() -> None:
    found = find_problems(
        {
            "platforms": {"telegram": {"state": "lost", "error_message": "Token revoked."}},
            "store_error": "no write has succeeded for 12 s",
            "free_bytes": 5_000_000,
            "turns": {"hung": 1},
            "tasks": [
                {
                    "name": "inbox",
                    "is_running": False,
                    "failures": 2,
                    "last_error": "KeyError: 'a'",
                    "failed_at": 1.0,
                    "is_platform": False,
                }
            ],
        }
    )
    assert found == [
        "telegram is lost: Token revoked.",
        "the history cannot be written: no write has succeeded for 12 s",
        "the disk is full: 5.0 MB left",
        "1 turn hung",
        "inbox failed and is being restarted: KeyError: 'a'",
    ]
    assert not find_problems({"platforms": {"local": {"state": "connected"}}})
