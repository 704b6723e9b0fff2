"""The clock is set back: nothing is reordered, no process is declared dead."""

from __future__ import annotations

import signal

import pytest

from acceptance.campaign import Worker, assert_healthy
from hermes_core.clock import ManualClock, SystemClock
from hermes_core.errors import LeaseLostError, LeaseTakenError
from hermes_state import SessionDB

pytestmark = pytest.mark.clock

DAY_SECONDS = 86400.0
JUMPS = [-DAY_SECONDS, DAY_SECONDS, -3600.0, -0.5]


@pytest.fixture
def clock():
    return ManualClock(now=SystemClock().now(), monotonic=SystemClock().monotonic())


@pytest.fixture
def db(state_db, clock):
    with SessionDB(state_db, clock=clock) as store:
        store.create_session("one", "cli")
        yield store


@pytest.mark.parametrize("jump", JUMPS)
def test_messages_keep_their_order(db, clock, jump):
    for number in range(20):
        db.append_message("one", "user", str(number))
        clock.advance(0.1)
        if number % 5 == 4:
            clock.jump(jump)
    expected = [str(number) for number in range(20)]
    assert [row["content"] for row in db.get_messages("one")] == expected
    assert [row.content for row in db.messages.iter_messages("one")] == expected
    assert [turn["content"] for turn in db.get_messages_as_conversation("one")] == expected
    assert [row["content"] for row in db.get_messages("one", limit=3, latest=True)] == expected[-3:]


def test_identities_keep_their_order(db, clock):
    results = []
    for _ in range(50):
        results.append(db.ids.new())
        clock.jump(-60)
    assert results == sorted(set(results))


@pytest.mark.parametrize("jump", JUMPS)
def test_a_lease_neither_ends_nor_lasts_longer(db, clock, jump):
    lease = db.leases.acquire("one", "first", seconds=60)
    clock.jump(jump)
    clock.advance(59)
    with pytest.raises(LeaseTakenError):
        db.leases.acquire("one", "second")
    db.append_message("one", "user", "still mine", lease=lease)
    clock.jump(jump)
    clock.advance(2)
    db.leases.acquire("one", "second")
    with pytest.raises(LeaseLostError):
        db.append_message("one", "user", "too late", lease=lease)


@pytest.mark.parametrize("jump", JUMPS)
def test_a_living_process_is_not_swept(state_db, tmp_path, clock, jump):
    with Worker("signal_handling.py", tmp_path, state_db, "theirs", "flag", 1) as worker:
        worker.wait_for("ready")
        clock.jump(jump)
        with SessionDB(state_db, clock=clock) as db:
            assert db.get_session("theirs")["ended_at"] is None
            worker.process.send_signal(signal.SIGTERM)
            assert worker.wait() == 0, worker.error_output()
            assert db.get_session("theirs")["end_reason"] == "interrupted by the user"


def test_a_dead_process_is_swept_regardless_of_the_clock(state_db, tmp_path, clock):
    with Worker("signal_handling.py", tmp_path, state_db, "theirs", "flag", 1) as worker:
        worker.wait_for("stored")
        worker.kill()
    clock.jump(-DAY_SECONDS)
    with SessionDB(state_db, clock=clock) as db:
        session = db.get_session("theirs")
        assert session["end_reason"] == "crashed"
        last = db.get_messages("theirs")[-1]
        assert session["ended_at"] == last["timestamp"]
        assert (
            len([boundary for boundary in db.boundaries.recent("theirs") if boundary.is_final]) == 1
        )


def last_active(db, **options):
    rows = db.list_sessions_rich(order_by_last_active=True, limit=-1, **options)
    return [(row["id"], row["last_active"]) for row in rows]


def test_last_activity_never_decreases(db, clock, state_db):
    db.append_message("one", "user", "before")
    reached = last_active(db)[0][1]
    clock.jump(-DAY_SECONDS)
    db.append_message("one", "user", "after")
    assert last_active(db)[0][1] == reached
    assert_healthy(state_db)


def test_lists_stay_complete(db, clock):
    for number in range(30):
        db.create_session(f"s{number:02}", "cli")
        db.append_message(f"s{number:02}", "user", "hello")
        clock.advance(1)
        if number % 7 == 6:
            clock.jump(-DAY_SECONDS)
    rows = last_active(db)
    assert rows == sorted(rows, key=lambda row: (row[1], row[0]), reverse=True)
    assert len({row[0] for row in rows}) == 31
    paged = [
        row["id"]
        for offset in range(0, 31, 4)
        for row in db.list_sessions_rich(limit=4, offset=offset, order_by_last_active=True)
    ]
    assert paged == [row[0] for row in rows]
    by_start = [row["started_at"] for row in db.list_sessions_rich(limit=-1)]
    assert by_start == sorted(by_start, reverse=True)


def test_a_session_ended_after_a_jump_can_be_reopened_and_ended_again(db, clock):
    db.append_message("one", "user", "hello")
    clock.jump(-DAY_SECONDS)
    db.end_session("one", "done")
    db.reopen_session("one")
    db.append_message("one", "user", "again")
    db.end_session("one", "done again")
    assert db.get_session("one")["end_reason"] == "done again"
    assert len([boundary for boundary in db.boundaries.recent("one") if boundary.is_final]) == 2
