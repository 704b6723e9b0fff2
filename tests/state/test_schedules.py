"""Scheduled jobs in the store: an occurrence is handed over once and started once."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest

from hermes_core.errors import StoreError, UsageError
from hermes_state.delivery import inbox, rows
from hermes_state.delivery.inbox import PausedPlace
from hermes_state.schedules import repository as schedules
from hermes_state.schedules.repository import MAX_JOBS_PER_PERSON, DueRuns
from hermes_state.schedules.rows import CRON, NewJob, RunUsage
from support.identities import act_as_dead_process

if TYPE_CHECKING:
    from hermes_core.json_values import JsonObject
    from hermes_state import SessionDB
    from hermes_state.schedules.rows import Occurrence, ScheduledJob
    from state.conftest import OpenStore

REQUESTER = {"platform": "telegram", "chat_id": "7", "user_id": "7"}


def add(db: SessionDB, next_at: float = 100.0, **fields: Any) -> ScheduledJob:
    known: dict[str, Any] = {
        "name": "news", "prompt": "What is new?", "schedule": "every minute",
        "rule": "every 60 from 40", "zone": "UTC", "requester": REQUESTER,
        "platform": "telegram", "user_id": "7", "role": "owner", "next_at": next_at,
    }  # fmt: skip
    return db.schedules.add(NewJob(**{**known, **fields}))


def encode(occurrence: Occurrence) -> JsonObject:
    return {"text": "What is new?", "occurrence_id": occurrence.occurrence_id}


def one_run(at: float = 100.0, next_at: float | None = 160.0) -> DueRuns:
    return DueRuns((at,), 0, None, next_at, None)


def claimed_run(db: SessionDB) -> tuple[rows.IncomingMessage, Occurrence]:
    row = db.inbox.claim()
    assert row is not None
    assert row.platform == CRON
    occurrence = db.schedules.occurrence(row.payload["occurrence_id"])
    assert occurrence is not None
    return row, occurrence


@pytest.mark.engines
def test_a_job_is_stored_and_found_when_it_is_due(db: SessionDB) -> None:
    job = add(db, target={"platform": "telegram", "chat_id": "7"}, runs_left=3)
    assert db.schedules.get(job.job_id) == job
    assert (job.target, job.requester) == ({"platform": "telegram", "chat_id": "7"}, REQUESTER)
    assert db.schedules.due(99.0) == []
    assert db.schedules.due(100.0) == [job]


@pytest.mark.engines
def test_of_several_nodes_one_hands_an_occurrence_over(open_store: OpenStore) -> None:
    stores = [open_store() for _ in range(4)]
    job = add(stores[0])
    results: list[bool] = []
    barrier = threading.Barrier(len(stores))

    def hand_over(store: SessionDB) -> None:
        barrier.wait()
        results.append(store.schedules.hand_over(job, one_run(), encode))

    threads = [threading.Thread(target=hand_over, args=(store,)) for store in stores]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == [False, False, False, True]
    assert len(stores[0].schedules.history()) == 1
    row, occurrence = claimed_run(stores[0])
    assert (occurrence.due_at, occurrence.state, occurrence.inbox_id) == (
        100.0, "waiting", row.inbox_id,
    )  # fmt: skip
    assert stores[0].inbox.claim() is None


@pytest.mark.engines
def test_runs_of_one_job_wait_for_each_other(db: SessionDB) -> None:
    job = add(db)
    db.schedules.hand_over(job, DueRuns((100.0, 160.0), 0, None, 220.0, None), encode)
    row, occurrence = claimed_run(db)
    assert occurrence.due_at == 100.0
    assert db.inbox.claim() is None
    db.inbox.settle(row.inbox_id)
    assert claimed_run(db)[1].due_at == 160.0


def test_a_job_that_was_changed_meanwhile_is_not_handed_over(db: SessionDB) -> None:
    job = add(db)
    db.schedules.edit(job.job_id, {"rule": "every 3600 from 40", "schedule": "every hour"})
    assert not db.schedules.hand_over(job, one_run(), encode)
    db.schedules.pause(job.job_id, "later")
    changed = db.schedules.get(job.job_id)
    assert changed is not None
    assert not db.schedules.hand_over(changed, one_run(), encode)
    assert db.schedules.history() == []


@pytest.mark.engines
def test_a_run_is_started_once_and_only_by_the_process_that_claimed_it(
    open_store: OpenStore,
) -> None:
    db, other = open_store(), open_store()
    act_as_dead_process(other, "gone")
    db.schedules.hand_over(add(db), one_run(), encode)
    _row, occurrence = claimed_run(other)
    with pytest.raises(StoreError, match="not claimed"):
        db.schedules.start(occurrence, "s1", {})
    assert other.schedules.start(occurrence, "s1", {})
    assert not other.schedules.start(occurrence, "s2", {})
    assert db.get_session("s1")["source"] == CRON
    assert db.get_session("s2") is None


@pytest.mark.engines
def test_a_run_of_a_dead_process_comes_back_as_running(open_store: OpenStore) -> None:
    db, dead = open_store(), open_store()
    act_as_dead_process(dead, "gone")
    db.schedules.hand_over(add(db), one_run(), encode)
    row, occurrence = claimed_run(dead)
    dead.schedules.start(occurrence, "s1", {})
    db.sweep()
    again, found = claimed_run(db)
    assert (again.inbox_id, found.state, found.session_id) == (row.inbox_id, "running", "s1")
    assert not db.schedules.start(found, "s2", {})


@pytest.mark.engines
def test_the_end_of_a_run_its_cost_and_its_failures_are_recorded(db: SessionDB) -> None:
    job = add(db)
    db.schedules.hand_over(job, one_run(), encode)
    row, occurrence = claimed_run(db)
    db.schedules.start(occurrence, "s1", {})

    def fail(tx: Any) -> int:
        inbox.settle(tx, row.inbox_id, db.identity.process_id, "s1")
        schedules.finish(tx, occurrence.occurrence_id, "failed", "no model")
        return schedules.count_failure(tx, job.job_id)

    assert db.engine.write(fail) == 1
    db.schedules.set_usage(occurrence.occurrence_id, RunUsage(1200, 0.25))
    totals = db.schedules.totals()[job.job_id]
    assert totals == (1, 1, 1200, 0.25, "failed", 100.0)
    [ended] = db.schedules.history(job.job_id)
    assert (ended.state, ended.error, ended.session_id) == ("failed", "no model", "s1")
    db.engine.write(lambda tx: schedules.forgive_failures(tx, job.job_id))
    assert db.schedules.get(job.job_id).failures == 0


def test_missed_occurrences_are_counted(db: SessionDB) -> None:
    job = add(db)
    db.schedules.hand_over(job, DueRuns((), 4, 280.0, 340.0, None), encode)
    [skipped] = db.schedules.history()
    assert (skipped.state, skipped.due_at, skipped.missed) == ("skipped", 280.0, 3)
    assert db.inbox.claim() is None
    job = db.schedules.get(job.job_id)
    db.schedules.hand_over(job, DueRuns((400.0,), 2, 380.0, 460.0, None), encode)
    assert db.schedules.history()[0].missed == 2


def test_a_job_without_a_next_time_is_done(db: SessionDB) -> None:
    job = add(db)
    db.schedules.hand_over(job, one_run(next_at=None), encode)
    assert db.schedules.all() == []
    assert [each.state for each in db.schedules.all(with_done=True)] == ["done"]


@pytest.mark.engines
def test_a_requested_run_is_handed_over_once(db: SessionDB) -> None:
    job = add(db, next_at=1e12)
    assert db.schedules.request_run(job.job_id + 1) is None
    db.schedules.request_run(job.job_id)
    [requested] = db.schedules.requested()
    assert db.schedules.hand_over_requested(requested, encode)
    assert not db.schedules.hand_over_requested(requested, encode)
    assert db.schedules.requested() == []
    assert claimed_run(db)[1].is_manual


def test_a_removed_job_takes_its_waiting_runs_along(db: SessionDB) -> None:
    job = add(db)
    db.schedules.hand_over(job, DueRuns((100.0, 160.0), 0, None, 220.0, None), encode)
    _row, first = claimed_run(db)
    db.schedules.start(first, "s1", {})
    assert db.schedules.remove(job.job_id)
    assert not db.schedules.remove(job.job_id)
    assert [each.due_at for each in db.schedules.history()] == [100.0]
    db.inbox.settle(_row.inbox_id)
    assert db.inbox.claim() is None


def test_an_entry_of_another_program_is_imported_once(db: SessionDB) -> None:
    first = add(db, origin="hermes-agent:a1")
    again = add(db, origin="hermes-agent:a1", name="other")
    assert again == first
    assert db.schedules.is_imported("hermes-agent:a1")


def test_a_person_has_a_limited_number_of_jobs(db: SessionDB) -> None:
    for _ in range(MAX_JOBS_PER_PERSON):
        add(db)
    with pytest.raises(UsageError, match="Remove some"):
        add(db)
    add(db, user_id="8")


def test_a_paused_job_continues_with_a_later_time(db: SessionDB) -> None:
    job = add(db)
    assert db.schedules.pause(job.job_id, "because")
    assert not db.schedules.pause(job.job_id, "again")
    assert db.schedules.due(1000.0) == []
    assert db.schedules.resume(job.job_id, 1060.0)
    assert not db.schedules.resume(job.job_id, 1060.0)
    assert [each.next_at for each in db.schedules.due(2000.0)] == [1060.0]


def test_a_job_is_held_once(db: SessionDB) -> None:
    job = add(db)
    assert db.schedules.hold(job)
    assert not db.schedules.hold(job)
    held = db.schedules.get(job.job_id)
    assert held.is_held
    db.schedules.hand_over(held, one_run(), encode)
    assert not db.schedules.get(job.job_id).is_held


def test_old_runs_are_forgotten_and_jobs_that_are_done_with_them(db: SessionDB) -> None:
    job = add(db)
    db.schedules.hand_over(job, DueRuns((), 1, 100.0, None, None), encode)
    db.schedules.forget(365.0)
    assert len(db.schedules.all(with_done=True)) == 1
    db.schedules.forget(-1.0)
    assert (db.schedules.history(), db.schedules.all(with_done=True)) == ([], [])


# Places that wait for a budget


@pytest.mark.engines
def test_messages_of_a_paused_place_wait(db: SessionDB) -> None:
    def receive(number: int, chat: str, *, claim: bool = False) -> rows.ReceivedMessage:
        return db.inbox.receive(
            platform="telegram", account="bot", chat_id=chat, message_id=str(number),
            session_key=chat, payload={"text": f"message {number}"}, claim=claim,
        )  # fmt: skip

    receive(1, "a")
    row = db.inbox.claim()
    now = db.clock.now()
    db.paused_places.pause(row, PausedPlace("a", now + 1000, "telegram", "7"))
    assert receive(2, "a", claim=True).claimed is None
    assert receive(3, "b", claim=True).claimed is not None
    assert db.inbox.claim() is None
    assert db.inbox.claim("a") is None
    assert db.paused_places.all() == [PausedPlace("a", now + 1000, "telegram", "7")]
    db.paused_places.release("a")
    claimed = db.inbox.claim()
    assert (claimed.inbox_id, claimed.attempts) == (row.inbox_id, 1)


def test_a_pause_ends_at_its_time(db: SessionDB) -> None:
    db.inbox.receive(
        platform="telegram", account="bot", chat_id="a", message_id="1", session_key="a",
        payload={"text": "hello"},
    )  # fmt: skip
    row = db.inbox.claim()
    db.paused_places.pause(row, PausedPlace("a", db.clock.now() - 1, "telegram", "7"))
    assert db.inbox.claim().inbox_id == row.inbox_id


@pytest.mark.engines
def test_tokens_and_dollars_are_added_up_for_a_person_and_for_all(db: SessionDB) -> None:
    for user, tokens in (("7", 100), ("7", 50), ("8", 25)):
        db.chats.add_tokens("telegram", user, "2026-03-29", tokens)
        db.chats.add_spending("telegram", user, "2026-03-29", tokens / 100)
    assert db.chats.tokens("telegram", "7", "2026-03-29") == 150
    assert db.chats.tokens_of_all("2026-03-29") == 175
    assert db.chats.spending_of_all("2026-03-29") == pytest.approx(1.75)
    assert db.chats.tokens_of_all("2026-03-30") == 0
    assert db.chats.spending_of_all("2026-03-30") == 0.0
